"""Sequential tree-reweighted message passing (Kolmogorov 2006), for factors of any arity (Kolmogorov 2015).

The bound D(m) of `kernels.numba.map.reparameterise` never rises: each step is block-coordinate descent on it. At a
fixed point of the sequence it is a local optimum of the relaxation, not always its minimum. Assignments are decoded
from the messages one variable after the other, and improved by iterated conditional modes. On a tree, bound and score
meet after one iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.map.search import Search
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.validation import number, whole_number


@register
@dataclass(frozen=True)
class TRWS(Solver):
    """Sequential tree-reweighted message passing: an upper bound that never rises, and assignments decoded from it.

    Parameters
    ----------
    max_iter : int
        The maximal number of iterations, each a forward and a backward pass.
    tol : float
        Stop when ten iterations lower the bound by no more than ``tol * (1 + |bound|)``.
    every : int
        The number of iterations between computations of the bound and of an assignment.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> g = ig.grid_graph(20, 20, 3)
    >>> p = ig.Potentials.from_groups(g, [rng.normal(size=(400, 3)), 0.3 * np.eye(3)[None]])
    >>> m = ig.map_assignment(p, "trws")
    >>> m.optimal, round(m.bound - m.score, 6)
    (True, 0.0)
    """

    max_iter: int = 1000
    tol: float = 1e-7
    every: int = 5
    seconds: float | None = None

    name: ClassVar[str] = "trws"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "sequential tree-reweighted message passing: a bound that never rises, exact on trees",
        accepts="any",
        proves="sometimes",
        bound=True,
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Sweep; compute the bound and decode every few iterations."""
        most, every = whole_number(self.max_iter, "max_iter", 1), whole_number(self.every, "every", 1)
        descend(search, Reparameterisation(search.potentials), most, every, number(self.tol, "tol", 0.0, np.inf))


def descend(search: Search, model: Reparameterisation, most: int, every: int, tol: float) -> None:
    """Sweep until the bound meets the score, or no longer falls, or the search is over."""
    model.offer(search)
    earlier, since = search.bound, 0
    for k in range(1, most + 1):
        model.sweep()
        if k == 1 or k % every == 0:
            model.offer(search)
        if search.ended("iterations", k, most):
            break
        if k >= since + 10 and (k % every == 0):
            if earlier - search.bound <= tol * (1 + abs(search.bound)):
                break
            earlier, since = search.bound, k
    if k % every:
        model.offer(search)
    search.did.append(f"{k} iterations of TRW-S")
