"""Maximum likelihood with log Z by importance sampling (Geyer and Thompson 1992; Srihari's slides on sampling).

With samples x_1, ..., x_K of the model at a reference theta0, what is minimised is

    f(theta; theta0) = W ( log (1/K) sum_k exp( s_theta(x_k) - s_0(x_k) ) + log Z(theta0) )  -  sum_n w_n s_theta(x_n)

a convex function of theta for given samples, with W = sum_n w_n. It may have no minimum, where the data are unlike all
samples. A step goes down as far as the weights can be trusted: until their effective size falls under K / 2, or the
Pareto shape of their tail exceeds 0.7. If that is not the whole way to the minimum, the end is the new reference, and
new samples are drawn there: chains of Gibbs sampling go on. log Z of a new reference is estimated by the weights of the
old one. So training ends at a minimum of f whose reference is near. The distance to the maximum of the likelihood is an
error of sampling: with features phi(x) and normalised weights v_k, its covariance is about (Geyer 1994)

    H^-1 A H^-1,      H = Hessian of f / W,      A = sum_k v_k² (phi(x_k) - E[phi]) (phi(x_k) - E[phi])'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import AnnealedImportance, infer
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.diagnostics import ergodic_components
from isinglass.learning.markov.importance.reference import ReferenceSamples, advanced
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.likelihood.sampled_objective import remembered, restored_chains
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task
from isinglass.learning.markov.samples import Samples
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import Evaluation, Loss, Pseudolikelihood
from isinglass.potentials import Potentials
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray
from isinglass.validation import whole_number

STEPS = 50  # of the optimizer towards the minimum for given samples
ROUNDING = 1e-10  # of the gradient, for each sample
HALVINGS = 20  # of the way to it
BURN_IN = 10  # times the sweeps, at the first reference
FEATURES = 2_000_000  # numbers, at most, for standard errors


class _Memory(NamedTuple):
    """The reference after some evaluations: its chains, its parameters, and log Z there."""

    evaluations: int
    chains: Chains
    theta: FloatArray
    log_z: float
    resampled: int


class ImportanceObjective(MarkovObjective):
    """Minus the log-likelihood, with log Z by the samples of a reference.

    Parameters
    ----------
    task : Task
    count : int
        Samples of the reference.
    sweeps : int
        Between two references.
    random_state : int
    """

    def __init__(self, task: Task, count: int, sweeps: int, random_state: int) -> None:
        super().__init__(task)
        self.count, self.sweeps, self.random_state = count, sweeps, random_state
        self.weight = float(self.samples.weights.sum())
        self._now: _Memory | None = None
        self._before: _Memory | None = None
        self._next: _Memory | None = None  # a reference that an update has chosen, until the next evaluation

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient; the first point is the first reference."""
        chosen = self._next or self._now or self._first(theta)
        value, slope = _Surrogate(self, chosen)(theta)
        done = self._now.evaluations if self._now is not None else 0
        self._before, self._now, self._next = self._now, chosen._replace(evaluations=done + 1), None
        return value, slope

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Not used: values depend on the reference, which `__call__` knows."""
        raise NotImplementedError

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties; the reference stays."""
        return _Surrogate(self, self._now or self._first(theta))(theta)[0] - self.penalty(theta)

    def update(self, theta: FloatArray) -> FloatArray:
        """Go towards the minimum for the samples at hand, as far as their weights serve; there, draw new ones."""
        now = self._now or self._first(theta)
        surrogate = _Surrogate(self, now)
        lbfgs = Lbfgs(tol=ROUNDING * max(1.0, self.weight), ftol=0.0, max_iter=STEPS)
        best = lbfgs.minimise(surrogate, theta, callback=lambda progress: not surrogate.useful(progress.x)).x
        for k in range(HALVINGS):
            point = theta + (best - theta) / 2**k
            if surrogate.useful(point):
                self._next = now if k == 0 else self._resampled(now, surrogate, point)
                return np.asarray(point)
        self._next = self._resampled(now, surrogate, theta)
        return theta

    def potentials(self, theta: FloatArray) -> Potentials:
        """Return the log-potentials, on the graph as one component: a sample is one of all variables together."""
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
        """How often samples were drawn anew."""
        return 0 if self._now is None else self._now.resampled

    @property
    def converged_share(self) -> float:
        """Of no chain is it known that it has converged."""
        return 0.0

    def memory(self, evaluations: int) -> dict[str, Array]:
        """Return the reference as it was after so many evaluations: the last one, or the one before it."""
        one = remembered(evaluations, self._now, self._before)
        if one is None:
            return {}
        chains = {f"free.{name}": array for name, array in vars(one.chains).items()}
        return {**chains, "reference": one.theta, "numbers": np.array([one.log_z, one.resampled], np.float64)}

    def restore(self, evaluations: int, arrays: Mapping[str, Array]) -> None:
        """Go on with the reference of a checkpoint."""
        if not evaluations:
            return
        like = Chains.start(self.potentials(np.zeros(self.size)), self.count, self.random_state)
        chains = restored_chains(arrays, "free", like, self.model.graph.cards)
        theta, numbers = (arrays.get(name, np.zeros(0)) for name in ("reference", "numbers"))
        floats = theta.dtype == numbers.dtype == np.float64
        fits = floats and theta.shape == (self.size,) and numbers.shape == (2,)
        if chains is None or not fits:
            raise InputError("checkpoint", "a reference of this problem", "another", "remove the file")
        self._now = _Memory(evaluations, chains, theta.copy(), float(numbers[0]), int(numbers[1]))
        self._before = self._next = None

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Return log Z with its error, the diagnostics of the weights, and standard errors of the parameters."""
        surrogate = _Surrogate(self, self._now or self._first(theta))
        found, weights = surrogate.reference.weigh(self.potentials(theta))
        return {
            "log_z": found.value,
            "ess": found.ess,
            "pareto_k": found.pareto_k,
            "resampled": self.iterations,
            "stderr": self._errors(surrogate.reference, weights),
        }

    def _errors(self, reference: ReferenceSamples, weights: FloatArray) -> FloatArray | None:
        """Return the standard errors of sampling of all parameters; None where that would take too long."""
        if len(weights) * self.size > FEATURES:
            return None
        zeros = self.potentials(np.zeros(self.size))
        flat = Potentials._build(zeros.graph, [np.zeros_like(t) for t in zeros.groups], zeros.table_ids, {})
        rows = (counted(flat, Samples(x[None], np.ones(1))) for x in reference.states)
        features = np.array([self.model.transpose(row) for row in rows])
        centred = features - weights @ features
        heavy, penalty = weights[:, None] * centred, np.broadcast_to(self.l2, self.size) / self.weight
        with one_blas_thread():
            inverse = np.linalg.pinv(heavy.T @ centred + 2 * np.diag(penalty), rcond=1e-10, hermitian=True)
            spread = inverse @ (heavy.T @ heavy) @ inverse
        return np.asarray(np.sqrt(np.maximum(np.diagonal(spread), 0.0)))

    def _first(self, theta: FloatArray) -> _Memory:
        """Draw samples at the start; log Z there is exact where all tables are zero, else by annealing."""
        potentials = self.potentials(theta)
        chains = Chains.start(potentials, self.count, self.random_state)
        moved = advanced(chains, potentials, BURN_IN * self.sweeps, self.task.threads)
        if not any(tables.any() for tables in potentials.groups):
            log_z = float(np.log(potentials.graph.cards).sum())
        else:
            log_z = float(infer(potentials, AnnealedImportance(random_state=self.random_state)).log_z)
        return _Memory(0, moved, theta.copy(), log_z, 0)

    def _resampled(self, now: _Memory, surrogate: _Surrogate, theta: FloatArray) -> _Memory:
        """Draw samples at a new reference."""
        potentials = self.potentials(theta)
        log_z = surrogate.reference.weigh(potentials)[0].value
        moved = advanced(now.chains, potentials, self.sweeps, self.task.threads)
        return _Memory(now.evaluations, moved, np.array(theta), log_z, now.resampled + 1)

    @cached_property
    def seen(self) -> Groups:
        """How often each entry of each table was seen, by weight."""
        return counted(self.potentials(np.zeros(self.size)), self.samples)


class _Surrogate:
    """The objective for the samples of one reference: a convex function of the parameters."""

    def __init__(self, objective: ImportanceObjective, memory: _Memory) -> None:
        self.objective = objective
        potentials = objective.potentials(memory.theta)
        self.reference = ReferenceSamples.of(potentials, memory.chains.assignments, memory.log_z)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        mine, weight = self.objective, self.objective.weight
        potentials = mine.potentials(theta)
        found, weights = self.reference.weigh(potentials)
        groups = [weight * a - b for a, b in zip(self.reference.expected(potentials, weights), mine.seen, strict=True)]
        score = sum((np.where(n > 0, t, 0.0) * n).sum() for t, n in zip(potentials.groups, mine.seen, strict=True))
        value = weight * found.value - float(score) + mine.penalty(theta)
        return value, mine.model.transpose(groups) + 2 * mine.l2 * theta

    def useful(self, theta: FloatArray) -> bool:
        """Tell whether the weights can be trusted there."""
        return self.reference.useful(self.reference.weigh(self.objective.potentials(theta))[0])


@register
@dataclass(frozen=True)
class ImportanceLikelihood(Method):
    """Maximum likelihood with log Z by importance sampling from a reference: ``"importance"``.

    `report_` of the estimator then has "log_z"; the effective size, "ess", and the Pareto shape, "pareto_k", of the
    weights; how often samples were drawn anew; and the standard errors "stderr" that sampling leaves in the parameters.

    Parameters
    ----------
    samples : int, default=1000
        Chains of Gibbs sampling, each of which gives one sample of a reference.
    sweeps : int, default=20
        Of the chains between two references.
    random_state : int, default=0

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.3)
    >>> X = ig.sample(p, 500, random_state=0)
    >>> mrf = ig.MRF(ig.models.Ising(p.graph), method="importance", tied=True).fit(X)
    >>> exact = ig.MRF(ig.models.Ising(p.graph), tied=True).fit(X)
    >>> gap = abs(mrf.theta_ - exact.theta_)
    >>> mrf.converged_, bool((gap < 4 * mrf.report_["stderr"]).all()), mrf.report_["ess"] > 500
    (True, True, True)
    """

    samples: int = 1000
    sweeps: int = 20
    random_state: int = 0

    name: ClassVar[str] = "importance"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "W (log mean_k exp(s(x_k) - s_0(x_k)) + log Z_0) - sum_n w_n s(x_n)",
        consistent=True,
        convex=True,
        log_z=False,
        virtual=False,
        update=True,
        note="convex for given samples; sampling leaves an error, which report_ estimates",
    )

    @property
    def loss(self) -> Loss:
        """A loss that needs no inference either."""
        return Pseudolikelihood()

    def check(self, task: Task) -> None:
        """Check the options."""
        super().check(task)
        whole_number(self.samples, "method.samples", 50)
        whole_number(self.sweeps, "method.sweeps", 1)
        whole_number(self.random_state, "method.random_state")
        if not ergodic_components(task.model.potentials(np.zeros(task.model.size))).all():
            expected = "a model whose assignments Gibbs sampling is proved to reach, for method='importance'"
            raise InputError("graph", expected, "hard zeros that may separate them", "use method='ml' or 'pseudo'")

    def objective(self, task: Task) -> ImportanceObjective:
        """Return minus the log-likelihood by importance sampling."""
        return ImportanceObjective(task, self.samples, self.sweeps, self.random_state)
