"""Exact inference on a bucket tree: messages up, beliefs down.

With psi_b the product of the factors of bucket b, v its variable, s its separator and C its children:

    up      m_b(s)      = sum_v  psi_b(v, s) prod_{c in C} m_c(s_c),  divided by its largest value, peak_b
    down    beta_b(v,s) = psi_b(v, s) prod_{c in C} m_c(s_c) mu_b(s) / (m_b(s) peak_b)
            mu_c(s_c)   = sum of beta_b over what is not in s_c

mu_b is the belief of the separator (one at a root); the marginals of v and of the factors of b are sums of
beta_b, and log Z is the sum of the log peaks. Only messages are kept; on the way down a message's place is
taken by mu_b / (m_b peak_b), with 0/0 = 0: what the children cannot support, the belief gives no mass. The
message of a root, a number that log Z is read from, stays.
(Lauritzen and Spiegelhalter 1988; Koller and Friedman 2009, section 10.3.)

`values` holds the linear tables, their logarithms and all messages, one after the other; input i of the
program is read at ``start[i]``. The loops here are for buckets whose inputs are all local; those with large messages
are in `large`, and several threads do both (`crews`).

Linear values are safe while the product of the smallest non-zero entries of all inputs of a bucket stays
above SAFE; otherwise the component is flagged, to be done again with logarithms. Zeros are exact.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.kernels.numba.junction_tree.strided import (
    combine,
    combine_rows,
    fill,
    ratio_of,
    reduce_rows,
    scatter,
)
from isinglass.runtime.compilation.jit import apart, cold, compiled, inner
from isinglass.typing import IntArray

SAFE = 1e-290


class Scratch(NamedTuple):
    """Working memory of a thread, for some buckets."""

    offsets: IntArray  # (block,)
    counter: IntArray  # (axes,)
    local: np.ndarray
    sums: np.ndarray  # the separator belief of a child


@cold
def is_safe(b, first_input, low):
    """Tell whether no product of non-zero entries of the inputs can underflow."""
    bound = 1.0
    for i in range(first_input[b], first_input[b + 1]):
        bound *= low[i]
    return bound >= SAFE


@cold
def first_axis_of(strides, s, d):
    """Return the first axis that an input has; each has that of the bucket's variable, the last."""
    for axis in range(d - 1):
        if strides[s + axis] != 0:
            return axis
    return d - 1


@apart
def multiply_inputs(program, b, values, start, logs, local, offsets, counter):
    """Multiply the local inputs of bucket b into `local`.

    The table grows axis by axis, the last one first; an input is multiplied in when the table has its axes. So only
    those with the first axis are multiplied into the whole table.
    """
    a, strides, first_stride, cards = program.first_axis[b], program.strides, program.first_stride, program.local_cards
    d, size = program.first_axis[b + 1] - a, b - b + 1
    local[0] = 1.0 if logs is None else 0.0
    for axis in range(d - 1, -1, -1):
        if cards[a + axis] == 1:
            continue
        for state in range(1, cards[a + axis]):
            for k in range(size):
                local[state * size + k] = local[k]
        size *= cards[a + axis]
        for i in range(program.first_input[b], program.first_large[b]):
            s = first_stride[i]
            if first_axis_of(strides, s, d) == axis:
                combine(local, size, cards, a + axis, d - axis, strides, s + axis, values, start[i], logs, offsets,
                        counter)  # fmt: skip


@cold
def normalise(values, first, last, logs):
    """Divide by (or subtract) the largest real part. Returns it and the smallest non-zero value left."""
    peak = values[first].real
    for i in range(first + 1, last):
        peak = max(peak, values[i].real)
    low = 1.0
    if logs is None:
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


@inner
def up_bucket(program, b, values, messages, start, peak, low, wanted, flagged, logs, scratch):
    """Pass the message of a bucket, unless its component is not wanted, or flagged."""
    component = program.component[b]
    if not wanted[component] or flagged[component]:
        return
    if logs is None and not is_safe(b, program.first_input, low):
        flagged[component] = True
        return
    multiply_inputs(program, b, values, start, logs, scratch.local, scratch.offsets, scratch.counter)
    row = program.cards[program.first_axis[b + 1] - 1]
    at = messages + program.first_message[b]
    reduce_rows(scratch.local, program.local_size[b], row, logs, values, at)
    peak[b], least = normalise(values, at, at + program.message_size[b], logs)
    if program.input_of[b] >= 0:
        low[program.input_of[b]] = least


@compiled
def up(program, sequence, first, last, values, messages, start, peak, low, wanted, flagged, logs, scratch):
    """Pass the messages of buckets ``sequence[first:last]`` of the wanted components.

    Messages begin at ``values[messages]``; ``low[i]`` is the smallest non-zero entry of input i.
    """
    for i in range(first, last):
        up_bucket(program, sequence[i], values, messages, start, peak, low, wanted, flagged, logs, scratch)


@cold
def to_ratio(values, first, size, peak, sums, logs):
    """Replace a message by mu / (m peak), with mu in `sums`."""
    for i in range(size):
        values[first + i] = ratio_of(values[first + i], sums[i], peak, logs)


@apart
def sum_beliefs(program, b, marginal, values, start, peak, logs, variables, first_state, factors, first_belief, offsets,
                counter, sums):  # fmt: skip
    """Sum the local table of a bucket's beliefs, `marginal`, for its variable, its factors and its small messages.

    The table is summed axis by axis, the first one first, and what has this axis gets its sums before. It is lost.
    """
    a, strides, first_stride, cards = program.first_axis[b], program.strides, program.first_stride, program.local_cards
    d, size, source = program.first_axis[b + 1] - a, program.local_size[b], program.source
    for axis in range(d):
        if cards[a + axis] == 1:
            continue
        for i in range(program.first_input[b], program.first_large[b]):
            s, is_factor = first_stride[i], i < program.first_child[b]
            if first_axis_of(strides, s, d) != axis:
                continue
            table, at = sums, size - size
            if is_factor:
                table, at = factors, first_belief[source[i]]
            else:
                fill(sums, program.message_size[source[i]], 0.0)
            scatter(marginal, size, cards, a + axis, d - axis, strides, s + axis, table, at, offsets, counter)
            if not is_factor:
                to_ratio(values, start[i], program.message_size[source[i]], peak[source[i]], sums, logs)
        if axis < d - 1:
            size //= cards[a + axis]
            for state in range(1, cards[a + axis]):
                for k in range(size):
                    marginal[k] += marginal[state * size + k]
    at = first_state[program.variable[a + d - 1]]
    for s in range(size):
        variables[at + s] += marginal[s]


@inner
def down_bucket(program, b, values, messages, start, peak, wanted, flagged, logs, variables, first_state, factors,
                first_belief, scratch):  # fmt: skip
    """Pass the beliefs of a bucket down, unless its component is not wanted, or flagged."""
    component = program.component[b]
    if not wanted[component] or flagged[component]:
        return
    local, sums = scratch.local, scratch.sums
    at = messages + program.first_message[b]
    multiply_inputs(program, b, values, start, logs, local, scratch.offsets, scratch.counter)
    row = program.cards[program.first_axis[b + 1] - 1]
    if program.input_of[b] < 0:
        sums[0] = 1
        sums[0] = ratio_of(values[at], sums[0], peak[b], logs)
        combine_rows(local, program.local_size[b], row, logs, sums, 0)
    else:
        combine_rows(local, program.local_size[b], row, logs, values, at)
    sum_beliefs(program, b, local, values, start, peak, logs, variables, first_state, factors, first_belief,
                scratch.offsets, scratch.counter, sums)  # fmt: skip


@compiled
def down(program, sequence, first, last, values, messages, start, peak, wanted, flagged, logs, variables, first_state,
         factors, first_belief, scratch):  # fmt: skip
    """Pass beliefs down buckets ``sequence[last - 1], ..., sequence[first]`` of the wanted components but flagged ones.

    Marginals are added to the zero-filled vectors `variables` (of variable v at ``first_state[v]``) and
    `factors` (of factor a at ``first_belief[a]``, its clamped variables' states included).
    """
    for i in range(last - 1, first - 1, -1):
        down_bucket(program, sequence[i], values, messages, start, peak, wanted, flagged, logs, variables, first_state,
                    factors, first_belief, scratch)  # fmt: skip
