"""The message-passing engine: runs a schedule on a graph, reads the beliefs out, and goes back through the tape.

One engine serves belief propagation, tree-reweighting and fractional belief propagation (counting numbers), the sum
and the max semiring, and every schedule. Each component of the graph (example of a batch) stops, converges and is
flagged by itself. A run uses linear values; components in which a product underflowed are run again with logarithms.
The tape holds the messages that were overwritten, so that the backward pass replays exactly what ran.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.edges import Edges, edges_of
from isinglass.inference.algorithm import Progress
from isinglass.inference.evidence import impossible
from isinglass.inference.link_model import (
    LinkModel,
    move_unary_bars,
    share_unary_beliefs,
    table_gradients,
)
from isinglass.inference.result import Gradients, belief_entries, first_beliefs
from isinglass.potentials import LogTables, Potentials
from isinglass.validation import IntArray

if TYPE_CHECKING:
    from isinglass.kernels.numba.passes import Scratch, Values
    from isinglass.kernels.numba.ring import Ring

Sequencer = Callable[[int], IntArray | None]
"""The links to update in iteration t, one after the other; None floods."""


def by_residual(t: int) -> None:
    """Stand for the residual schedule, which finds its sequence while it runs."""


@dataclass(frozen=True, eq=False)
class Part:
    """A schedule for some of the components.

    Attributes
    ----------
    wanted : bool array (components,)
    sequence : callable
    settled : bool
        One iteration is known to be a fixed point (a tree schedule on a forest).
    """

    wanted: NDArray[np.bool_]
    sequence: Sequencer
    settled: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """What to run.

    Attributes
    ----------
    parts : list of Part
        Every component in one of them; which one must not depend on the other components.
    counting : array (links,)
    powers : bool
        Whether counting numbers may differ from one; false takes the faster path.
    damping : float
    iterations : int or None
        Exactly so many; None runs until `tol`, at most `max_iter`.
    tol, max_iter
    maximise : bool
        The max semiring.
    """

    parts: list[Part]
    counting: NDArray[np.float64]
    powers: bool
    damping: float
    iterations: int | None
    tol: float
    max_iter: int
    maximise: bool = False


@dataclass(eq=False)
class Tape:
    """What one run overwrote: for each iteration, its sequence, the components it moved, and the old messages."""

    steps: list[tuple[IntArray | None, NDArray[np.bool_], NDArray[Any]]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class _Chaser:
    """What the residual schedule keeps: the links of each component, their pending changes, and the heap."""

    members: IntArray
    first: IntArray
    priority: NDArray[np.float64]
    heap: IntArray
    place: IntArray

    @classmethod
    def of(cls, edges: Edges, n_components: int) -> _Chaser:
        members = np.argsort(edges.component, kind="stable")
        first = np.searchsorted(edges.component[members], np.arange(n_components + 1)).astype(np.int64)
        n = len(members)
        return cls(members, first, np.zeros(n), np.zeros(n, np.int64), np.zeros(n, np.int64))


@dataclass(eq=False)
class Pass:
    """One run in one representation, over the components that it is responsible for."""

    edges: Edges
    ring: Ring
    units: NDArray[Any]
    values: Values
    scratch: Scratch
    wanted: NDArray[np.bool_]
    m: NDArray[Any]
    n: NDArray[Any]
    log_scale: NDArray[Any]
    log_zi: NDArray[Any]
    log_za: NDArray[Any]
    tape: Tape | None
    chaser: _Chaser | None = None


@dataclass(eq=False)
class Outcome:
    """What the engine found; beliefs are flat, links' beliefs where their factor's group puts them."""

    component_log_z: NDArray[Any]
    variables: NDArray[Any]
    factors: NDArray[Any]
    converged: NDArray[np.bool_]
    iterations: IntArray
    residual: NDArray[np.float64]
    messages: NDArray[Any]
    passes: list[Pass]


class Engine:
    """Runs a plan on potentials."""

    def __init__(self, potentials: Potentials, plan: Plan, initial: NDArray[Any] | None = None) -> None:
        self.potentials, self.plan, self.initial = potentials, plan, initial
        self.graph, self.edges = potentials.graph, edges_of(potentials.graph)
        self.model = LinkModel.of(potentials, plan.counting)
        self.first_belief = first_beliefs(self.graph)
        self.states = _states(self.edges)
        all_pairs = bool((np.diff(self.edges.first_slot) == 2).all()) and len(self.states) > 0
        self.pairs = all_pairs and not plan.powers and plan.damping == 0  # takes the written-out loops

    def run(self, taped: bool, progress: Progress | None = None) -> Outcome:
        """Pass messages, with logarithms where linear values underflow; read out the beliefs."""
        from isinglass.kernels.numba.ring import LOG_MAX, LOG_SUM, SUM

        n, dtype = self.graph.n_components, self.potentials.dtype
        outcome = Outcome(
            component_log_z=np.zeros(n, dtype),
            variables=np.zeros(self.edges.first_state[-1], dtype),
            factors=np.zeros(belief_entries(self.graph), dtype),
            converged=np.zeros(n, bool),
            iterations=np.zeros(n, np.int64),
            residual=np.zeros(n),
            messages=np.zeros(self.edges.start[-1], dtype),
            passes=[],
        )
        for part in self.plan.parts:
            wanted = part.wanted
            for ring in (LOG_MAX,) if self.plan.maximise else (SUM, LOG_SUM):
                if wanted.any():
                    wanted = self._one_pass(ring, part, wanted, taped, outcome, progress)
        self._finish(outcome)
        return outcome

    def backward(
        self, outcome: Outcome, z_bar: NDArray[Any], variables_bar: NDArray[Any], factors_bar: NDArray[Any]
    ) -> Gradients:
        """Carry derivatives back through the read-out and every iteration."""
        total = _Totals.zeros(self)
        variables_bar = variables_bar.copy()
        move_unary_bars(self.graph, factors_bar, variables_bar)
        for one in outcome.passes:
            _reverse_pass(self, one, outcome, z_bar, variables_bar, factors_bar, total)
        return total.gradients(self, z_bar)

    def _one_pass(
        self,
        ring: Ring,
        part: Part,
        wanted: NDArray[np.bool_],
        taped: bool,
        outcome: Outcome,
        progress: Progress | None,
    ) -> NDArray[np.bool_]:
        """Run the wanted components in one representation. Returns those that underflowed."""
        one = self._prepared(ring, wanted, taped)
        flagged = self.model.low & wanted if not len(ring) else np.zeros(len(wanted), bool)
        self._iterate(one, part, flagged, outcome, progress)
        self._read_out(one, wanted & ~flagged, flagged, outcome)
        one.wanted = wanted & ~flagged
        outcome.passes.append(one)
        return wanted & flagged

    def _prepared(self, ring: Ring, wanted: NDArray[np.bool_], taped: bool) -> Pass:
        from isinglass.kernels.numba import passes
        from isinglass.kernels.numba.ring import units

        edges, dtype = self.edges, self.potentials.dtype
        size, n_edges = edges.start[-1], len(edges.edge_link)
        slots = int(np.diff(edges.first_slot).max(initial=1))
        per_link = slots * int(edges.cards.max(initial=1))
        powered, own = (np.empty(size if self.plan.powers else 0, dtype) for _ in range(2))
        scratch = passes.Scratch(
            powered=powered,
            own=own,
            row=np.empty(int(edges.cards.max(initial=1)), dtype),
            out=np.empty(per_link, dtype),
            raw=np.empty(per_link, dtype),
            bar=np.empty(per_link, dtype),
            prefix=np.empty(slots, dtype),
            digits=np.empty(slots, np.int64),
        )
        return Pass(
            edges, ring, units(dtype, ring), self.model.values(ring), scratch, wanted.copy(), self._start(ring),
            np.zeros(size, dtype), np.zeros(n_edges, dtype), np.zeros(len(edges.cards), dtype),
            np.zeros(len(edges.component), dtype), Tape() if taped else None,
        )  # fmt: skip

    def _start(self, ring: Ring) -> NDArray[Any]:
        """Return the initial messages: uniform, or the given ones (logarithms)."""
        cards = np.diff(self.edges.start)
        given = -np.log(np.repeat(cards, cards)) if self.initial is None else self.initial
        logs: NDArray[Any] = given.astype(self.potentials.dtype)
        if len(ring) == 2:
            tops = np.maximum.reduceat(logs.real, self.edges.start[:-1]) if len(logs) else logs.real
            logs = logs - np.repeat(tops, cards)
        return np.exp(logs) if not len(ring) else logs

    def _iterate(
        self, one: Pass, part: Part, flagged: NDArray[np.bool_], outcome: Outcome, progress: Progress | None
    ) -> None:
        """Iterate until every component has converged, underflowed or used up its iterations."""
        plan = self.plan
        limit = plan.max_iter if plan.iterations is None else plan.iterations
        active = one.wanted & ~flagged
        residual = np.zeros(len(active))
        for t in range(limit):
            if not active.any():
                break
            if part.sequence is by_residual:
                self._chase(one, t, active, flagged, residual)
            else:
                self._step(one, part.sequence(t), active, flagged, residual)
            moved = active & ~flagged
            if part.settled and t == 0:
                residual[moved] = 0
            outcome.residual[moved] = residual[moved]
            outcome.iterations[moved] = t + 1
            done = moved & (residual <= plan.tol)
            outcome.converged[moved] = done[moved]
            active = moved & ~done if plan.iterations is None else moved
            if progress is not None:
                progress(f"iteration {t + 1}, residual {residual.max(initial=0.0):.1e}", (t + 1) / limit)

    def _step(
        self,
        one: Pass,
        sequence: IntArray | None,
        active: NDArray[np.bool_],
        flagged: NDArray[np.bool_],
        residual: NDArray[np.float64],
    ) -> None:
        """Run one iteration, on tape if there is one."""
        from isinglass.kernels.numba import pairs, passes

        log = np.empty(0, self.potentials.dtype)
        if one.tape is not None:
            log = one.m.copy() if sequence is None else np.empty(_log_size(self.edges, sequence), one.m.dtype)
            one.tape.steps.append((sequence, active.copy(), log))
        common = (self.plan.damping, active, flagged, residual, one.scratch, one.units, one.ring)
        if sequence is None and self.pairs and not len(one.ring):
            row, out = one.scratch.row, one.scratch.out
            pairs.flood_pairs(self.edges, one.values, one.m, one.n, active, flagged, residual, row, out, self.states)
        elif sequence is None:
            belief = np.empty(self.edges.first_state[-1], one.m.dtype)
            passes.flood(self.edges, one.values, one.m, one.n, one.log_scale, belief, *common)
        else:
            passes.follow(self.edges, one.values, sequence, one.m, one.n, log, *common)

    def _chase(
        self,
        one: Pass,
        t: int,
        active: NDArray[np.bool_],
        flagged: NDArray[np.bool_],
        residual: NDArray[np.float64],
    ) -> None:
        """Run one iteration of the residual schedule; log what it did, to be reversed as a sequence."""
        from isinglass.kernels.numba.residual import chase

        edges = self.edges
        if one.chaser is None:
            one.chaser = _Chaser.of(edges, len(active))
        links, ways = len(edges.size), one.chaser
        sequence = np.empty(links, np.int64)
        per_link = int(np.diff(edges.first_slot).max(initial=0)) * int(edges.cards.max(initial=1))
        log = np.empty(links * per_link if one.tape is not None else 0, one.m.dtype)
        tol = self.plan.tol if self.plan.iterations is None else -1.0
        count, logged = chase(
            edges, one.values, ways.members, ways.first, one.m, one.n, log, sequence, ways.priority, ways.heap,
            ways.place, t == 0, tol, self.plan.damping, active, flagged, residual, one.scratch, one.units, one.ring,
        )  # fmt: skip
        if one.tape is not None:
            one.tape.steps.append((sequence[:count], active.copy(), log[:logged].copy()))

    def _read_out(self, one: Pass, active: NDArray[np.bool_], flagged: NDArray[np.bool_], outcome: Outcome) -> None:
        from isinglass.kernels.numba import passes

        if not active.any():
            return
        passes.read_out(
            self.edges, one.values, one.m, one.n, one.log_scale, outcome.variables, outcome.factors,
            self.first_belief[self.edges.link_factor], one.log_zi, one.log_za, active, flagged, one.scratch, one.units,
            one.ring,
        )  # fmt: skip
        fine = active & ~flagged
        self._add_log_z(one, fine, outcome)
        entries = np.repeat(fine[self.edges.component[self.edges.edge_link]], np.diff(self.edges.start))
        with np.errstate(divide="ignore"):
            logs = one.m if len(one.ring) else np.log(one.m)
        outcome.messages[entries] = logs[entries]

    def _add_log_z(self, one: Pass, fine: NDArray[np.bool_], outcome: Outcome) -> None:
        """Add the logs of Z_a, Z_i, Z_ia with their counting numbers, and the constants."""
        edges, c = self.edges, self.plan.counting
        of_edge = c[edges.edge_link]
        variable = np.repeat(np.arange(len(edges.cards)), np.diff(edges.first_edge))
        own = np.ones(len(edges.cards))
        np.subtract.at(own, variable, of_edge)
        parts = self.model.constant.copy()
        with np.errstate(invalid="ignore"):
            np.add.at(parts, edges.component, c * one.log_za)
            np.add.at(parts, edges.variable_component, np.where(own == 0, 0, own * one.log_zi))
            np.add.at(parts, edges.variable_component[variable], of_edge * one.log_scale)
        dead = np.zeros(len(fine), bool)
        dead[edges.component[one.log_za.real == -np.inf]] = True
        dead[edges.variable_component[one.log_zi.real == -np.inf]] = True
        if (dead & fine).any() or (self.model.constant.real == -np.inf).any():
            raise ImpossibleEvidenceError(impossible(self.potentials))
        outcome.component_log_z[fine] = parts[fine]

    def _finish(self, outcome: Outcome) -> None:
        """Round observed variables to one-hot; give factors of arity one their variable's belief, constants theirs."""
        for variable, state in self.potentials.evidence.items():
            first = self.edges.first_state[variable]
            outcome.variables[first : first + self.edges.cards[variable]] = 0
            outcome.variables[first + state] = 1
        share_unary_beliefs(self.graph, outcome.variables, outcome.factors)


MOST_CONSTANT_STATES = 5  # up to so many states loops are compiled for the very number


def _states(edges: Edges) -> tuple[int, ...]:
    """Return a tuple as long as every variable has states, which compiled loops take as a constant; else ()."""
    cards = np.unique(edges.cards)
    return (0,) * int(cards[0]) if len(cards) == 1 and cards[0] <= MOST_CONSTANT_STATES else ()


def _log_size(edges: Edges, sequence: IntArray) -> int:
    per_slot = np.diff(edges.start)[edges.slot_edge]
    total = np.concatenate([[0], np.cumsum(per_slot)])
    per_link = total[edges.first_slot[1:]] - total[edges.first_slot[:-1]]
    return int(per_link[sequence].sum())


@dataclass(eq=False)
class _Totals:
    """Derivatives, summed over passes."""

    phi: NDArray[Any]
    psi: NDArray[Any]  # by the log tables of links, link by link
    first_psi: IntArray
    initial: NDArray[Any]
    counting: NDArray[Any]
    damping: NDArray[Any]

    @classmethod
    def zeros(cls, engine: Engine) -> _Totals:
        edges, dtype = engine.edges, engine.potentials.dtype
        first = np.concatenate([[0], np.cumsum(edges.size)]).astype(np.int64)
        return cls(
            np.zeros(edges.first_state[-1], dtype), np.zeros(first[-1], dtype), first[:-1],
            np.zeros(edges.start[-1], dtype), np.zeros(len(edges.size), dtype), np.zeros(1, dtype),
        )  # fmt: skip

    def gradients(self, engine: Engine, z_bar: NDArray[Any]) -> Gradients:
        """Divide by counting numbers, and sum over the factors that share a table."""
        graph, edges, potentials = engine.graph, engine.edges, engine.potentials
        by_entry = np.repeat(engine.plan.counting, edges.size)
        groups = table_gradients(potentials, self.phi, self.psi / by_entry, self.first_psi, z_bar)
        counting = np.zeros(graph.n_factors, potentials.dtype)
        counting[edges.link_factor] = self.counting - self._through_tables(engine)
        of_factors = LogTables(graph, groups, potentials.table_ids)
        return Gradients(groups, of_factors, self.initial, self.damping[0], counting)

    def _through_tables(self, engine: Engine) -> NDArray[Any]:
        """Return <psi_bar, psi> / c: minus the derivative by c through psi = phi / c."""
        model, edges = engine.model, engine.edges
        link = np.repeat(np.arange(len(edges.size)), edges.size)
        entry = model.table[link] + np.arange(len(link)) - self.first_psi[link]
        psi = model.psi[entry]
        product = self.psi * np.where(psi.real > -np.inf, psi, 0)
        total = np.zeros(len(edges.size), self.psi.dtype)
        np.add.at(total, link, product)
        return total / engine.plan.counting


def _reverse_pass(
    engine: Engine,
    one: Pass,
    outcome: Outcome,
    z_bar: NDArray[Any],
    variables_bar: NDArray[Any],
    factors_bar: NDArray[Any],
    total: _Totals,
) -> None:
    """Reverse the read-out and the iterations of one pass; its messages are restored afterwards."""
    from isinglass.kernels.numba import adjoints

    edges, plan = engine.edges, engine.plan
    assert one.tape is not None
    dtype = engine.potentials.dtype
    bars = adjoints.Bars(
        np.zeros(edges.start[-1], dtype), np.zeros(edges.start[-1], dtype), total.phi, total.psi, total.first_psi,
        total.counting, total.damping,
    )  # fmt: skip
    final, m = one.m, one.m.copy()
    first = engine.first_belief[edges.link_factor]
    adjoints.read_out_back(
        edges, one.values, m, one.n, one.log_scale, outcome.variables, outcome.factors, first, one.log_zi, one.log_za,
        z_bar, variables_bar, factors_bar, bars, one.wanted, one.scratch, one.ring,
    )  # fmt: skip
    n, scale = np.zeros_like(one.n), np.zeros_like(one.log_scale)
    belief, flagged = np.zeros_like(outcome.variables), np.zeros(len(one.wanted), bool)
    for sequence, active, log in reversed(one.tape.steps):
        moved = active & one.wanted
        if sequence is None:
            m = log
            adjoints.flood_back(
                edges, one.values, m, n, scale, belief, bars, plan.damping, moved, flagged, one.scratch, one.units,
                one.ring,
            )  # fmt: skip
        else:
            adjoints.follow_back(
                edges, one.values, sequence, m, n, log, len(log), bars, plan.damping, moved, one.scratch, one.units,
                one.ring,
            )  # fmt: skip
    one.m = final
    mine = np.repeat(one.wanted[edges.component[edges.edge_link]], np.diff(edges.start))
    total.initial[mine] += bars.m[mine]
