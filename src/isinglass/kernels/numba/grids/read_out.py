"""The read-out of the beliefs of variables on regular grids, and its reverse, where messages lie in planes.

The arithmetic is that of `messages.read_out` and `messages.adjoints`, in the same sequence (edges of a site: left,
right, up, down): the same bits. Where a site has no neighbour, the message is one. Inputs are positive.

Planes come flat; `steps` says where the numbers of a site lie in them (see `layout.PlaneSteps`). Rows of two states
have loops of their own, which become vectors.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import apart, compiled, inner


@inner
def read_row(phi, inbox, own, at, steps, card, width, variables, z, i):
    """Write the beliefs of a row. Returns the smallest before its normalisation; at most one."""
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    least = 1.0
    for x in range(width):
        total = 0.0
        for k in range(card):
            s = at + x + k * steps.state
            value = phi[ix(own + x + k * steps.own_state)] * inbox[ix(s)] * inbox[ix(s + right)]
            value = value * inbox[ix(s + up)] * inbox[ix(s + down)]
            variables[ix((i + x) * card + k)] = value
            least = value if value < least else least
            total = total + value if k > 0 else value
        z[ix(i + x)] = total
        scale = 1 / total
        for k in range(card):
            variables[ix((i + x) * card + k)] *= scale
    return least


@inner
def read_row_of_pairs(phi, inbox, own, at, steps, width, variables, z, i):
    """Write the beliefs of a row of binary variables. Returns a lower bound of them before their normalisation."""
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    for x in range(width):
        s, t = at + x, at + x + steps.state
        zero = phi[ix(own + x)] * inbox[ix(s)] * inbox[ix(s + right)] * inbox[ix(s + up)] * inbox[ix(s + down)]
        one = phi[ix(own + x + steps.own_state)] * inbox[ix(t)] * inbox[ix(t + right)]
        one = one * inbox[ix(t + up)] * inbox[ix(t + down)]
        total = zero + one
        z[ix(i + x)] = total
        scale = 1 / total
        variables[ix(2 * (i + x))] = zero * scale
        variables[ix(2 * (i + x) + 1)] = one * scale
    return smallest(z, i, i + width) * smallest(variables, 2 * i, 2 * (i + width))


@inner
def smallest(values, first, last):
    """Return the smallest of some values; at most one."""
    least = 1.0
    for i in range(first, last):
        least = values[ix(i)] if values[ix(i)] < least else least
    return least


@apart
def read_grid(phi, inbox, steps, card, height, width, c, top, bottom, variables, z):
    """Write the normalised beliefs of the rows ``top:bottom`` of grid c, and their sums before that.

    Returns a lower bound of the beliefs before their normalisation; at most one.
    """
    least = 1.0
    for row in range(top, bottom):
        at = c * steps.grid + row * steps.row + steps.site
        own = c * steps.potentials + row * steps.row + steps.site
        i = (c * height + row) * width
        if card == 2:
            found = read_row_of_pairs(phi, inbox, own, at, steps, width, variables, z, i)
        else:
            found = read_row(phi, inbox, own, at, steps, card, width, variables, z, i)
        least = found if found < least else least
    return least


@compiled
def read_out_planes(phi, inbox, steps, card, height, width, first, last, top, bottom, variables, z):
    """Do it for some grids."""
    least = 1.0
    for c in range(first, last):
        found = read_grid(phi, inbox, steps, card, height, width, c, top, bottom, variables, z)
        least = found if found < least else least
    return least


@inner
def row_back(variables, variables_bar, phi_bar, bars, steps, card, width, at, i, above, below):
    """Write the derivatives by the logs of the messages to a row, and add them to those by potentials."""
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    for x in range(width):
        b = (i + x) * card
        mean = 0.0
        for k in range(card):
            mean += variables[ix(b + k)] * variables_bar[ix(b + k)]
        for k in range(card):
            value = variables[ix(b + k)] * (variables_bar[ix(b + k)] - mean)
            phi_bar[ix(b + k)] += value
            s = at + x + k * steps.state
            bars[ix(s)] = value
            bars[ix(s + right)] = value
            bars[ix(s + up)] = value * above
            bars[ix(s + down)] = value * below


@inner
def pairs_back(variables, variables_bar, phi_bar, bars, steps, width, at, i, above, below):
    """Do what `row_back` does, for binary variables."""
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    for x in range(width):
        b, s, t = 2 * (i + x), at + x, at + x + steps.state
        mean = variables[ix(b)] * variables_bar[ix(b)] + variables[ix(b + 1)] * variables_bar[ix(b + 1)]
        zero = variables[ix(b)] * (variables_bar[ix(b)] - mean)
        one = variables[ix(b + 1)] * (variables_bar[ix(b + 1)] - mean)
        phi_bar[ix(b)] += zero
        phi_bar[ix(b + 1)] += one
        bars[ix(s)] = zero
        bars[ix(s + right)] = zero
        bars[ix(s + up)] = zero * above
        bars[ix(s + down)] = zero * below
        bars[ix(t)] = one
        bars[ix(t + right)] = one
        bars[ix(t + up)] = one * above
        bars[ix(t + down)] = one * below


@apart
def grid_back(variables, variables_bar, phi_bar, bars, steps, card, height, width, c, top, bottom):
    """Write the derivatives by the logs of messages to the rows ``top:bottom`` of grid c, given those by beliefs.

    They are added to the derivatives by potentials, too, which lie as the beliefs do. Borders are left alone.
    """
    for row in range(top, bottom):
        at = c * steps.grid + row * steps.row + steps.site
        i = (c * height + row) * width
        above, below = 1.0 if row > 0 else 0.0, 1.0 if row < height - 1 else 0.0
        if card == 2:
            pairs_back(variables, variables_bar, phi_bar, bars, steps, width, at, i, above, below)
        else:
            row_back(variables, variables_bar, phi_bar, bars, steps, card, width, at, i, above, below)
        for k in range(card):
            bars[ix(at + k * steps.state)] = 0
            bars[ix(at + width - 1 + k * steps.state + steps.direction)] = 0


@compiled
def read_out_planes_back(variables, variables_bar, phi_bar, bars, steps, card, height, width, first, last, top, bottom):
    """Do it for some grids."""
    for c in range(first, last):
        grid_back(variables, variables_bar, phi_bar, bars, steps, card, height, width, c, top, bottom)
