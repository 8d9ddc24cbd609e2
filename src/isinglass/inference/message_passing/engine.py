"""The message-passing engine: runs a schedule on a graph, reads the beliefs out, and goes back through the tape.

One engine serves belief propagation, tree-reweighting and fractional belief propagation (counting numbers), the sum
and the max semiring, and every schedule. Each component of the graph (example of a batch) stops, converges and is
flagged by itself. A run uses linear values; components in which a product underflowed are run again with logarithms.
The tape holds the messages that were overwritten, so that the backward pass replays exactly what ran.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import belief_entries, first_beliefs
from isinglass.graph.message_graph import Edges, edges_of, entry_components, pairwise_components, partners_of
from isinglass.graph.schedules import grid_schedule
from isinglass.inference.algorithm import Progress
from isinglass.inference.evidence import impossible
from isinglass.inference.message_passing.domain import imaginary_steps, log_z_range, without_unproved_zeros
from isinglass.inference.message_passing.log_model import (
    SAFE,
    LinkModel,
    layout_of,
    observed_entries,
    share_unary_beliefs,
)
from isinglass.inference.message_passing.moves.flood_back import FloodBack
from isinglass.inference.message_passing.moves.grid_flood import GridFlood
from isinglass.inference.message_passing.moves.grid_sweep import GridSweep
from isinglass.inference.message_passing.moves.move import Chase, Fate, Flood, FloodPairs, Follow, Move, Run, Step
from isinglass.inference.message_passing.tape import FullTape, MarkedTape, Tape
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.runtime.array_pool import Pool
from isinglass.segments import component_sums
from isinglass.typing import IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.arithmetic.semiring import Ring
    from isinglass.kernels.numba.messages.passes import Scratch, Span

EXACT = 1e-9  # how far a belief that is called exact may be off, but for rounding

Schedule = Literal["flooding", "residual", "grid"] | Callable[[int], IntArray]
"""All links at once, by residual, the sweep of a grid, or one after the other: the links of iteration t."""


@dataclass(frozen=True, eq=False)
class Part:
    """A schedule for some of the components.

    Attributes
    ----------
    wanted : bool array (components,)
    schedule : "flooding", "residual", "grid" or callable
    settled : bool
        One undamped iteration is known to be a fixed point (a tree schedule on a forest).
    """

    wanted: Mask
    schedule: Schedule
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
    threads : int
        How many may work on the components side by side.
    """

    parts: list[Part]
    counting: NDArray[np.float64]
    powers: bool
    damping: float
    iterations: int | None
    tol: float
    max_iter: int
    maximise: bool = False
    threads: int = 1


@dataclass(eq=False)
class Outcome:
    """What the engine found; beliefs are flat, links' beliefs where their factor's group puts them."""

    component_log_z: NDArray[Any]
    variables: NDArray[Any]
    factors: NDArray[Any]
    converged: Mask
    iterations: IntArray
    residual: NDArray[np.float64]
    runs: list[tuple[Run, Tape | None]]
    off_domain: Mask  # whether no beliefs could give such a log Z: the messages run away

    def exact_on_forests(self, edges: Edges) -> Mask:
        """Tell which components have the true messages, if they are forests with counting numbers of one.

        There a message is off by no more than the residuals of all messages that it depends on add up to: updates
        never widen a change.
        """
        if not self.residual.any():
            return self.converged
        certain: Mask = self.converged & (self.messages(edges) * self.residual <= EXACT)
        return certain

    def messages(self, edges: Edges) -> IntArray:
        """Return the number of messages of each component."""
        return np.bincount(edges.component[edges.edge_link], minlength=len(self.residual))


class Engine:
    """Runs a plan on potentials: one model for all iterations, or one for each (the last is read out)."""

    def __init__(
        self,
        stages: Sequence[Potentials],
        plan: Plan,
        initial: NDArray[Any] | None = None,
        own_tables: bool = False,
    ) -> None:
        self.potentials, self.plan = stages[-1], plan
        self.graph, self.edges = self.potentials.graph, edges_of(self.potentials.graph)
        self.initial = None if initial is None else without_unproved_zeros(self.potentials, initial)
        self.stages = list(stages)
        self.models = [LinkModel.of(p, plan.counting, own_tables or plan.powers) for p in stages]
        self.low = np.logical_or.reduce([model.low for model in self.models]) | self._low_start()
        self.first_belief = first_beliefs(self.graph)[self.edges.link_factor]

    def _low_start(self) -> Mask:
        """Tell which components begin with a message too small for a linear value."""
        low = np.zeros(self.graph.n_components, bool)
        if self.initial is not None:
            tiny = (self.initial.real < np.log(SAFE)) & (self.initial.real > -np.inf)
            low[entry_components(self.edges)[tiny]] = True
        return low

    def run(self, tape: Literal["full", "sqrt"] | None, progress: Progress | None = None) -> Outcome:
        """Pass messages, with logarithms where linear values underflow; read out the beliefs."""
        self.abandoned = False
        n, dtype = self.graph.n_components, self.potentials.dtype
        if any((model.constant.real == -np.inf).any() for model in self.models):
            raise ImpossibleEvidenceError(impossible(self.potentials))
        outcome = Outcome(
            component_log_z=self.models[-1].constant.copy(),
            variables=np.zeros(self.edges.first_state[-1], dtype),
            factors=np.zeros(belief_entries(self.graph), dtype),
            converged=np.zeros(n, bool),
            iterations=np.zeros(n, np.int64),
            residual=np.zeros(n),
            runs=[],
            off_domain=np.zeros(n, bool),
        )
        work = [(part, span) for part in self.plan.parts for span in self._spans(part.wanted)]
        if self.plan.threads > 1:
            with ThreadPoolExecutor(self.plan.threads) as pool:
                try:
                    done = list(pool.map(lambda job: self._runs(job[0], job[1], tape, outcome, None), work))
                except BaseException:  # such as Ctrl-C: the other threads end with their next iteration
                    self.abandoned = True
                    raise
        else:
            done = [self._runs(part, span, tape, outcome, progress) for part, span in work]
        outcome.runs = [run for runs in done for run in runs]
        self._finish(outcome)
        return outcome

    def _spans(self, wanted: Mask) -> list[Span]:
        """Cut the components into as many pieces of equal work as there are threads."""
        from isinglass.kernels.numba.messages.passes import Span

        edges, n = self.edges, len(wanted)
        if not wanted.any():
            return []
        whole = Span(0, len(edges.cards), 0, len(edges.component), 0, n)
        in_line = (np.diff(edges.variable_component) >= 0).all() and (np.diff(edges.component) >= 0).all()
        if self.plan.threads == 1 or n == 1 or not in_line:
            return [whole]
        work = np.cumsum(np.bincount(edges.component, edges.size, n))
        cuts = np.searchsorted(work, work[-1] * np.arange(1, self.plan.threads) / self.plan.threads) + 1
        bounds = np.unique(np.concatenate([[0], cuts.clip(0, n), [n]]))
        variables = np.searchsorted(edges.variable_component, bounds)
        links = np.searchsorted(edges.component, bounds)
        return [
            Span(*(int(v) for v in (*variables[j : j + 2], *links[j : j + 2], *bounds[j : j + 2])))
            for j in range(len(bounds) - 1)
        ]

    def _runs(
        self,
        part: Part,
        span: Span,
        tape: Literal["full", "sqrt"] | None,
        outcome: Outcome,
        progress: Progress | None,
    ) -> list[tuple[Run, Tape | None]]:
        """Run the components of a span, linear first, then those that underflowed."""
        from isinglass.kernels.numba.arithmetic.semiring import LOG_MAX, LOG_SUM, SUM

        inside = np.zeros(len(part.wanted), bool)
        inside[span.first_component : span.last_component] = True
        wanted = part.wanted & inside
        runs: list[tuple[Run, Tape | None]] = []
        for ring in (LOG_MAX,) if self.plan.maximise else (SUM, LOG_SUM):
            if wanted.any():
                run = self._prepared(ring, wanted, span, part.settled)
                memory = None if tape is None else FullTape() if tape == "full" else MarkedTape()
                flagged = np.zeros(len(wanted), bool)
                if not len(ring):
                    flagged |= self.low & wanted
                self._iterate(run, part, flagged, outcome, memory, progress)
                self._read_out(run, flagged, outcome)
                run.wanted = wanted & ~flagged
                runs.append((run, memory))
                wanted = wanted & flagged
        return runs

    def _prepared(self, ring: Ring, wanted: Mask, span: Span, settled: bool) -> Run:
        from isinglass.kernels.numba.arithmetic.semiring import units

        edges, dtype = self.edges, self.potentials.dtype
        pool, raising = pool_of(self.graph), np.zeros(0)
        if self.plan.powers and not len(ring) and dtype.kind == "f":
            raising = np.repeat(self.plan.counting[edges.edge_link], np.diff(edges.start))
        run = Run(
            edges=edges,
            ring=ring,
            units=units(dtype, ring),
            states=_states(self.graph) if not len(ring) and dtype.kind == "f" else (),
            span=span,
            stages=[model.values(ring, raising) for model in self.models],
            damping=0.0 if settled else self.plan.damping,
            settled=settled,
            tol=self.plan.tol if self.plan.iterations is None else -1.0,
            scratch=self._scratch(),
            wanted=wanted.copy(),
            m=self._start(ring),
            n=pool.take((int(edges.start[-1]),), dtype),
            log_zi=np.zeros(len(edges.cards), dtype),
            log_za=np.zeros(len(edges.component), dtype),
            pool=pool,
            partner=None if len(ring) else self._partner(),
            steps=imaginary_steps(self.potentials),
            back=FloodBack(self.graph, self.initial),
            uniform=self.initial is None,
        )
        pool.give_back_with(run, run.n)
        return run

    def _scratch(self) -> Scratch:
        from isinglass.kernels.numba.messages import passes

        edges, dtype = self.edges, self.potentials.dtype
        card = int(edges.cards.max(initial=1))
        slots, degree = (int(np.diff(first).max(initial=1)) for first in (edges.first_slot, edges.first_edge))
        powers = self.plan.powers

        def room(length: int) -> NDArray[Any]:
            return np.empty(length, dtype)

        return passes.Scratch(
            powered=room(edges.start[-1] * powers),
            own=room(edges.start[-1] * powers),
            scale=room(len(edges.edge_link) * powers),
            row=room(max(degree, 1) * card),
            back=room(max(degree, 1) * card),
            out=room(slots * card),
            raw=room(slots * card),
            mixed=room(slots * card),
            bar=room(slots * card),
            totals=room(slots),
            prefix=room(slots),
            digits=np.empty(slots, np.int64),
        )

    def _start(self, ring: Ring) -> NDArray[Any]:
        """Return the initial messages: uniform, or the given ones (logarithms)."""
        cards, dtype = np.diff(self.edges.start), self.potentials.dtype
        if self.initial is None:
            card = layout_of(self.graph).card
            uniform = np.full(self.edges.start[-1], 1 / card) if card else np.repeat(1 / cards, cards)
            start: NDArray[Any] = uniform.astype(dtype, copy=False)
            return start if not len(ring) else np.log(start) if len(ring) == 1 else np.zeros_like(start)
        logs: NDArray[Any] = self.initial.astype(dtype)
        if len(ring) == 2:
            tops = np.maximum.reduceat(logs.real, self.edges.start[:-1]) if len(logs) else logs.real
            logs = logs - np.repeat(tops, cards)
        return np.exp(logs) if not len(ring) else logs

    def _move(self, run: Run, schedule: Schedule) -> Move:
        """Choose how to do an iteration."""
        if schedule == "residual":
            by_tolerance = self.plan.iterations is None
            if by_tolerance and self.potentials.dtype.kind == "c":  # imaginary parts move where real ones stand still
                return Follow(lambda t: np.arange(len(self.edges.size)))
            return Chase()
        if schedule == "grid":
            links = Follow(lambda t: grid_schedule(self.graph))
            return GridSweep.of(self.graph, run, links) or links
        if callable(schedule):
            return Follow(schedule)
        flood = self.flooding(run)
        return (GridFlood.of(self.graph, run, flood) if isinstance(flood, FloodPairs) else None) or flood

    def flooding(self, run: Run) -> Flood:
        """Choose how to flood, with messages on edges."""
        return Flood() if run.partner is None else FloodPairs(run.partner)

    def _partner(self) -> IntArray | None:
        partner = partners_of(self.graph)
        return partner if len(partner) and pairwise_components(self.graph).all() else None

    def _iterate(
        self,
        run: Run,
        part: Part,
        flagged: Mask,
        outcome: Outcome,
        tape: Tape | None,
        progress: Progress | None,
    ) -> None:
        """Iterate until every component has converged, underflowed or used up its iterations."""
        plan = self.plan
        limit = plan.max_iter if plan.iterations is None else plan.iterations
        active = run.wanted & ~flagged
        residual = np.zeros(len(active))
        move = self._move(run, part.schedule)
        if progress is None and self._all_at_once(run, move, Fate(active, flagged, residual), outcome, tape):
            return
        for t in range(limit):
            if self.abandoned or not active.any():
                break
            if tape is not None:
                tape.before(run, t)
            watched = plan.iterations is None or t == limit - 1 or progress is not None
            fate = Fate(active, flagged, residual, watched)
            step = move.forward(run, t, fate, tape is not None and tape.keeps_steps)
            move = step.move
            if tape is not None:
                tape.after(step)
            if part.settled and t == 0:
                residual[active] = 0
            elif plan.iterations is None or t == limit - 1:
                self._look_closely(run, step, fate)
            moved = active & ~flagged
            outcome.residual[moved] = residual[moved]
            outcome.iterations[moved] = t + 1
            done = moved & (residual <= plan.tol)
            outcome.converged[moved] = done[moved]
            active = moved & ~done if plan.iterations is None else moved
            if progress is not None:
                progress(f"iteration {t + 1}, residual {residual.max(initial=0.0):.1e}", (t + 1) / limit)
        move.finish(run)

    def _all_at_once(self, run: Run, move: Move, fate: Fate, outcome: Outcome, tape: Tape | None) -> bool:
        """Do exactly so many iterations in one go, where the move can. Returns whether it did."""
        limit = self.plan.iterations
        if limit is None or not fate.active.any() or not (tape is None or tape.keeps_steps):
            return False
        step = move.forward_all(run, limit, fate, tape is not None)
        if step is None:
            return False
        if tape is not None:
            tape.after(step)
        self._look_closely(run, step, fate)
        outcome.residual[fate.active], outcome.iterations[fate.active] = fate.residual[fate.active], limit
        outcome.converged[fate.active] = fate.residual[fate.active] <= self.plan.tol
        move.finish(run)
        return True

    def _look_closely(self, run: Run, step: Step, fate: Fate) -> None:
        """Where messages seem to stand still, measure what their change can do."""
        near = fate.active & ~fate.flagged & (fate.residual <= self.plan.tol)
        if near.any():
            step.move.effects(run, step, fate._replace(active=near))

    def _read_out(self, run: Run, flagged: Mask, outcome: Outcome) -> None:
        from isinglass.kernels.numba.messages import passes

        active = run.wanted & ~flagged
        if not active.any():
            return
        passes.read_out(
            self.edges, run.span, run.stages[-1], run.m, run.n, outcome.variables, outcome.factors, self.first_belief,
            run.log_zi, run.log_za, active, flagged, run.scratch, run.states, run.units, run.ring,
        )  # fmt: skip
        fine = active & ~flagged
        outcome.component_log_z[fine] += self._log_z(run)[fine]
        if len(run.ring) or not np.isfinite(outcome.component_log_z.real[fine]).all():
            self._mark_runaways(fine, outcome)

    def _mark_runaways(self, among: Mask, outcome: Outcome) -> None:
        """Find components whose log Z no beliefs could give: nothing has converged there, or nothing is possible.

        Hard zeros in loops can let logarithms of messages grow without end, until they are no numbers any more.
        """
        log_z = outcome.component_log_z.real
        low, high = (-np.inf, np.inf) if self.plan.maximise else log_z_range(self.potentials, self.plan.counting)
        off = among & ~(np.isfinite(log_z) & (log_z >= low) & (log_z <= high))
        if not np.isfinite(log_z[off]).all():
            support_of(self.potentials)  # raises if every assignment is proved to be impossible
            outcome.component_log_z[off & ~np.isfinite(log_z)] = np.nan
        outcome.converged[off], outcome.residual[off] = False, np.maximum(outcome.residual[off], self.plan.tol)
        outcome.off_domain |= off

    def _log_z(self, run: Run) -> NDArray[Any]:
        """Turn the Z of the read-out into logarithms; add them up for each component, without the constants."""
        edges, layout, n = self.edges, layout_of(self.graph), self.graph.n_components
        with np.errstate(divide="ignore", invalid="ignore"):
            if not len(run.ring):
                np.log(run.log_zi, out=run.log_zi)
                np.log(run.log_za, out=run.log_za)
            if self.plan.powers and len(edges.size):
                scale = run.scratch.scale if len(run.ring) else np.log(run.scratch.scale)
                run.log_za += np.add.reduceat(scale[edges.slot_edge], edges.first_slot[:-1])
            own: NDArray[Any] = 1.0 - np.diff(edges.first_edge)
            if self.plan.powers:
                link = np.repeat(np.arange(len(edges.size)), np.diff(edges.first_slot))
                own = 1.0 - np.bincount(edges.slot_variable, self.plan.counting[link], len(edges.cards))
            of_variables = np.where(own == 0, 0, own * run.log_zi)
            of_links = self.plan.counting * run.log_za
            one = component_sums(edges.variable_component, layout.variable_starts, of_variables, n)
            two = component_sums(edges.component, layout.link_starts, of_links, n)
            return np.asarray(one + two)

    def _finish(self, outcome: Outcome) -> None:
        """Round observed variables to one-hot; give factors of arity one their variable's belief, constants theirs."""
        if self.potentials.evidence:
            observed, seen = observed_entries(self.edges, self.potentials.evidence)
            outcome.variables[observed] = 0
            outcome.variables[seen] = 1
        share_unary_beliefs(self.graph, outcome.variables, outcome.factors)

    def messages(self, outcome: Outcome) -> NDArray[Any]:
        """Return the logarithms of the messages that the runs ended with."""
        logs = np.zeros(self.edges.start[-1], self.potentials.dtype)
        for run, _ in outcome.runs:
            entries = entries_of(self.edges, run.wanted)
            with np.errstate(divide="ignore"):
                logs[entries] = run.m[entries] if len(run.ring) else np.log(run.m[entries])
        return logs


MOST_CONSTANT_STATES = 5  # up to so many states loops are compiled for the very number


def _states(graph: FactorGraph) -> tuple[int, ...]:
    """Return a tuple as long as every variable has states, which compiled loops take as a constant; else ()."""
    card = layout_of(graph).card
    return (0,) * card if card <= MOST_CONSTANT_STATES else ()


def entries_of(edges: Edges, wanted: Mask) -> Any:
    """Return an index of the message entries of some components."""
    if wanted.all():
        return slice(None)
    return np.repeat(wanted[edges.component[edges.edge_link]], np.diff(edges.start))


def pool_of(graph: FactorGraph) -> Pool:
    """Return the pool of a graph."""
    return graph.cached("pool", Pool)
