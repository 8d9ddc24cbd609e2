"""Conditioning: observed variables leave the graph, and the factors that they were in become smaller.

With x_o the observed states and u the other variables, every factor keeps its table at x_o,

    phi'_a(x_{a, u})  =  phi_a(x_{a, u}, x_{a, o}),

and those that are left with the same single variable, or with none, are added up. What remains is the model of x_u
given x_o; its log Z is log sum_{x_u} exp phi(x_u, x_o). The map from tables to tables is linear, and `back` is its
transpose. Examples of a batch may differ in what they observe: each component has its own pattern.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.names import EvidenceLike
from isinglass.models.model import Model
from isinglass.potentials import Potentials
from isinglass.segments import starts, sum_at
from isinglass.typing import Array, IntArray
from isinglass.validation import integers


class _Sums(NamedTuple):
    """Tables of a new group that are sums of pieces of old tables, sorted by the new table."""

    first: IntArray  # (tables,) the first piece of each
    counts: IntArray  # (tables,)
    entries: IntArray  # (pieces, cells) in the flat old tables


class _Pieces(NamedTuple):
    """Tables of a new group that are pieces of old tables."""

    entries: IntArray  # (tables, cells) in the flat old tables


class Conditioning:
    """The model that is left of a batch when some variables are observed.

    Parameters
    ----------
    graph : FactorGraph
    table_ids : sequence of int arrays
        For each group of the graph, the table of each factor.
    n_tables : sequence of int
        For each group, how many tables there are.
    states : int array (variables,)
        -1 where a variable is not observed.

    Attributes
    ----------
    graph : FactorGraph
        Of the variables that are not observed, in their order; its components are those of the given graph.
    table_ids : list of int arrays
    variables : int array
        The numbers that the remaining variables had before.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.chain_graph(3, 2), [*np.eye(3)[:, :2], [[0, 1], [2, 3]], [[0, 5], [1, 0]]])
    >>> one = Conditioning(p.graph, p.table_ids, [3, 2], np.array([-1, 1, -1]))
    >>> left = one.potentials(p)
    >>> one.variables.tolist(), [table.tolist() for table in left.log_tables]
    ([0, 2], [[2.0, 3.0], [1.0, 0.0], 1.0])
    >>> bool(np.isclose(ig.infer(left).log_z, ig.infer(p, evidence={1: 1}).log_z))
    True
    """

    def __init__(
        self, graph: FactorGraph, table_ids: Sequence[IntArray], n_tables: Sequence[int], states: IntArray
    ) -> None:
        self.variables = np.flatnonzero(states < 0)
        self._shapes = [(n, *group.shape) for n, group in zip(n_tables, graph.groups, strict=True)]
        self._size = sum(map(prod, self._shapes))
        self._offsets = starts(np.array([prod(shape) for shape in self._shapes], np.int64))
        self.table_ids: list[IntArray] = []
        self._parts: list[_Sums | _Pieces] = []
        self._groups: list[FactorGroup] = []
        self._owners: list[IntArray] = []
        new = np.full(graph.n_variables, -1)
        new[self.variables] = np.arange(len(self.variables))
        self._reduce(graph, table_ids, states, new)
        owners = np.concatenate([np.zeros(0, np.int64), *self._owners])
        component = graph.variable_component[self.variables]
        cards = graph.cards[self.variables]
        self.graph = FactorGraph._build(cards, self._groups, component, owners, graph.n_components)

    def potentials(self, given: Potentials) -> Potentials:
        """Return what is left of potentials of the given graph; these have no evidence of their own."""
        flat = np.concatenate([np.zeros(0), *(tables.ravel() for tables in given.groups)])
        tables = [self._made(flat, part, group) for part, group in zip(self._parts, self._groups, strict=True)]
        return Potentials._build(self.graph, tables, self.table_ids, {})

    def back(self, bars: Sequence[Array]) -> tuple[Array, ...]:
        """Carry derivatives by the tables that are left back to those that were given."""
        total = np.zeros(self._size, np.result_type(np.float64, *(bar.dtype for bar in bars)))
        for part, bar in zip(self._parts, bars, strict=True):
            flat = bar.reshape(len(bar), -1)
            wide = np.repeat(flat, part.counts, axis=0) if isinstance(part, _Sums) else flat
            total += sum_at(part.entries, wide, self._size)
        pieces = np.split(total, self._offsets[1:-1]) if self._shapes else []
        return tuple(piece.reshape(shape) for piece, shape in zip(pieces, self._shapes, strict=True))

    def _made(self, flat: Array, part: _Sums | _Pieces, group: FactorGroup) -> Array:
        found = flat[part.entries]
        if isinstance(part, _Sums):
            found = np.add.reduceat(found, part.first, axis=0) if len(part.first) else found
        return found.reshape(len(found), *group.shape)

    def _reduce(self, graph: FactorGraph, table_ids: Sequence[IntArray], states: IntArray, new: IntArray) -> None:
        """Sort all factors by the variables that they keep."""
        single: dict[int, list[tuple[IntArray, IntArray]]] = {}
        constants: list[tuple[IntArray, IntArray]] = []
        for g, (group, ids) in enumerate(zip(graph.groups, table_ids, strict=True)):
            steps = np.cumprod([*group.shape[1:], 1][::-1])[::-1].astype(np.int64)[: group.arity]
            hidden = states[group.scopes] < 0
            place = self._offsets[g] + ids * group.table_size + np.where(hidden, 0, states[group.scopes]) @ steps
            codes = hidden @ (1 << np.arange(group.arity)) if group.arity else np.zeros(len(group), np.int64)
            owner = graph.factor_component[group.factors]
            for code in np.unique(codes).tolist():
                rows = np.flatnonzero(codes == code)
                kept = [s for s in range(group.arity) if code >> s & 1]
                cells = _cells([group.shape[s] for s in kept], steps[kept])
                if not kept:
                    constants.append((owner[rows], place[rows, None]))
                elif len(kept) == 1:
                    target = new[group.scopes[rows, kept[0]]]
                    single.setdefault(group.shape[kept[0]], []).append((target, place[rows, None] + cells))
                else:
                    shape = tuple(group.shape[s] for s in kept)
                    self._add_pieces(new[group.scopes[rows][:, kept]], shape, owner[rows], place[rows], cells)
        for card, found in single.items():
            self._add_sums(found, (card,), graph.variable_component[self.variables])
        if constants:
            self._add_sums(constants, (), np.arange(graph.n_components))

    def _add_pieces(
        self, scopes: IntArray, shape: tuple[int, ...], owner: IntArray, place: IntArray, cells: IntArray
    ) -> None:
        """Add a group of factors whose tables are pieces of old ones."""
        distinct, ids = np.unique(place, return_inverse=True)
        self._add(scopes, shape, owner, ids.ravel(), _Pieces(distinct[:, None] + cells))

    def _add_sums(self, found: list[tuple[IntArray, IntArray]], shape: tuple[int, ...], component: IntArray) -> None:
        """Add a group with one factor for each variable, or each component, that has pieces to add up."""
        target = np.concatenate([one for one, _ in found])
        order = np.argsort(target, kind="stable")
        which, first, counts = np.unique(target[order], return_index=True, return_counts=True)
        entries = np.concatenate([pieces for _, pieces in found])[order]
        scopes = which[:, None] if shape else np.zeros((len(which), 0), np.int64)
        self._add(scopes, shape, component[which], np.arange(len(which)), _Sums(first, counts, entries))

    def _add(
        self, scopes: IntArray, shape: tuple[int, ...], owner: IntArray, ids: IntArray, part: _Sums | _Pieces
    ) -> None:
        count = sum(map(len, self._groups))
        self._groups.append(FactorGroup(scopes, shape, count + np.arange(len(scopes))))
        self._owners.append(owner)
        self.table_ids.append(ids)
        self._parts.append(part)


def _cells(shape: Sequence[int], steps: IntArray) -> IntArray:
    """Return where the entries of a piece lie, relative to its first one, in C order."""
    grid = np.indices(shape).reshape(len(shape), -1) if shape else np.zeros((0, 1), np.int64)
    return np.asarray(steps @ grid, np.int64)


class ConditionedModel(Model):
    """A model of one example, for a batch of examples that each observe some variables.

    Parameters
    ----------
    plain : Model
        Of all variables of one example.
    states : int array (examples, variables)
        What each example observes; -1 elsewhere.

    Attributes
    ----------
    variables : int array
        The number of each remaining variable, ``example * variables + variable``.

    Examples
    --------
    >>> import isinglass as ig
    >>> plain = ig.models.table_model(ig.chain_graph(3, 2))
    >>> model = ConditionedModel(plain, [[0, -1, -1], [-1, 1, -1]])
    >>> model.graph.n_variables, model.variables.tolist(), model.size == plain.size
    (4, [1, 2, 3, 5], True)
    """

    def __init__(self, plain: Model, states: ArrayLike) -> None:
        given, n_variables = integers(states, "states", 2), plain.graph.n_variables
        expected = f"an int array (examples, {n_variables}), states or -1 (not observed)"
        if given.shape[1] != n_variables or not len(given):
            raise InputError("states", expected, f"shape {given.shape}")
        bad = (given < -1) | (given >= plain.graph.cards)
        if bad.any():
            i, v = np.argwhere(bad)[0].tolist()
            raise InputError("states", expected, f"{given[i, v]} for variable {v} of example {i}")
        self.__dict__ |= plain.__dict__
        self.plain, self.states = plain, given
        many = plain.graph.repeat(len(given))
        graph = FactorGraph._build(
            many.cards,
            many.groups,
            many.variable_component // plain.graph.n_components,
            many.factor_component // plain.graph.n_components,
            len(given),
        )
        ids = [np.tile(one, len(given)) for one in plain.table_ids]
        self.conditioning = Conditioning(graph, ids, [group.shape[0] for group in plain._groups], given.ravel())
        self.graph, self.variables = self.conditioning.graph, self.conditioning.variables
        self.table_ids = tuple(self.conditioning.table_ids)

    def __reduce__(self) -> tuple[object, ...]:
        return (ConditionedModel, (self.plain, self.states))

    def potentials(self, theta: ArrayLike, evidence: EvidenceLike | None = None) -> Potentials:
        """Return the log-potentials of what is not observed."""
        found = self.conditioning.potentials(self.plain.potentials(theta))
        return found.with_evidence(evidence) if evidence else found

    def transpose(self, bars: Sequence[Array]) -> Array:
        """Carry derivatives by the tables back to the parameters."""
        return self.plain.transpose(self.conditioning.back(bars))

    def reduced(self, theta: ArrayLike) -> Array:
        """Return the canonical parameters among all that give the same tables."""
        return self.plain.reduced(theta)
