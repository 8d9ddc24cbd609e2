"""The values of a factor graph: one table of log-potentials for each factor, and evidence.

The model is log p(x) = sum_a phi_a(x_a) - log Z, with phi_a a table of natural logarithms; -inf is a hard
zero. Factors of a group may share tables: factor a uses table ``table_ids[a]`` of its group.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.elimination.cost import exact_cost
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, describe
from isinglass.graph.names import EvidenceLike, evidence_numbers, name_of
from isinglass.graph.unions import disjoint_union, union_groups
from isinglass.graph.views import View
from isinglass.segments import sum_rows
from isinglass.typing import Array, DType, FloatArray, IntArray
from isinglass.validation import (
    Evidence,
    assignments,
    instance,
    integers,
    items,
    log_values,
    read_only,
    real_numbers,
)


class LogTables(View[Array]):
    """The table of each factor, in factor order: views into arrays (tables, k_1, ..., k_r), one for each group."""

    def __init__(self, graph: FactorGraph, groups: Sequence[Array], table_ids: Sequence[IntArray]) -> None:
        self._graph, self._groups, self._table_ids = graph, groups, table_ids

    def __len__(self) -> int:
        return self._graph.n_factors

    def item(self, i: int) -> Array:
        """Return the table of factor i."""
        group, row = (int(array[i]) for array in self._graph.place)
        table: Array = self._groups[group][self._table_ids[group][row]]
        return table


class Potentials:
    """Log-potentials on a factor graph: the model p(x) = exp(sum_a phi_a(x_a)) / Z.

    Parameters
    ----------
    graph : FactorGraph
    log_tables : sequence of arrays
        The table phi_a of each factor: natural logarithms, with one axis for each variable of its scope; -inf is a hard
        zero. They are copied.
    evidence : mapping of int to int, optional
        Observed variables and their states, by numbers or names. Every inference clamps them.

    Attributes
    ----------
    graph : FactorGraph
    groups : tuple of arrays (tables, k_1, ..., k_r)
        The distinct tables of each group of the graph; float64, or complex128 for derivatives.
    table_ids : tuple of int arrays (factors of the group,)
        The index, in `groups`, of the table of each factor.
    evidence : mapping of int to int

    Examples
    --------
    >>> g = FactorGraph([2, 2], [(0, 1), (0,)])
    >>> p = Potentials(g, [[[1.0, 0.0], [0.0, 1.0]], [0.5, 0.0]])
    >>> p
    Potentials: 2 variables (2 states), 2 factors (arity 1-2)
    >>> print(p)  # searches an elimination order
    Potentials: 2 variables (2 states), 2 factors (arity 1-2), width 1: exact needs ...
    >>> p.log_score([[0, 0], [1, 0]]).tolist()
    [1.5, 0.0]
    """

    __slots__ = ("evidence", "graph", "groups", "table_ids")

    graph: FactorGraph
    groups: tuple[Array, ...]
    table_ids: tuple[IntArray, ...]
    evidence: Evidence

    def __init__(
        self, graph: FactorGraph, log_tables: Sequence[ArrayLike], evidence: EvidenceLike | None = None
    ) -> None:
        instance(graph, FactorGraph, "graph")
        log_tables = items(log_tables, "log_tables", "one table for each factor, in a sequence")
        if len(log_tables) != graph.n_factors:
            raise InputError("log_tables", f"one table for each of {graph.n_factors} factors", f"{len(log_tables)}")
        groups = [_stacked(group, log_tables) for group in graph.groups]
        ids = [np.arange(len(g)) for g in graph.groups]
        self._set(graph, groups, ids, evidence_numbers(graph, evidence))

    @classmethod
    def from_values(
        cls, graph: FactorGraph, tables: Sequence[ArrayLike], evidence: EvidenceLike | None = None
    ) -> Potentials:
        """Build from plain values, such as probabilities, instead of their logarithms.

        Parameters
        ----------
        graph : FactorGraph
        tables : sequence of arrays
            One for each factor. Values must not be negative; zero means impossible.
        evidence : mapping, optional

        Examples
        --------
        >>> import isinglass as ig
        >>> g = ig.FactorGraph({"rain": ["no", "yes"], "wet": ["no", "yes"]}, [("rain",), ("rain", "wet")])
        >>> p = ig.Potentials.from_values(g, [[0.8, 0.2], [[0.9, 0.1], [0.25, 0.75]]])
        >>> ig.infer(p, evidence={"wet": "yes"}).variable("rain").round(3)
        array([0.348, 0.652])
        """
        listed = items(tables, "tables", "one table for each factor, in a sequence")
        with np.errstate(divide="ignore"):
            logs = [np.log(_plain(table, f"tables[{a}]")) for a, table in enumerate(listed)]
        try:
            return cls(graph, logs, evidence)
        except InputError as error:
            argument = error.argument.replace("log_tables", "tables")
            raise InputError(argument, error.expected, error.got, error.remedy) from None

    @classmethod
    def from_groups(
        cls,
        graph: FactorGraph,
        log_tables: Sequence[ArrayLike],
        table_ids: Sequence[ArrayLike | None] | None = None,
        evidence: EvidenceLike | None = None,
    ) -> Potentials:
        """Build from one array for each group of the graph, without a Python loop over factors.

        Parameters
        ----------
        graph : FactorGraph
        log_tables : sequence of arrays (tables, k_1, ..., k_r)
            For each group: one table for each factor, or one table that all of them share, or any number of tables
            with `table_ids`. For a group without factors the tables are ignored, except for their number.
        table_ids : sequence of (int array (factors,) or None), optional
            For each group, the index of the table that each factor uses.
        evidence : mapping of int to int, optional

        Examples
        --------
        >>> from isinglass.graph import grid_graph
        >>> g = grid_graph(3, 3, 2)
        >>> p = Potentials.from_groups(g, [np.zeros((9, 2)), np.eye(2)[None]])
        >>> p.log_tables[9].tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        instance(graph, FactorGraph, "graph")
        log_tables = items(log_tables, "log_tables", "one array for each group, in a sequence")
        n = len(graph.groups)
        if len(log_tables) != n:
            raise InputError("log_tables", f"one array for each of {n} groups", f"{len(log_tables)}")
        given = [None] * n if table_ids is None else items(table_ids, "table_ids", "one entry for each group")
        if len(given) != n:
            raise InputError("table_ids", f"one entry for each of {n} groups", f"{len(given)}")
        groups, ids = [], []
        for i, (group, tables, tied) in enumerate(zip(graph.groups, log_tables, given, strict=True)):
            array = log_values(tables, f"log_tables[{i}]")
            if array.ndim != group.arity + 1 or (len(group) and array.shape[1:] != group.shape):
                expected = f"shape (tables, {', '.join(map(str, group.shape))})"
                remedy = "write table[None] for one that all share" if array.shape == group.shape else ""
                raise InputError(f"log_tables[{i}]", expected, f"shape {array.shape}", remedy)
            groups.append(array if len(group) else np.zeros((len(array), *group.shape)))
            ids.append(_check_ids(tied, len(array), len(group), i))
        return cls._build(graph, groups, ids, evidence_numbers(graph, evidence))

    @classmethod
    def _build(
        cls, graph: FactorGraph, groups: Sequence[Array], table_ids: Sequence[IntArray], evidence: Evidence
    ) -> Potentials:
        """Wrap arrays that are known to be valid."""
        potentials = cls.__new__(cls)
        potentials._set(graph, groups, table_ids, evidence)
        return potentials

    def _set(
        self, graph: FactorGraph, groups: Sequence[Array], table_ids: Sequence[IntArray], evidence: Evidence
    ) -> None:
        dtype = np.result_type(np.float64, *(g.dtype for g in groups))
        for name, value in (
            ("graph", graph),
            ("groups", tuple(read_only(g.astype(dtype, copy=False)) for g in groups)),
            ("table_ids", tuple(map(read_only, table_ids))),
            ("evidence", MappingProxyType(dict(evidence))),
        ):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Potentials cannot be changed; build new ones (tried to set {name!r})")

    def __reduce__(self) -> tuple[object, ...]:
        return (Potentials._build, (self.graph, self.groups, self.table_ids, dict(self.evidence)))

    @property
    def dtype(self) -> DType:
        """float64, or complex128 for derivatives by a complex step."""
        return self.groups[0].dtype if self.groups else np.dtype(np.float64)  # all groups have one

    @property
    def log_tables(self) -> Sequence[Array]:
        """The log table of each factor, in factor order."""
        return LogTables(self.graph, self.groups, self.table_ids)

    def with_evidence(self, evidence: EvidenceLike | None) -> Potentials:
        """Return the same potentials with more variables observed.

        Examples
        --------
        >>> p = Potentials(FactorGraph([2, 2], [(0, 1)]), [np.eye(2)])
        >>> dict(p.with_evidence({1: 0}).evidence)
        {1: 0}
        """
        new = evidence_numbers(self.graph, evidence)
        for variable in new.keys() & self.evidence.keys():
            if new[variable] != self.evidence[variable]:
                got = f"{new[variable]}, but the potentials already have {self.evidence[variable]}"
                where = f"evidence[{name_of(self.graph, variable)}]"
                raise InputError(where, "one state", got, "use without_evidence() first")
        return Potentials._build(
            self.graph, self.groups, self.table_ids, dict(sorted({**self.evidence, **new}.items()))
        )

    def without_evidence(self) -> Potentials:
        """Return the same potentials with nothing observed."""
        return Potentials._build(self.graph, self.groups, self.table_ids, {})

    def log_score(self, states: ArrayLike) -> Array:
        """Return the log of the unnormalised probability, sum_a phi_a(x_a), of complete assignments.

        Parameters
        ----------
        states : int array (..., variables)

        Returns
        -------
        array (...)
            In nats; -inf where a hard zero or the evidence forbids the assignment.
        """
        x = assignments(states, self.graph.cards)
        total = np.zeros(x.shape[:-1], self.dtype)
        for group, tables, ids in zip(self.graph.groups, self.groups, self.table_ids, strict=True):
            index = tuple(x[..., group.scopes[:, slot]] for slot in range(group.arity))
            chosen = np.broadcast_to(ids, (*x.shape[:-1], len(ids)))
            total += tables[(chosen, *index)].sum(axis=-1)
        for variable, state in self.evidence.items():
            total = np.where(x[..., variable] == state, total, -np.inf)
        return total

    def energy(self, states: ArrayLike) -> Array:
        """Return minus the log-score: the energy of complete assignments, shape (...)."""
        return -self.log_score(states)

    def repeat(self, n: int) -> Potentials:
        """Return `n` disjoint copies on one graph; the copies share their tables."""
        graph = self.graph.repeat(n)
        step = self.graph.n_variables
        evidence = {variable + c * step: s for c in range(n) for variable, s in self.evidence.items()}
        return Potentials._build(graph, self.groups, [np.tile(ids, n) for ids in self.table_ids], evidence)

    def __repr__(self) -> str:
        parts = f", {self.graph.n_components} components" if self.graph.n_components > 1 else ""
        observed = f", {len(self.evidence)} observed" if self.evidence else ""
        return f"Potentials: {describe(self.graph)}{parts}{observed}"

    def __str__(self) -> str:
        """Describe the model and the cost of exact inference; this searches for an elimination order."""
        return f"{self!r}, {exact_cost(self.graph, tuple(self.evidence), self.groups)}"


def potentials_union(potentials: Sequence[Potentials]) -> Potentials:
    """Combine potentials into one batch, on the disjoint union of their graphs.

    Examples
    --------
    >>> p = Potentials(FactorGraph([2], [(0,)]), [[0.0, 1.0]])
    >>> potentials_union([p, p]).graph.n_components
    2
    """
    for i, one in enumerate(items(potentials, "potentials", "a sequence of Potentials")):
        instance(one, Potentials, f"potentials[{i}]")
    graphs = [p.graph for p in potentials]
    groups, ids = [], []
    for members in union_groups(graphs):
        tables = [potentials[i].groups[j] for i, j in members]
        shifts = np.cumsum([0, *map(len, tables)])
        groups.append(np.concatenate(tables))
        ids.append(np.concatenate([potentials[i].table_ids[j] + s for (i, j), s in zip(members, shifts, strict=False)]))
    starts = np.cumsum([0, *(g.n_variables for g in graphs)]).tolist()
    evidence = {v + s: x for p, s in zip(potentials, starts, strict=False) for v, x in p.evidence.items()}
    return Potentials._build(disjoint_union(graphs), groups, ids, evidence)


def _plain(table: ArrayLike, argument: str) -> FloatArray:
    """Check values that are no logarithms."""
    values = real_numbers(table, argument, "numbers that are not negative")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        where = tuple(np.argwhere(bad)[0].tolist())
        remedy = "give logarithms to Potentials itself" if (values[bad] < 0).any() else ""
        raise InputError(argument, "finite numbers that are not negative", f"{values[where]} at index {where}", remedy)
    return values


def _stacked(group: FactorGroup, log_tables: Sequence[ArrayLike]) -> Array:
    """Stack the tables of a group's factors; name the first that has another shape or a bad value."""
    chosen = [log_tables[a] for a in group.factors.tolist()]
    if not chosen:
        return np.zeros((0, *group.shape))
    try:
        return _shaped(log_values(chosen, "log_tables"), (len(group), *group.shape))
    except InputError:
        for a, table in zip(group.factors.tolist(), chosen, strict=True):
            _shaped(log_values(table, f"log_tables[{a}]"), group.shape, f"log_tables[{a}]")
        raise


def _shaped(array: Array, shape: tuple[int, ...], argument: str = "log_tables") -> Array:
    if array.shape != shape:
        raise InputError(argument, f"shape {shape}", f"shape {array.shape}")
    return array


def _check_ids(tied: ArrayLike | None, n_tables: int, n_factors: int, i: int) -> IntArray:
    if tied is None:
        if n_tables == n_factors:
            return np.arange(n_factors)
        if n_tables == 1:
            return np.zeros(n_factors, np.int64)
        expected = f"{n_factors} tables, or 1 that all factors share"
        raise InputError(f"log_tables[{i}]", expected, f"{n_tables}", "or pass table_ids")
    ids = integers(tied, f"table_ids[{i}]", 1)
    if len(ids) != n_factors:
        raise InputError(f"table_ids[{i}]", f"one for each of {n_factors} factors", f"{len(ids)}")
    if ids.size and (ids.min() < 0 or ids.max() >= n_tables):
        raise InputError(f"table_ids[{i}]", f"numbers from 0 to {n_tables - 1}", f"{ids.min()} to {ids.max()}")
    return ids


def sum_tables(potentials: Potentials, of_factors: Sequence[Array]) -> tuple[Array, ...]:
    """Add up arrays (factors, k_1, ..., k_r) of each group over the factors that share a table.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.zeros((1, 2, 2))])
    >>> [a.tolist() for a in sum_tables(p, ig.infer(p).factors.groups)][1]
    [[[0.5, 0.5], [0.5, 0.5]]]
    """
    totals = []
    for tables, ids, values in zip(potentials.groups, potentials.table_ids, of_factors, strict=True):
        rows = values.reshape(len(ids), int(np.prod(tables.shape[1:])))
        totals.append(sum_rows(ids, rows, len(tables)).reshape(tables.shape))
    return tuple(totals)
