"""The interface of a solver for most probable assignments, and the frame in which each of them runs.

    x*  =  argmax_x sum_a phi_a(x_a)

A solver is a frozen dataclass of options. It registers its class under a public name and implements `solve`: it offers
assignments to a `Search` and tightens its bound. The frame (`Solver.maximise`) is common to all solvers: it removes
evidence and impossible states, refuses numbers that are too large for proofs, checks the time limit, handles Ctrl-C,
and returns the best assignment with its certificate.

The certificate: `bound` is at least the score of every assignment, and `optimal` says that the score equals it up to
rounding (see `search`). Both are valid however the search ended.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Progress
from isinglass.inference.algorithm import make as make_algorithm
from isinglass.inference.assignment import EPSILON, TERMS, Assignment, MapInfo, centred, is_wide, tops_of
from isinglass.inference.map.reduction import Reduction, reduced
from isinglass.inference.map.search import Search
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose, require_declared
from isinglass.removed import RemovedOptions
from isinglass.runtime.interrupts import keeps_best
from isinglass.typing import Mask
from isinglass.validation import number

TOO_LARGE = 1e8  # nats: the largest finite entry with which solvers prove bounds


@dataclass(frozen=True)
class SolverFacts:
    """What a solver promises.

    Attributes
    ----------
    summary : str
        One line of description.
    accepts : {"any", "pairwise", "binary pairwise", "submodular"}
        Which models it takes: factors of any arity; of arity at most two; and two states; and submodular ones.
    proves : {"always", "sometimes", "never"}
        How often its assignments are proved to be optimal, where it is not stopped early.
    bound : bool
        Whether it finds an upper bound on the score of every assignment.
    stochastic : bool
        Whether it draws random numbers. It then has an option `random_state`.
    needs : str
        The optional package that it calls; empty if none.
    """

    summary: str
    accepts: Literal["any", "pairwise", "binary pairwise", "submodular"]
    proves: Literal["always", "sometimes", "never"]
    bound: bool
    stochastic: bool = False
    needs: str = ""


class Solver(RemovedOptions, ABC):
    """Base class of solvers; subclasses are frozen dataclasses of their options.

    Attributes
    ----------
    seconds : float or None
        The time limit; the best assignment so far is returned when it is over.
    """

    name: ClassVar[str]
    facts: ClassVar[SolverFacts]

    seconds: float | None = None

    @abstractmethod
    def solve(self, search: Search, reduction: Reduction) -> None:
        """Offer assignments of ``search.potentials`` and tighten its bound, until ``search.ended`` or done.

        ``search.potentials`` have no evidence, and every state has a possible configuration in each of its factors.
        `reduction` turns assignments of the whole model into theirs.
        """

    def check(self, reduction: Reduction) -> None:
        """Refuse, by an error that names a factor, a model that the solver does not take."""

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Find one assignment: reduce the model, search, and certify; `n` is 1."""
        reduction = reduced(potentials)
        if is_wide(reduction.potentials):  # then constants must not hide what differs
            p = reduction.potentials
            reduction = reduction._replace(potentials=centred(p), removed=tops_of(p))
        if self.facts.bound:
            _require_provable(reduction, self.name)
        seconds = None if self.seconds is None else number(self.seconds, "seconds", 0.0, np.inf)
        search = Search(reduction.potentials, seconds, progress)
        self.check(reduction)
        self._guarded(search, reduction)
        if search.score == -np.inf:
            remedy = 'no assignment was found that the hard zeros allow; use "ilp", or "exact" where it fits'
            warn_of_convergence(f"{self.name}: {remedy}", stacklevel=4)
        return [certified(self.name, search, reduction)]

    def _guarded(self, search: Search, reduction: Reduction) -> None:
        """Search until the end, or until Ctrl-C, which is a warning if there is an assignment."""
        if not len(reduction.kept):
            search.offer(np.zeros(0, np.int64))
            search.tighten(search.score)
            search.stopped = "optimal"
            return
        try:
            self.solve(search, reduction)
        except KeyboardInterrupt:
            if search.states is None or not keeps_best():
                raise
            search.stopped = "interrupted"
            text = f"{self.name}: interrupted after {search.elapsed:.3g} s; the best assignment so far is returned"
            warn_of_convergence(text, stacklevel=5)


def _require_provable(reduction: Reduction, solver: str) -> None:
    """Refuse finite entries so large that the rounding of scores and bounds could pass for a proof."""
    p = reduction.potentials
    for group, tables, ids in zip(p.graph.groups, p.groups, p.table_ids, strict=True):
        over: Mask = (np.abs(tables) > TOO_LARGE) & np.isfinite(tables)
        bad = np.flatnonzero(np.any(over.reshape(len(tables), group.table_size), axis=1)[ids])
        if len(bad):
            expected = f"finite log-potentials of at most {TOO_LARGE:g} in size, for {solver!r}"
            got = f"a larger one in {reduction.factor_text(int(group.factors[bad[0]]))}"
            remedy = "write -inf for what is forbidden, and subtract constants from tables"
            raise InputError("potentials", expected, got, remedy)


def certified(name: str, search: Search, reduction: Reduction) -> Assignment:
    """Return what a search found, as an assignment of the whole model."""
    found = np.full(len(reduction.kept), -1) if search.states is None else search.states
    total, size = reduction.removed
    bounds = [bound + total + TERMS * EPSILON * size for bound in [*search.bounds, search.bound]]
    states, score = reduction.lift(found), search.score
    if reduction.whole is not reduction.potentials and np.isfinite(score):
        score = float(reduction.whole.log_score(states))
    closed = bool(np.isfinite(score) and search.closed)
    bound = max(bounds[-1], score) if np.isfinite(score) else bounds[-1]
    info = MapInfo(name, search.iterations, search.elapsed, search.stopped, "; ".join(search.did), tuple(bounds[:-1]))
    return Assignment(states, score, bound, closed, closed, info)


SOLVERS: Registry[type[Solver]] = Registry("algorithm")


def register(cls: type[Solver]) -> type[Solver]:
    """Register a solver under its name (a class decorator)."""
    require_declared(cls, name=str, facts=SolverFacts)
    return SOLVERS.register(cls.name)(cls)


def make(solver: str | Solver, options: dict[str, Any]) -> Solver:
    """Return the solver given by a name or an object, with further options set."""
    return choose(SOLVERS, Solver, solver, options, "trws")  # type: ignore[type-abstract]


def solve_part(search: Search, known: dict[int, int], solver: str | Solver | Algorithm) -> None:
    """Solve with some variables known, by another solver in the time that is left; offer its assignment.

    Its bound is taken over, so some best assignment must agree with what is known. In wide models rounding may have
    decided what is known, so the bound is not taken over.
    """
    chosen = inner_maximiser(solver, search.left)
    (found,) = chosen.maximise(search.potentials.with_evidence(known), 1, search.progress)
    search.offer(found.states)
    if not search.wide:
        search.tighten(found.bound)
    search.did.append(f"{chosen.name} decided the others")


def inner_maximiser(solver: str | Solver | Algorithm, seconds: float) -> Solver | Algorithm:
    """Return a solver with a time limit, or an inference algorithm that maximises, for use inside another solver."""
    if isinstance(solver, Algorithm) or (isinstance(solver, str) and solver not in SOLVERS and solver in ALGORITHMS):
        return make_algorithm(solver, {})
    chosen = make(solver, {})
    limits = [s for s in (chosen.seconds, None if np.isinf(seconds) else max(seconds, 0.0)) if s is not None]
    return make(chosen, {"seconds": min(limits)} if limits else {})
