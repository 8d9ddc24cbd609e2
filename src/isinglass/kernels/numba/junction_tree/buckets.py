"""Exact inference on a bucket tree: messages up, beliefs down.

With psi_b the product of the factors of bucket b, v its variable, s its separator and C its children:

    up      m_b(s)      = sum_v  psi_b(v, s) prod_{c in C} m_c(s_c),  divided by its largest value, peak_b
    down    beta_b(v,s) = psi_b(v, s) prod_{c in C} m_c(s_c) mu_b(s) / (m_b(s) peak_b)
            mu_c(s_c)   = sum of beta_b over what is not in s_c

mu_b is the belief of the separator (one at a root); the marginals of v and of the factors of b are sums of
beta_b, and log Z is the sum of the log peaks. Only messages are kept; on the way down a message's place is
taken by mu_b / (m_b peak_b), with 0/0 = 0: what the children cannot support, the belief gives no mass.
(Lauritzen and Spiegelhalter 1988; Koller and Friedman 2009, section 10.3.)

`values` holds the linear tables, their logarithms and all messages, one after the other; input i of the
program is read at ``start[i]``. A large bucket is made in blocks that stay in cache: the local table times
the large messages.

Linear values are safe while the product of the smallest non-zero entries of all inputs of a bucket stays
above SAFE; otherwise the component is flagged, to be done again with logarithms. Zeros are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.kernels.numba.arithmetic.dual_numbers import log_of, over
from isinglass.kernels.numba.junction_tree.strided import (
    SUM,
    block_axes,
    combine,
    combine_block,
    combine_rows,
    fill,
    inner_offsets,
    next_state,
    offset_of,
    reduce_rows,
    scatter,
    scatter_block,
)
from isinglass.runtime.jit import compiled, inner
from isinglass.typing import IntArray

SAFE = 1e-290


class Scratch(NamedTuple):
    """Working memory, allocated once for all buckets."""

    offsets: IntArray  # (views, block) row 0: the current input or the local table; then the large messages
    contiguous: np.ndarray  # (views,)
    counter: IntArray  # (axes,)
    outer: IntArray  # (axes,) the state of the axes before the block
    local: np.ndarray
    marginal: np.ndarray
    block: np.ndarray
    sums: np.ndarray  # separator beliefs of the children of one bucket


@inner
def fill_local(b, program, values, start, semiring, scratch):
    """Multiply the local inputs of bucket b."""
    a, local, strides, first_stride = program.first_axis[b], scratch.local, program.strides, program.first_stride
    d = program.first_axis[b + 1] - a
    fill(local, 0, program.local_size[b], 1 if semiring == SUM else 0)
    for i in range(program.first_input[b], program.first_large[b]):
        combine(local, program.local_cards, a, d, strides, first_stride[i], values, start[i], semiring,
                scratch.offsets[0], scratch.counter)  # fmt: skip


@inner
def set_views(b, program, scratch):
    """List the offsets of the local table (view 0) and of the large messages in a block: (cut, entries)."""
    a, cards, first_large, offsets = program.first_axis[b], program.cards, program.first_large[b], scratch.offsets
    d = program.first_axis[b + 1] - a
    cut, size = block_axes(cards, a, d)
    scratch.contiguous[0] = inner_offsets(cards, a, program.local_strides, a, cut, d, offsets[0])
    for i in range(first_large, program.first_input[b + 1]):
        view, s = i - first_large + 1, program.first_stride[i]
        scratch.contiguous[view] = inner_offsets(cards, a, program.strides, s, cut, d, offsets[view])
    fill(scratch.outer, 0, cut, 0)
    return cut, size


@inner
def fill_block(b, cut, size, program, values, start, semiring, scratch):
    """Make the current block: the local table times the large messages."""
    block, outer, first_large = scratch.block, scratch.outer, program.first_large[b]
    base = offset_of(outer, program.local_strides, program.first_axis[b], cut)
    view = scratch.offsets[0]
    for k in range(size):
        block[k] = scratch.local[base + view[k]]
    for i in range(first_large, program.first_input[b + 1]):
        base = start[i] + offset_of(outer, program.strides, program.first_stride[i], cut)
        j = i - first_large + 1
        combine_block(block, 0, size, values, base, scratch.offsets[j], scratch.contiguous[j], semiring)


@compiled
def normalise(values, first, last, semiring):
    """Divide by (or subtract) the largest real part. Returns it and the smallest non-zero value left."""
    peak = values[first].real
    for i in range(first + 1, last):
        peak = max(peak, values[i].real)
    low = 1.0
    if semiring == SUM:
        if peak > 0:
            scale = 1 / peak
            for i in range(first, last):
                values[i] *= scale
                value = values[i].real
                if value < low and value > 0:
                    low = value
    elif peak > -np.inf:
        for i in range(first, last):
            values[i] -= peak
    return peak, low


@compiled
def up(program, first, last, values, messages, start, peak, low, wanted, flagged, semiring, scratch):
    """Pass the messages of buckets ``first:last`` of the wanted components.

    Messages begin at ``values[messages]``; ``low[i]`` is the smallest non-zero entry of input i.
    """
    first_input, first_message, component = program.first_input, program.first_message, program.component
    for b in range(first, last):
        if not wanted[component[b]] or flagged[component[b]]:
            continue
        bound = 1.0
        for i in range(first_input[b], first_input[b + 1]):
            bound *= low[i]
        if semiring == SUM and bound < SAFE:
            flagged[component[b]] = True
            continue
        fill_local(b, program, values, start, semiring, scratch)
        row = program.cards[program.first_axis[b + 1] - 1]
        at = messages + first_message[b]
        if program.first_large[b] == first_input[b + 1]:
            reduce_rows(scratch.local, program.local_size[b], row, semiring, values, at)
        else:
            cut, size = set_views(b, program, scratch)
            more = True
            while more:
                fill_block(b, cut, size, program, values, start, semiring, scratch)
                reduce_rows(scratch.block, size, row, semiring, values, at)
                at += size // row
                more = next_state(scratch.outer, program.cards, program.first_axis[b], cut)
        at = messages + first_message[b]
        peak[b], least = normalise(values, at, messages + first_message[b + 1], semiring)
        if program.input_of[b] >= 0:
            low[program.input_of[b]] = least


@compiled
def to_ratio(values, first, last, peak, sums, at, semiring):
    """Replace a message by mu / (m peak), with mu at ``sums[at:]``."""
    if semiring == SUM:
        for i in range(first, last):
            if values[i].real != 0:
                values[i] = over(sums[at + i - first], values[i] * peak)
    else:
        for i in range(first, last):
            if values[i].real > -np.inf:
                values[i] = log_of(sums[at + i - first]) - values[i] - peak


@compiled
def down(program, first, last, values, messages, start, peak, wanted, semiring, variables, first_state,
         factors, first_belief, scratch):  # fmt: skip
    """Pass beliefs down buckets ``last - 1, ..., first`` of the wanted components.

    Marginals are added to the zero-filled vectors `variables` (of variable v at ``first_state[v]``) and
    `factors` (of factor a at ``first_belief[a]``, its clamped variables' states included).
    """
    cards, local_cards, local_size, strides = program.cards, program.local_cards, program.local_size, program.strides
    first_input, first_stride, first_message = program.first_input, program.first_stride, program.first_message
    first_child, source, component = program.first_child, program.source, program.component
    local, block, sums, view = scratch.local, scratch.block, scratch.sums, scratch.offsets[0]
    for b in range(last - 1, first - 1, -1):
        if not wanted[component[b]]:
            continue
        at = messages + first_message[b]
        if program.input_of[b] < 0:
            sums[0] = 1
            to_ratio(values, at, at + 1, peak[b], sums, 0, semiring)
        fill_local(b, program, values, start, semiring, scratch)
        a = program.first_axis[b]
        d = program.first_axis[b + 1] - a
        row = cards[a + d - 1]
        large, after = program.first_large[b], first_input[b + 1]
        if large == after:
            combine_rows(local, local_size[b], row, semiring, values, at)
            marginal = local
        else:
            marginal = scratch.marginal
            fill(marginal, 0, local_size[b], 0)
            total = 0
            for i in range(large, after):
                total += first_message[source[i] + 1] - first_message[source[i]]
            fill(sums, 0, total, 0)
            cut, size = set_views(b, program, scratch)
            more = True
            while more:
                fill_block(b, cut, size, program, values, start, semiring, scratch)
                combine_rows(block, size, row, semiring, values, at)
                base = offset_of(scratch.outer, program.local_strides, a, cut)
                scatter_block(block, 0, size, marginal, base, view, scratch.contiguous[0])
                total = 0
                for i in range(large, after):
                    base = total + offset_of(scratch.outer, strides, first_stride[i], cut)
                    j = i - large + 1
                    scatter_block(block, 0, size, sums, base, scratch.offsets[j], scratch.contiguous[j])
                    total += first_message[source[i] + 1] - first_message[source[i]]
                at += size // row
                more = next_state(scratch.outer, cards, a, cut)
            total = 0
            for i in range(large, after):
                size = first_message[source[i] + 1] - first_message[source[i]]
                to_ratio(values, start[i], start[i] + size, peak[source[i]], sums, total, semiring)
                total += size
        for i in range(first_child[b], large):
            size = first_message[source[i] + 1] - first_message[source[i]]
            fill(sums, 0, size, 0)
            scatter(marginal, local_cards, a, d, strides, first_stride[i], sums, 0, view, scratch.counter)
            to_ratio(values, start[i], start[i] + size, peak[source[i]], sums, 0, semiring)
        at = first_state[program.variable[a + d - 1]]
        for k in range(local_size[b] // row):
            for s in range(row):
                variables[at + s] += marginal[k * row + s]
        for i in range(first_input[b], first_child[b]):
            at = first_belief[source[i]]
            scatter(marginal, local_cards, a, d, strides, first_stride[i], factors, at, view, scratch.counter)
