"""Pseudo-moment matching (Wainwright, Jaakkola and Willsky 2003; Srihari, *Learning with Approximate Inference*).

With the empirical marginals p_a of factors and p_i of variables, and the weight rho_a of each factor (one for belief
propagation),

    phi_i(x_i) = log p_i(x_i),      phi_a(x_a) = rho_a log( p_a(x_a) / prod_(i in a) p_i(x_i) ).

The empirical marginals are then a fixed point of belief propagation, or of tree-reweighted message passing, so that
inference answers with the marginals of the samples. Nothing is iterated. It is maximum likelihood on trees, and not
consistent on other graphs. The fixed point may be unstable: then message passing does not find it, which is reported.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isinglass.errors import InputError, no_convergence_warnings
from isinglass.graph.message_graph import edges_of
from isinglass.inference import BeliefPropagation, TreeReweighted, infer
from isinglass.learning.markov.likelihood.tables import TableObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray

KINDS = ("bp", "trw")


class MomentObjective(TableObjective):
    """The squared distance to the closed form, times the weight of the samples; its update gets there in one step."""

    name = "pmm"

    def __init__(self, task: Task, kind: str) -> None:
        super().__init__(task)
        self.kind = kind
        self.answer = self._solved()

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared distance times the weight, and its gradient."""
        away = theta - self.answer
        return self.weight * float(away @ away) / 2, self.weight * away

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the closed form."""
        return self.answer.copy()

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Run the message passing that the parameters are for, and say whether it finds the samples' marginals."""
        potentials = self.potentials(theta)
        algorithm = BeliefPropagation if self.kind == "bp" else TreeReweighted
        with no_convergence_warnings():
            found = infer(potentials, algorithm(tol=1e-10, max_iter=2000, check_stability=True))
        miss = max(float(np.abs(found.factor(a) - target).max()) for a, target in self.margins.targets.items())
        return {"converged": found.info.converged, "stable": found.info.stable, "largest_difference": miss}

    def _solved(self) -> FloatArray:
        graph = self.model.graph
        weights = self._weights()
        alone = self._singles()
        unary: dict[int, int] = {}
        for a, scope in enumerate(graph.scopes):
            if len(scope) == 1:
                unary.setdefault(scope[0], a)
        tables = {a: np.zeros(tuple(graph.cards[list(graph.scopes[a])])) for a in range(graph.n_factors)}
        for a, target in self.margins.targets.items():
            if len(graph.scopes[a]) > 1:
                tables[a] = weights[a] * (_log(target) - self._product(a, alone))
        for i, p in enumerate(alone):
            if p is None:
                continue
            a = unary.get(i, next(b for b in self.margins.factors if i in graph.scopes[b]))
            shape = [1] * len(graph.scopes[a])
            shape[graph.scopes[a].index(i)] = len(p)
            tables[a] = tables[a] + _log(p).reshape(shape)
        return np.asarray(self.model.transpose(self.margins.scattered(tables)), np.float64)

    def _weights(self) -> FloatArray:
        """Return the weight of each factor in the message passing."""
        graph, weights = self.model.graph, np.ones(self.model.graph.n_factors)
        if self.kind == "trw":
            zeros = Potentials.from_groups(graph, [np.zeros((1, *g.shape)) for g in graph.groups])
            weights[edges_of(graph).link_factor] = TreeReweighted().counting(zeros)
        return weights

    def _singles(self) -> list[FloatArray | None]:
        """Return the empirical marginal of each variable that a factor mentions."""
        graph, found = self.model.graph, [None] * self.model.graph.n_variables
        for a, target in self.margins.targets.items():
            for k, i in enumerate(graph.scopes[a]):
                rest = tuple(s for s in range(target.ndim) if s != k)
                found[i] = target.sum(axis=rest)
        return found  # type: ignore[return-value]

    def _product(self, a: int, alone: list[FloatArray | None]) -> FloatArray:
        """Return the sum of the log marginals of a factor's variables, in the shape of its table."""
        scope, total = self.model.graph.scopes[a], np.zeros(())
        for k, i in enumerate(scope):
            shape = [1] * len(scope)
            shape[k] = -1
            total = total + _log(alone[i]).reshape(shape)  # type: ignore[arg-type]
        return np.asarray(total, np.float64)


def _log(p: FloatArray) -> FloatArray:
    """Return logarithms; zero where a probability is zero, whose entry is a hard zero."""
    found: FloatArray = np.log(p, out=np.zeros_like(p), where=p > 0)
    return found


@register
@dataclass(frozen=True)
class PseudoMoments(Method):
    """Pseudo-moment matching: ``"pmm"``.

    Parameters
    ----------
    kind : "bp" or "trw", default="bp"
        The message passing that is to answer with the marginals of the samples.
    """

    kind: Literal["bp", "trw"] = "bp"

    name: ClassVar[str] = "pmm"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "phi_a = rho_a log(p_a / prod p_i), phi_i = log p_i",
        consistent=False,
        log_z=False,
        constants=False,
        tables=True,
        penalised=False,
        update=True,
        note="closed form; for inference by message passing alone; report_ says whether its fixed point is stable",
    )

    def check(self, task: Task) -> None:
        """Check the kind."""
        super().check(task)
        if self.kind not in KINDS:
            raise InputError("method.kind", " or ".join(map(repr, KINDS)), repr(self.kind))

    def objective(self, task: Task) -> MarkovObjective:
        """Return the distance to the closed form."""
        return MomentObjective(task, self.kind)
