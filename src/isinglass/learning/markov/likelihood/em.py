"""Expectation maximisation for missing values and hidden variables (Murphy 2012, section 19.5.2; Dempster et al. 1977).

    E   n_a(x_a) = sum_n w_n p(x_a | x_n; theta)         expected counts, given what each sample shows
    M   raise  Q(theta) = sum_a n_a . phi_a(theta) - N log Z(theta)

The M step need not find the maximum of Q: any step that raises it raises the likelihood (generalised EM). With a table
for each factor it is a sweep of proportional fitting, which on chordal graphs is the maximum; otherwise a few steps of
L-BFGS. At a fixed point the gradient of the likelihood is zero.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.markov.likelihood.ipf import Sweeps
from isinglass.learning.markov.likelihood.maximum import LikelihoodObjective, away_from_symmetry
from isinglass.learning.markov.likelihood.tables import margins_of
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import Evaluation
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray
from isinglass.validation import whole_number


class ExpectationObjective(LikelihoodObjective):
    """The likelihood, with a step of expectation maximisation as its update.

    Parameters
    ----------
    task : Task
    steps : int
        Of the optimizer in an M step, where that is no sweep of proportional fitting.
    """

    def __init__(self, task: Task, steps: int) -> None:
        super().__init__(task)
        self.steps = steps
        if self.by_sweeps:
            start = self.expected(np.zeros(self.model.size))
            self.zeros = margins_of(task, start, self.weight, "em").zeros()  # what no sample allows stays impossible

    @property
    def by_sweeps(self) -> bool:
        """Whether the M step is a sweep of proportional fitting."""
        return self.model.is_table_model and not np.any(self.l2)

    def expected(self, theta: FloatArray) -> Groups:
        """Return the expected counts of all table entries, given what the samples show."""
        if self.partial is None:
            return self.seen
        found = self.log_z(self.clamped(self.potentials(theta)), self.partial.component_weights)
        return tuple(a + b for a, b in zip(self.seen, found.groups, strict=True))

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the parameters after an E and an M step."""
        counts = self.expected(theta)
        if self.by_sweeps:
            targets = margins_of(self.task, counts, self.weight, "em").targets
            return self.sweeps(theta, self.potentials(theta), targets)
        return Lbfgs(tol=1e-13, ftol=0.0, max_iter=self.steps).minimise(_Completed(self.task, counts), theta).x

    @cached_property
    def sweeps(self) -> Sweeps:
        """Sweeps of proportional fitting, with their junction tree."""
        return Sweeps(self.model, margins_of(self.task, self.seen, self.weight, "em"))


class _Completed(LikelihoodObjective):
    """Minus Q: the likelihood of counts that are given."""

    def __init__(self, task: Task, counts: Groups) -> None:
        super().__init__(task)
        self.counts = counts

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return log Z for all samples, less the score of the counts."""
        return self.complete(potentials, self.counts)


@register
@dataclass(frozen=True)
class ExpectationMaximisation(Method):
    """Generalised expectation maximisation: ``"em"``.

    Parameters
    ----------
    steps : int, default=5
        Of L-BFGS in an M step, where the model has features or tied tables, or a penalty.
    random_state : int, default=0
        Seed of the small random parameters at the start, where a variable is never observed.
    """

    steps: int = 5
    random_state: int = 0

    name: ClassVar[str] = "em"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "E: n = E[counts | x; theta], M: raise n . phi - N log Z",
        consistent=True,
        missing=True,
        likelihood=True,
        update=True,
        note="the likelihood never falls; a local maximum where values are missing",
    )

    def check(self, task: Task) -> None:
        """Check the options."""
        super().check(task)
        whole_number(self.steps, "method.steps", 1)
        whole_number(self.random_state, "method.random_state")

    def objective(self, task: Task) -> ExpectationObjective:
        """Return the likelihood, with its steps."""
        return ExpectationObjective(task, self.steps)

    def start(self, objective: MarkovObjective, theta: FloatArray) -> FloatArray:
        """Leave the saddle point at zero, where variables are hidden."""
        return away_from_symmetry(objective, theta, self.random_state)
