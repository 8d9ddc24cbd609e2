"""Newton steps of a convex free energy with the links eliminated: a system over beliefs of variables only.

The energy is sum w b log b + sum v b over locally consistent beliefs b: p_i of variables, q_a of links. With a diagonal
Hessian H = h w / b (h = 1: Newton; h = 2: the bound of Domke 2009, section 4.4), gradient g, and residuals
t_i = 1 - sum p_i and e_as = p_i - (marginal of q_a on slot s), a step minimises

    g'd + d'Hd / 2    subject to    sum d_i = t_i,    marginal of d_a on slot s = d_i + e_as.

Write d_i = t_i e_ref + N x_i with ref the likeliest state. A link is eliminated by itself: with Q = 1 / H its step is
d_a = Q (B y - g), B' d_a = r, where the columns of B are one and the indicators of the states of each slot but its
reference. So (B'QB) y = r + B'Qg, and with T its inverse the link adds T (without the row and column of one) to the
matrix K of the system, and minus the entries of y at d_i = t_i e_ref to its right-hand side.

- Pairs: eliminating the rows leaves, for the columns, a graph Laplacian with the conductances sum_r Q_rs Q_rt / Q_r. It
  is factorised by additions of positive numbers only (Grassmann, Taksar and Heyman 1985), so that every entry is
  accurate to the last digits however small some beliefs are.
- Two states: K_ii = (a+c)(b+d)/s, K_jj = (a+b)(c+d)/s, K_ij = (ad-bc)/s for H = [[a, b], [c, d]], s = a+b+c+d.
- Other links (of three or more variables, or with configurations removed): an orthogonal factorisation of Q^1/2 B,
  whose dependent columns (only where configurations were removed) are left out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.free_energy.links import (
    general_block,
    general_factor,
    general_step,
    pair_block,
    pair_factor,
    pair_step,
    reduced,
    two_block,
    two_step,
)
from isinglass.runtime.compilation.jit import compiled, inner

TWO, PAIR, GENERAL = 0, 1, 2


class Blocks(NamedTuple):
    """A problem as the loops see it: what lies in one component is side by side everywhere.

    The states of variable i are ``first_state[i]:first_state[i + 1]``, its unknowns, one less, begin at
    ``first_unknown[i]``; the configurations of link a are ``first_entry[a]:first_entry[a + 1]``, in C order, or, for
    general links, with the states that `digits` lists. Lower triangles, row by row, go to the places ``target``.
    """

    cards: Any  # (variables,)
    first_state: Any
    first_unknown: Any
    variable_target: Any  # (variables,)
    first_slot: Any  # (links + 1,)
    slot_variable: Any
    slot_first: Any  # (slots + 1,) where the residuals of a slot begin
    kind: Any  # (links,)
    first_entry: Any  # (links + 1,)
    first_digit: Any  # (links,)
    digits: Any
    first_work: Any  # (links,)
    link_target: Any  # (links,)
    target: Any
    first_variable: Any  # (components + 1,)
    first_link: Any
    first_value: Any


class Room(NamedTuple):
    """Working memory of one link."""

    matrix: Any  # (rows x columns of a general link, or (k-1)² of a pair)
    block: Any  # unknowns² of a link
    one: Any
    two: Any
    three: Any
    four: Any


class Step(NamedTuple):
    """The numbers of a step: what it begins with and what it finds."""

    p: Any  # (states,)
    q: Any  # (entries,)
    ref: Any  # (variables,)
    hessian: Any  # (states,) h w / p
    inverse: Any  # (entries,) q / (h w)
    work: Any  # factors of links
    by_p: Any  # gradient
    by_q: Any
    t: Any  # (variables,)
    e: Any  # (slot states,)
    dp: Any
    dq: Any


@compiled
def prepare(blocks, members, wp, wq, vp, vq, scale, step):
    """Fill in the Hessian of components for h = `scale`, the gradient, the residuals and the reference states."""
    for c in members:
        for i in range(blocks.first_variable[c], blocks.first_variable[c + 1]):
            first, last = blocks.first_state[i], blocks.first_state[i + 1]
            best = first
            for a in range(first, last):
                step.hessian[a] = scale * wp[a] / step.p[a]
                step.by_p[a] = wp[a] * (np.log(step.p[a]) + 1) + vp[a]
                best = a if step.p[a].real > step.p[best].real else best
            variable_residual(i, blocks, step, 1.0)
            step.ref[i] = best - first
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            for k in range(blocks.first_entry[link], blocks.first_entry[link + 1]):
                step.inverse[k] = step.q[k] / (scale * wq[k])
                step.by_q[k] = wq[k] * (np.log(step.q[k]) + 1) + vq[k]
            link_residuals(link, blocks, step)


@compiled
def residuals(blocks, members, step, whole):
    """Write the residuals t, of sums that should be `whole`, and e of components."""
    for c in members:
        for i in range(blocks.first_variable[c], blocks.first_variable[c + 1]):
            variable_residual(i, blocks, step, whole)
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            link_residuals(link, blocks, step)


@inner
def variable_residual(i, blocks, step, whole):
    """Write t of a variable."""
    total = step.p[blocks.first_state[i]] * 0
    for a in range(blocks.first_state[i], blocks.first_state[i + 1]):
        total += step.p[a]
    step.t[i] = whole - total


@inner
def link_residuals(link, blocks, step):
    """Write e_as for the slots of a link."""
    first, last = blocks.first_slot[link], blocks.first_slot[link + 1]
    for s in range(first, last):
        start, state = blocks.slot_first[s], blocks.first_state[blocks.slot_variable[s]]
        for a in range(blocks.slot_first[s + 1] - start):
            step.e[start + a] = step.p[state + a]
    entry = blocks.first_entry[link]
    if blocks.kind[link] == TWO:
        k, one, two = ix(entry), ix(blocks.slot_first[first]), ix(blocks.slot_first[first + 1])
        a, b, c, d = step.q[k], step.q[k + ix(1)], step.q[k + ix(2)], step.q[k + ix(3)]
        step.e[one] -= a + b
        step.e[one + ix(1)] -= c + d
        step.e[two] -= a + c
        step.e[two + ix(1)] -= b + d
        return
    if blocks.kind[link] != GENERAL:
        rows = blocks.cards[blocks.slot_variable[first]]
        columns = blocks.cards[blocks.slot_variable[first + 1]]
        one, two = blocks.slot_first[first], blocks.slot_first[first + 1]
        for r in range(rows):
            for s in range(columns):
                step.e[one + r] -= step.q[entry + r * columns + s]
                step.e[two + s] -= step.q[entry + r * columns + s]
        return
    digit, arity = blocks.first_digit[link], last - first
    for k in range(blocks.first_entry[link + 1] - entry):
        for j in range(arity):
            step.e[blocks.slot_first[first + j] + blocks.digits[digit + k * arity + j]] -= step.q[entry + k]


@compiled
def assemble(blocks, members, step, values, room):
    """Factorise the links of components and add up the lower triangle of K."""
    for c in members:
        for k in range(blocks.first_value[c], blocks.first_value[c + 1]):
            values[k] = 0
        for i in range(blocks.first_variable[c], blocks.first_variable[c + 1]):
            target, first, ref = blocks.variable_target[i], blocks.first_state[i], step.ref[i]
            top = step.hessian[first + ref]
            for a in range(blocks.cards[i] - 1):
                for _ in range(a):
                    values[blocks.target[target]] += top
                    target += 1
                values[blocks.target[target]] += top + step.hessian[first + reduced(a, ref)]
                target += 1
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            unknowns = link_block(link, blocks, step, room)
            target = blocks.link_target[link]
            for a in range(unknowns):
                for b in range(a + 1):
                    values[blocks.target[target]] += room.block[a * unknowns + b]
                    target += 1


@inner
def link_block(link, blocks, step, room):
    """Factorise a link and write its part of K to ``room.block``; return how many unknowns it has."""
    slot, entry, work = blocks.first_slot[link], blocks.first_entry[link], blocks.first_work[link]
    if blocks.kind[link] == GENERAL:
        arity = blocks.first_slot[link + 1] - slot
        count = blocks.first_entry[link + 1] - entry
        columns = general_factor(slot, arity, count, blocks.first_digit[link], entry, blocks, step, work, room)
        general_block(columns, work, step.work, room)
        return columns - 1
    i, j = blocks.slot_variable[slot], blocks.slot_variable[slot + 1]
    if blocks.kind[link] == TWO:
        two_block(entry, step.ref[i] == step.ref[j], work, step, room)
        return 2
    rows, columns = blocks.cards[i], blocks.cards[j]
    pair_factor(entry, rows, columns, step.ref[j], work, step, room)
    pair_block(entry, rows, columns, step.ref[i], step.ref[j], work, step, room)
    return rows + columns - 2


@compiled
def right_side(blocks, members, step, out, room):
    """Write the right-hand side of the system for components."""
    for c in members:
        for i in range(blocks.first_variable[c], blocks.first_variable[c + 1]):
            first, ref, unknown = blocks.first_state[i], step.ref[i], blocks.first_unknown[i]
            base = step.by_p[first + ref] + step.t[i] * step.hessian[first + ref]
            for a in range(blocks.cards[i]):
                step.dp[first + a] = 0
            step.dp[first + ref] = step.t[i]
            for a in range(blocks.cards[i] - 1):
                out[unknown + a] = base - step.by_p[first + reduced(a, ref)]
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            link_step(link, blocks, step, out, False, room)


@compiled
def substitute(blocks, members, x, step, room):
    """Turn the unknowns of components into steps of all beliefs."""
    for c in members:
        for i in range(blocks.first_variable[c], blocks.first_variable[c + 1]):
            first, ref, unknown = blocks.first_state[i], step.ref[i], blocks.first_unknown[i]
            rest = step.t[i]
            for a in range(blocks.cards[i] - 1):
                step.dp[first + reduced(a, ref)] = x[unknown + a]
                rest -= x[unknown + a]
            step.dp[first + ref] = rest
        for link in range(blocks.first_link[c], blocks.first_link[c + 1]):
            link_step(link, blocks, step, x, True, room)


@inner
def link_step(link, blocks, step, out, final, room):
    """Solve for y of a link at the variables' steps dp: write dq if `final`, else subtract y from `out`."""
    slot, entry, work = blocks.first_slot[link], blocks.first_entry[link], blocks.first_work[link]
    arity = blocks.first_slot[link + 1] - slot
    if blocks.kind[link] == GENERAL:
        count = blocks.first_entry[link + 1] - entry
        general_step(slot, arity, count, blocks.first_digit[link], entry, blocks, step, work, out, final, room)
        return
    i, j = blocks.slot_variable[slot], blocks.slot_variable[slot + 1]
    row_ref, column_ref = step.ref[i], step.ref[j]
    if blocks.kind[link] == TWO:
        places = (blocks.slot_first[slot], blocks.slot_first[slot + 1], blocks.first_state[i], blocks.first_state[j])
        alpha, beta = two_step(entry, row_ref, column_ref, places, work, step, final)
        if not final:
            out[blocks.first_unknown[i]] -= alpha
            out[blocks.first_unknown[j]] -= beta
        return
    rows, columns = blocks.cards[i], blocks.cards[j]
    one, two = blocks.slot_first[slot], blocks.slot_first[slot + 1]
    for r in range(rows):
        room.one[r] = step.e[one + r] + step.dp[blocks.first_state[i] + r]
    for s in range(columns):
        room.two[s] = step.e[two + s] + step.dp[blocks.first_state[j] + s]
    pair_step(entry, rows, columns, column_ref, work, step, room)  # alpha to three, beta to four
    if final:
        for r in range(rows):
            for s in range(columns):
                k = entry + r * columns + s
                step.dq[k] = step.inverse[k] * (room.three[r] + room.four[s] - step.by_q[k])
        return
    for a in range(rows - 1):
        out[blocks.first_unknown[i] + a] -= room.three[reduced(a, row_ref)] - room.three[row_ref]
    for a in range(columns - 1):
        out[blocks.first_unknown[j] + a] -= room.four[reduced(a, column_ref)] - room.four[column_ref]
