"""The structured hinge with slack rescaling (Murphy 2012, eq. 19.99; Tsochantaridis et al. 2005).

    L  =  max_x Delta(x, y) (1 + s(x) - s(y))

A convex function of phi, and a bound on the cost of the most probable assignment. Unlike margin rescaling it asks for
the same margin, 1, of all labelings: what is far from right and scores low does not count.

The product is no sum, so the maximum is searched for (`multipliers`): by loss-augmented decoding with costs times a
multiplier, and then, where the solver lists the best assignments ("exact", "brute"), by its n best. The search ends
with a bound on the largest product; where the two meet, the loss is exact, else `info` says that it is a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states
from isinglass.inference.algorithm import ALGORITHMS, Algorithm
from isinglass.inference.api import n_best
from isinglass.inference.assignment import require_decided
from isinglass.inference.map.augmented import with_costs
from isinglass.inference.map.reduction import reduced
from isinglass.inference.map.solver import Solver
from isinglass.inference.result import Info
from isinglass.losses.costs import HAMMING, Costs, additive
from isinglass.losses.hinge.hinge import HingeLoss
from isinglass.losses.hinge.multipliers import Decoded, Products
from isinglass.losses.hinge.violations import (
    UNDER,
    Assigned,
    Violation,
    best_assignment,
    component_costs,
    component_scores,
    right_scores,
)
from isinglass.losses.loss import LossFacts, LossProblem, register
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import whole_number


@register
@dataclass(frozen=True, eq=False)
class Slack(HingeLoss):
    """The structured hinge with slack rescaling: ``"slack"``.

    Parameters
    ----------
    cost : "hamming", array (states,) or array (states, states)
        As for `Margin`; "f1" is none of them.
    solver : str, Algorithm or Solver
        What decodes with multiples of the cost; "exact" and "brute" also list the best.
    n_best : int
        The longest list of best assignments that is looked at; a search that needs more is under-generating.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 2.5], [0.0, 1.5]]])
    >>> Slack().evaluate(ig.losses.LossProblem(p, np.array([0, 0])), None).value.tolist()
    [0.5]
    """

    cost: str | ArrayLike = HAMMING
    solver: str | Algorithm | Solver = "exact"
    n_best: int = 512

    name: ClassVar[str] = "slack"
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x cost(x, y) (1 + s(x) - s(y))",
        convex=True,
        consistent=False,
        uses="potentials",
        note="has kinks; a bound on the cost of the most probable assignment; not convex where labels are hidden",
        completes=True,
        nonnegative=True,
        optimizer="cutting-plane",
    )

    @property
    def by_slack(self) -> bool:
        """Yes."""
        return True

    def violation(self, potentials: Potentials, labels: IntArray, right: IntArray, costs: Costs) -> Violation:
        """Search for the largest product of cost and margin."""
        most = whole_number(self.n_best, "n_best", 1)
        decoder = _Decoder(potentials, right, costs.states, self.solver)
        search = Products(potentials.graph.variable_component, right.copy(), decoder.top, decoder.whole)
        search.search(decoder)
        if decoder.lists:
            search.refine(decoder.best, most)
        proved = not search.open.any()
        gap = float(np.max(search.bounds - search.values, initial=0.0))
        name = self.solver if isinstance(self.solver, str) else self.solver.name
        info = Info(
            name, proved, len(search.slopes), gap, "exact" if proved else "lower", 0.0, note="" if proved else UNDER
        )  # fmt: skip
        return Assigned(search.states, search.costs, search.costs, (info,))

    def costs(self, graph: FactorGraph, problem: LossProblem) -> Costs:
        """Return the weights of examples, and what wrong labels cost; refuse costs that are no sums."""
        additive(self.cost)
        return super().costs(graph, problem)


class _Decoder:
    """Loss-augmented decoding of a batch, with a multiplier of the costs for each component."""

    def __init__(
        self, potentials: Potentials, right: IntArray, costs: FloatArray, solver: str | Algorithm | Solver
    ) -> None:
        graph = potentials.graph
        self.potentials, self.right, self.costs, self.solver = potentials, right, costs, solver
        self.offset = 1.0 - right_scores(potentials, right)
        first = first_states(graph)[:-1]
        largest = np.maximum.reduceat(costs, first) if len(first) else np.zeros(0)
        self.top = sum_at(graph.variable_component, largest, graph.n_components).real
        self.whole = bool((costs == np.rint(costs)).all())
        self.owner = np.repeat(graph.variable_component, graph.cards)

    def __call__(self, multipliers: FloatArray) -> Decoded:
        """Return the best assignment of each component."""
        found = best_assignment(with_costs(self.potentials, multipliers[self.owner] * self.costs), self.solver)
        require_decided(found)
        margins, costs = self._measured(found.states)
        if found.score == -np.inf:  # nothing that hard zeros allow was found: the right labels stay, and no bound
            return Decoded(self.right, np.ones_like(margins), np.zeros_like(costs), np.full(len(margins), np.inf))
        missed = 0.0 if found.optimal else max(found.bound - found.score, 0.0)
        return Decoded(found.states, margins, costs, margins + multipliers * costs + missed)

    @property
    def lists(self) -> bool:
        """Whether the solver finds the n best."""
        if isinstance(self.solver, str):
            return self.solver in ALGORITHMS and ALGORITHMS[self.solver].facts.maximises == "many"
        return isinstance(self.solver, Algorithm) and self.solver.facts.maximises == "many"

    def best(self, c: int, multiplier: float, n: int) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return the n best of one component, their margins and their costs; the others keep their labels."""
        graph = self.potentials.graph
        mine = np.flatnonzero(graph.variable_component == c)
        others = np.flatnonzero(graph.variable_component != c)
        known = dict(zip(others.tolist(), self.right[others].tolist(), strict=True))
        small = reduced(with_costs(self.potentials, multiplier * self.costs).with_evidence(known))
        found = [small.lift(one.states) for one in n_best(small.potentials, n, self.solver)]
        margins, costs = np.array([[part[c] for part in self._measured(states)] for states in found]).T
        return np.array([states[mine] for states in found]), margins, costs

    def _measured(self, states: IntArray) -> tuple[FloatArray, FloatArray]:
        scores = self.offset + component_scores(self.potentials, states)
        return scores, component_costs(self.potentials.graph, self.costs, states)
