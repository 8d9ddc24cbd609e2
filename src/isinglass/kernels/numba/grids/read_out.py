"""The read-out of the beliefs of variables on regular grids, and its reverse, where messages lie in planes.

The arithmetic is that of `messages.read_out` and `messages.adjoints`, in the same sequence (edges of a site: left,
right, up, down): the same bits. Where a site has no neighbour, the message is one. Inputs are positive.

Planes come flat; `steps` says where the numbers of a site lie in them (see `layout.PlaneSteps`).
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.jit import compiled


@compiled
def read_out_planes(phi, inbox, steps, card, height, width, first, last, top, bottom, variables, z):
    """Write the normalised beliefs of the rows ``top:bottom`` of some grids, and their sums before that.

    Returns the smallest belief before its normalisation; at most one.
    """
    least = 1.0
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    for c in range(first, last):
        for row in range(top, bottom):
            at = c * steps.grid + row * steps.row + steps.site
            own = c * steps.potentials + row * steps.row + steps.site
            i = (c * height + row) * width
            for x in range(width):
                total = 0.0
                for k in range(card):
                    s = at + x + k * steps.state
                    value = phi[ix(own + x + k * steps.state)] * inbox[ix(s)] * inbox[ix(s + right)]
                    value = value * inbox[ix(s + up)] * inbox[ix(s + down)]
                    variables[ix((i + x) * card + k)] = value
                    least = value if value < least else least
                    total = total + value if k > 0 else value
                z[ix(i + x)] = total
                scale = 1 / total
                for k in range(card):
                    variables[ix((i + x) * card + k)] *= scale
    return least


@compiled
def read_out_planes_back(variables, variables_bar, phi_bar, bars, steps, card, height, width, first, last, top, bottom):
    """Write the derivatives by the logs of messages to the rows ``top:bottom`` of some grids, given those by beliefs.

    They are added to the derivatives by potentials, too, which lie as the beliefs do. Borders are left alone.
    """
    right, up, down = steps.direction, 2 * steps.direction, 3 * steps.direction
    for c in range(first, last):
        for row in range(top, bottom):
            at = c * steps.grid + row * steps.row + steps.site
            i = (c * height + row) * width
            above, below = 1.0 if row > 0 else 0.0, 1.0 if row < height - 1 else 0.0
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
            for k in range(card):
                bars[ix(at + k * steps.state)] = 0
                bars[ix(at + width - 1 + k * steps.state + right)] = 0
