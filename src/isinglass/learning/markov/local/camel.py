"""Constrained approximate maximum entropy learning, CAMEL (Ganapathi et al. 2008; Srihari's slides).

Maximum likelihood is the dual of maximum entropy under the constraint that features have the expectation that they have
in the samples. On a cluster graph, here the factor graph with its variables as separators, entropy and distribution are
approximate:

    maximise   sum_a H(b_a) - sum_i (d_i - 1) H(b_i)
    subject to E_b[f_j] = E~[f_j],   sum_(x_a less i) b_a = b_i,   sum b_i = 1,

d_i the number of factors of two or more variables at i. The multipliers of the first constraints are the parameters. At
a solution the beliefs are a fixed point of belief propagation with these parameters, and match the moments. It is exact
on trees; on other graphs the entropy is not concave in general, so that a solution may be no maximum. `report_` says
whether it is one.

Newton's method solves the stationary equations of the Lagrangian, with steps that keep the beliefs positive and lower
the residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.learning.markov.likelihood.maximum import LikelihoodObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Task
from isinglass.losses import Loss, Pseudolikelihood
from isinglass.models import Model
from isinglass.typing import FloatArray, IntArray

MOST_UNKNOWNS = 3000  # of beliefs and multipliers, in a dense matrix


class Clusters:
    """The beliefs of factors of two or more variables and of all variables, in one vector, and their constraints."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.wide = [a for a, scope in enumerate(graph.scopes) if len(scope) > 1]
        sizes = [int(np.prod(graph.cards[list(graph.scopes[a])])) for a in self.wide]
        self.start = dict(zip(self.wide, np.cumsum([0, *sizes]).tolist(), strict=False))
        self.first = sum(sizes) + np.concatenate([[0], np.cumsum(graph.cards)])
        self.size = int(self.first[-1])
        degree = np.zeros(graph.n_variables)
        for a in self.wide:
            degree[list(graph.scopes[a])] += 1
        single = np.repeat(1 - degree, graph.cards)
        self.counting: FloatArray = np.concatenate([np.ones(sum(sizes)), single])

    def places(self, a: int) -> IntArray:
        """Return where the belief of a factor lies, in the shape of its table."""
        shape = self.graph.cards[list(self.graph.scopes[a])].tolist()
        if a in self.start:
            return np.asarray(self.start[a] + np.arange(int(np.prod(shape))).reshape(shape), np.int64)
        i = self.graph.scopes[a][0]
        return np.asarray(self.first[i] + np.arange(shape[0]), np.int64)

    def consistency(self) -> tuple[FloatArray, FloatArray]:
        """Return the matrix and right side of normalisation, and of agreement between factors and variables."""
        rows, right = [], []
        for i in range(self.graph.n_variables):
            row = np.zeros(self.size)
            row[self.first[i] : self.first[i + 1]] = 1.0
            rows.append(row)
            right.append(1.0)
        for a in self.wide:
            places = self.places(a)
            for k, i in enumerate(self.graph.scopes[a]):
                for x in range(int(self.graph.cards[i])):
                    row = np.zeros(self.size)
                    row[np.take(places, x, axis=k).ravel()] = 1.0
                    row[self.first[i] + x] = -1.0
                    rows.append(row)
                    right.append(0.0)
        return np.array(rows).reshape(-1, self.size), np.array(right)

    def features(self, model: Model) -> FloatArray:
        """Return the expectations of features as linear functions of the beliefs, a matrix (parameters, beliefs)."""
        found = np.zeros((model.size, self.size))
        base = model.potentials(np.zeros(model.size))
        for j, unit in enumerate(np.eye(model.size)):
            moved = model.potentials(unit)
            for a in range(self.graph.n_factors):
                if self.graph.scopes[a]:
                    np.add.at(found[j], self.places(a), moved.log_tables[a] - base.log_tables[a])
        return found


class CamelObjective(LikelihoodObjective):
    """The residual of the moments, with a Newton step on the Lagrangian as its update.

    The parameters are the multipliers of the moments. Beliefs and the other multipliers are kept between updates.
    """

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.clusters = Clusters(self.model.graph)
        local, right = self.clusters.consistency()
        moments = self.clusters.features(self.model)
        target = np.asarray(self.model.transpose(self.seen), np.float64) / self.weight
        self.constraints = np.concatenate([moments, local])
        self.right = np.concatenate([target, right])
        cards = self.model.graph.cards
        singles = [np.full(int(k), 1.0 / k) for k in cards]
        wide = [np.full(self.clusters.places(a).size, 1.0 / self.clusters.places(a).size) for a in self.clusters.wide]
        self.beliefs: FloatArray = np.concatenate([np.zeros(0), *wide, *singles])
        self.multipliers: FloatArray = np.zeros(len(self.right))

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return half the squared residual of all equations, and a vector of its length.

        The equations are not those of a function of the parameters alone; a run looks at the length, and no further.
        """
        residual = self._residual(self.beliefs, self.multipliers)
        length = float(np.sqrt(residual @ residual)) * self.weight
        slope = np.zeros_like(theta)
        slope[:1] = length
        return length**2 / 2, slope

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the parameters after one Newton step."""
        clusters, constraints = self.clusters, self.constraints
        n = clusters.size
        matrix = np.zeros((n + len(self.right),) * 2)
        matrix[:n, :n] = np.diag(-clusters.counting / self.beliefs)
        matrix[:n, n:] = constraints.T
        matrix[n:, :n] = constraints
        residual = self._residual(self.beliefs, self.multipliers)
        step: FloatArray = np.asarray(np.linalg.lstsq(matrix, -residual, rcond=1e-12)[0], np.float64)
        length = self._length(step[:n], step[n:], float(residual @ residual))
        self.beliefs = self.beliefs + length * step[:n]
        self.multipliers = self.multipliers + length * step[n:]
        return self.multipliers[: self.model.size].copy()

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Return the largest miss of an equation, and whether the solution is a maximum of the approximate entropy."""
        residual = self._residual(self.beliefs, self.multipliers)
        _, values, right = np.linalg.svd(self.constraints)
        free = right[int((values > 1e-10 * values.max(initial=1.0)).sum()) :]
        curvature = (free * (-self.clusters.counting / self.beliefs)) @ free.T
        top = float(np.linalg.eigvalsh(curvature).max(initial=-np.inf)) if len(free) else -np.inf
        concave = bool((self.clusters.counting >= 0).all()) or self.model.graph.is_forest
        return {"residual": float(np.abs(residual).max()), "maximum": top < 0, "concave": concave}

    def _residual(self, beliefs: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Return what is left of the stationary equations, and of the constraints."""
        slope = -self.clusters.counting * (np.log(beliefs) + 1) + self.constraints.T @ multipliers
        return np.concatenate([slope, self.constraints @ beliefs - self.right])

    def _length(self, beliefs: FloatArray, multipliers: FloatArray, before: float) -> float:
        """Return how far to go: beliefs stay positive, and the residual falls."""
        falling = beliefs < 0
        length = min(1.0, 0.95 * float((-self.beliefs[falling] / beliefs[falling]).min(initial=np.inf)))
        for _ in range(40):
            after = self._residual(self.beliefs + length * beliefs, self.multipliers + length * multipliers)
            if after @ after < before * (1 - 1e-4 * length) or before < 1e-26:
                break
            length /= 2
        return length


@register
@dataclass(frozen=True)
class Camel(Method):
    """Constrained approximate maximum entropy: ``"camel"``."""

    name: ClassVar[str] = "camel"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "max Bethe entropy subject to E_b[f] = E~[f]",
        consistent=False,
        log_z=False,
        constants=False,
        penalised=False,
        update=True,
        note="features of any kind; for inference by belief propagation; not concave on graphs with loops, see report_",
    )

    @property
    def loss(self) -> Loss:
        """A loss that needs no inference either."""
        return Pseudolikelihood()

    def check(self, task: Task) -> None:
        """Refuse problems that are too large for dense matrices."""
        super().check(task)
        graph = task.model.graph
        beliefs = sum(len(g) * g.table_size for g in graph.groups if g.arity > 1) + int(graph.cards.sum())
        unknowns = beliefs + task.model.size + sum(len(g) * sum(g.shape) for g in graph.groups if g.arity > 1)
        if unknowns > MOST_UNKNOWNS:
            got = f"{unknowns}"
            raise InputError("graph", f"at most {MOST_UNKNOWNS} unknowns for method='camel'", got, "use 'ml' with 'bp'")

    def objective(self, task: Task) -> CamelObjective:
        """Return the residual of the stationary equations."""
        return CamelObjective(task)
