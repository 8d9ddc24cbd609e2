"""Stochastic local search: simulated annealing, and iterated local search with random restarts.

Annealing (Kirkpatrick, Gelatt and Vecchi 1983; Geman and Geman 1984): sweeps of Gibbs sampling from p(x)^(1/T), while T
falls geometrically; then iterated conditional modes.

Iterated local search (Lourenco, Martin and Stuetzle 2003), here with two kinds of moves: the states of a small ball of
variables are redrawn, the ball climbs to a local maximum, and the result is kept unless it is worse; and random forests
of variables are maximised exactly (`kernels.numba.map.forest`).

Neither gives a bound. Both stop at their time limit, or if they have found no improvement for a while.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.inference.map.icm import climb, climb_trees, local_facts, starts_from
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.search import Search, table_size
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.typing import IntArray
from isinglass.validation import RandomState, generator, number, whole_number


@register
@dataclass(frozen=True, eq=False)
class Annealing(Solver):
    """Simulated annealing by Gibbs sampling at falling temperatures.

    Parameters
    ----------
    sweeps : int
        The number of sweeps over all variables in each run.
    hot, cold : float
        The first and the last temperature, relative to the mean size of a log table (its largest absolute entry).
    restarts : int
        The number of additional runs, each from a random assignment.
    random_state : int, Generator or None
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(5, 5, 2), [rng.normal(size=(25, 2)), rng.normal(size=(40, 2, 2))])
    >>> bool(abs(ig.map_assignment(p, "annealing").score - ig.map_assignment(p, "exact").score) < 1e-9)
    True
    """

    sweeps: int = 200
    hot: float = 3.0
    cold: float = 0.05
    restarts: int = 2
    random_state: RandomState = 0
    seconds: float | None = None

    name: ClassVar[str] = "annealing"
    facts: ClassVar[SolverFacts] = local_facts("simulated annealing: Gibbs sampling at falling temperatures")

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Anneal from every start."""
        restarts = whole_number(self.restarts, "restarts")
        model, rng = LocalModel(search.potentials), generator(self.random_state)
        for run, x in enumerate(starts_from(model.start(), restarts, search, rng)):
            search.offer(x)
            self.improve(search, model, x, rng, run, restarts + 1)

    def improve(
        self, search: Search, model: LocalModel, x: IntArray, rng: np.random.Generator, run: int = 0, runs: int = 1
    ) -> None:
        """Anneal one assignment, in place: one run of several."""
        sweeps = whole_number(self.sweeps, "sweeps", 1)
        hot, cold = number(self.hot, "hot", 0.0, np.inf), number(self.cold, "cold", 0.0, np.inf)
        if not 0 < cold <= hot:
            raise InputError("cold", f"a temperature above 0, at most hot = {hot:g}", f"{cold:g}")
        unit = table_size(search.potentials)
        for k, temperature in enumerate(np.geomspace(hot, cold, sweeps)):
            model.anneal(x, unit * float(temperature), rng)
            if search.ended("sweeps", run * sweeps + k + 1, runs * sweeps + 1):
                break
        climb(search, model, x, 1000)


@register
@dataclass(frozen=True, eq=False)
class IteratedLocalSearch(Solver):
    """Iterated local search: balls of variables are redrawn, random forests are maximised exactly.

    Parameters
    ----------
    size : int
        The number of variables of a ball.
    temperature : float
        The temperature at which the states of a ball are redrawn, relative to the mean size of a log table; a higher
        one makes larger changes.
    max_iter, patience : int
        The maximal number of rounds of a run; a run ends after `patience` rounds in a row without an improvement. A
        round has two balls for each variable, and three forests. With a time limit, `patience` decides when to restart.
    restarts : int
        The number of additional runs, each from a random assignment, within the time limit (if any).
    start : int array (variables,), optional
        The initial assignment; by default the best state of each variable under its unary factors.
    random_state : int, Generator or None
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(6, 6, 3), [rng.normal(size=(36, 3)), rng.normal(size=(60, 3, 3))])
    >>> bool(abs(ig.map_assignment(p, "ils").score - ig.map_assignment(p, "exact").score) < 1e-9)
    True
    """

    size: int = 25
    temperature: float = 1.0
    max_iter: int = 200
    patience: int = 10
    restarts: int = 0
    start: ArrayLike | None = None
    random_state: RandomState = 0
    seconds: float | None = None

    name: ClassVar[str] = "ils"
    facts: ClassVar[SolverFacts] = local_facts(
        "iterated local search: redrawn balls and exact forests of variables, with random restarts"
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Search from every start."""
        restarts = whole_number(self.restarts, "restarts")
        model, rng = LocalModel(search.potentials), generator(self.random_state)
        first = model.start() if self.start is None else reduction.restrict(self.start)
        for x in starts_from(first, restarts, search, rng):
            self.improve(search, model, x, rng)

    def improve(self, search: Search, model: LocalModel, x: IntArray, rng: np.random.Generator) -> None:
        """Search from one assignment, in place."""
        size, most = whole_number(self.size, "size", 1), whole_number(self.max_iter, "max_iter", 1)
        patience = whole_number(self.patience, "patience", 1)
        temperature = table_size(search.potentials) * number(self.temperature, "temperature", 1e-9, np.inf)
        climb(search, model, x, 1000)
        score, idle = float(search.potentials.log_score(x)), 0
        for k in range(most):
            if search.left <= 0:
                search.stopped = "seconds"
                return
            for _ in range(_pieces(model.n)):
                model.perturb(x, min(2 * model.n, 2000), size, temperature, rng)
                if search.left <= 0:
                    break
            if np.isfinite(search.potentials.log_score(x)):
                climb_trees(search, model, x, 3, 3, rng)
            value = float(search.potentials.log_score(x))
            search.offer(x, value)
            idle = 0 if value > score + search.slack else idle + 1
            score = max(score, value)
            if idle >= patience or search.ended("rounds", k + 1, most):
                return


def _pieces(n: int) -> int:
    """Return how many calls of some 2000 balls are a round; Ctrl-C is heard, and the clock read, between them."""
    return max(1, 2 * n // 2000)
