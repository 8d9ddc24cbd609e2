"""Steps of the beliefs of a convex free energy, one component at a time: multiplicative, positive, with a report.

With rho = d / b a belief that grows follows the linear step and one that shrinks its logarithm:

    b  <-  b (1 + rho)  if rho >= 0,    b exp(max(rho, -cap))  otherwise,    within [floor, 1].

What that leaves of the constraints is of second order, and goes into the next step's residuals. The floor bounds how
stiff the system can get; beliefs that end there go on, with a lower one, once the others stand still.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.free_energy.newton import GENERAL
from isinglass.runtime.compilation.jit import compiled, inner

LARGEST = 650.0  # exponent: what is lacking stays finite


@inner
def moved(b, d, last, floor, cap):
    """Return a belief after its step; the `last` step is linear where that stays positive."""
    if last and (b + d).real >= floor:
        new = b + d
    else:
        rho = d / b
        if rho.real >= 0:
            new = b * (1 + rho)
        else:
            new = b * np.exp(rho if rho.real > -cap else rho - rho - cap)
    if new.real < floor:
        return new - new + floor
    return new - new + 1 if new.real > 1 else new


@inner
def lacks(b, d, least):
    """Return how far a belief is from b e^rho: exactly where it grows, at most |d|, which is more, where it falls.

    The step d = b rho would not do: it hardly shows that a belief much too small is to grow by a factor e^rho. Beliefs
    below `least`, for which rho is rounding, count as that large.
    """
    value = max(b, least)
    return value * np.expm1(min(d / value, LARGEST)) if d > 0 else -d


@inner
def measure(b, d, first, last, report, c, column, floor, least):
    """Take down what a belief lacks at most; in a column, the largest relative step of what is not at the floor."""
    for k in range(first, last):
        size = abs(d[k].real)
        gap = lacks(b[k].real, d[k].real, least) if size > 0.1 * b[k].real else size  # e^rho - 1 is rho up to 5 %
        report[c, 0] = gap if gap > report[c, 0] or gap != gap else report[c, 0]
        if b[k].real > 2 * floor:
            relative = size / b[k].real
            larger = relative > report[c, column] or relative != relative
            report[c, column] = relative if larger else report[c, column]


@compiled
def measure_steps(blocks, members, step, report, floor, least):
    """Write, for each component: what a belief lacks; the largest relative steps of variables, of links; a residual."""
    for c in members:
        v, w = blocks.first_variable[c], blocks.first_variable[c + 1]
        f, g = blocks.first_link[c], blocks.first_link[c + 1]
        for column in range(4):
            report[c, column] = 0
        measure(step.p, step.dp, blocks.first_state[v], blocks.first_state[w], report, c, 1, floor, least)
        measure(step.q, step.dq, blocks.first_entry[f], blocks.first_entry[g], report, c, 2, floor, least)
        for i in range(v, w):
            report[c, 3] = max(report[c, 3], abs(step.t[i].real))
        slot, end = blocks.first_slot[f], blocks.first_slot[g]
        for k in range(blocks.slot_first[slot], blocks.slot_first[end]):
            report[c, 3] = max(report[c, 3], abs(step.e[k].real))


@inner
def furthest(b, d, first, last, scale, least, most):
    """Return what a belief lacks at most."""
    for k in range(first, last):
        gap = lacks(b[k].real, scale * d[k].real, least)
        most = gap if gap > most or gap != gap else most
    return most


@compiled
def measure_gaps(blocks, members, step, scale, least, report):
    """Write, for each component, the largest difference between a belief and what the multipliers imply for it.

    rho = h d / b for a step found with h = `scale`.
    """
    for c in members:
        v, w = blocks.first_variable[c], blocks.first_variable[c + 1]
        f, g = blocks.first_link[c], blocks.first_link[c + 1]
        most = furthest(step.p, step.dp, blocks.first_state[v], blocks.first_state[w], scale, least, 0.0)
        report[c] = furthest(step.q, step.dq, blocks.first_entry[f], blocks.first_entry[g], scale, least, most)


@compiled
def move(blocks, members, step, last, floor, cap):
    """Move the beliefs of components; `last` says of each whether this is its last step."""
    for c in members:
        v, w = blocks.first_variable[c], blocks.first_variable[c + 1]
        for k in range(blocks.first_state[v], blocks.first_state[w]):
            step.p[k] = moved(step.p[k], step.dp[k], last[c], floor, cap)
        f, g = blocks.first_link[c], blocks.first_link[c + 1]
        for k in range(blocks.first_entry[f], blocks.first_entry[g]):
            step.q[k] = moved(step.q[k], step.dq[k], last[c], floor, cap)


@compiled
def soften(blocks, members, p, q, share, out):
    """Write beliefs of links that are no smaller than a share of the smallest of their variables' beliefs.

    What that is for stands in `isinglass.inference.free_energy.derivative`.
    """
    for c in members:
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            for k in range(blocks.first_entry[link + 1] - blocks.first_entry[link]):
                least, b = share * least_of(link, k, blocks, p), q[blocks.first_entry[link] + k]
                out[blocks.first_entry[link] + k] = b - b + least if b.real < least else b


@inner
def least_of(link, k, blocks, p):
    """Return the least belief of a variable in configuration k of a link."""
    first = blocks.first_slot[link]
    arity, columns, least = blocks.first_slot[link + 1] - first, blocks.cards[blocks.slot_variable[first + 1]], 1.0
    for j in range(arity):
        if blocks.kind[link] == GENERAL:
            x = blocks.digits[blocks.first_digit[link] + k * arity + j]
        else:
            x = k // columns if j == 0 else k % columns
        least = min(least, p[blocks.first_state[blocks.slot_variable[first + j]] + x].real)
    return least
