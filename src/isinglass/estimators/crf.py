"""What all estimators share: from data to a model, to an objective, to parameters, to predictions.

They keep scikit-learn's contract: nothing is checked in ``__init__``; `fit` checks everything before any work; what is
learned has a trailing underscore. Only orchestration is here: models, losses, gradient rules, optimisers and decoders
are those of their own packages.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from isinglass import decoding, losses
from isinglass.errors import ConvergenceWarning, InputError
from isinglass.gradients import rule
from isinglass.inference import Algorithm, Info, Result, infer
from isinglass.inference.algorithm import make
from isinglass.learning.combinations import require_valid
from isinglass.learning.objective import Objective
from isinglass.learning.optimisers import make_optimizer
from isinglass.models import Model
from isinglass.validation import IntArray, number, whole_number

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Examples as learning sees them: a model, flat labels (-1: not observed), and how to hand out flat results."""

    model: Model
    labels: IntArray | None
    sizes: IntArray  # (examples,) variables of each


@dataclass(frozen=True)
class Epoch:
    """One iteration of training, as `history_` keeps it."""

    iteration: int
    value: float
    gradient_norm: float
    inference_iterations: int
    converged: bool


class CRF(BaseEstimator):  # type: ignore[misc]
    """Base class of conditional random fields with node and edge parameters."""

    inference: Any
    iterations: Any
    loss: Any
    gradient: Any
    optimizer: Any
    l2: Any
    edge_l2: Any
    tol: Any
    max_iter: Any
    decoder: Any
    n_states: Any
    class_weight: Any
    warm_start: Any
    callback: Any
    verbose: Any

    @abstractmethod
    def _batch(self, X: Any, Y: Any, n_states: int) -> Batch:
        """Check data and compile the model."""

    @abstractmethod
    def _shape_labels(self, X: Any, flat: NDArray[Any], batch: Batch) -> Any:
        """Hand out one row for each variable in the shape of the data."""

    @abstractmethod
    def _flat_labels(self, X: Any, Y: Any) -> IntArray:
        """Check labels and lay them out flat."""

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Any:
        """Learn the parameters.

        Parameters
        ----------
        X, Y
            Examples and their labels; -1 is "not observed".
        sample_weight : array (examples,), optional

        Returns
        -------
        self
        """
        algorithm, loss, gradient = self._algorithm(), losses.make(self.loss), rule(self.gradient)
        require_valid(loss, algorithm, gradient)
        labels = self._flat_labels(X, Y)
        n_states = self._states(labels)
        batch = self._batch(X, labels, n_states)
        weights = self._weights(batch, labels, sample_weight, n_states)
        objective = Objective(batch.model, labels, loss, algorithm, gradient, self._penalty(batch.model), weights)
        start = self._start(batch.model, n_states)
        self.history_: list[Epoch] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the share that converged is in history_
            found = self._optimizer().minimise(objective, start, callback=self._told(objective))
        self.n_states_, self.theta_, self.parameters_ = n_states, found.x, batch.model.split(found.x)
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message
        self.n_features_in_ = batch.model.parameters["node"][0]
        if not found.converged and found.iterations >= self.max_iter:
            text = f"training stopped after {found.iterations} iterations; raise max_iter or tol"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return self

    def infer(self, X: Any) -> Result:
        """Return the inference on new examples, all of them in one result."""
        return self._infer(X)[1]

    def predict_marginals(self, X: Any) -> Any:
        """Return the belief of each state, for each variable, in the shape of the data."""
        batch, result = self._infer(X)
        return self._shape_labels(X, np.asarray(result.variables), batch)

    def predict(self, X: Any) -> Any:
        """Return the decoded label of each variable."""
        batch, result = self._infer(X)
        return self._shape_labels(X, decoding.make(self.decoder)(result), batch)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of observed labels that `predict` gets right."""
        labels = self._flat_labels(X, Y)
        batch, result = self._infer(X)
        right = decoding.make(self.decoder)(result) == labels
        seen = (labels >= 0).astype(np.float64)
        if sample_weight is not None:
            seen *= np.repeat(_example_weights(sample_weight, batch), batch.sizes)
        if seen.sum() == 0:
            raise InputError("Y", "at least one observed label", "none")
        return float((right * seen).sum() / seen.sum())

    def _infer(self, X: Any) -> tuple[Batch, Result]:
        if not hasattr(self, "theta_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")
        batch = self._batch(X, None, self.n_states_)
        features = batch.model.parameters["node"][0]
        if features != self.n_features_in_:
            raise InputError("X", f"{self.n_features_in_} features, as in fit", f"{features}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return batch, infer(batch.model.potentials(self.theta_), self._algorithm())

    def _algorithm(self) -> Algorithm:
        options = {"iterations": self.iterations} if self.iterations is not None else {}
        return make(self.inference, {**options, **self._inference_options()})

    def _inference_options(self) -> dict[str, Any]:
        return {}

    def _optimizer(self) -> Any:
        if not isinstance(self.optimizer, str):
            return self.optimizer
        steps, tol = whole_number(self.max_iter, "max_iter", 1), number(self.tol, "tol", 0, np.inf)
        return make_optimizer(self.optimizer, max_iter=steps, tol=tol)

    def _states(self, labels: IntArray) -> int:
        """Return the given number of states, or the largest label and one."""
        most = int(labels.max(initial=-1)) + 1
        if self.n_states is None:
            if most < 2:
                raise InputError("Y", "at least two labels", f"{most}", "or give n_states")
            return most
        n_states = whole_number(self.n_states, "n_states", 2)
        if most > n_states:
            raise InputError("Y", f"labels below n_states = {n_states}", f"{most - 1}")
        return n_states

    def _penalty(self, model: Model) -> FloatArray:
        """Return the l2 penalty of each parameter; edges may have their own."""
        node = number(self.l2, "l2", 0, np.inf)
        edge = node if self.edge_l2 is None else number(self.edge_l2, "edge_l2", 0, np.inf)
        return np.where(model.mask("node"), node, edge)

    def _start(self, model: Model, n_states: int) -> FloatArray:
        if self.warm_start and hasattr(self, "theta_") and len(self.theta_) == model.size:
            return self.theta_.copy()  # type: ignore[no-any-return]
        return np.zeros(model.size)

    def _weights(self, batch: Batch, labels: IntArray, sample_weight: Any, n_states: int) -> FloatArray | None:
        """Multiply the weights of examples and of classes."""
        if sample_weight is None and self.class_weight is None:
            return None
        weights = np.ones(len(labels))
        if sample_weight is not None:
            weights *= np.repeat(_example_weights(sample_weight, batch), batch.sizes)
        if self.class_weight is not None:
            weights *= _class_weights(self.class_weight, labels, n_states)[np.maximum(labels, 0)]
        return weights

    def _told(self, objective: Objective) -> Any:
        """Return a callback that keeps the history, and tells the user's."""

        def told(progress: Any) -> bool:
            infos: list[Info] = objective.infos
            epoch = Epoch(
                progress.iteration,
                progress.value,
                progress.gradient_norm,
                max((info.iterations for info in infos), default=0),
                all(info.converged for info in infos),
            )
            self.history_.append(epoch)
            if self.verbose:
                print(f"{epoch.iteration:5d}  {epoch.value:.8g}  |g| {epoch.gradient_norm:.2e}", flush=True)
            return bool(self.callback(progress)) if self.callback is not None else False

        return told


def _example_weights(given: Any, batch: Batch) -> FloatArray:
    weights = np.asarray(given, np.float64)
    if weights.shape != (len(batch.sizes),):
        expected = f"one number for each of {len(batch.sizes)} examples"
        raise InputError("sample_weight", expected, f"shape {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise InputError("sample_weight", "finite numbers that are not negative", repr(weights)[:60])
    return weights


def _class_weights(given: Any, labels: IntArray, n_states: int) -> FloatArray:
    """Return a weight for each label: given ones, or "balanced" as scikit-learn counts it."""
    if isinstance(given, str):
        if given != "balanced":
            raise InputError("class_weight", "'balanced' or a weight for each label", repr(given))
        counts = np.bincount(labels[labels >= 0], minlength=n_states)
        return np.asarray(counts.sum() / (n_states * np.maximum(counts, 1)))
    if isinstance(given, dict):
        return np.array([float(given.get(k, 1.0)) for k in range(n_states)])
    weights = np.asarray(given, np.float64)
    if weights.shape != (n_states,):
        raise InputError("class_weight", f"one number for each of {n_states} labels", f"shape {weights.shape}")
    return weights


def checked_labels(values: Any, shape: tuple[int, ...], argument: str) -> IntArray:
    """Check the integer labels of one example, -1 where not observed."""
    array = np.asarray(values)
    if array.shape != shape:
        raise InputError(argument, f"labels of shape {shape}", f"shape {array.shape}")
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise InputError(argument, "integer labels", f"dtype {array.dtype}", "convert with .astype(int)")
    labels = array.astype(np.int64)
    if (labels < -1).any():
        raise InputError(argument, "labels from 0 on, and -1 for not observed", f"{labels.min()}")
    return labels.ravel()


def refuse_spins(labels: IntArray) -> None:
    """Refuse labels {-1, +1}, in which -1 would be taken for "not observed"."""
    if len(labels) and set(np.unique(labels).tolist()) == {-1, 1}:
        raise InputError("Y", "labels 0, 1, ...; -1 means not observed", "labels -1 and 1 only", "use (Y + 1) // 2")
