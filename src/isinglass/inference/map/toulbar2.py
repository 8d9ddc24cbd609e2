"""Exact maximisation by toulbar2 (Allouche et al. 2015): branch and bound with soft arc consistency.

toulbar2 minimises sums of integers. With t_a the largest entry of phi_a, the cost of an entry is

    c_a(x_a)  =  round(S (t_a - phi_a(x_a)))             forbidden where phi_a is -inf

so that every score differs from sum_a t_a - c / S by at most half a unit for each factor, and a lower bound c on the
costs proves the score bound  sum_a t_a - c / S + (number of factors) / (2 S). S is chosen so large that the last term
is below the rounding of a score, as far as 64-bit integers allow.
"""

from __future__ import annotations

import ctypes
import math
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar

import numpy as np

from isinglass.errors import ImpossibleEvidenceError, MissingDependencyError
from isinglass.inference.assignment import TERMS
from isinglass.inference.evidence import impossible
from isinglass.inference.map.icm import climb
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search, scale_of
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.potentials import Potentials

LARGEST = 1e16  # the most that the costs of an assignment may add up to
SHORTEST, LONGEST = 1e-3, 1e8  # seconds: the shortest limit, and what counts as none
AGAIN, TICK = 0.1, 0.01  # seconds: the longest pause between two signals, and more than the rounding of a timer

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
            remedy = "pip install 'isinglass[toulbar2]', or pip install pytoulbar2"
            raise MissingDependencyError(f"'toulbar2' needs pytoulbar2, which is not installed: {remedy}") from None
        model = LocalModel(search.potentials)
        climb(search, model, model.start(), 1000)
        if search.ended("branch and bound", 0, None):
            return
        small, top = search.narrowed()
        n = small.graph.n_factors
        unit = min(max(2 * n / search.slack, 1.0), LARGEST / (2 * scale_of(small)))
        unit = 2.0 ** math.floor(math.log2(unit))
        limit = min(max(search.left, SHORTEST), LONGEST)
        limit = min(max(search.left, SHORTEST), LONGEST)
        with _ALONE, _signals(limit) as (start, in_time):
            network = pytoulbar2.CFN(vac=self.vac)
            network.Option.hbfs, network.Option.limited = 1, False  # a run that was stopped leaves them changed
            _fill(network, small, unit)
            start(network)
            solved = network.Solve()
            soon, complete = in_time(), not network.Option.limited
            least = float(network.GetDDualBound())
        if solved is None and complete and soon and search.score == -np.inf:
            raise ImpossibleEvidenceError(impossible(reduction.whole))
        if solved is not None:
            search.offer(np.array(solved[0], np.int64))
        search.tighten(top - least / unit + n / (2 * unit) + search.error(TERMS))
        if soon and not complete:
            raise KeyboardInterrupt
        search.ended("branch and bound", 1, None)


def _fill(network: Any, centred: Potentials, unit: float) -> None:
    """Add variables and cost functions."""
    for i, card in enumerate(centred.graph.cards.tolist()):
        network.AddVariable(f"x{i}", range(card))
    for group, tables, ids in zip(centred.graph.groups, centred.groups, centred.table_ids, strict=True):
        costs = np.rint(-unit * tables.reshape(len(tables), group.table_size))
        for scope, row in zip(group.scopes.tolist(), ids.tolist(), strict=True):
            if scope:
                network.AddFunction(scope, costs[row].tolist())


@contextmanager
def _signals(limit: float) -> Iterator[tuple[Callable[[Any], None], Callable[[], bool]]]:
    """Yield what lets a timer and Ctrl-C end a search, and what tells whether time is left; restore both at the end.

    Python's handlers do not run before the search ends, so toulbar2's own takes both signals. The timer repeats its
    signal, because toulbar2 forgets one that comes while it prepares the model. A later one would end the process.
    """
    timed, pause = hasattr(signal, "setitimer"), min(AGAIN, limit / 4)
    get, put = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype, get.argtypes = ctypes.c_void_p, (ctypes.c_int,)
    put.restype, put.argtypes = ctypes.c_void_p, (ctypes.c_int, ctypes.c_void_p)
    before = {number: get(number) for number in ((signal.SIGINT, signal.SIGVTALRM) if timed else (signal.SIGINT,))}

    def start(network: Any) -> None:
        network.CFN.timer(math.ceil(limit))
        if timed:
            put(signal.SIGINT, get(signal.SIGVTALRM))
            signal.setitimer(signal.ITIMER_VIRTUAL, limit, pause)

    try:
        yield start, lambda: timed and signal.getitimer(signal.ITIMER_VIRTUAL)[0] > pause + TICK
    finally:
        if timed:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        for number, handler in before.items():
            put(number, handler)
