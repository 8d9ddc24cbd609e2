"""Steps of the beliefs of a convex free energy, one component at a time: multiplicative, positive, with a report.

With rho = d / b a belief that grows follows the linear step and one that shrinks its logarithm:

    b  <-  b (1 + rho)  if rho >= 0,    b exp(max(rho, -5))  otherwise,    within [floor, 1].

What that leaves of the constraints is of second order, and goes into the next step's residuals. The floor bounds how
stiff the system can get; beliefs that end there go on, with a lower one, once the others stand still.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import compiled, inner

CAP = 5.0


@inner
def moved(b, d, last, floor):
    """Return a belief after its step; the `last` step is linear where that stays positive."""
    if last and (b + d).real >= floor:
        new = b + d
    else:
        rho = d / b
        if rho.real >= 0:
            new = b * (1 + rho)
        else:
            new = b * np.exp(rho if rho.real > -CAP else rho - rho - CAP)
    if new.real < floor:
        return new - new + floor
    return new - new + 1 if new.real > 1 else new


@inner
def measure(b, d, first, last, report, c, floor):
    """Take down the largest step, and the largest relative step of what is not at the floor."""
    for k in range(first, last):
        size = abs(d[k].real)
        report[c, 0] = size if not size <= report[c, 0] else report[c, 0]
        if b[k].real > 2 * floor:
            relative = size / b[k].real
            report[c, 1] = relative if not relative <= report[c, 1] else report[c, 1]


@compiled
def measure_steps(blocks, members, step, report, floor):
    """Write, for each component: the largest step, the largest relative one, the largest residual."""
    for c in members:
        v, w = blocks.first_variable[c], blocks.first_variable[c + 1]
        f, g = blocks.first_link[c], blocks.first_link[c + 1]
        report[c, 0] = 0
        report[c, 1] = 0
        report[c, 2] = 0
        measure(step.p, step.dp, blocks.first_state[v], blocks.first_state[w], report, c, floor)
        measure(step.q, step.dq, blocks.first_entry[f], blocks.first_entry[g], report, c, floor)
        for i in range(v, w):
            report[c, 2] = max(report[c, 2], abs(step.t[i].real))
        slot, end = blocks.first_slot[f], blocks.first_slot[g]
        for k in range(blocks.slot_first[slot], blocks.slot_first[end]):
            report[c, 2] = max(report[c, 2], abs(step.e[k].real))


@compiled
def move(blocks, members, step, last, floor):
    """Move the beliefs of components; `last` says of each whether this is its last step."""
    for c in members:
        v, w = blocks.first_variable[c], blocks.first_variable[c + 1]
        for k in range(blocks.first_state[v], blocks.first_state[w]):
            step.p[k] = moved(step.p[k], step.dp[k], last[c], floor)
        f, g = blocks.first_link[c], blocks.first_link[c + 1]
        for k in range(blocks.first_entry[f], blocks.first_entry[g]):
            step.q[k] = moved(step.q[k], step.dq[k], last[c], floor)
