"""A bucket tree written out as a program: for every bucket its axes, and its inputs with their strides.

An *input* of a bucket is a factor or the message of a child. It is read at a start plus the sum of its
strides over the bucket's axes. Inputs of a bucket are listed in three runs: factors, small messages, large
messages. Factors and small messages are *local*: they are multiplied first, into a table over the axes that
any of them mentions (an axis that none mentions has local card 1). A message is large if its bucket does not
fit in a block and the message would make the local table more than a small part of it.

Everything is flat arrays, because reading an array out of a tuple costs an atomic count in a compiled loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.kernels.numba.junction_tree.strided import BLOCK
from isinglass.runtime.jit import compiled
from isinglass.typing import IntArray

SMALL_SHARE = 16  # of a large bucket, the local table is at most this fraction, if the factors allow it


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
def mention(first, last, variables, axis_of, mentioned, cards, a):
    """Mark the axes of some variables; return by how much they multiply the local table's entries."""
    growth = 1
    for i in range(first, last):
        axis = axis_of[variables[i]]
        if axis >= 0 and not mentioned[axis]:
            mentioned[axis] = True
            growth *= cards[a + axis]
    return growth


@compiled
def growth_of(first, last, variables, axis_of, mentioned, cards, a):
    """Return by how much some variables would multiply the local table's entries."""
    growth = 1
    for i in range(first, last):
        if not mentioned[axis_of[variables[i]]]:
            growth *= cards[a + axis_of[variables[i]]]
    return growth


@compiled
def write_program(tree, axis_of, mentioned, is_large, cards, local_cards, local_strides, local_size, first_input,
                  first_child, first_large, source, first_stride, strides, input_of):  # fmt: skip
    """Write the arrays of the program of a bucket tree; return the most entries of one bucket's messages.

    Scratch: `axis_of` (variables,) all -1, `mentioned` (axes of a bucket,), `is_large` (children,) all false.
    """
    n = len(tree.parent)
    most = 1
    i = 0
    for b in range(n):
        a, d = tree.first_axis[b], tree.first_axis[b + 1] - tree.first_axis[b]
        size = _enter(tree, b, axis_of, mentioned)
        mentioned[d - 1] = True
        local = cards[a + d - 1]
        for f in range(tree.first_factor[b], tree.first_factor[b + 1]):
            source[i] = tree.factor[f]
            local *= mention(tree.first_slot[source[i]], tree.first_slot[source[i] + 1], tree.slot_variable,
                             axis_of, mentioned, cards, a)  # fmt: skip
            i += 1
        first_child[b] = i
        for k in range(tree.first_child[b], tree.first_child[b + 1]):
            c = tree.child[k]
            first, last = tree.first_axis[c], tree.first_axis[c + 1] - 1
            growth = growth_of(first, last, tree.axis, axis_of, mentioned, cards, a)
            is_large[c] = size > BLOCK and growth > 1 and local * growth * SMALL_SHARE > size
            if not is_large[c]:
                local *= mention(first, last, tree.axis, axis_of, mentioned, cards, a)
                source[i] = c
                i += 1
        first_large[b] = i
        for k in range(tree.first_child[b], tree.first_child[b + 1]):
            if is_large[tree.child[k]]:
                source[i] = tree.child[k]
                i += 1
        first_input[b + 1] = i
        local_size[b] = local
        total = 0
        for j in range(first_input[b], i):
            s = first_stride[j]
            first_stride[j + 1] = s + d
            if j < first_child[b]:
                _factor_strides(tree, source[j], axis_of, strides, s)
            else:
                input_of[source[j]] = j
                total += _message_strides(tree, source[j], axis_of, strides, s)
        most = max(most, total)
        step = 1
        for axis in range(d - 1, -1, -1):
            if mentioned[axis]:
                local_cards[a + axis] = cards[a + axis]
                local_strides[a + axis] = step
                step *= cards[a + axis]
        for axis in range(d):
            axis_of[tree.axis[a + axis]] = -1
    return most


@compiled
def count_strides(tree):
    """Strides of all inputs: for each, as many as its bucket has axes."""
    total = 0
    for b in range(len(tree.parent)):
        inputs = tree.first_factor[b + 1] - tree.first_factor[b] + tree.first_child[b + 1] - tree.first_child[b]
        total += inputs * (tree.first_axis[b + 1] - tree.first_axis[b])
    return total


@compiled
def _enter(tree, b, axis_of, mentioned):
    """Number the axes of bucket b and forget what was mentioned. Returns its entries."""
    size = 1
    for i in range(tree.first_axis[b], tree.first_axis[b + 1]):
        axis_of[tree.axis[i]] = i - tree.first_axis[b]
        mentioned[i - tree.first_axis[b]] = False
        size *= tree.cards[tree.axis[i]]
    return size


@compiled
def _factor_strides(tree, f, axis_of, strides, s):
    """Write the strides of a factor's table; clamped variables have no axis."""
    for slot in range(tree.first_slot[f], tree.first_slot[f + 1]):
        axis = axis_of[tree.slot_variable[slot]]
        if axis >= 0:
            strides[s + axis] = tree.slot_stride[slot]


@compiled
def _message_strides(tree, c, axis_of, strides, s):
    """Write the strides of a child's message, C order without the child's own variable. Returns its entries."""
    step = 1
    for i in range(tree.first_axis[c + 1] - 2, tree.first_axis[c] - 1, -1):
        strides[s + axis_of[tree.axis[i]]] = step
        step *= tree.cards[tree.axis[i]]
    return step


def make_program(tree) -> tuple[Program, int]:
    """Return the program of a bucket tree (`TreeArrays`) and the most entries of one bucket's inputs."""
    n, n_inputs, axes = len(tree.parent), len(tree.factor) + len(tree.child), len(tree.axis)
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
        strides=np.zeros(count_strides(tree), np.int64),
        input_of=np.full(n, -1, np.int64),
        first_message=tree.first_message,
        component=tree.component,
    )
    most = write_program(
        tree,
        np.full(len(tree.cards), -1, np.int64),
        np.zeros(int(np.diff(tree.first_axis).max(initial=1)), np.bool_),
        np.zeros(n, np.bool_),
        *program[2:13],
    )
    return program, int(most)
