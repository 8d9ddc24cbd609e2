"""Whole labellings of graphs and images: samples, n-best lists, and log-probabilities.

Training and `predict` use the inference of the estimator. The methods here need the joint distribution of all labels of
an example, so they use another algorithm: by default exact inference, which is possible on small graphs, trees and
narrow grids.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.estimators.classes import Classes, labels_of, numbered
from isinglass.estimators.parameters import IgnoredLabel
from isinglass.estimators.weights import ExplainedField
from isinglass.inference import Algorithm, infer, n_best
from isinglass.inference import sample as draw
from isinglass.learning.training.problem import sizes_of
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, generator, whole_number


class JointPredictions(ExplainedField):
    """Methods of random fields on graphs for whole labellings."""

    _labels: Classes
    ignore_label: IgnoredLabel
    n_states_: int

    @abstractmethod
    def _stage(self) -> Any:
        """Return the estimator of the stage that the parameters are of."""

    @abstractmethod
    def _examples(self, X: Any) -> Any:
        """Check that X is a sequence of examples, and return it so that it can be indexed."""

    @abstractmethod
    def _flat_labels(self, X: Any, Y: Any) -> IntArray:
        """Check labels and lay them out flat."""

    @abstractmethod
    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> Any:
        """Hand out one row for each variable in the shape of the data."""

    @abstractmethod
    def predict_marginals(self, X: Any) -> Any:
        """Return the belief of each state, for each variable, in the shape of the data."""

    def predict_proba(self, X: Any) -> Any:
        """Return the belief of each label, like `predict_marginals`; columns are in the order of `classes_`."""
        return self.predict_marginals(X)

    def sample(self, X: Any, random_state: RandomState = None, algorithm: str | Algorithm = "exact") -> Any:
        """Draw labels of each example from their joint distribution.

        Parameters
        ----------
        X
            Examples, as in `fit`.
        random_state : int or Generator, optional
        algorithm : str or Algorithm, default="exact"
            An algorithm that can sample, such as "gibbs" if the graph is too large for exact inference.

        Examples
        --------
        >>> import isinglass as ig
        >>> Y = np.array([[[0, 1], [0, 1]], [[1, 1], [0, 0]]])
        >>> crf = ig.GridCRF(bias=True, l2=0.1).fit(Y[..., None].astype(float), Y)
        >>> crf.sample(Y[..., None], random_state=0).shape
        (2, 2, 2)
        """
        self._require_fitted()
        model, p = self._joint(self._examples(X))
        drawn = draw(p, 1, algorithm, random_state=generator(random_state))[0]
        return self._shaped(X, labels_of(drawn, self._labels), sizes_of(model))

    def predict_n_best(self, X: Any, n: int, algorithm: str | Algorithm = "exact") -> list[list[tuple[Any, float]]]:
        """Return the n most probable labellings of each example, best first, each with its log-probability.

        The list is shorter if an example has fewer labellings.

        Examples
        --------
        >>> import isinglass as ig
        >>> Y = np.array([[[0, 1], [0, 1]], [[1, 1], [0, 0]]])
        >>> crf = ig.GridCRF(bias=True, l2=0.1).fit(Y[..., None].astype(float), Y)
        >>> [labels.tolist() for labels, _ in crf.predict_n_best(Y[..., None], 2)[0]][0]
        [[0, 1], [0, 1]]
        """
        count = whole_number(n, "n", 1)
        found = []
        for example, model, p in self._each(X):
            log_z = float(infer(p, algorithm).log_z)
            shaped = [
                (self._shaped(example, labels_of(one.states, self._labels), sizes_of(model))[0], one.score - log_z)
                for one in n_best(p, count, algorithm)
            ]
            found.append(shaped)
        return found

    def log_likelihood(self, X: Any, Y: Any, algorithm: str | Algorithm = "exact") -> FloatArray:
        """Return the log-probability of the observed labels of each example, an array (examples,).

        With an approximate algorithm, such as "bp", it is the difference of two approximations of log Z.

        Examples
        --------
        >>> import isinglass as ig
        >>> Y = np.array([[[0, 1], [0, 1]], [[1, 1], [0, 0]]])
        >>> crf = ig.GridCRF(bias=True, l2=0.1).fit(Y[..., None].astype(float), Y)
        >>> bool((crf.log_likelihood(Y[..., None].astype(float), Y) < 0).all())
        True
        """
        self._require_fitted()
        examples = self._examples(X)
        _, p = self._joint(examples)
        labels = self._flat_labels(examples, numbered(Y, self._labels, self.ignore_label))
        seen = np.flatnonzero(labels >= 0)
        known = dict(zip(seen.tolist(), labels[seen].tolist(), strict=True))
        clamped, free = infer(p, algorithm, evidence=known), infer(p, algorithm)
        return np.asarray(clamped.component_log_z - free.component_log_z, np.float64)

    def _joint(self, examples: Any) -> tuple[Model, Potentials]:
        """Return the model and the potentials of checked examples."""
        stage = self._stage()
        model = stage._model(examples, self.n_states_)
        stage._require_same(model)
        if len(self.theta_) != model.size:
            got, remedy = "separate parameters for each iteration", "fit with own_parameters=False"
            raise InputError("own_parameters", "parameters that all iterations share", got, remedy)
        return model, model.potentials(self.theta_)

    def _each(self, X: Any) -> Iterator[tuple[Any, Model, Potentials]]:
        """Yield each example, as a batch of one, with its model and potentials."""
        self._require_fitted()
        examples = self._examples(X)
        for i in range(len(examples)):
            one = examples[i : i + 1]
            yield one, *self._joint(one)
