"""Coordinate ascent of mean field, naive or on trees: sweeps until convergence, escape from saddle points, and reverse.

In a symmetric model without fields the initial beliefs are a fixed point, which may be a saddle point of the bound. So
the stability of a component is checked (see `stability`) if its first sweep changed nothing, or if a variable ends with
equal beliefs for two of its states. From a saddle point the ascent continues from slightly different beliefs, in the
direction in which the bound grows most, with a sign that depends on the seed.

A run that converged is differentiated at its fixed point: with F the last sweep, derivatives with respect to the
beliefs are propagated back through F repeatedly, until they vanish,

    d/dphi  =  sum_k  F_phi' (F_q')^k q_bar,

which does not depend on the start. Complex beliefs have converged only if their imaginary parts have converged, too,
relative to their size.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError, InputError
from isinglass.graph.factor_graph import iter_groups
from isinglass.graph.layout import belief_entries
from isinglass.inference.algorithm import Algorithm, Progress, Taping
from isinglass.inference.evidence import impossible
from isinglass.inference.mean_field.bound import Bars, MeanFieldBound
from isinglass.inference.mean_field.stability import Leading, leading, seeded, slope
from isinglass.inference.result import Bound, FactorBeliefs, Gradients, Info, Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.segments import Largest, ranges
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import RandomState, flag, number, whole_number

SADDLES = 5  # the most saddle points that a run leaves
ALIKE, NEARLY = 1e-12, 1e-6  # relative differences of two beliefs: rounding; what a saddle point may leave
AWAY = 1e-3  # change of a logarithm that leaves one
SURELY = 1e-9  # how far above one an eigenvalue proves a saddle point
DIFFERENCE = 1e-4  # step of finite differences
LEAST = 1e-290  # a smaller change of beliefs counts as none
ROUNDING = 1e-14  # derivatives have died out below this share of their largest size


@dataclass(frozen=True)
class Stopping:
    """When to stop: after `limit` sweeps, or, unless `exactly`, when no belief changes by more than `tol`."""

    limit: int
    tol: float
    exactly: bool

    @classmethod
    def of(cls, iterations: int | None, max_iter: int, tol: float) -> Stopping:
        """Check the options of an algorithm."""
        limit, least = whole_number(max_iter, "max_iter", 1), number(tol, "tol", 0, np.inf)
        if iterations is None:
            return cls(limit, least, False)
        return cls(whole_number(iterations, "iterations"), least, True)


class MeanFieldAlgorithm(Algorithm):
    """What naive and structured mean field share: the call of their ascent. Subclasses declare the options."""

    tol: float
    max_iter: int
    check_stability: bool
    random_state: RandomState

    @abstractmethod
    def ascent(self, potentials: Potentials, init: Result | None) -> Ascent:
        """Return the ascent, before its first sweep."""

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Ascend and read out the bound and the beliefs; where derivatives at `init` are computed, leave no saddle."""
        ascent = self.ascent(potentials, init)
        check = flag(self.check_stability, "check_stability")
        stop = Stopping.of(self.iterations, self.max_iter, self.tol)
        escapes = init is None or potentials.dtype.kind != "c"
        ascent.run(stop, bool(tape), progress, escapes, self.random_state)
        log_z = ascent.bound.value(ascent.q, ascent.factors)
        if (stop.limit or ascent.starts_possible) and (log_z.real == -np.inf).any():
            raise ImpossibleEvidenceError(impossible(potentials))
        bound: Bound = "exact" if stop.limit and ascent.exact else "lower"
        info = ascent.info(self.name, stop, bound, check, self.random_state)
        return ascent.result(log_z, info, bool(tape))


class Ascent(ABC):
    """The state of an ascent.

    Attributes
    ----------
    q, factors : arrays
        Beliefs of variables and of factors; those of chosen links are not products.
    residual, iterations : arrays (components,)
    starts_possible : bool
        Whether it gives no probability to what is forbidden even before the first sweep.
    exact : bool
        Whether one sweep gives the exact answer.
    """

    starts_possible: ClassVar[bool] = False
    exact = False

    def __init__(self, bound: MeanFieldBound, q: Array) -> None:
        potentials, graph = bound.potentials, bound.potentials.graph
        self.potentials, self.bound, self.field, self.q = potentials, bound, bound.field, q
        self.edges, self.model = bound.field.edges, bound.model
        self.factors = np.zeros(belief_entries(graph), q.dtype)
        self.owner: IntArray = np.repeat(graph.variable_component, graph.cards)
        self.largest = Largest(self.owner, graph.n_components)
        self.residual, self.iterations = np.full(graph.n_components, np.inf), np.zeros(graph.n_components, np.int64)
        self.settled = np.zeros(graph.n_components, bool)

    @abstractmethod
    def sweep(self, active: Mask, residual: FloatArray, taped: bool) -> None:
        """Update every block of the active components once; write the largest change of each component."""

    @abstractmethod
    def forget(self, components: Mask) -> None:
        """Remove the sweeps of components, which restart, from the tape."""

    def prepare_back(self) -> None:  # noqa: B027
        """Keep what the reverse of a sweep at the fixed point needs, besides the beliefs."""

    @abstractmethod
    def sweep_back(self, active: Mask, bars: Bars) -> None:
        """Reverse a sweep at the fixed point."""

    def finish_back(self, bars: Bars) -> None:  # noqa: B027
        """Complete the derivatives after the last sweep at the fixed point."""

    @abstractmethod
    def tape_back(self, active: Mask, bars: Bars) -> None:
        """Reverse the sweeps that ran."""

    def run(
        self, stop: Stopping, taped: bool, progress: Progress | None, escapes: bool, random_state: RandomState
    ) -> None:
        """Sweep until every component has converged or used up its sweeps; leave saddle points."""
        self.tol, self.limit = stop.tol, stop.limit
        self._sweeps(np.ones(len(self.residual), bool), stop, taped, progress)
        if stop.exactly:
            return
        if escapes:
            self._leave_saddles(stop, taped, progress, random_state)
        self.settled = self.residual <= stop.tol
        if taped and self.settled.any():
            self.prepare_back()

    def _sweeps(self, active: Mask, stop: Stopping, taped: bool, progress: Progress | None) -> None:
        residual, first = np.zeros(len(active)), int(self.iterations[active].max(initial=0))
        for t in range(first, stop.limit):
            if not active.any():
                break
            before = self.q.imag.copy() if self.q.dtype.kind == "c" else None
            self.sweep(active, residual, taped)
            if before is not None:
                residual = np.maximum(residual, self._imaginary_change(before))
            self.residual[active] = residual[active]
            self.iterations[active] = t + 1
            if not stop.exactly:
                active = active & (residual > stop.tol)
            if progress is not None:
                progress(f"sweep {t + 1}, change {residual.max(initial=0.0):.1e}", (t + 1) / stop.limit)

    def _imaginary_change(self, before: FloatArray) -> FloatArray:
        """Return the largest change of an imaginary part, relative to the largest; none where that is rounding."""
        change, size = (self.largest(a) for a in (self.q.imag - before, self.q.imag))
        given = self.largest(self.expected(self.q).imag)
        return np.where(change > ROUNDING * given, change / np.where(size > 0, size, 1), 0)

    def _leave_saddles(self, stop: Stopping, taped: bool, progress: Progress | None, random_state: RandomState) -> None:
        began = np.zeros(len(self.residual), np.int64)
        for _ in range(SADDLES):
            still = (self.residual <= stop.tol) & (self.iterations < stop.limit)
            suspects = still & ((self.iterations - began <= 1) | self._symmetric())
            if not suspects.any():
                return
            found = self.stability(random_state)
            leaving = suspects & (found.values > 1 + SURELY)
            if not leaving.any():
                return
            kept = self._kept()
            self._move_away(leaving, found)
            self.forget(leaving)
            began[leaving] = self.iterations[leaving]
            self._sweeps(leaving, stop, taped, progress)
            self._restore(leaving, kept)

    def _symmetric(self) -> Mask:
        """Tell which components may be at a saddle point, by equal beliefs in two states of a variable.

        They are equal but for rounding, or nearly so for two variables of one link, where a run has begun to leave a
        saddle point, but so slowly that it counts as converged.
        """
        link, first = self.field.near.link, self.field.near.first.astype(np.int64)
        apart = _apart(self.q.real, self.edges.cards, self.edges.first_state)
        nearly = np.flatnonzero(apart <= NEARLY)
        counts = np.diff(first)[nearly]
        links = link[ranges(first[nearly], counts)]
        of_pairs = np.repeat(nearly, counts)[np.bincount(links)[links] > 1]
        tied = nearly[(apart[nearly] <= ALIKE) & (counts > 0)]
        found, suspects = np.zeros(len(self.residual), bool), np.concatenate([tied, of_pairs])
        found[self.edges.variable_component[suspects]] = True
        return found

    def stability(self, random_state: RandomState) -> Leading:
        """Find the leading eigenvalue of the sweeps at the beliefs, for each component."""
        n, edges = len(self.residual), self.edges
        state = np.arange(len(self.q)) - np.repeat(edges.first_state[:-1], edges.cards)
        start = self._coupling(Ascent.covariance(self, seeded(random_state, self.owner, state)))
        if not start.any():
            return Leading(np.zeros(n), start)
        return leading(self.covariance, self._coupling, start, self.owner, n)

    def covariance(self, v: FloatArray) -> FloatArray:
        """Return C v, the change of the beliefs for a change v of the effective potentials.

        Here that is q (v - <q, v>), for each variable by itself.
        """
        q = self.q.real
        mean = np.add.reduceat(q * v, self.edges.first_state[:-1]) if len(q) else v
        return np.asarray(q * (v - np.repeat(mean, self.edges.cards)))

    def _coupling(self, change: FloatArray) -> FloatArray:
        """Return W times a change of the beliefs."""
        top = self.largest(change)
        step = DIFFERENCE / np.where(top > LEAST, top, 1)[self.owner]
        return np.where(self.q.real > 0, slope(self.expected, self.q, change, step), 0)

    def expected(self, q: Array) -> Array:
        """Return the effective potentials of all variables, given beliefs."""
        from isinglass.kernels.numba.mean_field import expect

        target = np.zeros_like(self.q)
        expect(np.arange(len(self.edges.cards)), np.ones(len(self.residual), bool), self.field, q, target)
        return target

    def _kept(self) -> tuple[FloatArray, Array, Array, FloatArray]:
        factors = self.factors.copy()
        value = self.bound.value(self.q, factors).real
        return value, self.q.copy(), factors, self.residual.copy()

    def _move_away(self, leaving: Mask, found: Leading) -> None:
        mine = leaving[self.owner]
        moved = self.q * np.exp(AWAY * found.vector)
        total = np.repeat(np.add.reduceat(moved, self.edges.first_state[:-1]), self.edges.cards)
        self.q[mine] = (moved / total)[mine]

    def _restore(self, left: Mask, kept: tuple[FloatArray, Array, Array, FloatArray]) -> None:
        """Restore the components where leaving a saddle point did not raise the bound."""
        value, q, factors, residual = kept
        worse = left & ~(self.bound.value(self.q, self.factors.copy()).real > value)
        if worse.any():
            mine, of_factors = worse[self.owner], worse[_entry_components(self.potentials)]
            self.q[mine], self.factors[of_factors] = q[mine], factors[of_factors]
            self.residual[worse] = residual[worse]

    def info(self, name: str, stop: Stopping, bound: Bound, check: bool, random_state: RandomState) -> Info:
        """Return what is reported of the run."""
        stable = bool((self.stability(random_state).values < 1).all()) if check else None
        any_swept = stop.limit > 0 and len(self.residual) > 0
        share = float((self.residual <= stop.tol).mean()) if any_swept else float(stop.limit > 0)
        return Info(
            name, share == 1, int(self.iterations.max(initial=0)), float(self.residual.max(initial=0.0)), bound, 0.0,
            share, stable,
        )  # fmt: skip

    def result(self, log_z: Array, info: Info, taped: bool) -> Result:
        """Return the beliefs and the bound."""
        graph, reverse = self.potentials.graph, self.backward if taped else None
        variables, factors = VariableBeliefs(graph, self.q), FactorBeliefs(graph, self.factors)
        return Result(self.potentials, log_z, variables, factors, info, reverse=reverse)

    def backward(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> Gradients:
        """Carry derivatives back: at the fixed point of what converged, else through the sweeps that ran."""
        bars = self.bound.backward(self.q.copy(), self.factors, z_bar, variables_bar, factors_bar)
        if self.settled.any():
            self._fixed_point_back(bars)
        if not self.settled.all():
            self.tape_back(~self.settled, bars)
        return bars.gradients(self.potentials, z_bar)

    def _fixed_point_back(self, bars: Bars) -> None:
        alive, died, most = self.settled.copy(), max(self.tol, ROUNDING), np.zeros(len(self.settled))
        for t in range(self.limit + 1):
            sizes = self.largest.parts(bars.q)
            most = np.maximum(most, sizes)
            again = t == 0 or (sizes > died * most).any(axis=0)
            alive = alive & again & np.isfinite(sizes).all(axis=0)
            if not alive.any():
                break
            self.sweep_back(alive, bars)
        self.finish_back(bars)
        left = self.settled & ~(sizes <= died * most).all(axis=0)
        if left.any():
            raise InputError(
                "tape",
                "a fixed point whose derivative converges",
                f"one where it has not converged after {self.limit} sweeps",
                "raise max_iter, or use iterations= for the derivative of a given number of sweeps",
            )
        bars.q[self.settled[self.owner]] = 0


def _apart(q: FloatArray, cards: IntArray, first_state: IntArray) -> FloatArray:
    """Return the least relative difference of two positive beliefs of each variable; inf if there are not two."""
    found = np.full(len(cards), np.inf)
    for card in np.unique(cards[cards > 1]).tolist():
        rows = cards == card
        beliefs = q.reshape(-1, card) if rows.all() else q[first_state[:-1][rows][:, None] + np.arange(card)]
        ordered = np.sort(beliefs.T, axis=0)
        below, above = ordered[:-1], ordered[1:]
        gaps = np.divide(above - below, above, out=np.full(above.shape, np.inf), where=below > 0)
        found[rows] = gaps.min(axis=0)
    return found


def _entry_components(potentials: Potentials) -> IntArray:
    """Return the component of each entry of the flat beliefs of factors."""
    graph = potentials.graph
    parts = [np.repeat(graph.factor_component[g.factors], g.table_size) for g, _ in iter_groups(graph)]
    return np.concatenate([np.zeros(0, np.int64), *parts])


def given_beliefs(init: Result, size: int) -> Array:
    """Return the flat beliefs of an earlier result on the same graph."""
    if not isinstance(init, Result):
        raise InputError("init", "an earlier result on this graph", type(init).__name__)
    if init.variables.flat.size != size:
        raise InputError("init", f"a result on this graph ({size} states)", f"{init.variables.flat.size} states")
    return init.variables.flat
