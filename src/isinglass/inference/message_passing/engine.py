"""The message-passing engine: it runs a schedule on a graph, records a tape, and reads the beliefs out.

One engine serves belief propagation, tree-reweighting and fractional belief propagation (counting numbers), the sum
and the max semiring, and every schedule. Each component of the graph (example of a batch) converges, stops and
underflows independently of the others. A run uses linear values; components in which a product underflowed are run
again with logarithms. The tape holds the messages that were overwritten, for the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import (
    edges_of,
    entry_components,
    pairwise_components,
    partners_of,
    pool_of,
)
from isinglass.graph.schedules import grid_schedule
from isinglass.inference.algorithm import Progress, judges_convergence
from isinglass.inference.evidence import impossible
from isinglass.inference.message_passing.checks.domain import imaginary_steps, without_unproved_zeros
from isinglass.inference.message_passing.model.group_places import layout_of
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.inference.message_passing.moves.flood import FloodPairs, flooding_of
from isinglass.inference.message_passing.moves.flood_back import FloodBack
from isinglass.inference.message_passing.moves.grid_flood import GridFlood
from isinglass.inference.message_passing.moves.grid_sweep import GridSweep
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.moves.sequence import LargestResidual, LinkSequence
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Part, Plan, Schedule
from isinglass.inference.message_passing.read_out import ReadOut
from isinglass.inference.message_passing.run import Run, scratch_of
from isinglass.inference.message_passing.shares import (
    component_groups,
    fill,
    shares_of,
)
from isinglass.inference.message_passing.tape import MarkedTape, Tape
from isinglass.kernels.backend import MessagePassingKernels, message_passing_kernels
from isinglass.kernels.layout import (
    SAFE,
    Edges,
    Semiring,
    Span,
    Status,
    is_linear,
    is_max,
    units,
)
from isinglass.potentials import Potentials
from isinglass.runtime.compilation.calls import Calls
from isinglass.runtime.deferring import deferred
from isinglass.runtime.threads import team
from isinglass.typing import Array, IntArray, Mask


class Engine:
    """Runs a plan on potentials: one model for all iterations, or one for each (the last is read out)."""

    def __init__(
        self,
        per_iteration: Sequence[Potentials],
        plan: Plan,
        initial: Array | None = None,
        own_tables: bool = False,
        kernels: MessagePassingKernels | None = None,
    ) -> None:
        self.kernels = message_passing_kernels() if kernels is None else kernels
        self.spread = team(plan.threads)
        self.potentials, self.plan = per_iteration[-1], plan
        self.graph, self.edges = self.potentials.graph, edges_of(self.potentials.graph)
        self.initial = None if initial is None else without_unproved_zeros(self.potentials, initial)
        self.per_iteration = list(per_iteration)
        self.models = [LinkModel.of(p, plan.counting, own_tables or plan.powers, self.spread) for p in per_iteration]
        self.reading = ReadOut(self.potentials, self.models[-1], plan, self.initial, self.spread)
        self.low = np.logical_or.reduce([model.low for model in self.models]) | self._low_start()

    def _low_start(self) -> Mask:
        """Tell which components start with a message that is too small for a linear value."""
        low = np.zeros(self.graph.n_components, bool)
        if self.initial is not None:
            tiny = (self.initial.real < np.log(SAFE)) & (self.initial.real > -np.inf)
            low[entry_components(self.edges)[tiny]] = True
        return low

    def run(self, tape: Literal["full", "sqrt"] | None, progress: Progress | None = None) -> Outcome:
        """Pass messages, with logarithms where linear values underflow; read out the beliefs."""
        self.abandoned = False
        n, dtype = self.graph.n_components, self.potentials.dtype
        if any(not model.bounded and (model.constant.real == -np.inf).any() for model in self.models):
            raise ImpossibleEvidenceError(impossible(self.potentials))
        outcome = Outcome(
            log_z_so_far=deferred(lambda: self.models[-1].constant.copy()),
            variables=np.empty(int(self.edges.first_state[-1]), dtype),
            factors_so_far=np.empty(0, dtype),
            converged=np.zeros(n, bool),
            iterations=np.zeros(n, np.int64),
            residual=np.zeros(n),
            runs=[],
            off_domain=np.zeros(n, bool),
        )
        for part in self.plan.parts:
            spans = self._spans(part)
            shown = progress if len(spans) == 1 else None
            done = self.spread(self._runs, [(part, span, tape, outcome, shown) for span in spans], self._abandon)
            outcome.runs += [run for runs in done for run in runs]
        self.reading.finish(outcome)
        return outcome

    def _abandon(self) -> None:
        """After an error or Ctrl-C, end the other threads with their next iteration."""
        self.abandoned = True

    def begun(self, part: Part) -> tuple[Run, Move]:
        """Return the run of a part in the first semiring of the plan, and its move, before any iteration."""
        run = self._prepared(self.plan.semirings[0], part.wanted, self._spans(part)[0], part.settled)
        return run, self._move(run, part.schedule)

    def _spans(self, part: Part) -> list[Span]:
        """Cut the components into pieces of equal work that threads run by themselves.

        Links that are updated in a sequence need that. Where all are updated at once, or line by line, threads share
        each iteration: there is one piece.
        """
        edges, n = self.edges, len(part.wanted)
        if not part.wanted.any():
            return []
        whole = Span(0, len(edges.cards), 0, len(edges.component), 0, n)
        if self.plan.threads == 1 or n == 1 or part.schedule in ("flooding", "grid"):
            return [whole]
        if not ((np.diff(edges.variable_component) >= 0).all() and (np.diff(edges.component) >= 0).all()):
            return [whole]
        groups = component_groups(edges, n)
        cuts = np.arange(self.plan.threads + 1) * (len(groups) - 1) // self.plan.threads
        bounds = np.unique(groups[cuts])
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
        """Run the components of a span, those that underflowed again in the next semiring of the plan."""
        inside = np.zeros(len(part.wanted), bool)
        inside[span.first_component : span.last_component] = True
        wanted = part.wanted & inside
        runs: list[tuple[Run, Tape | None]] = []
        for semiring in self.plan.semirings:
            if wanted.any():
                run = self._prepared(semiring, wanted, span, part.settled)
                run.variables = outcome.variables
                memory = None if tape is None else Tape() if tape == "full" else MarkedTape()
                flagged = np.zeros(len(wanted), bool)
                if run.is_linear:
                    flagged |= self.low & wanted
                move = self._iterate(run, part, flagged, outcome, memory, progress)
                self.reading.read(run, move, flagged, outcome)
                run.wanted = wanted & ~flagged
                runs.append((run, memory))
                wanted = wanted & flagged
        return runs

    def _prepared(self, semiring: Semiring, wanted: Mask, span: Span, settled: bool) -> Run:
        edges, dtype = self.edges, self.potentials.dtype
        pool, raising = pool_of(self.graph), np.zeros(0)
        plain = is_linear(semiring) and dtype.kind == "f"
        whole, shares = span.last_component - span.first_component == len(wanted), shares_of(self.graph)
        if self.plan.powers and plain:
            raising = np.repeat(self.plan.counting[edges.edge_link], np.diff(edges.start))
        run = Run(
            kernels=self.kernels,
            edges=edges,
            semiring=semiring,
            units=units(dtype, semiring),
            states=_states(self.graph, int(edges.start[-1])) if plain else (),
            span=span,
            models=[model.values(semiring, raising, self.spread if whole else team(1)) for model in self.models],
            least=min(model.least for model in self.models),
            damping=0.0 if settled else self.plan.damping,
            settled=settled,
            tol=self.plan.tol,
            scratch=scratch_of(self.graph, dtype, self.plan.powers),
            wanted=wanted.copy(),
            m=deferred(lambda: self._start(semiring)),
            n=pool.take((int(edges.start[-1]),), dtype),
            log_zi=np.empty(len(edges.cards), dtype),
            log_za=np.empty(0, dtype),
            pool=pool,
            partner=self._partner() if is_linear(semiring) else None,
            steps=imaginary_steps(self.potentials),
            back=FloodBack(self.graph, self.initial),
            spread=self.spread if whole else team(1),
            shares=shares if whole and self.spread.threads > 1 and len(shares) > 1 else [],
            calls=Calls(same=len(self.models) == 1),
            uniform=self.initial is None,
        )
        pool.give_back_with(run, run.n)
        return run

    def _start(self, semiring: Semiring) -> Array:
        """Return the initial messages: uniform, or the given ones (logarithms)."""
        cards, dtype, size = np.diff(self.edges.start), self.potentials.dtype, int(self.edges.start[-1])
        if self.initial is None:
            card = layout_of(self.graph).card
            start: Array = np.repeat(1 / cards, cards).astype(dtype, copy=False) if not card else np.empty(size, dtype)
            if card:
                fill(self.spread, start, 1 / card)
            return start if is_linear(semiring) else np.zeros_like(start) if is_max(semiring) else np.log(start)
        logs: Array = self.initial.astype(dtype)
        if is_max(semiring):
            tops = np.maximum.reduceat(logs.real, self.edges.start[:-1]) if len(logs) else logs.real
            logs = logs - np.repeat(tops, cards)
        return np.exp(logs) if is_linear(semiring) else logs

    def _move(self, run: Run, schedule: Schedule) -> Move:
        """Choose the move that does an iteration."""
        if schedule == "residual":
            by_tolerance, every = self.plan.iterations is None, np.arange(len(self.edges.size))
            if by_tolerance and self.potentials.dtype.kind == "c":  # imaginary parts move where real ones stand still
                return LinkSequence(lambda: every)
            return LargestResidual(lambda: every, by_tolerance)
        if schedule == "grid":
            links = LinkSequence(lambda: grid_schedule(self.graph))
            return GridSweep.of(self.graph, run, links) or links
        if callable(schedule):
            return LinkSequence(schedule)
        flood = flooding_of(run)
        return (GridFlood.of(self.graph, run, flood) if isinstance(flood, FloodPairs) else None) or flood

    def _partner(self) -> IntArray | None:
        if self.kernels.pairs is None or not pairwise_components(self.graph).all():
            return None
        partner = partners_of(self.graph)
        return partner if len(partner) else None

    def _iterate(
        self,
        run: Run,
        part: Part,
        flagged: Mask,
        outcome: Outcome,
        tape: Tape | None,
        progress: Progress | None,
    ) -> Move:
        """Iterate until every component has converged, underflowed or used up its iterations; return the last move."""
        plan = self.plan
        limit = plan.max_iter if plan.iterations is None else plan.iterations
        active = run.wanted & ~flagged
        residual = np.zeros(len(active))
        move = self._move(run, part.schedule)
        status = Status(active, flagged, residual, plan.iterations is None or judges_convergence())
        if progress is None and self._all_at_once(run, move, status, outcome, tape):
            return move
        for t in range(limit):
            if self.abandoned or not np.count_nonzero(active):  # much faster than any() for few
                break
            if tape is not None:
                tape.before(run, t)
            watched = plan.iterations is None or (t == limit - 1 and status.watched) or progress is not None
            now = Status(active, flagged, residual, watched)
            step = move.forward(run, t, now, tape is not None and tape.keeps_steps)
            move = step.move
            if tape is not None:
                tape.after(step)
            if part.settled and t == 0:
                residual[active] = 0
            elif plan.iterations is None or (watched and t == limit - 1):
                step.move.look_closely(run, step, now, plan.tol)
            active = active & ~flagged
            np.copyto(outcome.iterations, t + 1, where=active)
            if not watched:
                continue
            done = residual <= plan.tol
            np.copyto(outcome.residual, residual, where=active)
            np.copyto(outcome.converged, done, where=active)
            if plan.iterations is None:
                active = active & ~done
            if progress is not None:
                progress(f"iteration {t + 1}, residual {residual.max(initial=0.0):.1e}", (t + 1) / limit)
        move.finish(run)
        return move

    def _all_at_once(self, run: Run, move: Move, status: Status, outcome: Outcome, tape: Tape | None) -> bool:
        """Do a given number of iterations in one call, where the move can. Returns whether it did."""
        limit = self.plan.iterations
        if limit is None or not status.active.any() or not (tape is None or tape.keeps_steps):
            return False
        step = move.forward_all(run, limit, status, tape is not None, self.plan.tol)
        if step is None:
            return False
        if tape is not None:
            tape.after(step)
        outcome.iterations[status.active] = limit
        if status.watched:
            outcome.residual[status.active] = status.residual[status.active]
            outcome.converged[status.active] = status.residual[status.active] <= self.plan.tol
        move.finish(run)
        return True

    def messages(self, outcome: Outcome) -> Array:
        """Return the logarithms of the messages that the runs ended with."""
        logs = np.zeros(self.edges.start[-1], self.potentials.dtype)
        for run, _ in outcome.runs:
            entries = entries_of(self.edges, run.wanted)
            with np.errstate(divide="ignore"):
                logs[entries] = np.log(run.m[entries]) if run.is_linear else run.m[entries]
        return logs


CONSTANT_STATES = range(2, 6)  # numbers of states for which loops are compiled: two always, more for large graphs
LARGE = 2**14  # entries of messages; with fewer, such loops gain a tenth of a millisecond, and take seconds to compile


def _states(graph: FactorGraph, entries: int) -> tuple[int, ...]:
    """Return a tuple whose length is the number of states of every variable, a constant to compiled loops; else ()."""
    card = layout_of(graph).card
    served = card in CONSTANT_STATES and (card == CONSTANT_STATES[0] or entries >= LARGE)
    return (0,) * card if served else ()


def entries_of(edges: Edges, wanted: Mask) -> slice | Mask:
    """Return an index of the message entries of some components."""
    if wanted.all():
        return slice(None)
    return np.repeat(wanted[edges.component[edges.edge_link]], np.diff(edges.start))
