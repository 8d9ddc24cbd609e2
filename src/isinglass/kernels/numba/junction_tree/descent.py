"""Walking down a bucket tree, one state at a time: samples and best assignments.

Given the states of its separator, the variable of bucket b has the unnormalised distribution

    psi_b(v, s) prod_{c in C} m_c(s_c),

read off the factors and the messages of the upward pass (see `buckets`). Drawn from, last bucket first, it
gives exact samples; in the max semiring its best state extends a best assignment.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.junction_tree.strided import LOG_MAX, SUM, fill
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def conditional(b, program, values, start, semiring, states, row):
    """Write the unnormalised distribution of the variable of bucket b to ``row``; return its card."""
    a, last, strides = program.first_axis[b], program.first_axis[b + 1] - 1, program.strides
    card = program.cards[last]
    fill(row, card, 1.0 if semiring == SUM else 0.0)
    for i in range(program.first_input[b], program.first_input[b + 1]):
        s = program.first_stride[i]
        index = start[i]
        for axis in range(a, last):
            index += states[program.variable[axis]] * strides[s + axis - a]
        step = strides[s + last - a]
        for k in range(card):
            value = values[index + k * step]
            row[k] = row[k] * value if semiring == SUM else row[k] + value
    return card


@compiled
def sample(program, values, start_of, semiring_of, uniforms, states, row):
    """Draw states, last bucket first. ``start_of[semiring]`` are the starts of the inputs."""
    component = program.component
    for draw in range(len(states)):
        x = states[draw]
        for b in range(len(component) - 1, -1, -1):
            semiring = semiring_of[component[b]]
            card = conditional(b, program, values, start_of[semiring], semiring, x, row)
            if semiring != SUM:
                exponentiate(row, card)
            x[program.variable[program.first_axis[b + 1] - 1]] = pick(row, card, uniforms[draw, b])


@compiled
def exponentiate(row, card):
    """Turn logarithms into values of which the largest is one."""
    top = row[0]
    for k in range(1, card):
        top = max(top, row[k])
    for k in range(card):
        row[k] = np.exp(row[k] - top)


@compiled
def pick(row, card, uniform):
    """Return the state where the running sum passes `uniform` (at least 0, below 1) times the total.

    It has positive mass: the running sum repeats the total's own additions, and a rounded product with a number below
    one stays below the total.
    """
    total = 0.0
    for k in range(card):
        total += row[k]
    target = uniform * total
    k = 0
    passed = row[0]
    while passed <= target and k < card - 1:
        k += 1
        passed += row[k]
    return k


@compiled
def descend(program, last, values, start, states, first, losses, row):
    """Choose the best state for buckets ``last - 1, ..., 0`` (max semiring), the others being given.

    ``losses[first[b] + k]`` becomes what state k of bucket b costs against the best one, given the later buckets.
    """
    for b in range(last - 1, -1, -1):
        card = conditional(b, program, values, start, LOG_MAX, states, row)
        best = 0
        for k in range(1, card):
            if row[k] > row[best]:
                best = k
        states[program.variable[program.first_axis[b + 1] - 1]] = best
        if len(losses) > 0:
            for k in range(card):
                losses[first[b] + k] = row[k] - row[best]
