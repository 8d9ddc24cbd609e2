"""Maximum likelihood with log Z by importance sampling (Geyer and Thompson 1992; Srihari's slides on sampling).

`ImportanceSampling` draws x_1, ..., x_K for the model at a reference theta0, with weights w_k whose mean estimates
Z(theta0). The same draws serve other parameters, with the scores s of assignments:

    w_k(theta) = w_k exp( s_theta(x_k) - s_0(x_k) ),        log Z(theta) ~ log (1/K) sum_k w_k(theta)
    f(theta; theta0) = W log Z(theta) - sum_n w_n s_theta(x_n),        W = sum_n w_n

f is a convex function of theta for given draws. It may have no minimum, where the data are unlike all draws. A step
goes down until the effective size of the weights falls under half of what it was at the reference. If that is not the
whole way to the minimum, the end is the new reference, and new draws are made for it. So training ends at a minimum of
f whose reference is near. The distance to the maximum of the likelihood is an error of sampling: with features phi(x)
and normalised weights v_k, its covariance is about (Geyer 1994)

    H^-1 A H^-1,      H = Hessian of f / W,      A = sum_k v_k² (phi(x_k) - E[phi]) (phi(x_k) - E[phi])'

The statistical error of the data has the covariance H^-1 / W. If sampling leaves more than that, the fit says so, and
does not count as converged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.importance.sampling import ImportanceSampling
from isinglass.inference.importance.weighted import LEAST_SIZE, LogMean, log_mean, normalised
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.likelihood.sampled_objective import remembered
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task
from isinglass.learning.markov.samples import Samples
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import Evaluation, Loss, Pseudolikelihood
from isinglass.potentials import Potentials
from isinglass.removed import RemovedOptions
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

STEPS = 50  # of the optimizer towards the minimum for given draws
ROUNDING = 1e-10  # of the gradient, for each sample
HALVINGS = 20  # of the way to it
SHARE = 0.5  # of the effective size at the reference, that the weights must keep
FEATURES = 2_000_000  # numbers, at most, for standard errors


class _Reference(NamedTuple):
    """The reference after some evaluations: its parameters, its draws, and how often there was a new one."""

    evaluations: int
    theta: FloatArray
    states: IntArray
    offset: FloatArray  # log-weights less scores
    size: float  # effective, of the weights at the reference
    resampled: int


class ImportanceObjective(MarkovObjective):
    """Minus the log-likelihood, with log Z by weighted draws for a reference."""

    def __init__(self, task: Task, sampling: ImportanceSampling) -> None:
        super().__init__(task)
        self.sampling = sampling
        self.weight = float(self.samples.weights.sum())
        self._now: _Reference | None = None
        self._before: _Reference | None = None
        self._next: _Reference | None = None  # a reference that an update has chosen, until the next evaluation

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient; the first point is the first reference."""
        chosen = self._next or self._now or self.reference(theta)
        done = self._now.evaluations if self._now is not None else 0
        found = self.at(chosen, theta)
        self._before, self._now, self._next = self._now, chosen._replace(evaluations=done + 1), None
        return found

    def reference(self, theta: FloatArray, resampled: int = 0) -> _Reference:
        """Draw for new parameters."""
        potentials = self.potentials(theta)
        found, _, _ = self.sampling.weigh(potentials, None)
        states, log_w = found.chains.assignments, found.log_weights[0]
        offset = log_w - np.asarray(potentials.log_score(states), np.float64)
        return _Reference(0, np.array(theta), states, offset, log_mean(log_w).ess, resampled)

    def weigh(self, reference: _Reference, theta: FloatArray) -> tuple[LogMean, FloatArray]:
        """Return log Z by the draws of a reference, with its diagnostics, and the normalised weights."""
        log_w = reference.offset + np.asarray(self.potentials(theta).log_score(reference.states), np.float64)
        return log_mean(log_w), normalised(log_w)

    def at(self, reference: _Reference, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient by the draws of a reference: a convex function."""
        potentials, (found, weights) = self.potentials(theta), self.weigh(reference, theta)
        expected = counted(potentials, Samples(reference.states, weights))
        groups = [self.weight * a - b for a, b in zip(expected, self.seen, strict=True)]
        score = sum((np.where(n > 0, t, 0.0) * n).sum() for t, n in zip(potentials.groups, self.seen, strict=True))
        value = self.weight * found.value - float(score) + self.penalty(theta)
        return value, self.model.transpose(groups) + 2 * self.l2 * theta

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Not used: values depend on the reference, which `__call__` knows."""
        raise NotImplementedError

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties; the reference stays."""
        return self.at(self._now or self.reference(theta), theta)[0] - self.penalty(theta)

    def update(self, theta: FloatArray) -> FloatArray:
        """Go towards the minimum for the draws at hand, as far as their weights serve; there, make new ones."""
        now = self._now or self.reference(theta)

        def useful(point: FloatArray) -> bool:
            return self.weigh(now, point)[0].ess >= SHARE * now.size

        lbfgs = Lbfgs(tol=ROUNDING * max(1.0, self.weight), ftol=0.0, max_iter=STEPS)
        best = lbfgs.minimise(lambda x: self.at(now, x), theta, callback=lambda progress: not useful(progress.x)).x
        for k in range(HALVINGS):
            point = np.asarray(theta + (best - theta) / 2**k)
            if useful(point):
                self._next = now if k == 0 else self.reference(point, now.resampled + 1)
                return point
        self._next = self.reference(theta, now.resampled + 1)
        return theta

    def potentials(self, theta: FloatArray) -> Potentials:
        """Return the log-potentials, on the graph as one component: a draw is one of all variables together."""
        found = super().potentials(theta)
        return Potentials._build(self._whole, found.groups, found.table_ids, found.evidence)

    @cached_property
    def _whole(self) -> FactorGraph:
        """The graph as one component, so that equal parts of it draw different random numbers."""
        graph = self.model.graph
        none = np.zeros(graph.n_variables, np.int64), np.zeros(graph.n_factors, np.int64)
        return FactorGraph._build(graph.cards, graph.groups, *none, 1)

    @property
    def iterations(self) -> int:
        """How often there was a new reference."""
        return 0 if self._now is None else self._now.resampled

    @property
    def converged_share(self) -> float:
        """Of no weights is it known that they say everything."""
        return 0.0

    def memory(self, evaluations: int) -> dict[str, Array]:
        """Return the reference as it was after so many evaluations: the last one, or the one before it."""
        one = remembered(evaluations, self._now, self._before)
        return {} if one is None else {"reference": one.theta, "resampled": np.array([one.resampled], np.float64)}

    def restore(self, evaluations: int, arrays: Mapping[str, Array]) -> None:
        """Go on with the reference of a checkpoint; its draws are made again."""
        if not evaluations:
            return
        theta, number = (arrays.get(name, np.zeros(0)) for name in ("reference", "resampled"))
        if not (theta.dtype == number.dtype == np.float64 and theta.shape == (self.size,) and number.shape == (1,)):
            raise InputError("checkpoint", "a reference of this problem", "another", "remove the file")
        self._now = self.reference(theta, int(number[0]))._replace(evaluations=evaluations)
        self._before = self._next = None

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Return log Z, the effective size of the weights, and standard errors of the parameters."""
        reference = self._now or self.reference(theta)
        found, weights = self.weigh(reference, theta)
        errors, ratio = self._errors(reference, weights)
        complaint = ""
        if found.ess < LEAST_SIZE:
            size = f"{found.ess:.1f} of {len(weights)} (needed: {LEAST_SIZE:.0f})"
            complaint = f"the effective size of the weights is {size}, so log Z is unknown; raise samples"
        elif ratio > 1:
            more = f"raise samples, about to {len(weights) * ratio**2:.2g}"
            complaint = f"sampling leaves {ratio:.2g} times the statistical error in the parameters; {more}"
        if complaint:
            complaint = f"importance: {complaint}, or use method='sml'"
        known = {"log_z": found.value, "ess": found.ess, "resampled": self.iterations}
        return {**known, "stderr": errors, "doubt": complaint}

    def _errors(self, reference: _Reference, weights: FloatArray) -> tuple[FloatArray | None, float]:
        """Return the standard errors of sampling of all parameters, and their size in those of the data, H^-1 / W.

        Where the former would take too long, they are None; A = H / effective size gives the latter.
        """
        if len(weights) * self.size > FEATURES:
            return None, float(np.sqrt(self.weight * (weights**2).sum()))
        zeros = self.potentials(np.zeros(self.size))
        flat = Potentials._build(zeros.graph, [np.zeros_like(t) for t in zeros.groups], zeros.table_ids, {})
        rows = (counted(flat, Samples(x[None], np.ones(1))) for x in reference.states)
        features = np.array([self.model.transpose(row) for row in rows])
        centred = features - weights @ features
        heavy, penalty = weights[:, None] * centred, np.broadcast_to(self.l2, self.size) / self.weight
        with one_blas_thread():
            inverse = np.linalg.pinv(heavy.T @ centred + 2 * np.diag(penalty), rcond=1e-10, hermitian=True)
            spread = inverse @ (heavy.T @ heavy) @ inverse
        sampling, statistical = np.maximum(np.diagonal(spread), 0.0), np.diagonal(inverse).sum() / self.weight
        return np.sqrt(sampling), float(np.sqrt(sampling.sum() / statistical)) if statistical > 0 else 0.0

    @cached_property
    def seen(self) -> Groups:
        """How often each entry of each table was seen, by weight."""
        return counted(self.potentials(np.zeros(self.size)), self.samples)


@register
@dataclass(frozen=True)
class ImportanceLikelihood(RemovedOptions, Method):
    """Maximum likelihood with log Z by importance sampling: ``"importance"``.

    `report_` of the estimator then has "log_z"; the effective size of the weights, "ess"; how often new draws were
    made, "resampled"; and the standard errors "stderr" that sampling leaves in the parameters. Where these are larger
    than the statistical errors of the data, or log Z is unknown, "doubt" says so, and `converged_` is False.

    Parameters
    ----------
    samples : int, default=4000
        Draws for a reference.
    random_state : int, default=0

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.3)
    >>> X = ig.sample(p, 500, random_state=0)
    >>> mrf = ig.MRF(ig.models.Ising(p.graph), method="importance", tied=True).fit(X)
    >>> exact = ig.MRF(ig.models.Ising(p.graph), tied=True).fit(X)
    >>> gap = abs(mrf.theta_ - exact.theta_)
    >>> mrf.converged_, bool((gap < 4 * mrf.report_["stderr"]).all()), mrf.report_["ess"] > 300
    (True, True, True)
    """

    samples: int = 4000
    random_state: int = 0

    name: ClassVar[str] = "importance"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "W log mean_k w_k exp(s(x_k) - s_0(x_k)) - sum_n w_n s(x_n)",
        consistent=True,
        convex=True,
        log_z=False,
        virtual=False,
        update=True,
        note="convex for given draws; sampling leaves an error, which report_ estimates",
    )

    @property
    def loss(self) -> Loss:
        """A loss that needs no inference either."""
        return Pseudolikelihood()

    def check(self, task: Task) -> None:
        """Check the options."""
        super().check(task)
        whole_number(self.samples, "method.samples", 50)
        whole_number(self.random_state, "method.random_state")

    def objective(self, task: Task) -> ImportanceObjective:
        """Return minus the log-likelihood by importance sampling."""
        return ImportanceObjective(task, ImportanceSampling(self.samples, random_state=self.random_state))
