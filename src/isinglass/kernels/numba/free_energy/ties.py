"""Ties in the system of a convex free energy: rows C x - delta (nu - nu_before) = r, r = -C p, for equations C p = 0.

A small delta keeps the matrix quasi-definite, whatever ties depend on each other; since it multiplies the change of the
multipliers nu only, it does not show in the limit. What the link of a tie leaves undetermined of K is fixed by adding
C'C to it, and C'r to the right-hand side. (Ties arise from hard zeros only.)
"""

from __future__ import annotations

from typing import Any, NamedTuple

from isinglass.kernels.numba.free_energy.links import reduced
from isinglass.runtime.compilation.jit import compiled, inner

DELTA = 1e-9


class Ties(NamedTuple):
    """All ties: the variables of tie t are ``first[t]:first[t + 1]``, with coefficients from ``first_row`` on."""

    link: Any  # (ties,)
    first: Any
    variable: Any
    first_row: Any
    row: Any
    unknown: Any  # (ties,)
    target: Any  # of the reduced coefficients, then of -delta, tie by tie
    first_target: Any
    first_tie: Any  # (components + 1,)


@inner
def reduced_row(t, blocks, ties, step, row):
    """Write the coefficients of a tie by its unknowns; return how many there are."""
    n = 0
    for j in range(ties.first[t], ties.first[t + 1]):
        i, first = ties.variable[j], ties.first_row[j]
        for a in range(blocks.cards[i] - 1):
            row[n] = ties.row[first + reduced(a, step.ref[i])] - ties.row[first + step.ref[i]]
            n += 1
    return n


@compiled
def add_ties(blocks, ties, members, step, values, row):
    """Add the rows of ties, and C'C, to the matrix."""
    for c in members:
        for t in range(ties.first_tie[c], ties.first_tie[c + 1]):
            n = reduced_row(t, blocks, ties, step, row)
            target = ties.first_target[t]
            for a in range(n):
                values[ties.target[target + a]] += row[a]
            values[ties.target[target + n]] -= DELTA
            target = blocks.link_target[ties.link[t]]
            for a in range(n):
                for b in range(a + 1):
                    values[blocks.target[target]] += row[a] * row[b]
                    target += 1


@compiled
def tie_right_sides(blocks, ties, members, step, before, feasible, out, report, row):
    """Write the right-hand sides of ties; report their residuals unless all beliefs are taken as feasible."""
    for c in members:
        for t in range(ties.first_tie[c], ties.first_tie[c + 1]):
            total = out[ties.unknown[t]] * 0
            if not feasible:
                for j in range(ties.first[t], ties.first[t + 1]):
                    i, first = ties.variable[j], ties.first_row[j]
                    for a in range(blocks.cards[i]):
                        total += ties.row[first + a] * step.p[blocks.first_state[i] + a]
                report[c] = max(report[c], abs(total.real))
                for j in range(ties.first[t], ties.first[t + 1]):
                    i = ties.variable[j]
                    total += ties.row[ties.first_row[j] + step.ref[i]] * step.t[i]
            out[ties.unknown[t]] = -total - DELTA * before[t]
            reduced_row(t, blocks, ties, step, row)
            n = 0
            for j in range(ties.first[t], ties.first[t + 1]):
                i = ties.variable[j]
                for a in range(blocks.cards[i] - 1):
                    out[blocks.first_unknown[i] + a] -= row[n] * total
                    n += 1
