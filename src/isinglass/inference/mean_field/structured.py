"""Structured mean field: a lower bound on log Z from a product of trees.

Some links C are chosen such that their clusters are trees and every other link crosses between clusters
(`isinglass.graph.forests.clusters`). With q(x) = prod_t q_t(x_t) over the trees, one tree at a time is set to

    q_t(x_t)  ~  exp( sum_{i in t} t_i(x_i) + sum_{a in C, in t} phi_a(x_a) )
    t_i(x_i)  =  phi_i(x_i) + sum_{a not in C, at i} E_q[ phi_a | x_i ]

which is exact inference on a tree: sum-product, once from the leaves to the roots and back. Trees of one colour share
no factor and are updated together. Each update raises the bound of `isinglass.kernels.numba.mean_field`
(Saul and Jordan 1996; Wainwright and Jordan 2008, section 5.5). It is a lower bound at every iteration, and exact after
one iteration if all links are chosen, as on a forest.

The initial beliefs are uniform. A component whose crossing links have hard zeros starts from an allowed assignment (as
in naive mean field); hard zeros inside the trees need no special start.

The backward pass reverses the tree inferences: at convergence those of one more sweep, repeatedly (see `ascent`),
otherwise all that were run. The tape stores their messages and tables: each iteration takes about as much memory as
one iteration of belief propagation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import iter_groups
from isinglass.graph.forests.clusters import ColourClass, TreeClusters, tree_clusters
from isinglass.graph.message_graph import edges_of
from isinglass.inference.algorithm import Cost, Facts, register
from isinglass.inference.evidence import impossible
from isinglass.inference.mean_field.ascent import DIFFERENCE, Ascent, MeanFieldAlgorithm
from isinglass.inference.mean_field.bound import Bars, MeanFieldBound
from isinglass.inference.mean_field.naive import begin
from isinglass.inference.mean_field.stability import slope
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.message_passing.engine import Engine
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Plan
from isinglass.inference.message_passing.reverse import Cotangents, gradients
from isinglass.inference.result import Gradients, Result
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import RandomState, bytes_text


@register
@dataclass(frozen=True)
class StructuredMeanField(MeanFieldAlgorithm):
    """Mean field on trees, by block coordinate ascent.

    Parameters
    ----------
    iterations : int, optional
        Run exactly this number of sweeps over the trees. By default: until `tol`, at most `max_iter`.
    tol : float
        Stop when no belief of a variable changes by more than this, measured as in `MeanField`.
    max_iter : int
        The maximal number of sweeps.
    forest : sequence of int, optional
        The factors of the trees: of arity two or more, without a cycle, and such that every other factor has its
        variables in different trees. By default they are chosen greedily in factor order.
    check_stability : bool
        Report in `info.stable` whether the beliefs are a local maximum of the bound.
    random_state : int or Generator
        The seed. It decides in which direction a run leaves a saddle point.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> rows = ig.infer(p, "smf")
    >>> rows.info.bound, bool(ig.infer(p, "mf").log_z < rows.log_z <= ig.infer(p, "exact").log_z)
    ('lower', True)
    """

    iterations: int | None = None
    tol: float = 1e-8
    max_iter: int = 1000
    forest: Sequence[int] | None = None
    check_stability: bool = False
    random_state: RandomState = 0

    name: ClassVar[str] = "smf"
    facts: ClassVar[Facts] = Facts(
        "mean field on trees: a lower bound at every iterate, exact on forests",
        exact="forests",
        bound="lower",
        iterative=True,
        local=True,
    )

    def cost(self, potentials: Potentials) -> Cost:
        """Say what one sweep over the trees takes."""
        edges = edges_of(potentials.graph)
        steps = float((edges.size * np.diff(edges.first_slot)).sum())
        needed = 8.0 * float(2 * edges.first_state[-1] + 3 * edges.start[-1] + 2 * edges.size.sum())
        return Cost(needed, steps, f"{bytes_text(needed)}, {steps:.3g} steps a sweep")

    def ascent(self, potentials: Potentials, init: Result | None) -> Ascent:
        """Ascend tree by tree."""
        return _TreeAscent(potentials, tree_clusters(potentials.graph, self.forest), init)


@dataclass(frozen=True, eq=False)
class _Block:
    """The trees of one colour: where their states, beliefs and tables lie in the flat vectors of the whole model."""

    trees: ColourClass
    states: IntArray  # of the variables, in the flat vector of all states
    first: IntArray  # where those of each variable begin, and the end
    owner: IntArray  # the component of each variable,
    component: IntArray  # and of each of these states
    present: Mask  # (components,) that have such trees
    evidence: dict[int, int]
    tables: list[Array]  # for each group of links, its distinct tables,
    table_ids: list[IntArray]  # which one each link uses,
    owners: list[IntArray]  # and a link that uses it
    entries: IntArray  # of the links' beliefs, in the flat vector of all factors' beliefs
    entry_component: IntArray

    @classmethod
    def of(cls, trees: ColourClass, bound: MeanFieldBound) -> _Block:
        """Find the places, and the distinct tables of each group."""
        edges, model, potentials = bound.field.edges, bound.model, bound.potentials
        states = np.flatnonzero(np.repeat(_marks(trees.variables, len(edges.cards)), edges.cards))
        component = np.repeat(edges.variable_component, edges.cards)[states]
        position = {int(i): k for k, i in enumerate(trees.variables)} if potentials.evidence else {}
        tables, ids, owners = [], [], []
        entries, entry_component = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for group, rows in zip(trees.graph.groups, trees.rows, strict=True):
            if group.arity < 2:
                continue
            links, span = trees.links[rows], np.arange(group.table_size)
            starts, first, inverse = np.unique(model.table[links], return_index=True, return_inverse=True)
            tables.append(model.psi[starts[:, None] + span].reshape(len(starts), *group.shape))
            ids.append(inverse.ravel())
            owners.append(links[first])
            entries.append((bound.field.first_belief[links][:, None] + span).ravel())
            entry_component.append(np.repeat(edges.component[links], group.table_size))
        return cls(
            trees,
            states,
            np.concatenate([[0], np.cumsum(trees.graph.cards)]).astype(np.int64),
            edges.variable_component[trees.variables],
            component,
            _marks(component, trees.graph.n_components),
            {position[i]: s for i, s in potentials.evidence.items() if i in position},
            tables,
            ids,
            owners,
            np.concatenate(entries),
            np.concatenate(entry_component),
        )

    def potentials(self, target: Array) -> Potentials:
        """Put the effective potentials of the variables beside the tables of the links."""
        graph, mine = self.trees.graph, target[self.states]
        unary = [mine[self.first[g.factors][:, None] + np.arange(g.table_size)] for g in graph.groups if g.arity == 1]
        ids = [np.arange(len(rows)) for rows in unary] + self.table_ids
        return Potentials._build(graph, unary + self.tables, ids, self.evidence)

    def factor_bars(self, bars: Bars, moved: Mask) -> Array:
        """Lay out the derivatives by the links' beliefs like the beliefs of the trees' graph."""
        size = sum(len(g) * g.table_size for g in self.trees.graph.groups)
        flat = np.zeros(size, bars.factors.dtype)
        flat[size - len(self.entries) :] = np.where(moved[self.entry_component], bars.factors[self.entries], 0)
        return flat


@dataclass(frozen=True, eq=False)
class _Step:
    """One tree inference on the tape: its block, the components that were updated, and their beliefs before."""

    block: _Block
    moved: Mask
    before: Array
    engine: Engine
    outcome: Outcome


class _TreeAscent(Ascent):
    """Block coordinate ascent, the trees of one colour after the other."""

    def __init__(self, potentials: Potentials, clusters: TreeClusters, init: Result | None) -> None:
        from isinglass.kernels.numba.mean_field import all_products

        bound = MeanFieldBound(potentials, clusters.chosen, clusters.crossing)
        super().__init__(bound, begin(potentials, bound.model, ~clusters.chosen, init))
        all_products(self.field, self.q, self.factors)
        self.exact = bool(clusters.chosen.all())
        self.blocks = [_Block.of(trees, bound) for trees in clusters.classes]
        self.target = np.zeros_like(self.q)
        self.alone = ~_marks(self.edges.component[~clusters.chosen], len(self.residual))  # one iteration is exact
        self.plans: dict[_Block, Plan] = {}  # they depend on the structure alone
        self.steps: list[_Step] = []
        self.last: list[_Step] = []  # at the fixed point

    def sweep(self, active: Mask, residual: FloatArray, taped: bool) -> None:
        """Set all trees of the active components, colour by colour."""
        residual[:] = 0
        for block in self.blocks:
            moved = active & block.present
            if moved.any():
                self._set(block, moved, residual, taped)
        residual[self.alone] = 0

    def forget(self, components: Mask) -> None:
        """Remove the sweeps of components from the tape."""
        self.steps = [replace(step, moved=step.moved & ~components) for step in self.steps]

    def covariance(self, v: FloatArray) -> FloatArray:
        """Return the covariances of each tree times v."""
        target = self.expected(self.q)
        step = DIFFERENCE / np.maximum(self.largest(v), 1e-300)[self.owner]
        return slope(self._beliefs_at, target, v, step)

    def _beliefs_at(self, target: Array) -> Array:
        """Return the beliefs of all variables at given effective potentials."""
        beliefs = np.zeros_like(self.q)
        for block in self.blocks:
            beliefs[block.states] = self._infer(block, block.present, False, target)[1].variables
        return beliefs

    def prepare_back(self) -> None:
        """Record one more sweep of what has converged, and restore the beliefs."""
        kept, steps = (self.q.copy(), self.factors.copy()), self.steps
        self.steps = []
        self.sweep(self.settled, np.zeros(len(self.residual)), True)
        self.last, self.steps = self.steps, steps
        self.q[:], self.factors[:] = kept

    def sweep_back(self, active: Mask, bars: Bars) -> None:
        """Reverse a sweep at the fixed point."""
        self._steps_back(self.last, active, bars)

    def tape_back(self, active: Mask, bars: Bars) -> None:
        """Reverse the sweeps that ran."""
        self._steps_back(self.steps, active, bars)

    def _steps_back(self, steps: list[_Step], active: Mask, bars: Bars) -> None:
        q = self.q.copy()
        for step in reversed(steps):
            moved = step.moved & active
            if moved.any():
                self._back(replace(step, moved=moved), q, bars)

    def _set(self, block: _Block, moved: Mask, residual: FloatArray, taped: bool) -> None:
        """Set the trees of one colour in the components that move."""
        from isinglass.kernels.numba.mean_field import expect, moves_apart

        expect(block.trees.variables, moved, self.field, self.q, self.target)
        engine, outcome = self._infer(block, moved, taped, self.target)
        before = self.q[block.states]
        after = np.where(moved[block.component], outcome.variables, before)
        moves_apart(before, after, block.first, block.owner, residual)
        self.q[block.states] = after
        links = moved[block.entry_component]
        of_links = outcome.factors[len(outcome.factors) - len(links) :]
        self.factors[block.entries[links]] = of_links[links]
        if taped:
            self.steps.append(_Step(block, moved, before, engine, outcome))

    def _infer(self, block: _Block, moved: Mask, taped: bool, target: Array) -> tuple[Engine, Outcome]:
        """Pass messages up and down the trees."""
        potentials = block.potentials(target)
        if block not in self.plans:
            self.plans[block] = BeliefPropagation(schedule="tree")._plan(potentials)
        plan = self.plans[block]
        plan = replace(plan, parts=[replace(part, wanted=part.wanted & moved) for part in plan.parts])
        try:
            engine = Engine([potentials], plan)
            return engine, engine.run("full" if taped else None)
        except ImpossibleEvidenceError:
            raise ImpossibleEvidenceError(impossible(self.potentials)) from None

    def _back(self, step: _Step, q: Array, bars: Bars) -> None:
        """Reverse one tree inference and the expectations that went into it; bring q back."""
        from isinglass.kernels.numba.mean_field import expect_back

        block, moved = step.block, step.moved
        mine, links = moved[block.component], moved[block.entry_component]
        nothing = np.zeros(len(moved), q.dtype)
        of_states = np.where(mine, bars.q[block.states], 0)
        cotangents = Cotangents(nothing, of_states, block.factor_bars(bars, moved))
        found = gradients(step.engine, step.outcome, cotangents)
        q[block.states] = step.before
        bars.q[block.states[mine]] = 0
        bars.factors[block.entries[links]] = 0
        target_bar = np.zeros_like(q)
        target_bar[block.states] = self._add_tables(step, found, bars)
        expect_back(block.trees.variables, moved, self.field, q, target_bar, bars.q, bars.phi, bars.table)

    def _add_tables(self, step: _Step, found: Gradients, bars: Bars) -> Array:
        """Add the derivatives by the trees' tables; return those by the effective potentials of their variables."""
        block, graph = step.block, step.block.trees.graph
        of_states = np.zeros(len(block.states), bars.q.dtype)
        link_groups = iter(block.owners)
        for (group, _), values, by_table in zip(
            iter_groups(graph), step.engine.potentials.groups, found.groups, strict=True
        ):
            free = np.where(values.real > -np.inf, by_table, 0).reshape(len(by_table), -1)
            span = np.arange(group.table_size)
            if group.arity == 1:
                of_states[block.first[group.factors][:, None] + span] = free
            else:
                bars.table[self.model.table[next(link_groups)][:, None] + span] += free
        return of_states


def _marks(members: IntArray, n: int) -> Mask:
    """Return which of n things are members."""
    marks = np.zeros(n, bool)
    marks[members] = True
    return marks
