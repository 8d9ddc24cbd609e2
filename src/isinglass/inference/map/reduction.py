"""The reduced model that solvers work on: without observed variables, and without states that hard zeros exclude.

Observed variables, and variables with one possible state left (`inference.support`), are removed: the tables of their
factors are sliced at these states. Of the other variables the impossible states are removed. An assignment of the
reduced model is lifted to one of the whole model, with the same score. So solvers need not handle evidence, or entries
of -inf in factors of arity one. Every remaining state has a possible configuration in each of its factors, so maxima
over the other variables of a factor are finite.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.layout import first_states
from isinglass.inference.evidence import base_states
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.segments import distinct_rows
from isinglass.typing import Array, IntArray, Mask
from isinglass.validation import assignments


class Reduction(NamedTuple):
    """A reduced model, and how its assignments become those of the whole.

    Attributes
    ----------
    whole : Potentials
        The given model.
    potentials : Potentials
        The reduced model; the given one itself if there is nothing to remove.
    base : int array (variables of the whole,)
        An assignment with the only possible state of each removed variable.
    kept : int array (variables of the reduced model,)
        Their numbers in the whole model.
    state_of : int array
        The state, in the whole model, of each state of the kept variables, flat.
    factor_of : int array (factors of the reduced model,)
        Their numbers in the whole model.
    removed : tuple of float
        The sum of the constants that were taken from tables, and that of their absolute values.
    """

    whole: Potentials
    potentials: Potentials
    base: IntArray
    kept: IntArray
    state_of: IntArray
    factor_of: IntArray
    removed: tuple[float, float] = (0.0, 0.0)

    def lift(self, states: IntArray) -> IntArray:
        """Return the assignment of the whole model; -1 (undecided) stays."""
        whole = self.base.copy()
        first = first_states(self.potentials.graph)[:-1]
        whole[self.kept] = np.where(states >= 0, self.state_of[first + np.maximum(states, 0)], -1)
        return whole

    def factor_text(self, factor: int) -> str:
        """Name a factor of the reduced model as the caller knows it, for messages."""
        number = int(self.factor_of[factor])
        return f"factor {number} (variables {', '.join(map(str, self.whole.graph.scopes[number]))})"

    def restrict(self, given: ArrayLike) -> IntArray:
        """Return the assignment of the reduced model that is nearest to one of the whole, an option `start`.

        A state that was removed becomes the first one that is left.
        """
        whole = assignments(given, self.whole.graph.cards, "start")
        first = first_states(self.potentials.graph)
        cards = self.potentials.graph.cards
        hit = self.state_of == np.repeat(whole[self.kept], cards)
        place = np.where(hit, np.arange(len(hit)) - np.repeat(first[:-1], cards), 0)
        states: IntArray = np.maximum.reduceat(place, first[:-1]) if len(place) else np.zeros(0, np.int64)
        return states


def reduced(potentials: Potentials) -> Reduction:
    """Remove evidence and impossible states; raise an error if no state of some variable is possible.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([3, 2, 2], [(0, 1), (1, 2)]), [np.eye(3)[:, :2], np.eye(2)], {1: 1})
    >>> small = reduced(p)
    >>> small.potentials, small.lift(np.array([2, 0])).tolist()
    (Potentials: 2 variables (2-3 states), 2 factors (arity 1), [2, 1, 0])
    """
    graph = potentials.graph
    if not potentials.evidence and _soft(potentials) and (graph.cards > 1).all():
        n = graph.n_variables
        every = np.arange(int(first_states(graph)[-1])) - np.repeat(first_states(graph)[:-1], graph.cards)
        return Reduction(potentials, potentials, np.zeros(n, np.int64), np.arange(n), every, np.arange(graph.n_factors))
    allowed = support_of(potentials).states
    first = first_states(graph)
    counts = np.add.reduceat(allowed, first[:-1], dtype=np.int64) if len(allowed) else np.zeros(0, np.int64)
    kept = np.flatnonzero(counts > 1)
    base = base_states(potentials)
    single = np.flatnonzero(counts == 1)
    state = np.arange(len(allowed)) - np.repeat(first[:-1], graph.cards)
    base[single] = state[allowed & np.repeat(counts == 1, graph.cards)]
    smaller, factor_of = _sliced(potentials, allowed, counts, kept)
    state_of = state[allowed & np.repeat(counts > 1, graph.cards)]
    return Reduction(potentials, smaller, base, kept, state_of, factor_of)


def _soft(potentials: Potentials) -> bool:
    return all(bool((tables > -np.inf).all()) for tables in potentials.groups)


def _sliced(potentials: Potentials, allowed: Mask, counts: IntArray, kept: IntArray) -> tuple[Potentials, IntArray]:
    graph = potentials.graph
    number = np.full(graph.n_variables, -1)
    number[kept] = np.arange(len(kept))
    groups: list[FactorGroup] = []
    tables: list[Array] = []
    ids: list[IntArray] = []
    n_factors = 0
    numbers = [np.zeros(0, np.int64)]
    for group, rows, part, tied in _slices(potentials, allowed, counts):
        scopes = number[group.scopes[rows]][:, [k > 1 for k in _shape(group, rows[0], counts)]]
        factors = np.arange(n_factors, n_factors + len(rows))
        groups.append(FactorGroup(scopes, part.shape[1:], factors))
        tables.append(part)
        ids.append(tied)
        numbers.append(group.factors[rows])
        n_factors += len(rows)
    factor_of = np.concatenate(numbers)
    component = graph.factor_component[factor_of]
    smaller = FactorGraph._build(counts[kept], groups, graph.variable_component[kept], component, graph.n_components)
    return Potentials._build(smaller, tables, ids, {}), factor_of


def _shape(group: FactorGroup, row: int, counts: IntArray) -> list[int]:
    return counts[group.scopes[row]].tolist()  # type: ignore[no-any-return]


def _slices(
    potentials: Potentials, allowed: Mask, counts: IntArray
) -> Iterator[tuple[FactorGroup, IntArray, Array, IntArray]]:
    """Yield factors whose variables keep the same states, with their sliced tables and which one each of them uses."""
    graph = potentials.graph
    pattern = _patterns(graph, allowed)
    first = first_states(graph)
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if not len(group):
            continue
        signatures, which = distinct_rows(pattern[group.scopes])
        for k in range(len(signatures)):
            rows = np.flatnonzero(which == k)
            used, tied = np.unique(ids[rows], return_inverse=True)
            scope = group.scopes[rows[0]].tolist()
            left = [np.flatnonzero(allowed[first[v] : first[v + 1]]) for v in scope]
            part = tables[np.ix_(used, *left)]
            shape = [len(states) for states in left if len(states) > 1]
            yield group, rows, part.reshape(len(used), *shape), tied.ravel()


def _patterns(graph: FactorGraph, allowed: Mask) -> IntArray:
    """Number the different sets of allowed states; variables with the same set have the same number."""
    if not graph.n_variables:
        return np.zeros(0, np.int64)
    first, width = first_states(graph), int(graph.cards.max())
    sets = np.zeros((graph.n_variables, width + 1), np.int64)
    column = np.arange(len(allowed)) - np.repeat(first[:-1], graph.cards)
    sets[np.repeat(np.arange(graph.n_variables), graph.cards), column] = allowed
    sets[:, width] = graph.cards
    packed = np.packbits(sets[:, :width].astype(bool), axis=1).astype(np.int64)
    return distinct_rows(np.concatenate([packed, sets[:, width:]], axis=1))[1]
