"""Exact maximisation by toulbar2 (Allouche et al. 2015): branch and bound with soft arc consistency.

toulbar2 minimises sums of integers. With t_a the largest entry of phi_a, the cost of an entry is

    c_a(x_a)  =  round(S (t_a - phi_a(x_a)))             forbidden where phi_a is -inf

so that every score differs from sum_a t_a - c / S by at most half a unit for each factor, and a lower bound c on the
costs proves the score bound  sum_a t_a - c / S + (number of factors) / (2 S). S is chosen so large that the last term
is below the rounding of a score, as far as 64-bit integers allow.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock, current_thread, main_thread
from typing import Any, ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.inference.assignment import TERMS
from isinglass.inference.evidence import impossible
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, missing, register

LARGEST = 1e16  # the most that the costs of an assignment may add up to
SOON, AGAIN = 1e-3, 0.1  # seconds: the shortest limit, and the longest pause between two signals that the time is over
TICK = 0.01  # seconds: timers are rounded up to a multiple of less than that
LONGEST = 1e8  # seconds: what counts as no limit

_ALONE = Lock()  # toulbar2 has one state for the whole process


@register
@dataclass(frozen=True)
class Toulbar2(Solver):
    """A most probable assignment with a proof by toulbar2; at the time limit, the best assignment and bound so far.

    Parameters
    ----------
    vac : int
        The depth of the search up to which virtual arc consistency is enforced; 1: only at the root, 0: nowhere.
    seconds : float, optional
        Time limit, in processor time, because toulbar2 measures no other time.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(4, 4, 3), [rng.normal(size=(16, 3)), rng.normal(size=(24, 3, 3))])
    >>> ig.map_assignment(p, "toulbar2").optimal
    True
    """

    vac: int = 0
    seconds: float | None = None

    name: ClassVar[str] = "toulbar2"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "toulbar2: exact, by branch and bound with soft arc consistency",
        accepts="any",
        proves="always",
        bound=True,
        needs="pytoulbar2",
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Hand the model over; offer the solution and the bound."""
        try:
            import pytoulbar2
        except ImportError:
            raise missing("pytoulbar2", self.name) from None
        model = LocalModel(search.potentials)
        climb(search, model, model.start(), 1000)
        if search.ended("branch and bound", 0, None):
            return
        n = search.potentials.graph.n_factors
        unit = max(2 * n / search.slack, 1.0)
        unit = 2.0 ** math.floor(math.log2(min(unit, LARGEST / (2 * search.scale))))
        with _ALONE, _signals_restored():
            network = _network(pytoulbar2, self.vac)
            top = _fill(network, search, unit)
            limit = max(search.left, SOON)
            _set_timer(network, limit)
            with _interrupted_like_the_timer():
                solved = network.Solve()
            complete, in_time = not network.Option.limited, _timer_is_running(limit)
            least = float(network.GetDDualBound())
        if solved is None and complete and in_time and search.score == -np.inf:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if solved is not None:
            search.offer(np.array(solved[0], np.int64))
        search.tighten(top - least / unit + n / (2 * unit) + search.error(TERMS))
        if in_time and not complete:
            raise KeyboardInterrupt
        search.ended("branch and bound", 1, None)


def _network(pytoulbar2: Any, vac: int) -> Any:
    """Return an empty network, with the options that a run which was stopped early leaves changed.

    toulbar2 switches hybrid best-first search off while it prepares a model, and depth-first search has no bound.
    """
    network = pytoulbar2.CFN(vac=vac)
    network.Option.hbfs, network.Option.limited = 1, False
    return network


def _fill(network: Any, search: Search, unit: float) -> float:
    """Add variables and cost functions; return the sum of the largest entries."""
    potentials, top = search.potentials, 0.0
    for i, card in enumerate(potentials.graph.cards.tolist()):
        network.AddVariable(f"x{i}", range(card))
    for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if not len(group):
            continue
        rows = tables.reshape(len(tables), -1)
        tops = rows.max(axis=1, initial=-np.inf)
        top += float(tops[ids].sum())
        if group.arity == 0:
            continue
        costs = np.rint(unit * (tops[:, None] - rows))
        for scope, row in zip(group.scopes.tolist(), ids.tolist(), strict=True):
            network.AddFunction(scope, costs[row].tolist())
    return top


@contextlib.contextmanager
def _interrupted_like_the_timer() -> Iterator[None]:
    """Let Ctrl-C end the search as its time limit does: Python's own handler would not run before the search ends."""
    if not hasattr(signal, "setitimer") or current_thread() is not main_thread():
        yield
        return
    set_handler = ctypes.CDLL(None).signal
    set_handler.restype, set_handler.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    stop = set_handler(signal.SIGVTALRM, None)  # None: what a signal does by default
    set_handler(signal.SIGVTALRM, stop)
    before = set_handler(signal.SIGINT, stop)
    try:
        yield
    finally:
        set_handler(signal.SIGINT, before)


def _set_timer(network: Any, limit: float) -> None:
    """Have toulbar2 end after so many seconds of the processor.

    It forgets a signal that comes before its search has begun, as while it reads a large model. So the signal is
    repeated.
    """
    network.CFN.timer(max(1, math.ceil(min(limit, LONGEST))))  # has the signal's handler
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_VIRTUAL, min(limit, LONGEST), _pause(limit))


def _timer_is_running(limit: float) -> bool:
    """Tell whether the signal is still to come; where there are no timers, nothing can be told."""
    return hasattr(signal, "setitimer") and signal.getitimer(signal.ITIMER_VIRTUAL)[0] > _pause(limit) + TICK


def _pause(limit: float) -> float:
    """Return the pause between two signals; the time to the first is longer."""
    return min(AGAIN, limit / 4)


@contextlib.contextmanager
def _signals_restored() -> Iterator[None]:
    """Stop toulbar2's timer, whose signal would end the process later, and give Ctrl-C back to Python."""
    timed = hasattr(signal, "setitimer")
    timer = signal.getitimer(signal.ITIMER_VIRTUAL) if timed else (0.0, 0.0)
    numbers = [signal.SIGINT, signal.SIGVTALRM] if timed else [signal.SIGINT]
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        yield
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, *timer)
        if current_thread() is main_thread():
            for number, handler in before.items():
                signal.signal(number, handler)
