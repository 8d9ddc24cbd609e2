"""Enumeration: the joint table of all assignments. Short and simple; the tests compare every algorithm with it.

    log Z = log sum_x exp(sum_a phi_a(x_a)),   b_i(x_i) = sum_{x: x_i} exp(sum_a phi_a(x_a) - log Z)

The directional derivative of p along log tables v is, with V(x) = sum_a v_a(x_a) and E V its mean:

    dp(x) = p(x) (V(x) - E V)

Each component of the graph has its own joint table. An observed variable has its observed state only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, Taping, register
from isinglass.inference.assignment import Assignment, centred, is_wide, ranked
from isinglass.inference.complex_step import by_tables, direction
from isinglass.inference.evidence import base_states, impossible
from isinglass.inference.result import FactorBeliefs, Gradients, Info, Result, VariableBeliefs
from isinglass.potentials import LogTables, Potentials
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import Array, IntArray
from isinglass.validation import bytes_text

TABLES = 4  # copies of a joint table that may be in memory at once
MISSED = 1e-12  # by which sums of beliefs may miss one
LITTLE = 2**20  # bytes that there always are: the system is not asked


@dataclass(frozen=True)
class Joint:
    """A number for each assignment of one component: its log-score, its probability, or a derivative of that.

    Attributes
    ----------
    free : int array
        Its unobserved variables with more than one state; the axes of `values`.
    values : array (cards of the free variables)
    """

    free: IntArray
    values: Array

    @property
    def log_z(self) -> complex:
        """The logarithm of the sum of all probabilities, given log-scores."""
        top = self.values.real.max()
        total: complex = top if top == -np.inf else top + np.log(np.exp(self.values - top).sum())
        return total

    @property
    def masses(self) -> Joint:
        """The probability of each assignment, given log-scores.

        The rounding of a very large log Z is a factor of all of them, which dividing by their sum removes.
        """
        p = np.exp(self.values - self.log_z)
        total = p.real.sum()
        return Joint(self.free, p / total if abs(total - 1) > MISSED else p)

    def marginal(self, variables: IntArray) -> Array:
        """Sum out all but the given free variables; the axes are in the given order."""
        axes = [int(np.flatnonzero(self.free == v)[0]) for v in variables]
        summed: Array = self.values.sum(axis=tuple(i for i in range(self.values.ndim) if i not in axes))
        return summed.transpose(np.argsort(np.argsort(axes))) if axes else summed

    def add(self, scope: tuple[int, ...], table: Array, states: IntArray) -> None:
        """Add the table of a factor to the assignments; observed variables have the given states."""
        axes = {v: int(np.flatnonzero(self.free == v)[0]) for v in scope if (self.free == v).any()}
        part = table[tuple(slice(None) if v in axes else int(states[v]) for v in scope)]
        part = part.transpose(np.argsort(list(axes.values())))
        shape = [n if i in axes.values() else 1 for i, n in enumerate(self.values.shape)]
        self.values[...] += part.reshape(shape)


@register
@dataclass(frozen=True)
class Brute(Algorithm):
    """Enumerate all assignments.

    Parameters
    ----------
    memory_limit : str, int or None
        The maximal size of the joint table, such as "2GB" or a number of bytes; by default half of the free memory.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [1.0, 1.0]])])
    >>> r = ig.infer(p, "brute")
    >>> round(float(np.exp(r.log_z)), 12), r.variable(0).round(4).tolist()
    (6.0, [0.6667, 0.3333])
    """

    memory_limit: str | int | float | None = None

    name: ClassVar[str] = "brute"
    facts: ClassVar[Facts] = Facts(
        "all assignments, one by one",
        exact="always",
        bound="exact",
        maximises="many",
        samples=True,
        joints=True,
        envelope=True,
    )

    def cost(self, potentials: Potentials) -> Cost:
        """Compute the size of the joint tables."""
        sizes = [math.prod(potentials.graph.cards[free].astype(float).tolist()) for free in _free(potentials)]
        largest, total = max(sizes, default=1.0), sum(sizes)
        text = f"{total:.3g} assignments, {bytes_text(8 * TABLES * largest)}"
        return Cost(8.0 * TABLES * largest, total * potentials.graph.n_factors, text)

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Sum the joint tables."""
        tables = self.tables(potentials)
        masses = [t.masses for t in tables]
        return Result(
            potentials,
            np.array([t.log_z for t in tables]),
            VariableBeliefs(potentials.graph, _variables(potentials, masses)),
            FactorBeliefs(potentials.graph, _factors(potentials, masses)),
            Info(self.name, True, 1, 0.0, "exact", 0.0),
            joint_of=partial(joint, potentials, masses),
            reverse=partial(_reverse, potentials, tables) if tape else None,
        )

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Sort all assignments by score; ties in lexicographic order of their states."""
        judged = centred(potentials) if is_wide(potentials) else potentials
        tables = self.tables(judged)
        best = [(0.0, base_states(potentials))]
        for table in tables:
            order = np.argsort(-table.values, axis=None, kind="stable")[:n]
            states = _states(table, order)
            scores = table.values.ravel()[order]
            merged = [
                (s + t, x, y) for (s, x), (t, y) in product(best, zip(scores, states, strict=True)) if t > -np.inf
            ]
            merged.sort(key=lambda item: (-item[0], tuple(item[1]), tuple(item[2])))
            best = [(score, _replaced(x, table.free, y)) for score, x, y in merged[:n]]
        return ranked(potentials, np.array([x for _, x in best]), judged)

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw from the joint tables."""
        states = np.tile(base_states(potentials), (n, 1))
        for table in self.tables(potentials):
            p = np.exp(table.values - table.log_z).ravel()
            states[:, table.free] = _states(table, rng.choice(p.size, n, p=p / p.sum()))
        return states

    def tables(self, potentials: Potentials) -> list[Joint]:
        """Return the joint table of each component; raise an error if it is too large or all zero."""
        needed = self.cost(potentials).bytes
        if needed > LITTLE or self.memory_limit is not None:
            what = f"brute force needs {bytes_text(needed)}"
            require_memory(needed, memory_limit_bytes(self.memory_limit), what, 'use "exact"')
        tables = [Joint(free, np.zeros(potentials.graph.cards[free], potentials.dtype)) for free in _free(potentials)]
        states = base_states(potentials)
        for a, log_table in enumerate(potentials.log_tables):
            table = tables[potentials.graph.factor_component[a]]
            table.add(potentials.graph.scopes[a], log_table, states)
        if any(t.log_z.real == -np.inf for t in tables):
            raise ImpossibleEvidenceError(impossible(potentials))
        return tables


def joint(potentials: Potentials, tables: list[Joint], wanted: IntArray) -> Array:
    """Multiply the joint beliefs of the components; observed variables are fixed to their states."""
    graph = potentials.graph
    belief = np.zeros(graph.cards[wanted], potentials.dtype)
    free = [w for t in tables for w in wanted.tolist() if w in t.free.tolist()]
    inner = np.ones((), potentials.dtype)
    for table in tables:
        inner = np.multiply.outer(inner, table.marginal(np.array([w for w in free if w in table.free.tolist()], int)))
    states = base_states(potentials)
    where = tuple(slice(None) if w in free else int(states[w]) for w in wanted.tolist())
    order = [free.index(w) for w in wanted.tolist() if w in free]
    belief[where] = inner.transpose(order)
    return belief


def _free(potentials: Potentials) -> list[IntArray]:
    """Return the unobserved variables with several states, of each component."""
    graph = potentials.graph
    mask = graph.cards > 1
    mask[list(potentials.evidence)] = False
    return [np.flatnonzero(mask & (graph.variable_component == c)) for c in range(graph.n_components)]


def _variables(potentials: Potentials, tables: list[Joint]) -> Array:
    first = first_states(potentials.graph)
    flat = np.zeros(first[-1], potentials.dtype)
    flat[first[:-1] + base_states(potentials)] = 1
    for table in tables:
        for v in table.free:
            flat[first[v] : first[v + 1]] = table.marginal(np.array([v]))
    return flat


def _factors(potentials: Potentials, tables: list[Joint]) -> Array:
    graph = potentials.graph
    beliefs = [
        joint(potentials, [tables[c]], np.array(scope, np.int64)).ravel()
        for c, scope in zip(graph.factor_component, graph.scopes, strict=True)
    ]
    flat = np.zeros(belief_entries(graph), potentials.dtype)
    for group, part in iter_groups(graph):
        if len(group):
            flat[part] = np.concatenate([beliefs[a] for a in group.factors])
    return flat


def _reverse(
    potentials: Potentials,
    tables: list[Joint],
    z_bar: Array,
    variables_bar: Array,
    factors_bar: Array,
) -> Gradients:
    """Compute derivatives by the log tables: db/dphi is symmetric, so they are directional derivatives of beliefs."""
    graph, states = potentials.graph, base_states(potentials)
    moved = LogTables(graph, direction(graph, variables_bar, factors_bar), [np.arange(len(g)) for g in graph.groups])
    along = [Joint(table.free, np.zeros(table.values.shape)) for table in tables]
    for a, step in enumerate(moved):
        along[graph.factor_component[a]].add(graph.scopes[a], step, states)
    masses = []
    for table, v, z in zip(tables, along, z_bar, strict=True):
        p = table.masses.values
        masses.append(Joint(table.free, p * (v.values - (p * v.values).sum()) + z * p))
    flat = _factors(potentials, masses)
    return by_tables(potentials, [flat[part].reshape(len(group), *group.shape) for group, part in iter_groups(graph)])


def _states(table: Joint, entries: IntArray) -> IntArray:
    """Return the states of the free variables, shape (entries, free), at entries of the flattened table."""
    states = np.unravel_index(entries, (1, *table.values.shape))
    return np.stack(states, axis=-1)[:, 1:]


def _replaced(states: IntArray, where: IntArray, values: IntArray) -> IntArray:
    changed = states.copy()
    changed[where] = values
    return changed
