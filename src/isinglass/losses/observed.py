"""What was observed: labels and weights checked against a graph, and sums over where they lie."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import array_of, integers, read_only


def checked_labels(labels: ArrayLike, graph: FactorGraph) -> IntArray:
    """Check labels, one for each variable; -1 is not observed.

    Examples
    --------
    >>> checked_labels([0, 2], FactorGraph([2, 2], []))
    Traceback (most recent call last):
    ...
    isinglass.errors.InputError: labels: expected states from 0 to 1, or -1 (not observed), got 2 for variable 1
    """
    array = integers(labels, "labels", 1)
    if len(array) != graph.n_variables:
        raise InputError("labels", f"one for each of {graph.n_variables} variables", f"{len(array)}")
    bad = (array < -1) | (array >= graph.cards)
    if bad.any():
        i = int(np.argmax(bad))
        expected = f"states from 0 to {graph.cards[i] - 1}, or -1 (not observed)"
        raise InputError("labels", expected, f"{array[i]} for variable {i}")
    return array


def checked_weights(weights: ArrayLike | None, graph: FactorGraph) -> FloatArray:
    """Check the weights of the variables; None is one for each."""
    if weights is None:
        return np.ones(graph.n_variables)
    expected = f"{graph.n_variables} finite numbers of at least 0, one for each variable"
    array = array_of(weights, "weights", expected)
    if array.dtype.kind not in "iuf" or array.shape != (graph.n_variables,):
        raise InputError("weights", expected, f"shape {array.shape} of dtype {array.dtype}")
    bad = ~((array >= 0) & (array < np.inf))
    if bad.any():
        i = int(np.argmax(bad))
        raise InputError("weights", expected, f"{array[i]} for variable {i}")
    return array.astype(np.float64)


def component_weights(weights: ArrayLike | None, graph: FactorGraph) -> FloatArray:
    """Return the weight of each component, for a loss that is no sum over variables.

    All variables of a component must have one weight; a component without variables has weight one.

    Examples
    --------
    >>> component_weights([2.0, 2.0, 3.0, 3.0], FactorGraph([2, 2], [(0, 1)]).repeat(2)).tolist()
    [2.0, 3.0]
    """
    array, component = checked_weights(weights, graph), graph.variable_component
    found = np.ones(graph.n_components)
    found[component] = array
    differs = found[component] != array
    if differs.any():
        i = int(np.argmax(differs))
        got = f"{array[i]:g} for variable {i} and {found[component[i]]:g} for another variable of its example"
        raise InputError("weights", "one weight for all variables of an example", got, "use a loss such as 'ucl'")
    return found


def known_states(labels: ArrayLike, potentials: Potentials) -> IntArray:
    """Return the labels, with the evidence of the potentials where there is some; -1 is unknown.

    A label that contradicts the evidence is refused.
    """
    states = checked_labels(labels, potentials.graph)
    if not potentials.evidence:
        return states
    where = np.fromiter(potentials.evidence.keys(), np.int64)
    given = np.fromiter(potentials.evidence.values(), np.int64)
    bad = (states[where] >= 0) & (states[where] != given)
    if bad.any():
        k = int(np.argmax(bad))
        got = f"label {states[where[k]]} for variable {where[k]}, whose evidence is {given[k]}"
        raise InputError("labels", "labels that agree with the evidence", got, "use -1 for it")
    states[where] = given
    return states


def chosen(mask: Mask) -> IntArray | slice:
    """Return the rows that a mask chooses; all of them as a slice, which copies nothing."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def table_entries(group: FactorGroup, states: IntArray) -> IntArray:
    """Return where the states of each factor's variables lie in its flat table (C order); rows must be known."""
    return states[group.scopes] @ table_strides(group)


def table_strides(group: FactorGroup) -> IntArray:
    """Return the step in a flat table of the group when the state of each slot grows."""
    return _strides(group.shape)


@lru_cache(maxsize=256)
def _strides(shape: tuple[int, ...]) -> IntArray:
    sizes = np.array([*shape[1:], 1][: len(shape)], np.int64)
    return read_only(np.cumprod(sizes[::-1])[::-1])
