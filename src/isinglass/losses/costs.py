"""What wrong labels cost: the number of errors, a weighted number, a table, or one less the F1 score.

    Delta(x, y)  =  sum_i w_i C(y_i, x_i)             i over the observed variables

With C(y, x) = [y != x], "hamming", this is the number of wrong labels. The weights of variables (of classes and of
examples) are split: their mean over an example's observed variables weighs the example, w_i is what is left:

    weight of the example  =  mean_i weight_i,        w_i  =  weight_i / mean

So an example of weight 2 counts like two examples, and labels of different classes may cost differently. With a vector
in place of the table, C(y, x) = c_y [y != x]. "f1" is the only cost that is no sum over variables (`hinge.f1`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states, state_blocks
from isinglass.losses.observed import checked_weights
from isinglass.segments import sum_at
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import real_numbers

HAMMING, F1 = "hamming", "f1"


class Costs(NamedTuple):
    """The weight of each component, and the cost of each state, flat like the beliefs of variables."""

    weights: FloatArray
    states: FloatArray


def cost_matrix(cost: str | ArrayLike, n_states: int) -> FloatArray:
    """Return C (states, states), from a name, a vector or a table; refuse negative costs, and costs of a right label.

    Examples
    --------
    >>> cost_matrix("hamming", 2).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    >>> cost_matrix([2.0, 3.0], 2).tolist()
    [[0.0, 2.0], [3.0, 0.0]]
    >>> cost_matrix([[0.0, -1.0], [1.0, 0.0]], 2)
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: cost: expected finite costs that are not negative, got -1.0 for state 1 at label 0
    """
    if isinstance(cost, str):
        if cost != HAMMING:
            raise InputError("cost", f"{HAMMING!r}, a vector by label or a table (label, state)", repr(cost))
        return 1.0 - np.eye(n_states)
    expected = f"{n_states} costs by label, or a table ({n_states}, {n_states}) of costs, (label, state)"
    table = real_numbers(cost, "cost", expected)
    if table.shape == (n_states,):
        table = np.where(np.eye(n_states) > 0, 0.0, table[:, None])
    if table.shape != (n_states, n_states):
        raise InputError("cost", expected, f"shape {table.shape}")
    bad = np.argwhere(~((table >= 0) & (table < np.inf)))
    if len(bad):
        y, x = bad[0].tolist()
        raise InputError("cost", "finite costs that are not negative", f"{table[y, x]} for state {x} at label {y}")
    if np.diag(table).any():
        y = int(np.argmax(np.diag(table) != 0))
        raise InputError("cost", "no cost of the right label", f"{table[y, y]} for label {y}")
    return table


def additive(cost: str | ArrayLike) -> str | ArrayLike:
    """Return a cost that is a sum over variables; refuse others."""
    if isinstance(cost, str) and cost == F1:
        raise InputError("cost", "a cost that is a sum over variables", repr(cost), f"use {HAMMING!r} or a table")
    return cost


def costs_of(graph: FactorGraph, labels: IntArray, weights: ArrayLike | None, cost: str | ArrayLike) -> Costs:
    """Return the weights of the components and the costs of all states; unobserved variables cost nothing.

    Examples
    --------
    >>> found = costs_of(FactorGraph([2, 2], []), np.array([1, -1]), None, "hamming")
    >>> found.weights.tolist(), found.states.tolist()
    ([1.0], [1.0, 0.0, 0.0, 0.0])
    """
    seen, given = labels >= 0, checked_weights(weights, graph)
    component, n = graph.variable_component, graph.n_components
    counts = sum_at(component[seen], np.ones(int(seen.sum())), n).real
    means = sum_at(component[seen], given[seen], n).real / np.maximum(counts, 1.0)
    share = np.where(seen, given, 0.0) / np.where(means > 0, means, 1.0)[component]
    states = np.zeros(int(first_states(graph)[-1]))
    for variables, entries in state_blocks(graph):
        rows = seen[variables]
        i, places = variables[rows], entries[rows]
        states[places] = share[i, None] * cost_matrix(cost, entries.shape[1])[labels[i]]
    return Costs(means, states)
