"""Methods that are losses of conditional random fields too, without inputs: summed over samples, by their weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.learning.markov.local.pairwise import PairwiseScores
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task, total
from isinglass.learning.markov.samples import Copies
from isinglass.losses import (
    Evaluation,
    Loss,
    LossProblem,
    MinimumProbabilityFlow,
    Piecewise,
)
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property


class LossObjective(MarkovObjective):
    """A loss, summed over copies of the graph, one for each sample."""

    def __init__(self, task: Task, loss: Loss) -> None:
        super().__init__(task)
        self.loss = loss

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the sum over all samples."""
        copies = self.copies
        problem = LossProblem(copies.potentials(potentials), copies.labels, copies.variable_weights)
        found = self.loss.evaluate(problem, self.task.rule.differentiate(self.task.algorithm))
        return total(found.value, found.groups, found.infos)

    @cached_property
    def copies(self) -> Copies:
        """A copy of the graph for each sample."""
        return Copies(self.model, self.samples)


class FlowObjective(LossObjective):
    """The flow out of the samples; in large pairwise models by products of matrices."""

    def __init__(self, task: Task) -> None:
        super().__init__(task, MinimumProbabilityFlow())
        self.pairwise = PairwiseScores.of(task)

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the sum over all samples."""
        if self.pairwise is not None:
            return self.pairwise.evaluate(potentials, MinimumProbabilityFlow().terms)
        return super().evaluate(potentials)


@register
@dataclass(frozen=True)
class PiecewiseTraining(Method):
    """Piecewise training, every factor by itself: ``"piecewise"``."""

    name: ClassVar[str] = "piecewise"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "sum_a (log sum exp phi_a - phi_a(x_a))",
        consistent=False,
        convex=True,
        log_z=False,
        virtual=False,
        note="the fastest; factors that share variables count them twice",
    )

    @property
    def loss(self) -> Loss:
        """The loss of one sample."""
        return Piecewise()

    def objective(self, task: Task) -> LossObjective:
        """Return the sum over all factors."""
        return LossObjective(task, Piecewise())


@register
@dataclass(frozen=True)
class Flow(Method):
    """Minimum probability flow: ``"mpf"``."""

    name: ClassVar[str] = "mpf"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "sum_n w_n sum_i sum_{x != x_ni} exp((s_i(x) - s_i(x_ni)) / 2)",
        consistent=True,
        convex=True,
        log_z=False,
        virtual=False,
        note="needs no inference; sensitive to outliers",
    )

    @property
    def loss(self) -> Loss:
        """The loss of one sample."""
        return MinimumProbabilityFlow()

    def objective(self, task: Task) -> FlowObjective:
        """Return the flow out of the samples."""
        return FlowObjective(task)
