"""Exact inference on a bucket tree: messages up, beliefs down.

With psi_b the product of the factors of bucket b, v its variable, s its separator and C its children:

    up      m_b(s)      = sum_v  psi_b(v, s) prod_{c in C} m_c(s_c),  divided by its largest value, peak_b
    down    beta_b(v,s) = psi_b(v, s) prod_{c in C} m_c(s_c) mu_b(s) / (m_b(s) peak_b)
            mu_c(s_c)   = sum of beta_b over what is not in s_c

mu_b is the belief of the separator (one at a root); the marginals of v and of the factors of b are sums of
beta_b, and log Z is the sum of the log peaks. Only messages are kept; on the way down a message's place is
taken by mu_b / (m_b peak_b), with 0/0 = 0: what the children cannot support, the belief gives no mass.
(Lauritzen and Spiegelhalter 1988; Koller and Friedman 2009, section 10.3.)

A bucket's table is made in blocks that stay in cache. Factors and small messages are multiplied first, over
the axes that they mention (the *local* table); the block is the local table times the large messages.

Linear values are safe while the product of the smallest non-zero entries of all inputs of a bucket stays
above SAFE; otherwise the component is flagged, to be done again with logarithms. Zeros are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.compilation import compiled
from isinglass.kernels.numba.strided import LOG_MAX, SUM, coalesce, combine, reduce_rows, scatter
from isinglass.validation import IntArray

SAFE = 1e-290
BLOCK = 4096  # entries of a block, and of a bucket whose inputs are all local
SMALL_SHARE = 4  # a message is local if it has at most this fraction of its bucket's entries


class Tables(NamedTuple):
    """Where the values of each factor are: its table's start, shifted by its clamped variables' states."""

    values: np.ndarray  # all tables, flat, in the semiring's representation, largest entry one
    start: IntArray  # (factors,) of the table in `values`, at the evidence
    low: np.ndarray  # (factors,) smallest non-zero entry, for the underflow bound


class Beliefs(NamedTuple):
    """Where the marginals go: zero-filled flat vectors and the start of each variable and factor."""

    variables: np.ndarray
    first_variable: IntArray
    factors: np.ndarray
    first_factor: IntArray  # at the evidence


class Workspace(NamedTuple):
    """Scratch memory, allocated once for all buckets."""

    axis_of: IntArray  # (variables,) axis of a variable in the current bucket; -1 if it has no bucket
    cards: IntArray  # of the current bucket's axes
    strides: IntArray  # of the current input
    local_strides: IntArray  # of the local table, over the bucket's axes
    local_cards: IntArray  # of the local table's axes
    view_cards: IntArray  # (views, axes) coalesced inner views: local, separator, large messages
    view_strides: IntArray
    view_length: IntArray  # (views,)
    outer_strides: IntArray  # (views, axes) strides of the outer axes
    one_cards: IntArray  # one more view
    one_strides: IntArray
    counter: IntArray
    outer: IntArray
    large: IntArray  # (children,) the children whose messages are not local
    local: np.ndarray
    marginal: np.ndarray
    block: np.ndarray
    sums: np.ndarray  # separator beliefs of the children of one bucket


@compiled
def local_plan(tree, b, axis_of, cards, in_local, large):  # type: ignore[no-untyped-def]
    """Mark the axes of the local table and list the large children.

    Returns (axes of the bucket, entries of the local table, number of large children).
    """
    d = tree.first_axis[b + 1] - tree.first_axis[b]
    size = 1
    for i in range(d):
        variable = tree.axis[tree.first_axis[b] + i]
        axis_of[variable] = i
        cards[i] = tree.cards[variable]
        size *= cards[i]
        in_local[i] = False
    in_local[d - 1] = True
    for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
        a = tree.factor[f]
        for slot in range(tree.first_slot[a], tree.first_slot[a + 1]):
            axis = axis_of[tree.slot_variable[slot]]
            if axis >= 0:
                in_local[axis] = True
    n_large = 0
    for k in range(tree.first_child[b], tree.first_child[b + 1]):
        c = tree.child[k]
        message = tree.first_message[c + 1] - tree.first_message[c]
        if size > BLOCK and message * SMALL_SHARE > size:
            large[n_large] = c
            n_large += 1
        else:
            for i in range(tree.first_axis[c], tree.first_axis[c + 1] - 1):
                in_local[axis_of[tree.axis[i]]] = True
    local_size = 1
    for i in range(d):
        if in_local[i]:
            local_size *= cards[i]
    return d, local_size, n_large


@compiled
def scratch_sizes(tree, axis_of, cards, in_local, large):  # type: ignore[no-untyped-def]
    """Largest local table, largest number of large children, largest sum of the children's messages."""
    most_local, most_large, most_sums = 1, 0, 1
    for b in range(len(tree.parent)):
        _, local_size, n_large = local_plan(tree, b, axis_of, cards, in_local, large)
        sums = 0
        for k in range(tree.first_child[b], tree.first_child[b + 1]):
            sums += tree.first_message[tree.child[k] + 1] - tree.first_message[tree.child[k]]
        most_local = max(most_local, local_size)
        most_large = max(most_large, n_large)
        most_sums = max(most_sums, sums)
    return most_local, most_large, most_sums


@compiled
def factor_strides(tree, a, axis_of, d, strides):  # type: ignore[no-untyped-def]
    """Strides of factor a's table over the bucket's axes."""
    strides[:d] = 0
    for slot in range(tree.first_slot[a], tree.first_slot[a + 1]):
        axis = axis_of[tree.slot_variable[slot]]
        if axis >= 0:
            strides[axis] = tree.slot_stride[slot]


@compiled
def message_strides(tree, c, axis_of, d, strides):  # type: ignore[no-untyped-def]
    """Strides of the message of bucket c over the axes of its parent (or, without v, of its own bucket)."""
    strides[:d] = 0
    step = 1
    for i in range(tree.first_axis[c + 1] - 2, tree.first_axis[c] - 1, -1):
        strides[axis_of[tree.axis[i]]] = step
        step *= tree.cards[tree.axis[i]]


@compiled
def over_local(d, ws):  # type: ignore[no-untyped-def]
    """View of the current input (ws.strides) over the local table's axes. Returns its number of axes."""
    n = 0
    for i in range(d):
        if ws.local_strides[i] > 0:
            ws.strides[n] = ws.strides[i]
            n += 1
    return coalesce(ws.local_cards, ws.strides, 0, n, ws.one_cards, ws.one_strides)


@compiled
def set_local_axes(d, in_local, ws):  # type: ignore[no-untyped-def]
    """Write the strides and cards of the local table."""
    n = 0
    step = 1
    for i in range(d - 1, -1, -1):
        ws.local_strides[i] = step if in_local[i] else 0
        if in_local[i]:
            step *= ws.cards[i]
    for i in range(d):
        if in_local[i]:
            ws.local_cards[n] = ws.cards[i]
            n += 1


@compiled
def fill_local(tree, b, d, size, tables, messages, semiring, ws):  # type: ignore[no-untyped-def]
    """Multiply the factors and the small messages of bucket b into the local table."""
    ws.local[:size] = 1 if semiring == SUM else 0
    for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
        a = tree.factor[f]
        factor_strides(tree, a, ws.axis_of, d, ws.strides)
        n = over_local(d, ws)
        combine(ws.local, size, n, ws.one_cards, ws.one_strides, tables.values, tables.start[a], semiring, ws.counter)
    n_large = 0
    for k in range(tree.first_child[b], tree.first_child[b + 1]):
        c = tree.child[k]
        if ws.large[n_large] == c:
            n_large += 1
            continue
        message_strides(tree, c, ws.axis_of, d, ws.strides)
        n = over_local(d, ws)
        start = tree.first_message[c]
        combine(ws.local, size, n, ws.one_cards, ws.one_strides, messages, start, semiring, ws.counter)


@compiled
def enter(tree, b, tables, messages, semiring, in_local, ws):  # type: ignore[no-untyped-def]
    """Prepare bucket b: axes, local table, views. Returns (axes, local entries, large, cut, block entries).

    Axes from `cut` on are the block's. View 0 is the local table, 1 the separator, 2... the large messages.
    """
    ws.large[:] = -1
    d, size, n_large = local_plan(tree, b, ws.axis_of, ws.cards, in_local, ws.large)
    set_local_axes(d, in_local, ws)
    fill_local(tree, b, d, size, tables, messages, semiring, ws)
    cut = d - 1
    block = ws.cards[cut]
    while cut > 0 and block * ws.cards[cut - 1] <= BLOCK:
        cut -= 1
        block *= ws.cards[cut]
    for view in range(n_large + 2):
        if view == 0:
            ws.strides[:d] = ws.local_strides[:d]
        elif view == 1:
            message_strides(tree, b, ws.axis_of, d, ws.strides)
        else:
            message_strides(tree, ws.large[view - 2], ws.axis_of, d, ws.strides)
        ws.outer_strides[view, :cut] = ws.strides[:cut]
        ws.view_length[view] = coalesce(
            ws.cards, ws.strides, cut, d, ws.view_cards[view], ws.view_strides[view]
        )
    return d, size, n_large, cut, block


@compiled
def next_block(ws, cut):  # type: ignore[no-untyped-def]
    """Step the outer axes; tell whether there is another block."""
    for axis in range(cut - 1, -1, -1):
        ws.outer[axis] += 1
        if ws.outer[axis] < ws.cards[axis]:
            return True
        ws.outer[axis] = 0
    return False


@compiled
def outer_offset(ws, view, cut):  # type: ignore[no-untyped-def]
    """Offset of a view at the current outer state."""
    offset = 0
    for axis in range(cut):
        offset += ws.outer[axis] * ws.outer_strides[view, axis]
    return offset


@compiled
def multiply(ws, view, cut, block, table, start, semiring):  # type: ignore[no-untyped-def]
    """Multiply a view into the current block."""
    combine(
        ws.block, block, ws.view_length[view], ws.view_cards[view], ws.view_strides[view],
        table, start + outer_offset(ws, view, cut), semiring, ws.counter,
    )  # fmt: skip


@compiled
def spread(ws, view, cut, block, table, start):  # type: ignore[no-untyped-def]
    """Add the current block to the entries of a view."""
    scatter(
        ws.block, block, ws.view_length[view], ws.view_cards[view], ws.view_strides[view],
        table, start + outer_offset(ws, view, cut), ws.counter,
    )  # fmt: skip


@compiled
def fill_block(tree, ws, n_large, cut, block, messages, semiring):  # type: ignore[no-untyped-def]
    """Make the current block: the local table times the large messages."""
    ws.block[:block] = 1 if semiring == SUM else 0
    multiply(ws, 0, cut, block, ws.local, 0, semiring)
    for i in range(n_large):
        multiply(ws, i + 2, cut, block, messages, tree.first_message[ws.large[i]], semiring)


@compiled
def bound_of_products(tree, b, tables, low):  # type: ignore[no-untyped-def]
    """Return a lower bound of every non-zero product in bucket b."""
    bound = 1.0
    for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
        bound *= tables.low[tree.factor[f]]
    for k in range(tree.first_child[b], tree.first_child[b + 1]):
        bound *= low[tree.child[k]]
    return bound


@compiled
def normalise(messages, start, stop, semiring):  # type: ignore[no-untyped-def]
    """Divide by (or subtract) the largest real part. Returns it and the smallest non-zero value left."""
    peak = messages[start].real
    for i in range(start + 1, stop):
        peak = max(peak, messages[i].real)
    low = 1.0
    if semiring == SUM:
        if peak > 0:
            scale = 1 / peak
            for i in range(start, stop):
                messages[i] *= scale
                value = messages[i].real
                if value < low and value > 0:
                    low = value
    elif peak > -np.inf:
        for i in range(start, stop):
            messages[i] -= peak
    return peak, low


@compiled
def up(tree, first, last, tables, messages, peak, low, wanted, flagged, semiring, in_local, ws):  # type: ignore[no-untyped-def]
    """Pass the messages of buckets ``first:last`` of the wanted components."""
    for b in range(first, last):
        component = tree.component[b]
        if not wanted[component] or flagged[component]:
            continue
        if semiring == SUM and bound_of_products(tree, b, tables, low) < SAFE:
            flagged[component] = True
            continue
        d, _, n_large, cut, block = enter(tree, b, tables, messages, semiring, in_local, ws)
        ws.outer[:cut] = 0
        start = tree.first_message[b]
        row = ws.cards[d - 1]
        more = True
        while more:
            fill_block(tree, ws, n_large, cut, block, messages, semiring)
            reduce_rows(ws.block, block, row, semiring, messages, start)
            start += block // row
            more = next_block(ws, cut)
        peak[b], low[b] = normalise(messages, tree.first_message[b], tree.first_message[b + 1], semiring)


@compiled
def down(tree, first, last, tables, messages, peak, wanted, semiring, beliefs, in_local, ws):  # type: ignore[no-untyped-def]
    """Pass beliefs down buckets ``last - 1, ..., first`` of the wanted components."""
    for b in range(last - 1, first - 1, -1):
        if not wanted[tree.component[b]]:
            continue
        if tree.parent[b] < 0:
            ws.sums[0] = 1
            to_ratio(tree, b, messages, peak, ws.sums, 0, semiring)
        d, size, n_large, cut, block = enter(tree, b, tables, messages, semiring, in_local, ws)
        ws.marginal[:size] = 0
        total = 0
        for i in range(n_large):
            total += tree.first_message[ws.large[i] + 1] - tree.first_message[ws.large[i]]
        ws.sums[:total] = 0
        ws.outer[:cut] = 0
        more = True
        while more:
            fill_block(tree, ws, n_large, cut, block, messages, semiring)
            multiply(ws, 1, cut, block, messages, tree.first_message[b], semiring)
            if semiring != SUM:
                for i in range(block):
                    ws.block[i] = np.exp(ws.block[i])
            spread(ws, 0, cut, block, ws.marginal, 0)
            start = 0
            for i in range(n_large):
                spread(ws, i + 2, cut, block, ws.sums, start)
                start += tree.first_message[ws.large[i] + 1] - tree.first_message[ws.large[i]]
            more = next_block(ws, cut)
        start = 0
        for i in range(n_large):
            start = to_ratio(tree, ws.large[i], messages, peak, ws.sums, start, semiring)
        small_separators(tree, b, d, size, messages, peak, semiring, ws)
        marginals(tree, b, d, size, beliefs, ws)


@compiled
def to_ratio(tree, c, messages, peak, sums, start, semiring):  # type: ignore[no-untyped-def]
    """Replace the message of c by mu_c / (m_c peak_c). Returns where the next separator's sums start."""
    for i in range(tree.first_message[c], tree.first_message[c + 1]):
        if semiring == SUM:
            if messages[i].real != 0:
                messages[i] = sums[start] / (messages[i] * peak[c])
        elif messages[i].real > -np.inf:
            messages[i] = np.log(sums[start]) - messages[i] - peak[c]
        start += 1
    return start


@compiled
def small_separators(tree, b, d, size, messages, peak, semiring, ws):  # type: ignore[no-untyped-def]
    """Sum the local marginal to the separators of the children whose messages are local."""
    n_large = 0
    for k in range(tree.first_child[b], tree.first_child[b + 1]):
        c = tree.child[k]
        if ws.large[n_large] == c:
            n_large += 1
            continue
        ws.sums[: tree.first_message[c + 1] - tree.first_message[c]] = 0
        message_strides(tree, c, ws.axis_of, d, ws.strides)
        n = over_local(d, ws)
        scatter(ws.marginal, size, n, ws.one_cards, ws.one_strides, ws.sums, 0, ws.counter)
        to_ratio(tree, c, messages, peak, ws.sums, 0, semiring)


@compiled
def marginals(tree, b, d, size, beliefs, ws):  # type: ignore[no-untyped-def]
    """Sum the local marginal to the bucket's variable and to its factors."""
    ws.strides[:d] = 0
    ws.strides[d - 1] = 1
    n = over_local(d, ws)
    start = beliefs.first_variable[tree.axis[tree.first_axis[b + 1] - 1]]
    scatter(ws.marginal, size, n, ws.one_cards, ws.one_strides, beliefs.variables, start, ws.counter)
    for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
        a = tree.factor[f]
        factor_strides(tree, a, ws.axis_of, d, ws.strides)
        n = over_local(d, ws)
        start = beliefs.first_factor[a]
        scatter(ws.marginal, size, n, ws.one_cards, ws.one_strides, beliefs.factors, start, ws.counter)


@compiled
def conditional(tree, b, states, tables, messages, semiring, out):  # type: ignore[no-untyped-def]
    """Write psi_b(v, s) prod m_c(s_c) for each state of v, the separator's states being given.

    `states` holds a state for every variable later in the order. Returns v's card.
    """
    v = tree.axis[tree.first_axis[b + 1] - 1]
    card = tree.cards[v]
    out[:card] = 1 if semiring == SUM else 0
    for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
        a = tree.factor[f]
        index, step = tables.start[a], 0
        for slot in range(tree.first_slot[a], tree.first_slot[a + 1]):
            if tree.slot_variable[slot] == v:
                step = tree.slot_stride[slot]
            elif tree.has_bucket[tree.slot_variable[slot]]:
                index += states[tree.slot_variable[slot]] * tree.slot_stride[slot]
        for k in range(card):
            value = tables.values[index + k * step]
            out[k] = out[k] * value if semiring == SUM else out[k] + value
    for j in range(tree.first_child[b], tree.first_child[b + 1]):
        c = tree.child[j]
        index = 0
        for i in range(tree.first_axis[c], tree.first_axis[c + 1] - 2):  # v is the last axis of the separator
            index = (index + states[tree.axis[i]]) * tree.cards[tree.axis[i + 1]]
        index += tree.first_message[c]
        for k in range(card):
            value = messages[index + k]
            out[k] = out[k] * value if semiring == SUM else out[k] + value
    return card


@compiled
def sample(tree, tables, messages, semiring_of, uniforms, states, row):  # type: ignore[no-untyped-def]
    """Draw states, last bucket first: v given its separator. ``states[draw]`` holds the evidence."""
    n = len(tree.parent)
    for draw in range(len(states)):
        for b in range(n - 1, -1, -1):
            semiring = semiring_of[tree.component[b]]
            card = conditional(tree, b, states[draw], tables[semiring], messages, semiring, row)
            if semiring != SUM:
                top = row[:card].max()
                for k in range(card):
                    row[k] = np.exp(row[k] - top)
            total = row[:card].sum()
            target = uniforms[draw, b] * total
            k = 0
            passed = row[0]
            while passed <= target and k < card - 1:
                k += 1
                passed += row[k]
            while row[k] == 0:  # rounding can carry the target past the last state of non-zero mass
                k -= 1
            states[draw, tree.axis[tree.first_axis[b + 1] - 1]] = k


@compiled
def descend(tree, last, tables, messages, states, losses, row):  # type: ignore[no-untyped-def]
    """Choose the best state for buckets ``last - 1, ..., 0`` (max semiring), the others being given.

    ``losses[b, k]`` becomes what state k of bucket b costs against the best one, given the later buckets.
    """
    for b in range(last - 1, -1, -1):
        card = conditional(tree, b, states, tables, messages, LOG_MAX, row)
        best = 0
        for k in range(1, card):
            if row[k] > row[best]:
                best = k
        states[tree.axis[tree.first_axis[b + 1] - 1]] = best
        if len(losses) > 0:
            losses[b, card:] = -np.inf
            for k in range(card):
                losses[b, k] = row[k] - row[best]
