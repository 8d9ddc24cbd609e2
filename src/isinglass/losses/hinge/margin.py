"""Structured hinge losses with margin rescaling (Murphy 2012, section 19.7).

With s(x) = sum_a phi_a(x_a), the cost Delta of wrong labels (`losses.costs`), and y the labels:

    margin       L  =  max_x [Delta(x, y) + s(x)] - s(y)              margin rescaling (eq. 19.92-19.94, 19.107)
    perceptron   L  =  max_x s(x) - s(y)                              (Collins 2002)

Both are convex in phi. The margin loss is an upper bound on the cost of the most probable assignment.

With log Z in place of max_x s(x) the perceptron loss would be the likelihood. It is the likelihood with maxima for
sums, "Viterbi" or MAP-based training, and so it has the name "viterbi", too.

The maximum is found by any algorithm or solver that `map_assignment` takes. An inexact one may miss the best x: it is
under-generating. With ``relaxed=True`` the maximum is over the local polytope instead, by linear programming: that is
over-generating, convex, and has a maximum with a proof on any graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import memory_remedy, require
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.map.augmented import with_costs
from isinglass.inference.map.solver import Solver
from isinglass.losses.costs import HAMMING, Costs
from isinglass.losses.hinge.f1 import f1_costs, with_counters
from isinglass.losses.hinge.hinge import HingeLoss
from isinglass.losses.hinge.relaxation import relaxed_violation
from isinglass.losses.hinge.violations import Assigned, Violation, best_assignment, component_costs, info_of
from isinglass.losses.loss import LossFacts, register
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import flag


class _MarginHinge(HingeLoss):
    """Margin rescaling, with costs or without."""

    def violation(self, potentials: Potentials, labels: IntArray, right: IntArray, costs: Costs) -> Violation:
        """Maximise the score with its cost."""
        graph = potentials.graph
        if self.by_counts:
            larger = with_counters(potentials, labels)
        else:
            larger = potentials if self.cost is None else with_costs(potentials, costs.states)
        with memory_remedy("as a loss, ig.losses.Margin(solver='trws') or Margin(relaxed=True) does not need as much"):
            best = best_assignment(larger, self.solver)
        info, states = info_of(best, self.solver), best.states[: graph.n_variables]
        plain = component_costs(graph, costs.states, states)
        paid = f1_costs(graph, labels, states) if self.by_counts else plain
        return Assigned(states, paid, np.ones(graph.n_components), (info,))


@register
@dataclass(frozen=True, eq=False)
class Margin(_MarginHinge):
    """The structured hinge with margin rescaling: ``"margin"``.

    Parameters
    ----------
    cost : {"hamming", "f1"}, array (states,) or array (states, states)
        "hamming": the number of wrong labels. A vector: what a wrong label costs, by the right one (weighted Hamming).
        A table: what a state costs given the label, (label, state); not negative, and zero for the label itself. "f1":
        one less the F1 score of an example's labels 1 among 0 and 1.
    solver : str, Algorithm or Solver
        What finds the best assignment: "exact", or any that `map_assignment` takes.
    relaxed : bool
        Maximise over the local polytope, by linear programming, and leave `solver` to hidden labels.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 0.0], [0.0, 1.5]]])
    >>> Margin().evaluate(ig.losses.LossProblem(p, np.array([0, 0])), None).value.tolist()
    [0.5]
    """

    cost: str | ArrayLike = HAMMING
    solver: str | Algorithm | Solver = "exact"
    relaxed: bool = False

    name: ClassVar[str] = "margin"
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x [cost(x, y) + s(x)] - s(y)",
        convex=True,
        consistent=False,
        uses="potentials",
        note="has kinks; a bound on the cost of the most probable assignment; not convex where labels are hidden",
        completes=True,
        nonnegative=True,
        optimizer="cutting-plane",
    )

    def violation(self, potentials: Potentials, labels: IntArray, right: IntArray, costs: Costs) -> Violation:
        """Maximise the score with its cost, over assignments or over the local polytope."""
        if not flag(self.relaxed, "relaxed"):
            return super().violation(potentials, labels, right, costs)
        require(not self.by_counts, "cost", "a sum over variables, where relaxed=True", repr(self.cost))
        return relaxed_violation(potentials, costs.states)


@register
@dataclass(frozen=True, eq=False)
class Perceptron(_MarginHinge):
    """How far the most probable assignment outscores the labels: ``"perceptron"``.

    Zero parameters minimise it, so it is for the averaged perceptron, or where it only has to be small.

    Parameters
    ----------
    solver : str, Algorithm or Solver
        What finds the best assignment.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 0.0], [0.0, 4.5]]])
    >>> Perceptron().evaluate(ig.losses.LossProblem(p, np.array([0, 0])), None).value.tolist()
    [1.5]
    """

    solver: str | Algorithm | Solver = "exact"

    name: ClassVar[str] = "perceptron"
    cost: ClassVar[None] = None  # type: ignore[misc]
    facts: ClassVar[LossFacts] = LossFacts(
        "max_x s(x) - s(y)",
        convex=True,
        consistent=False,
        uses="potentials",
        note="has kinks, and is least at zero parameters; not convex where labels are hidden",
        completes=True,
        nonnegative=True,
        optimizer="averaged-perceptron",
    )


@register
@dataclass(frozen=True, eq=False)
class Viterbi(Perceptron):
    """The likelihood with maxima in place of sums, -log of max-product "probabilities": ``"viterbi"``.

    The same function as the perceptron loss; hidden labels are completed by their best states.

    Parameters
    ----------
    solver : str, Algorithm or Solver
        What finds the best assignment.
    """

    name: ClassVar[str] = "viterbi"
