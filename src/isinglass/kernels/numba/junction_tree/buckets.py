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
from isinglass.runtime.jit import compiled
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


@compiled
def fill_local(b, first_axis, local_cards, local_size, first_input, first_large, first_stride, strides,
               values, start, semiring, local, offsets, counter):  # fmt: skip
    """Multiply the local inputs of bucket b."""
    a = first_axis[b]
    d = first_axis[b + 1] - a
    fill(local, 0, local_size[b], 1 if semiring == SUM else 0)
    for i in range(first_input[b], first_large[b]):
        combine(local, local_cards, a, d, strides, first_stride[i], values, start[i], semiring, offsets, counter)


@compiled
def set_views(b, first_axis, cards, local_strides, first_large, last, first_stride, strides, offsets,
              contiguous, outer):  # fmt: skip
    """List the offsets of the local table (view 0) and of the large messages in a block: (cut, entries)."""
    a = first_axis[b]
    d = first_axis[b + 1] - a
    cut, size = block_axes(cards, a, d)
    contiguous[0] = inner_offsets(cards, a, local_strides, a, cut, d, offsets[0])
    for i in range(first_large, last):
        view = i - first_large + 1
        contiguous[view] = inner_offsets(cards, a, strides, first_stride[i], cut, d, offsets[view])
    fill(outer, 0, cut, 0)
    return cut, size


@compiled
def fill_block(a, cut, size, local_strides, first_large, last, first_stride, strides, values, start, semiring,
               local, block, offsets, contiguous, outer):  # fmt: skip
    """Make the current block: the local table times the large messages."""
    base = offset_of(outer, local_strides, a, cut)
    view = offsets[0]
    for k in range(size):
        block[k] = local[base + view[k]]
    for i in range(first_large, last):
        base = start[i] + offset_of(outer, strides, first_stride[i], cut)
        j = i - first_large + 1
        combine_block(block, 0, size, values, base, offsets[j], contiguous[j], semiring)


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
    first_axis, cards, local_cards = program.first_axis, program.cards, program.local_cards
    local_strides, local_size, first_input = program.local_strides, program.local_size, program.first_input
    first_large, first_stride, strides = program.first_large, program.first_stride, program.strides
    input_of, first_message, component = program.input_of, program.first_message, program.component
    offsets, contiguous, counter, outer = scratch.offsets, scratch.contiguous, scratch.counter, scratch.outer
    local, block, view = scratch.local, scratch.block, scratch.offsets[0]
    for b in range(first, last):
        if not wanted[component[b]] or flagged[component[b]]:
            continue
        bound = 1.0
        for i in range(first_input[b], first_input[b + 1]):
            bound *= low[i]
        if semiring == SUM and bound < SAFE:
            flagged[component[b]] = True
            continue
        fill_local(b, first_axis, local_cards, local_size, first_input, first_large, first_stride, strides,
                   values, start, semiring, local, view, counter)  # fmt: skip
        row = cards[first_axis[b + 1] - 1]
        at = messages + first_message[b]
        large, after = first_large[b], first_input[b + 1]
        if large == after:
            reduce_rows(local, local_size[b], row, semiring, values, at)
        else:
            cut, size = set_views(b, first_axis, cards, local_strides, large, after, first_stride, strides,
                                  offsets, contiguous, outer)  # fmt: skip
            more = True
            while more:
                fill_block(first_axis[b], cut, size, local_strides, large, after, first_stride, strides, values,
                           start, semiring, local, block, offsets, contiguous, outer)  # fmt: skip
                reduce_rows(block, size, row, semiring, values, at)
                at += size // row
                more = next_state(outer, cards, first_axis[b], cut)
        at = messages + first_message[b]
        peak[b], least = normalise(values, at, messages + first_message[b + 1], semiring)
        if input_of[b] >= 0:
            low[input_of[b]] = least


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
    first_axis, cards, local_cards = program.first_axis, program.cards, program.local_cards
    local_strides, local_size, first_input = program.local_strides, program.local_size, program.first_input
    first_child, first_large, source = program.first_child, program.first_large, program.source
    first_stride, strides, variable = program.first_stride, program.strides, program.variable
    input_of, first_message, component = program.input_of, program.first_message, program.component
    offsets, contiguous, counter, outer = scratch.offsets, scratch.contiguous, scratch.counter, scratch.outer
    local, block, sums, view = scratch.local, scratch.block, scratch.sums, scratch.offsets[0]
    for b in range(last - 1, first - 1, -1):
        if not wanted[component[b]]:
            continue
        at = messages + first_message[b]
        if input_of[b] < 0:
            sums[0] = 1
            to_ratio(values, at, at + 1, peak[b], sums, 0, semiring)
        fill_local(b, first_axis, local_cards, local_size, first_input, first_large, first_stride, strides,
                   values, start, semiring, local, view, counter)  # fmt: skip
        a = first_axis[b]
        d = first_axis[b + 1] - a
        row = cards[a + d - 1]
        large, after = first_large[b], first_input[b + 1]
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
            cut, size = set_views(b, first_axis, cards, local_strides, large, after, first_stride, strides,
                                  offsets, contiguous, outer)  # fmt: skip
            more = True
            while more:
                fill_block(a, cut, size, local_strides, large, after, first_stride, strides, values,
                           start, semiring, local, block, offsets, contiguous, outer)  # fmt: skip
                combine_rows(block, size, row, semiring, values, at)
                base = offset_of(outer, local_strides, a, cut)
                scatter_block(block, 0, size, marginal, base, offsets[0], contiguous[0])
                total = 0
                for i in range(large, after):
                    base = total + offset_of(outer, strides, first_stride[i], cut)
                    j = i - large + 1
                    scatter_block(block, 0, size, sums, base, offsets[j], contiguous[j])
                    total += first_message[source[i] + 1] - first_message[source[i]]
                at += size // row
                more = next_state(outer, cards, a, cut)
            total = 0
            for i in range(large, after):
                size = first_message[source[i] + 1] - first_message[source[i]]
                to_ratio(values, start[i], start[i] + size, peak[source[i]], sums, total, semiring)
                total += size
        for i in range(first_child[b], large):
            size = first_message[source[i] + 1] - first_message[source[i]]
            fill(sums, 0, size, 0)
            scatter(marginal, local_cards, a, d, strides, first_stride[i], sums, 0, view, counter)
            to_ratio(values, start[i], start[i] + size, peak[source[i]], sums, 0, semiring)
        at = first_state[variable[a + d - 1]]
        for k in range(local_size[b] // row):
            for s in range(row):
                variables[at + s] += marginal[k * row + s]
        for i in range(first_input[b], first_child[b]):
            at = first_belief[source[i]]
            scatter(marginal, local_cards, a, d, strides, first_stride[i], factors, at, view, counter)
