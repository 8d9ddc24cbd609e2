"""The structure of a factor graph: variables with cardinalities, factors with scopes. No values.

Factors are stored in groups of equal table shape, so that everything after construction works on arrays. Groups are in
the order of their first factor; factors keep the numbers of the caller's list. A graph is immutable: arrays are
read-only, and derived quantities are computed once and cached.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.derived import FlatScopes, connected_parts, flatten, forest_components, places
from isinglass.graph.names import SHOWN, NamedCards, Names, VariableLike, names_for, scope_numbers, split_cards
from isinglass.graph.views import View
from isinglass.runtime.caching import Cache
from isinglass.segments import distinct_rows, starts
from isinglass.typing import IntArray, Mask
from isinglass.validation import integers, items, read_only, whole_number

T = TypeVar("T")

CACHED = 32  # derived structures that a graph keeps
_COPIES = "copies"  # for which a graph that `repeat` made keeps its original, and the number of copies


@dataclass(frozen=True, eq=False)
class FactorGroup:
    """Factors that share the shape of their table.

    Attributes
    ----------
    scopes : int array (factors, arity)
        The variables of each factor, in the order of its table's axes.
    shape : tuple of int
        The cardinalities of every scope in the group.
    factors : int array (factors,)
        The number of each factor in the whole graph.
    """

    scopes: IntArray
    shape: tuple[int, ...]
    factors: IntArray

    @property
    def arity(self) -> int:
        """Number of variables of each factor."""
        return len(self.shape)

    @property
    def table_size(self) -> int:
        """Number of entries of each table."""
        return prod(self.shape)

    def __len__(self) -> int:
        return len(self.factors)


class Scopes(View[tuple[int, ...]]):
    """The scopes in factor order."""

    def __init__(self, flat: FlatScopes) -> None:
        self._flat = flat

    def __len__(self) -> int:
        return len(self._flat.first_slot) - 1

    def item(self, i: int) -> tuple[int, ...]:
        """Return the scope of factor i."""
        return tuple(self._flat.variable[self._flat.first_slot[i] : self._flat.first_slot[i + 1]].tolist())


class FactorGraph:
    """An immutable factor graph.

    Parameters
    ----------
    cards : sequence of int, or mapping of str to (int or sequence of str)
        The number of states of each variable, at least 1. Or a mapping from the name of each variable to the number
        or the names of its states.
    scopes : sequence of sequences of int or str
        The variables of each factor, by numbers or names, in the order of the axes of its table. Any arity, repeated
        scopes, and variables without a factor are allowed.

    Attributes
    ----------
    cards : int array (variables,)
        The number of states of each variable.
    groups : tuple of FactorGroup
        The factors, grouped by the shape of their tables.
    variable_component, factor_component : int arrays
        The component (example of a batch) of each variable and factor: zero unless the graph was made by
        `disjoint_union` or `repeat`.
    names : Names or None
        The names of variables and states. If a graph has names, functions accept them in place of numbers.

    Examples
    --------
    >>> g = FactorGraph(cards=[2, 3, 2], scopes=[(0, 1), (1, 2), (0,)])
    >>> g
    FactorGraph: 3 variables (2-3 states), 3 factors (arity 1-2), forest
    >>> g.scopes[1], g.is_forest
    ((1, 2), True)

    With names:

    >>> FactorGraph({"rain": ["no", "yes"], "wet": 2}, scopes=[("rain",), ("rain", "wet")])
    FactorGraph: 2 variables (rain, wet; 2 states), 2 factors (arity 1-2), forest
    """

    __slots__ = ("_cache", "cards", "factor_component", "groups", "n_components", "names", "variable_component")

    cards: IntArray
    groups: tuple[FactorGroup, ...]
    variable_component: IntArray
    factor_component: IntArray
    n_components: int
    names: Names | None
    _cache: Cache

    def __init__(self, cards: ArrayLike | NamedCards, scopes: Sequence[Sequence[VariableLike]]) -> None:
        names = None
        if isinstance(cards, Mapping):
            names, cards = split_cards(cards)
            scopes = scope_numbers(names, items(scopes, "scopes", "a sequence of tuples of variables"))
        checked = _check_cards(cards)
        self._set(checked, _group_scopes(checked, scopes), names=names)

    @classmethod
    def from_groups(cls, cards: ArrayLike, scopes: Sequence[ArrayLike]) -> FactorGraph:
        """Build a graph from one integer array (factors, arity) for each group, without a Python loop over factors.

        All factors of a group must have the same table shape. Factors are numbered group after group.

        Examples
        --------
        >>> FactorGraph.from_groups([2, 2, 2], [[[0], [1], [2]], [[0, 1], [1, 2]]])
        FactorGraph: 3 variables (2 states), 5 factors (arity 1-2), forest
        """
        checked = _check_cards(cards)
        groups, start = [], 0
        for i, scope in enumerate(items(scopes, "scopes", "one integer array (factors, arity) for each group")):
            array = _check_scopes(integers(scope, f"scopes[{i}]", 2), checked, f"scopes[{i}]")
            shapes = checked[array]
            if len(array) and (shapes != shapes[0]).any():
                row = int(np.argwhere((shapes != shapes[0]).any(axis=1))[0, 0])
                got = f"{tuple(shapes[0].tolist())} and, in row {row}, {tuple(shapes[row].tolist())}"
                raise InputError(f"scopes[{i}]", "one table shape in a group", got, "split it by shape")
            shape = tuple(shapes[0].tolist()) if len(array) else (1,) * array.shape[1]
            groups.append(FactorGroup(array, shape, np.arange(start, start + len(array))))
            start += len(array)
        return cls._build(checked, groups)

    @classmethod
    def _build(
        cls,
        cards: IntArray,
        groups: Sequence[FactorGroup],
        variable_component: IntArray | None = None,
        factor_component: IntArray | None = None,
        n_components: int = 1,
        names: Names | None = None,
    ) -> FactorGraph:
        """Wrap arrays that are known to be valid."""
        graph = cls.__new__(cls)
        graph._set(cards, groups, variable_component, factor_component, n_components, names)
        return graph

    def _set(
        self,
        cards: IntArray,
        groups: Sequence[FactorGroup],
        variable_component: IntArray | None = None,
        factor_component: IntArray | None = None,
        n_components: int = 1,
        names: Names | None = None,
    ) -> None:
        n_factors = sum(len(g) for g in groups)
        if variable_component is None:
            variable_component = np.zeros(len(cards), np.int64)
        if factor_component is None:
            factor_component = np.zeros(n_factors, np.int64)
        frozen = tuple(FactorGroup(read_only(g.scopes), g.shape, read_only(g.factors)) for g in groups)
        for name, value in (
            ("cards", read_only(cards)),
            ("groups", frozen),
            ("variable_component", read_only(variable_component)),
            ("factor_component", read_only(factor_component)),
            ("n_components", n_components),
            ("names", names),
            ("_cache", Cache(CACHED)),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a FactorGraph cannot be changed; build a new one (tried to set {name!r})")

    def __reduce__(self) -> tuple[object, ...]:
        return (FactorGraph._build, (*self._parts(), self.names))

    def _parts(self) -> tuple[IntArray, tuple[FactorGroup, ...], IntArray, IntArray, int]:
        return self.cards, self.groups, self.variable_component, self.factor_component, self.n_components

    def with_names(self, names: Names | NamedCards | Sequence[str] | None) -> FactorGraph:
        """Return the same structure with names.

        Parameters
        ----------
        names : sequence of str, mapping or None
            Names of the variables; or a mapping, as for the constructor; or None, for none.

        Examples
        --------
        >>> from isinglass.graph import chain_graph
        >>> chain_graph(2, 2).with_names({"rain": ["no", "yes"], "wet": 2})
        FactorGraph: 2 variables (rain, wet; 2 states), 3 factors (arity 1-2), forest
        """
        checked = names if names is None or isinstance(names, Names) else names_for(names, self.cards)
        return FactorGraph._build(*self._parts(), checked)

    def cached(self, key: Hashable, make: Callable[[], T], fits: Callable[[T], bool] | None = None) -> T:
        """Return what is cached for this structure under `key`, computed the first time; see `Cache.get`.

        At most CACHED entries are kept, and the oldest is dropped first; otherwise entries that depend on evidence
        would accumulate. Threads may share a graph; cached values are never changed.
        """
        return self._cache.get(key, make, fits)

    @property
    def n_variables(self) -> int:
        """Number of variables."""
        return len(self.cards)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.factor_component)

    @property
    def scopes(self) -> Sequence[tuple[int, ...]]:
        """The scope of each factor, in factor order."""
        return Scopes(self.flat_scopes)

    @property
    def flat_scopes(self) -> FlatScopes:
        """All scopes as flat arrays, in factor order."""
        return self.cached("flat_scopes", lambda: flatten(self))

    @property
    def place(self) -> tuple[IntArray, IntArray]:
        """The group of each factor, and its row in that group."""
        return self.cached("place", lambda: places(self))

    @property
    def is_forest(self) -> bool:
        """Whether the bipartite graph of variables and factors has no cycle (Berge-acyclic)."""
        return bool(self.forest_components.all())

    @property
    def forest_components(self) -> Mask:
        """For each component (example), whether it is a forest."""
        return self.cached("forest_components", self._forest_components)

    def _forest_components(self) -> Mask:
        copied: tuple[FactorGraph, int] | None = self.cached(_COPIES, lambda: None)
        if copied is None:
            return forest_components(self)
        one, n = copied
        return read_only(np.tile(one.forest_components, n))

    @property
    def connected_components(self) -> IntArray:
        """The connected component of each variable; components are numbered in the order of their first variable."""
        return self.cached("connected_components", lambda: connected_parts(self))

    def repeat(self, n: int) -> FactorGraph:
        """Return `n` disjoint copies as one graph; copy c is component c (if this graph has one).

        Examples
        --------
        >>> FactorGraph([2, 2], [(0, 1)]).repeat(3).scopes[:]
        [(0, 1), (2, 3), (4, 5)]
        """
        n = whole_number(n, "n", 1)

        def shifted(values: IntArray, step: int) -> IntArray:
            shift = np.arange(n).reshape((n,) + (1,) * values.ndim) * step
            return (values[None] + shift).reshape((n * values.shape[0], *values.shape[1:]))

        groups = [
            FactorGroup(shifted(g.scopes, self.n_variables), g.shape, shifted(g.factors, self.n_factors))
            for g in self.groups
        ]
        copies = FactorGraph._build(
            np.tile(self.cards, n),
            groups,
            shifted(self.variable_component, self.n_components),
            shifted(self.factor_component, self.n_components),
            n * self.n_components,
            None if self.names is None else self.names.repeat(n),
        )
        copies.cached(_COPIES, lambda: (self, n))
        return copies

    def __repr__(self) -> str:
        parts = f", {self.n_components} components" if self.n_components > 1 else ""
        forest = ", forest" if self.is_forest else ""
        return f"FactorGraph: {describe(self)}{parts}{forest}"


def describe(graph: FactorGraph) -> str:
    """Say how many variables and factors there are, of what size.

    Examples
    --------
    >>> describe(FactorGraph([2, 2], [(0, 1)]))
    '2 variables (2 states), 1 factor (arity 2)'
    """
    arities = [g.arity for g in graph.groups if len(g)]
    span = _span(graph.cards.tolist()) if graph.n_variables else ""
    known = "" if graph.names is None else _listed(graph.names.variables) + "; "
    states = f" ({known}{span} {'state' if span == '1' else 'states'})" if span else ""
    arity = f" (arity {_span(arities)})" if arities else ""
    return f"{_count(graph.n_variables, 'variable')}{states}, {_count(graph.n_factors, 'factor')}{arity}"


def _check_cards(cards: ArrayLike) -> IntArray:
    array = integers(cards, "cards", 1)
    if array.size and array.min() < 1:
        i = int(np.argmin(array))
        raise InputError("cards", "at least one state for each variable", f"cards[{i}] = {array[i]}")
    return array


def _check_scopes(array: IntArray, cards: IntArray, argument: str) -> IntArray:
    """Check rows of variables: in range, and no variable twice in one scope."""
    bad = (array < 0) | (array >= len(cards))
    if bad.any():
        row, slot = (int(i) for i in np.argwhere(bad)[0])
        expected = f"variables 0 to {len(cards) - 1}" if len(cards) else "no variables at all (cards is empty)"
        raise InputError(argument, expected, f"{array[row, slot]} in {tuple(array[row].tolist())}")
    ordered = np.sort(array, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        row = int(np.argmax(twice))
        raise InputError(argument, "distinct variables in a scope", str(tuple(array[row].tolist())))
    return array


def _group_scopes(cards: IntArray, scopes: Sequence[Sequence[VariableLike]]) -> list[FactorGroup]:
    """Sort scopes into groups of equal shape, by the first factor of each shape."""
    scopes = items(scopes, "scopes", "a sequence of tuples of variables")
    try:
        lengths = np.fromiter(map(len, scopes), np.int64)
    except TypeError:
        raise InputError(
            "scopes", "a sequence of tuples of variables", f"{scopes!r:.60}", "write (3,) for one"
        ) from None
    flat = integers(list(chain.from_iterable(scopes)), "scopes", 1)
    first = starts(lengths)
    groups: list[FactorGroup] = []
    for arity in np.unique(lengths).tolist():
        factors = np.flatnonzero(lengths == arity)
        array = _check_scopes(flat[first[factors][:, None] + np.arange(arity)], cards, "scopes")
        shapes = cards[array]
        examples, which = distinct_rows(shapes)
        by_shape = np.argsort(which, kind="stable")
        cuts = np.cumsum(np.bincount(which, minlength=len(examples)))[:-1]
        for shape, rows in zip(shapes[examples].tolist(), np.split(by_shape, cuts), strict=True):
            groups.append(FactorGroup(array[rows], tuple(shape), factors[rows]))
    return sorted(groups, key=lambda g: int(g.factors[0]))


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def _listed(names: Sequence[str]) -> str:
    return ", ".join([*names[:SHOWN], *(["..."] if len(names) > SHOWN else [])])


def _span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return str(low) if low == high else f"{low}-{high}"


def iter_groups(graph: FactorGraph) -> Iterator[tuple[FactorGroup, slice]]:
    """Yield each group with its slice in a flat vector that holds one table for each factor, group by group."""
    start = 0
    for group in graph.groups:
        stop = start + len(group) * group.table_size
        yield group, slice(start, stop)
        start = stop
