"""A bucket tree written out as a program: for every bucket its axes, and its inputs with their strides.

An *input* of a bucket is a factor or the message of a child. It is read at a start plus the sum of its
strides over the bucket's axes. Inputs of a bucket are listed in three runs: factors, small messages, large
messages. Factors and small messages are *local*: they are multiplied first, into a table over the axes that
any of them mentions (an axis that none mentions has local card 1). Which messages are large, and the sequence of the
axes of a bucket with some, is decided in `isinglass.inference.junction_tree.arrangement`.

Everything is flat arrays, because reading an array out of a tuple costs an atomic count in a compiled loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.runtime.compilation.jit import cold, compiled
from isinglass.typing import IntArray


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
    first_message: IntArray  # (buckets,) into the vector of all messages
    message_size: IntArray  # (buckets,)
    component: IntArray  # (buckets,)


@cold
def mention(first, last, variables, axis_of, mentioned):
    """Mark the axes of some variables."""
    for i in range(first, last):
        axis = axis_of[variables[i]]
        if axis >= 0:
            mentioned[axis] = True


@compiled
def write_program(tree, is_large, axis_of, mentioned, cards, local_cards, local_strides, local_size, first_input,
                  first_child, first_large, source, first_stride, strides, input_of):  # fmt: skip
    """Write the arrays of the program of a bucket tree; `is_large` tells which messages are.

    Scratch: `axis_of` (variables,) all -1, `mentioned` (axes of a bucket,).
    """
    i = 0
    for b in range(len(tree.parent)):
        a, d = tree.first_axis[b], tree.first_axis[b + 1] - tree.first_axis[b]
        for axis in range(d):
            axis_of[tree.axis[a + axis]] = axis
            mentioned[axis] = False
        mentioned[d - 1] = True
        for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
            source[i] = tree.factor[f]
            mention(tree.first_slot[source[i]], tree.first_slot[source[i] + 1], tree.slot_variable, axis_of, mentioned)
            i += 1
        first_child[b] = i
        for k in range(tree.first_child[b], tree.first_child[b + 1]):
            c = tree.child[k]
            if not is_large[c]:
                mention(tree.first_axis[c], tree.first_axis[c + 1] - 1, tree.axis, axis_of, mentioned)
                source[i] = c
                i += 1
        first_large[b] = i
        for k in range(tree.first_child[b], tree.first_child[b + 1]):
            if is_large[tree.child[k]]:
                source[i] = tree.child[k]
                i += 1
        first_input[b + 1] = i
        for j in range(first_input[b], i):
            s = first_stride[j]
            first_stride[j + 1] = s + d
            if j < first_child[b]:
                _factor_strides(tree, source[j], axis_of, strides, s)
            else:
                input_of[source[j]] = j
                _message_strides(tree, source[j], axis_of, strides, s)
        step = 1
        for axis in range(d - 1, -1, -1):
            if mentioned[axis]:
                local_cards[a + axis] = cards[a + axis]
                local_strides[a + axis] = step
                step *= cards[a + axis]
        local_size[b] = step
        for axis in range(d):
            axis_of[tree.axis[a + axis]] = -1


@cold
def _factor_strides(tree, f, axis_of, strides, s):
    """Write the strides of a factor's table; clamped variables have no axis."""
    for slot in range(tree.first_slot[f], tree.first_slot[f + 1]):
        axis = axis_of[tree.slot_variable[slot]]
        if axis >= 0:
            strides[s + axis] = tree.slot_stride[slot]


@cold
def _message_strides(tree, c, axis_of, strides, s):
    """Write the strides of a child's message, C order without the child's own variable."""
    step = 1
    for i in range(tree.first_axis[c + 1] - 2, tree.first_axis[c] - 1, -1):
        strides[s + axis_of[tree.axis[i]]] = step
        step *= tree.cards[tree.axis[i]]


def make_program(tree, is_large) -> Program:
    """Return the program of a bucket tree (`TreeArrays`), with these large messages."""
    n, n_inputs, axes = len(tree.parent), len(tree.factor) + len(tree.child), len(tree.axis)
    inputs = np.diff(tree.first_factor) + np.diff(tree.first_child)
    program = Program(
        first_axis=tree.first_axis,
        variable=tree.axis,
        cards=tree.cards[tree.axis],
        local_cards=np.ones(axes, np.int64),
        local_strides=np.zeros(axes, np.int64),
        local_size=np.ones(n, np.int64),
        first_input=np.zeros(n + 1, np.int64),
        first_child=np.zeros(n, np.int64),
        first_large=np.zeros(n, np.int64),
        source=np.zeros(n_inputs, np.int64),
        first_stride=np.zeros(n_inputs + 1, np.int64),
        strides=np.zeros(int(inputs @ np.diff(tree.first_axis)), np.int64),
        input_of=np.full(n, -1, np.int64),
        first_message=tree.first_message[:-1],
        message_size=np.diff(tree.first_message),
        component=tree.component,
    )
    write_program(
        tree,
        is_large,
        np.full(len(tree.cards), -1, np.int64),
        np.zeros(int(np.diff(tree.first_axis).max(initial=1)), np.bool_),
        *program[2:13],
    )
    return program
