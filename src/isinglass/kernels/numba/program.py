"""A bucket tree written out as a program: for every bucket its axes, and its inputs with their strides.

An *input* of a bucket is a factor or the message of a child. It is read at a start plus the sum of its
strides over the bucket's axes. Inputs of a bucket are listed in three runs: factors, small messages, large
messages. Factors and small messages are *local*: they are multiplied first, into a table over the axes that
any of them mentions (an axis that none mentions has local card 1). Messages are large only in large buckets,
where passing over them once matters.

Everything is flat arrays, because reading an array out of a tuple costs an atomic count in a compiled loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.compilation import compiled
from isinglass.kernels.numba.strided import BLOCK
from isinglass.validation import IntArray

SMALL_SHARE = 64  # a message is local if it has at most this fraction of its bucket's entries


class Program(NamedTuple):
    """The arrays; ``first_x[b]:first_x[b + 1]`` are the x of bucket b."""

    first_axis: IntArray
    variable: IntArray  # (axes,) the bucket's own variable is its last axis
    cards: IntArray  # (axes,)
    local_cards: IntArray  # (axes,) one where the local table lacks the axis
    local_strides: IntArray  # (axes,) zero where the local table lacks the axis
    local_size: IntArray  # (buckets,)
    first_input: IntArray
    first_child: IntArray  # (buckets,) the first input that is a message
    first_large: IntArray  # (buckets,) the first input that is a large message
    source: IntArray  # (inputs,) the factor or the child bucket
    first_stride: IntArray  # (inputs,)
    strides: IntArray
    input_of: IntArray  # (buckets,) the input that a bucket's message is; -1 for a root
    first_message: IntArray  # into the vector of all messages
    component: IntArray  # (buckets,)


@compiled
def write_program(tree):
    """Return the arrays of the program of a bucket tree, and the most entries of all children's messages."""
    n = len(tree.parent)
    n_inputs = len(tree.factor) + len(tree.child)
    cards = tree.cards[tree.axis]
    local_cards = np.ones(len(cards), np.int64)
    local_strides = np.zeros(len(cards), np.int64)
    local_size = np.ones(n, np.int64)
    first_input = np.zeros(n + 1, np.int64)
    first_child = np.zeros(n, np.int64)
    first_large = np.zeros(n, np.int64)
    source = np.zeros(n_inputs, np.int64)
    first_stride = np.zeros(n_inputs + 1, np.int64)
    input_of = np.full(n, -1, np.int64)
    axis_of = np.full(len(tree.cards), -1, np.int64)
    i = 0
    for b in range(n):
        d = tree.first_axis[b + 1] - tree.first_axis[b]
        size = 1
        for axis in range(tree.first_axis[b], tree.first_axis[b + 1]):
            size *= cards[axis]
        for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
            source[i] = tree.factor[f]
            i += 1
        first_child[b] = i
        for want_large in (False, True):
            if want_large:
                first_large[b] = i
            for k in range(tree.first_child[b], tree.first_child[b + 1]):
                c = tree.child[k]
                message = tree.first_message[c + 1] - tree.first_message[c]
                if (size > BLOCK and message * SMALL_SHARE > size) == want_large:
                    source[i] = c
                    input_of[c] = i
                    i += 1
        first_input[b + 1] = i
        for j in range(first_input[b], i):
            first_stride[j + 1] = first_stride[j] + d
    strides = np.zeros(first_stride[n_inputs], np.int64)
    most = 1
    for b in range(n):
        a0, a1 = tree.first_axis[b], tree.first_axis[b + 1]
        for axis in range(a0, a1):
            axis_of[tree.axis[axis]] = axis - a0
        local_cards[a1 - 1] = cards[a1 - 1]
        total = 0
        for j in range(first_input[b], first_input[b + 1]):
            s0 = first_stride[j]
            if j < first_child[b]:
                for slot in range(tree.first_slot[source[j]], tree.first_slot[source[j] + 1]):
                    if tree.has_bucket[tree.slot_variable[slot]]:
                        strides[s0 + axis_of[tree.slot_variable[slot]]] = tree.slot_stride[slot]
            else:
                step = 1
                for axis in range(tree.first_axis[source[j] + 1] - 2, tree.first_axis[source[j]] - 1, -1):
                    strides[s0 + axis_of[tree.axis[axis]]] = step
                    step *= tree.cards[tree.axis[axis]]
                total += step
            if j < first_large[b]:
                for axis in range(a0, a1):
                    if strides[s0 + axis - a0] > 0:
                        local_cards[axis] = cards[axis]
        most = max(most, total)
        for axis in range(a1 - 1, a0 - 1, -1):
            if local_cards[axis] > 1:
                local_strides[axis] = local_size[b]
                local_size[b] *= local_cards[axis]
    return (
        cards, local_cards, local_strides, local_size, first_input, first_child, first_large, source, first_stride,
        strides, input_of, most,
    )  # fmt: skip


def make_program(tree) -> tuple[Program, int]:
    """Return the program of a bucket tree (`TreeArrays`) and the most entries of one bucket's inputs."""
    (cards, local_cards, local_strides, local_size, first_input, first_child, first_large, source, first_stride,
     strides, input_of, most) = write_program(tree)  # fmt: skip
    program = Program(
        tree.first_axis, tree.axis, cards, local_cards, local_strides, local_size, first_input, first_child,
        first_large, source, first_stride, strides, input_of, tree.first_message, tree.component,
    )  # fmt: skip
    return program, int(most)
