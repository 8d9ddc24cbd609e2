"""Restricted Boltzmann machines: a distribution of binary data with hidden units, learned by sampling."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit

from isinglass.errors import InputError
from isinglass.estimators.estimator import Estimator
from isinglass.estimators.parameters import Callback, Checkpoint, OptimizerLike
from isinglass.estimators.persistence import Saved, register
from isinglass.inference.restricted.annealing import PartitionEstimate, annealed_log_z
from isinglass.inference.restricted.gibbs import BlockGibbs, LayerChains
from isinglass.learning.markov import Method, make_method
from isinglass.learning.markov.likelihood.sampled import SampledLikelihood
from isinglass.learning.optimizers import Optimizer
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.learning.restricted import (
    RestrictedChoices,
    RestrictedProblem,
    first_parameters,
    independent,
    machine_of,
)
from isinglass.learning.training.choices import training_choices
from isinglass.learning.training.stages import Trained
from isinglass.models.checks import dense
from isinglass.models.spins.restricted import RestrictedBoltzmannMachine, units
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, jobs_of, number, positive, whole_number

DECAY = 0.01  # of the learning rate, an epoch
EASY = 2**24  # joint states of the smaller layer times units of the other, up to which log Z is computed exactly


@register
@dataclass(eq=False, repr=False)
class RBM(Estimator):
    """A restricted Boltzmann machine of binary units, after scikit-learn's `BernoulliRBM`.

    Parameters
    ----------
    n_components : int, default=256
        The number of hidden units.
    method : {"pcd", "cd", "sml"} or an object of one of these methods
        "pcd": persistent chains. "cd": chains that start at the samples of each batch. "sml": persistent chains, and
        the average of the parameters over the second half of training. ``ContrastiveDivergence(sweeps=5)`` of
        `isinglass.learning.markov` is CD-5.
    learning_rate : float, default=0.1
        The step size for the mean gradient of a batch; it decreases as 1 / (1 + 0.01 epochs). An optimizer given as an
        object has its own.
    batch_size : int, default=32
    max_iter : int, default=20
        The number of epochs. There is no test of convergence.
    optimizer : str or Optimizer, default="sgd"
        A minibatch optimizer.
    l2 : float, default=0
        The squared penalty of the weights (not of the biases), added to the *sum* over samples.
    random_state : int, default=0
        The seed of the initial weights, the order of the samples and the chains.
    n_jobs : int, optional
        The number of threads that share the chains. The result has the same bits for any number.

    Attributes
    ----------
    machine_ : RestrictedBoltzmannMachine
    components_ : array (n_components, features)
    intercept_visible_, intercept_hidden_ : array
    n_features_in_ : int

    Examples
    --------
    >>> from isinglass.errors import no_convergence_warnings
    >>> X = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0]] * 20)
    >>> with no_convergence_warnings():
    ...     rbm = RBM(n_components=2, max_iter=50, random_state=0).fit(X)
    >>> rbm.transform(X).shape, rbm.sample(3, random_state=0).shape
    ((60, 2), (3, 4))
    >>> bool(rbm.score([[0, 0, 1, 1]]) > rbm.score([[0, 1, 0, 1]]))
    True
    """

    schema: ClassVar[str] = "rbm"
    tol: ClassVar[float] = 0.0  # type: ignore[misc]
    _remedy: ClassVar[str] = "there is no test of convergence; look at score, log_z or samples, or raise max_iter"

    n_components: int = 256
    method: str | Method = "pcd"
    learning_rate: float = 0.1
    batch_size: int = 32
    max_iter: int = 20
    optimizer: OptimizerLike = "sgd"
    l2: float = 0.0
    random_state: int = 0
    warm_start: bool = False
    callback: Callback = None
    verbose: bool = False
    n_jobs: int | None = None
    checkpoint: Checkpoint = None

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Learn weights and biases.

        Ctrl-C ends training cleanly: the parameters so far are kept, with a warning.

        Parameters
        ----------
        X : array (samples, features)
            0 and 1, or probabilities between them. Missing values are refused; ``ig.MRF`` with
            ``ig.models.BoltzmannMachine`` accepts them.
        y : None
            Ignored; for scikit-learn.
        """
        return self._train(X)

    def transform(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the hidden units, p(h_j = 1 | v), shape (samples, n_components)."""
        return self._fitted().hidden_probabilities(self._units(X))

    def fit_transform(self, X: ArrayLike, y: Any = None) -> FloatArray:
        """Fit, and return what `transform` returns."""
        return self.fit(X, y).transform(X)

    def reconstruct(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the visible units given the expected hidden ones, shape (samples, features)."""
        machine = self._fitted()
        return np.asarray(expit(machine.visible_log_odds(machine.hidden_probabilities(self._units(X)))))

    def gibbs(self, X: ArrayLike, random_state: RandomState = None, sweeps: int = 1) -> IntArray:
        """Return the visible states after sweeps of Gibbs sampling from each row."""
        machine, chains = self._fitted(), LayerChains.at(self._units(X), random_state)
        BlockGibbs(machine).advance(chains, whole_number(sweeps, "sweeps", 1), jobs_of(self.n_jobs))
        return chains.states

    def sample(self, n: int, random_state: RandomState = None, sweeps: int = 1000) -> IntArray:
        """Draw visible states, int array (n, features): the final states of `n` chains of Gibbs sampling.

        How close they are to the distribution of the model depends on how well Gibbs sampling mixes.
        """
        machine = self._fitted()
        chains = LayerChains.start(self.base_, whole_number(n, "n"), random_state)
        BlockGibbs(machine).advance(chains, whole_number(sweeps, "sweeps", 1), jobs_of(self.n_jobs))
        return chains.states

    def free_energy(self, X: ArrayLike) -> FloatArray:
        """Return F(v) = - log p(v) - log Z of each row, shape (samples,)."""
        return self._fitted().free_energy(self._units(X))

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return the log-pseudolikelihood of each row: the sum of log p(v_i | all others), shape (samples,).

        (scikit-learn has a random estimate of it, from one unit.)
        """
        return self._fitted().pseudolikelihood(self._units(X))

    def score(self, X: ArrayLike, y: Any = None) -> float:
        """Return the mean log-pseudolikelihood of a row."""
        found = self.score_samples(X)
        if not len(found):
            raise InputError("X", "at least one sample", "none")
        return float(found.mean())

    def log_z(
        self,
        method: Literal["auto", "exact", "ais"] = "auto",
        temperatures: int = 1000,
        chains: int = 100,
        random_state: RandomState = None,
    ) -> PartitionEstimate:
        """Return log Z and its standard error: exact if a layer is small, else by annealed importance sampling.

        Parameters
        ----------
        method : {"auto", "exact", "ais"}
        temperatures, chains
            The number of steps and chains of annealed importance sampling; more of them reduce the error.
        random_state : int, Generator or None
        """
        machine = self._fitted()
        if method not in ("auto", "exact", "ais"):
            raise InputError("method", "'auto', 'exact' or 'ais'", f"{method!r:.40}")
        small, large = sorted(machine.weights.shape)
        if method == "exact" or (method == "auto" and large * math.ldexp(1.0, min(small, 1000)) <= EASY):
            return PartitionEstimate(machine.log_z(), 0.0, math.inf, -math.inf, True)
        return annealed_log_z(machine, self.base_, temperatures, chains, random_state)

    def log_likelihood(self, X: ArrayLike, log_z: float | PartitionEstimate | None = None) -> float:
        """Return the log-likelihood, summed over rows; by default log Z comes from `log_z()`."""
        known = self.log_z(random_state=0) if log_z is None else log_z
        value = known.log_z if isinstance(known, PartitionEstimate) else number(known, "log_z", -math.inf, math.inf)
        energies = self.free_energy(X)
        return float(-energies.sum() - len(energies) * value)

    @property
    def potentials_(self) -> Potentials:
        """The model of all units, visible ones first, for any inference."""
        return self._fitted().potentials()

    def _fitted(self) -> RestrictedBoltzmannMachine:
        self._require_fitted()
        return self.machine_

    def _units(self, X: ArrayLike) -> FloatArray:
        return units(_dense(X), self.machine_.n_visible, "X")

    def _choices(self) -> RestrictedChoices:
        from isinglass.losses import Pseudolikelihood

        method = make_method(self.method)
        if not isinstance(method, SampledLikelihood):
            raise InputError("method", "'cd', 'pcd' or 'sml'", f"{method.name!r}")
        method.check_options()
        whole_number(self.batch_size, "batch_size", 1)
        positive(self.learning_rate, "learning_rate")
        chosen = training_choices(self, Pseudolikelihood())
        return RestrictedChoices(
            loss=chosen.loss,
            optimizer=self._steps(method, chosen.optimizer),
            l2=number(self.l2, "l2", 0, math.inf),
            jobs=chosen.jobs,
            method=method,
            n_hidden=whole_number(self.n_components, "n_components", 1),
            random_state=whole_number(self.random_state, "random_state"),
        )

    def _steps(self, method: SampledLikelihood, given: Optimizer[Any]) -> Optimizer[Any]:
        """Return the optimizer; one that is named has the options of this estimator."""
        if not isinstance(given, MiniBatch):
            expected = "a minibatch optimizer, because gradients are estimates"
            raise InputError("optimizer", expected, f"{given.name!r}", "use 'sgd', 'adagrad' or 'adam'")
        if not isinstance(self.optimizer, str):
            return given
        steps = replace(
            given,
            learning_rate=self.learning_rate,
            batch_size=self.batch_size,
            decay=DECAY,
            random_state=whole_number(self.random_state, "random_state"),
        )
        return replace(steps, averaging=True, burn_in=self.max_iter // 2) if method.averaged else steps

    def _problem(self, chosen: RestrictedChoices, X: ArrayLike) -> RestrictedProblem:
        array = _dense(X)
        if not array.size:
            raise InputError("X", "at least one sample and one feature", f"shape {array.shape}")
        most = len(array) / chosen.l2 if chosen.l2 else math.inf  # beyond it, steps along the penalty grow
        if isinstance(self.optimizer, str) and self.optimizer == "sgd" and self.learning_rate >= most:
            got = f"{self.learning_rate:g} with l2 = {chosen.l2:g}"
            raise InputError("learning_rate", f"a number below {most:.3g}, samples over l2", got, "lower one of them")
        return RestrictedProblem(chosen, units(array, array.shape[1], "X"))

    def _start(self, problem: Any, before: Any, stage: int) -> FloatArray:
        if before is None:
            return first_parameters(problem.X, problem.chosen.n_hidden, problem.chosen.random_state)
        return super()._start(problem, before, stage)

    def _keep(self, stage: Any, trained: Trained) -> None:
        assert isinstance(trained.problem, RestrictedProblem)
        self._set(independent(trained.problem.X), trained.problem.chosen.n_hidden)

    def _set(self, base: FloatArray, hidden: int) -> None:
        self.base_, self.n_features_in_ = base, len(base)
        self.machine_ = machine_of(self.theta_, len(base), hidden)
        self.components_ = self.machine_.weights.T
        self.intercept_visible_, self.intercept_hidden_ = self.machine_.visible_bias, self.machine_.hidden_bias

    def _contents(self) -> tuple[dict[str, Any], dict[str, ArrayLike]]:
        return {"n_hidden": self.machine_.n_hidden}, {"base": self.base_}

    def _restore(self, saved: Saved) -> None:
        hidden, base = saved.entry("n_hidden", int), saved.array("base", "f", (-1,))
        size = len(base) * hidden + len(base) + hidden
        saved.require(hidden >= 1 and len(base) >= 1, "at least one unit in each layer", f"{len(base)} and {hidden}")
        saved.require(len(self.theta_) == size, f"{size} parameters in theta", f"{len(self.theta_)}")
        saved.require(np.isfinite(self.theta_).all(), "finite parameters", "others")
        self._set(base, hidden)


def _dense(X: Any) -> FloatArray:
    """Return rows as an array; sparse ones are unpacked."""
    return dense(X.toarray() if sparse.issparse(X) else X, "X", "samples, features")
