"""Iterative proportional fitting (Murphy 2012, algorithm 19.2; Deming and Stephan 1940; Fienberg 1970).

For each maximal scope c in turn, with the empirical marginal p_c of the samples,

    psi_c(x_c)  <-  psi_c(x_c) p_c(x_c) / p(x_c; psi),

so that the model's marginal matches. The likelihood never falls, and the limit is its maximum. The marginals come from
a junction tree that is kept up to date, so that each update is local; on a chordal graph with a factor for each maximal
clique one sweep is enough. An entry of probability zero becomes a hard zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.learning.markov.likelihood.cluster_tree import ClusterTree
from isinglass.learning.markov.likelihood.tables import Margins, TableObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Task
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray


class Sweeps:
    """Sweeps of proportional fitting, with marginals that are kept between them.

    Parameters
    ----------
    model : Model
        One whose parameters are the tables.
    margins : Margins
        Which factors are fitted.
    """

    def __init__(self, model: Model, margins: Margins) -> None:
        self.model, self.margins = model, margins
        self.tree = ClusterTree(model.graph, margins.factors)
        self.last: FloatArray | None = None

    def __call__(self, theta: FloatArray, potentials: Potentials, targets: Mapping[int, FloatArray]) -> FloatArray:
        """Return the parameters after one sweep over all maximal scopes, towards some marginals."""
        if self.last is None or not np.array_equal(self.last, theta):
            self.tree.start(potentials)
        flat = {a: target.ravel() for a, target in targets.items()}
        steps = {a: np.zeros(target.size) for a, target in targets.items()}

        def fit(a: int, marginal: FloatArray) -> FloatArray:
            possible = marginal > 0
            if (flat[a][~possible] > 0).any():
                self._refuse(a, flat[a], marginal)
            ratio = np.divide(flat[a], marginal, out=np.zeros_like(marginal), where=possible)
            steps[a] += np.log(ratio, out=np.zeros_like(ratio), where=ratio > 0)
            return ratio

        self.tree.sweep(fit)
        shaped = {a: step.reshape(targets[a].shape) for a, step in steps.items()}
        self.last = theta + self.model.transpose(self.margins.scattered(shaped))
        return self.last.copy()

    def _refuse(self, a: int, target: FloatArray, marginal: FloatArray) -> None:
        """Say which samples the model makes impossible."""
        shape, scope = self.margins.targets[a].shape, tuple(int(i) for i in self.model.graph.scopes[a])
        place = np.unravel_index(int(np.argmax((target > 0) & (marginal <= 0))), shape)
        got = f"states {tuple(int(x) for x in place)} of variables {scope}"
        raise InputError("X", "samples that the model allows", got, "a hard zero (-inf) forbids them")


class ProportionalObjective(TableObjective):
    """The likelihood, with sweeps of proportional fitting as its update."""

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the parameters after one sweep over all maximal scopes."""
        return self.sweeps(theta, self.potentials(theta), self.margins.targets)

    @cached_property
    def sweeps(self) -> Sweeps:
        """The sweeps, with their junction tree."""
        return Sweeps(self.model, self.margins)


@register
@dataclass(frozen=True)
class ProportionalFitting(Method):
    """Iterative proportional fitting: ``"ipf"``."""

    name: ClassVar[str] = "ipf"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "psi_c <- psi_c p_c / p(x_c; psi)",
        consistent=True,
        convex=True,
        tables=True,
        penalised=False,
        likelihood=True,
        update=True,
        note="exact; one sweep on chordal graphs with a factor for each maximal clique",
    )

    def objective(self, task: Task) -> ProportionalObjective:
        """Return the likelihood, with its sweeps."""
        return ProportionalObjective(task)
