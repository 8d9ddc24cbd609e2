"""Dual decomposition on any factor graph: the optimum of the local relaxation, by descent on a smoothed bound.

The bound D(m) of `kernels.numba.map.reparameterise` is convex in the messages but has kinks, at which descent by blocks
(TRW-S) may stop above the minimum. With maxima replaced by T log sum exp(. / T) the bound is smooth,

    D(m)  <=  D_T(m)  <=  D(m) + T (sum_i log k_i + sum_a log |x_a|)

and exact minimisation over the messages into one variable after the other converges to its minimum (Meltzer, Globerson
and Weiss 2009; Hazan and Shashua 2010). So rounds alternate: smoothed sweeps at temperature T leave the kinks, TRW-S
sweeps then lower D itself, and T is halved. Every m proves the bound D(m), whatever led to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.inference.map.reduction import Reduction
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.map.relaxations.trws import descend
from isinglass.inference.map.search import Search, table_size
from isinglass.inference.map.solver import Solver, SolverFacts, register
from isinglass.validation import number, whole_number

SMOOTH, SHARP = 60, 20  # sweeps of a round: of the smoothed bound, and of TRW-S
WARM = 0.005  # the first temperature, relative to the mean size of a table


@register
@dataclass(frozen=True)
class DualDecomposition(Solver):
    """Dual decomposition: the bound of the local relaxation, and assignments decoded from it.

    It starts from the result of TRW-S and is slower. Its bound is lower if TRW-S stops above the optimum.

    Parameters
    ----------
    max_iter : int
        The maximal number of rounds of smoothed and of exact sweeps.
    tol : float
        Stop when a round lowers the best bound by no more than ``tol * (1 + |bound|)``.
    seconds : float, optional
        Time limit.

    Examples
    --------
    >>> import isinglass as ig
    >>> rng = np.random.default_rng(0)
    >>> p = ig.Potentials.from_groups(ig.grid_graph(8, 8, 3), [rng.normal(size=(64, 3)), rng.normal(size=(112, 3, 3))])
    >>> dual, trws, lp = (ig.map_assignment(p, name).bound for name in ("dual", "trws", "lp"))
    >>> bool(lp - 1e-6 <= dual <= trws), bool(dual < lp + 0.01)
    (True, True)
    """

    max_iter: int = 20
    tol: float = 1e-7
    seconds: float | None = None

    name: ClassVar[str] = "dual"
    facts: ClassVar[SolverFacts] = SolverFacts(
        "dual decomposition: the bound of the local relaxation, by smoothed and sharp sweeps",
        accepts="any",
        proves="sometimes",
        bound=True,
    )

    def solve(self, search: Search, reduction: Reduction) -> None:
        """Run TRW-S, then rounds at falling temperatures."""
        most, tol = whole_number(self.max_iter, "max_iter", 1), number(self.tol, "tol", 0.0, np.inf)
        model = Reparameterisation(search.potentials)
        descend(search, model, 200, 10, 1e-6)
        temperature = WARM * table_size(search.potentials)
        idle = 0
        for k in range(1, most + 1):
            if search.ended("rounds", k, most + 1):
                break
            before = search.bound
            _round(search, model, temperature)
            temperature *= 0.5
            idle = idle + 1 if before - search.bound <= tol * (1 + abs(search.bound)) else 0
            if idle == 3:  # the first rounds may be too warm to gain anything
                break


def _round(search: Search, model: Reparameterisation, temperature: float) -> None:
    """Sweep on the smoothed bound, then on the bound itself; offer what comes out."""
    for k in range(SMOOTH + SHARP):
        if search.left <= 0:
            break
        if k < SMOOTH:
            model.star_sweep(temperature)
        else:
            model.sweep()
    model.offer(search)
