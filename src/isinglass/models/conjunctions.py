"""Log-linear models whose features are conjunctions: variable i has state s, and j has t, and ...

    log p(x) = sum_f theta_f [x agrees with f] - log Z

There is one factor for each set of variables that some feature speaks of; features of the same variables share it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.models.model import Model
from isinglass.models.terms import IndicatorTerm, Kind, Term
from isinglass.typing import IntArray
from isinglass.validation import integers, whole_number

Conjunction = tuple[tuple[int, int], ...]
"""Pairs (variable, state), sorted by variable."""


class ConjunctionTerm(IndicatorTerm):
    """Indicators of joint states; one array of parameters serves factors of any number of variables."""

    @property
    def kind(self) -> Kind:
        """Always "clique"."""
        return "clique"


def conjunction_model(cards: ArrayLike, features: Iterable[Mapping[int, int] | Conjunction]) -> Model:
    """Return the model of some features, with one parameter each, in their order: "feature".

    Parameters
    ----------
    cards : int array (variables,)
        The numbers of states.
    features : iterable of mappings of int to int
        The states of some variables.

    Examples
    --------
    >>> model = conjunction_model([2, 2], [{0: 1}, {0: 1, 1: 1}])
    >>> [table.tolist() for table in model.potentials([0.5, 2.0]).log_tables]
    [[0.0, 0.5], [0.0, 0.0], [[0.0, 0.0], [0.0, 2.0]]]
    """
    sizes = integers(cards, "cards", 1)
    named = [conjunction(one, sizes, f"features[{k}]") for k, one in enumerate(features)]
    if len(set(named)) != len(named):
        twice = next(f for f in named if named.count(f) > 1)
        raise InputError("features", "each feature once", f"{dict(twice)} twice")
    scopes = sorted({(i,) for i in range(len(sizes))} | {tuple(i for i, _ in f) for f in named}, key=_by_size)
    graph = FactorGraph(sizes, scopes)
    return Model(graph, [[_term(graph, group.factors, group.shape, named)] for group in graph.groups])


def conjunction(feature: Mapping[int, int] | Conjunction, cards: IntArray, argument: str = "feature") -> Conjunction:
    """Check a feature.

    Examples
    --------
    >>> conjunction({3: 1, 0: 0}, np.array([2, 2, 2, 2]))
    ((0, 0), (3, 1))
    """
    expected = "states of some variables, such as {0: 1, 3: 0}"
    if not isinstance(feature, Mapping | tuple) or not len(feature):
        raise InputError(argument, expected, f"{feature!r:.40}")
    pairs = feature.items() if isinstance(feature, Mapping) else feature
    found = tuple(sorted((whole_number(i, argument), whole_number(s, argument)) for i, s in pairs))
    for i, s in found:
        if i >= len(cards) or s >= cards[i]:
            raise InputError(argument, "variables and states that there are", f"state {s} of variable {i}")
    if len({i for i, _ in found}) != len(found):
        raise InputError(argument, expected, f"two states of one variable: {found!r:.40}")
    return found


def _by_size(scope: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(scope), scope


def _term(graph: FactorGraph, factors: IntArray, shape: tuple[int, ...], features: list[Conjunction]) -> Term:
    """Return the term of all factors of one shape."""
    place = {graph.scopes[f]: k for k, f in enumerate(factors.tolist())}
    size, rows, columns = int(np.prod(shape)), [], []
    for column, feature in enumerate(features):
        k = place.get(tuple(i for i, _ in feature))
        if k is not None:
            rows.append(k * size + int(np.ravel_multi_index(tuple(s for _, s in feature), shape)))
            columns.append(column)
    ones = np.ones(len(rows))
    matrix = csr_array((ones, (rows, columns)), shape=(len(factors) * size, len(features)))
    return ConjunctionTerm("feature", matrix, shape)
