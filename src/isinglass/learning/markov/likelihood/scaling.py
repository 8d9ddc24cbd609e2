"""Iterative scaling: generalised (Darroch and Ratcliff 1972) and improved (Della Pietra et al. 1997).

For log-linear models p(x) ~ exp(sum_j theta_j f_j(x)) with features f_j >= 0 and their sum f#(x) <= C, all parameters
move at once,

    GIS   theta_j += log( E~[f_j] / E[f_j] ) / C
    IIS   theta_j += d_j,        E[f_j exp(d_j f#)] = E~[f_j],

E~ over the samples and E over the model. Neither lowers the likelihood, and both end at its maximum. Features that can
be negative are shifted by their least possible value, which changes nothing but a constant. A model of tables has the
indicators of their entries as features; then f# is the number of factors, and the two are the same.

The expectation with d_j is that of a model whose parameters are all larger by d_j:

    E[f_j exp(d f#)] = Z(theta + d) / Z(theta) E_(theta + d)[f_j],

one copy of the graph for each feature, side by side; Newton's method finds d_j, with derivatives by a complex step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import infer
from isinglass.learning.markov.likelihood.maximum import LikelihoodObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, Task
from isinglass.potentials import Potentials, sum_tables
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray

KINDS = ("gis", "iis")
STEP = 1e-20  # of the complex step
NEWTON = 20  # the most steps for one improved update
MOST_FEATURES = 1000  # of improved scaling, which has a copy of the graph for each


class ScalingObjective(LikelihoodObjective):
    """The likelihood, with a step of iterative scaling as its update.

    Parameters
    ----------
    task : Task
    kind : "gis" or "iis"
    """

    def __init__(self, task: Task, kind: str) -> None:
        super().__init__(task)
        self.kind = kind
        self.zeros = self.unseen()
        self.target = np.asarray(self.model.transpose(self.seen), np.float64) / self.weight - self.least
        if not self.model.is_table_model and (self.target <= 1e-12 * np.abs(self.least + 1)).any():
            j = int(np.argmin(self.target))
            got = f"parameter {j}, whose feature has its least value in all of them"
            raise InputError("X", "samples that show every feature", got, "use a prior, or method='ml' with l2")

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the parameters after one step."""
        now = self.expectations(self.potentials(theta)) - self.least
        free = self.target > 0
        step = np.zeros_like(theta)
        step[free] = np.log(self.target[free] / now[free]) / self.bound
        if self.kind == "iis" and not self.model.is_table_model:
            step = self._improved(theta, step)
        return theta + step

    def expectations(self, potentials: Potentials) -> FloatArray:
        """Return the expectation of each feature under the model."""
        one = self.log_z(potentials, np.ones(self.model.graph.n_components))
        return np.asarray(self.model.transpose(one.groups), np.float64)

    @cached_property
    def least(self) -> FloatArray:
        """A lower bound of each feature: what it is at least at each factor, summed."""
        if self.model.is_table_model:
            return np.zeros(self.model.size)
        found = np.zeros(self.model.size)
        for j, unit in enumerate(np.eye(self.model.size)):
            found[j] = sum(table.min() for table in self._features(unit).log_tables)
        return found

    @cached_property
    def bound(self) -> float:
        """An upper bound C of the sum of all shifted features."""
        return float(sum(table.max() for table in self.together.log_tables) - self.least.sum())

    @cached_property
    def together(self) -> Potentials:
        """The tables of f#, the sum of all features."""
        return self._features(np.ones(self.model.size))

    @cached_property
    def copies(self) -> FactorGraph:
        """A copy of the graph for each feature."""
        return self.model.graph.repeat(self.model.size)

    def _features(self, theta: FloatArray) -> Potentials:
        """Return the tables of features, as the potentials less their constant."""
        constant = self.model.potentials(np.zeros(self.model.size))
        found = self.model.potentials(theta)
        pairs = zip(found.groups, constant.groups, strict=True)
        groups = [np.where(np.isfinite(c), t - np.where(np.isfinite(c), c, 0.0), 0.0) for t, c in pairs]
        return Potentials._build(found.graph, groups, found.table_ids, {})

    def _improved(self, theta: FloatArray, start: FloatArray) -> FloatArray:
        """Solve for the steps of improved scaling by Newton's method, from those of generalised scaling.

        The logarithm of the left side is convex in d_j and grows, so that from the first point beyond the solution on
        Newton's method falls towards it.
        """
        base, step = float(infer(self.potentials(theta), self.task.algorithm).log_z), start
        for _ in range(NEWTON):
            value = self._tilted(theta, step + 1j * STEP) - base
            miss = value.real - np.log(self.target)
            if np.abs(miss).max() < 1e-11:
                break
            step = step - miss / (value.imag / STEP)
        return step

    def _tilted(self, theta: FloatArray, steps: Array) -> Array:
        """Return log Z(theta) + log E[f_j exp(d_j f#)] for each feature."""
        n, one = len(steps), self.potentials(theta)
        groups = [
            (tables + steps.reshape(n, *(1,) * tables.ndim) * sums).reshape(n * len(tables), *tables.shape[1:])
            for tables, sums in zip(one.groups, self.together.groups, strict=True)
        ]
        pairs = zip(one.groups, one.table_ids, strict=True)
        ids = [np.concatenate([k * len(tables) + which for k in range(n)]) for tables, which in pairs]
        copies = Potentials._build(self.copies, groups, ids, {})
        found = infer(copies, self.task.algorithm)
        counts = sum_tables(copies, found.factors.groups)
        log_z = found.component_log_z.reshape(n, -1).sum(axis=1)
        expected = np.array([self._one(counts, j, n) for j in range(n)]) - self.least
        return np.asarray(log_z - steps * self.least.sum() + np.log(expected))

    def _one(self, counts: Groups, j: int, n: int) -> complex:
        """Return the expectation of feature j in copy j."""
        mine = [c.reshape(n, len(c) // n, *c.shape[1:])[j] for c in counts]
        return complex(self.model.transpose(mine)[j])


@register
@dataclass(frozen=True)
class IterativeScaling(Method):
    """Iterative scaling: ``"scaling"``.

    Parameters
    ----------
    kind : "gis" or "iis", default="gis"
        Generalised, or improved. Improved scaling takes fewer steps, and much longer for each; a model of tables has no
        use for it.
    """

    kind: Literal["gis", "iis"] = "gis"

    name: ClassVar[str] = "scaling"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "theta_j += log(E~[f_j] / E[f_j]) / C",
        consistent=True,
        convex=True,
        penalised=False,
        likelihood=True,
        update=True,
        note="exact, for any features; slow: 'ml' takes far fewer inferences",
    )

    def check(self, task: Task) -> None:
        """Check the kind, and the number of features of improved scaling."""
        super().check(task)
        if self.kind not in KINDS:
            raise InputError("method.kind", " or ".join(map(repr, KINDS)), repr(self.kind))
        large = task.model.size > MOST_FEATURES and not task.model.is_table_model
        if self.kind == "iis" and large:
            expected = f"'gis' for more than {MOST_FEATURES} features"
            raise InputError("method.kind", expected, f"'iis' for {task.model.size}")

    def objective(self, task: Task) -> ScalingObjective:
        """Return the likelihood, with its steps."""
        return ScalingObjective(task, self.kind)
