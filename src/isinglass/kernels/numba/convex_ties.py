"""Ties in the system of a convex free energy: rows C x - delta (nu - nu_before) = -C p for equations C p = 0.

A small delta keeps the matrix quasi-definite, whatever ties depend on each other; since it multiplies the change of the
multipliers nu only, it does not show in the limit. (Ties arise from hard zeros only.)
"""

from __future__ import annotations

from isinglass.compilation import compiled
from isinglass.kernels.numba.convex_links import reduced

DELTA = 1e-9


@compiled
def add_ties(blocks, ties, members, step, values):
    """Add the rows of ties to the matrix."""
    for c in members:
        for t in range(ties.first_tie[c], ties.first_tie[c + 1]):
            target = ties.first_target[t]
            for j in range(ties.first[t], ties.first[t + 1]):
                i, row = ties.variable[j], ties.first_row[j]
                for a in range(blocks.cards[i] - 1):
                    coefficient = ties.row[row + reduced(a, step.ref[i])] - ties.row[row + step.ref[i]]
                    values[ties.target[target]] += coefficient
                    target += 1
            values[ties.target[target]] -= DELTA


@compiled
def tie_right_sides(blocks, ties, members, step, before, feasible, out, report):
    """Write the right-hand sides of ties; report their residuals unless all beliefs are taken as feasible."""
    for c in members:
        for t in range(ties.first_tie[c], ties.first_tie[c + 1]):
            total = step.p[blocks.first_state[blocks.first_variable[c]]] * 0
            if not feasible:
                for j in range(ties.first[t], ties.first[t + 1]):
                    i, row = ties.variable[j], ties.first_row[j]
                    state = blocks.first_state[i]
                    for a in range(blocks.cards[i]):
                        total += ties.row[row + a] * step.p[state + a]
                report[c] = max(report[c], abs(total.real))
                for j in range(ties.first[t], ties.first[t + 1]):
                    i = ties.variable[j]
                    total += ties.row[ties.first_row[j] + step.ref[i]] * step.t[i]
            out[ties.unknown[t]] = -total - DELTA * before[t]
