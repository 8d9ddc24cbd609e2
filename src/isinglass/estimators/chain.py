"""Conditional random fields on sequences, exact."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import chain, pairwise
from operator import attrgetter, itemgetter
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import ConvergenceWarning, InputError
from isinglass.estimators import chain_files
from isinglass.estimators.base import BaseEstimator, NotFittedError
from isinglass.estimators.chain_constraints import Constraints, constraints
from isinglass.estimators.chain_features import Encoded, FeatureIndex, codes_of, flat_labels
from isinglass.estimators.chain_training import ChainProblem, checked, decoder_of, go_on, problem_of, with_validation
from isinglass.estimators.checks import example_weights
from isinglass.estimators.training import Epoch, train
from isinglass.inference.sequences import (
    Transition,
    best_labels,
    draw_labels,
    n_best_labels,
    posterior,
    require_possible,
)
from isinglass.io.files import PathLike
from isinglass.learning.optimisers.base import OptimResult
from isinglass.learning.sequences import Spreading
from isinglass.models.attributes import width_of
from isinglass.models.sequences import SequenceModel, Sequences, Tables
from isinglass.validation import RandomState, generator, whole_number

FloatArray = NDArray[np.float64]
_log_z = attrgetter("log_z")


class ChainCRF(BaseEstimator):  # type: ignore[misc]
    """A linear-chain conditional random field: labels of sequences, with exact inference.

    The objective is the sum over sequences of the loss, plus ``l2`` times the squares and ``l1`` times the absolute
    values of all parameters, as CRFsuite's c2 and c1.

    Parameters
    ----------
    loss : str or Loss, default="cl"
        "cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass".
    optimizer : str or Optimizer, default="lbfgs"
    l2, l1 : float
        With `l1` the optimiser is OWL-QN, and many parameters are zero.
    state_features : "seen" or "all", default="seen"
        Which pairs of attribute and label have a weight: those that occur in the training data, or all.
    min_count : int, default=1
        Pairs ("seen") or attributes ("all") that occur less often have no weight.
    boundary : bool, default=False
        Whether the first and the last label of a sequence have parameters of their own.
    bias : bool, default=False
        Append an attribute that is always there.
    forbidden : collection of (before, after), optional
        Labels that may not follow one another, in training and prediction; (None, y): y may not be first, (x, None): x
        may not be last.
    decoder : "map" or "mpm", default="map"
        The best labelling as a whole, or the best label of each token.
    class_weight : "balanced" or dict, optional
        For losses that are sums over labels.
    tol, max_iter
        Of an optimiser that is given by name (`max_iter`: epochs, for those that go through minibatches).
    patience : int, default=5
        With validation data: how many looks at them without a lower loss end training.
    n_jobs : int, default=1
        Threads. Results have the same bits for any number.
    warm_start : bool
        Begin a further `fit` with the parameters, attributes and classes of the last.
    checkpoint : str or os.PathLike, optional
        A file that training keeps its state in; if it is there, training goes on from it.
    callback : callable, optional
        Called with the progress of each iteration; training ends if it returns True.
    verbose : bool

    Attributes
    ----------
    classes_ : list
        The labels, in order if they have one.
    parameters_ : dict of str to array
        "state" (weights,), "transition" (labels, labels), rows: the earlier label; "start" and "end" with `boundary`.
    state_features_ : dict
        From (attribute, label) to weight.
    theta_ : array
    history_ : list of Epoch
    n_iter_, converged_, objective_, message_, n_features_in_

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, Y)
    >>> crf.predict([[["w=a"], ["w=cat"], ["w=barks"]]])
    [['D', 'N', 'V']]
    >>> crf.predict_marginals(X)[0].shape
    (2, 3)
    """

    def __init__(
        self,
        loss: Any = "cl",
        optimizer: Any = "lbfgs",
        l2: Any = 1.0,
        l1: Any = 0.0,
        state_features: Any = "seen",
        min_count: Any = 1,
        boundary: Any = False,
        bias: Any = False,
        forbidden: Any = None,
        decoder: Any = "map",
        class_weight: Any = None,
        tol: Any = 1e-4,
        max_iter: Any = 200,
        patience: Any = 5,
        n_jobs: Any = 1,
        warm_start: Any = False,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: Any = False,
    ) -> None:
        self.loss = loss
        self.optimizer = optimizer
        self.l2 = l2
        self.l1 = l1
        self.state_features = state_features
        self.min_count = min_count
        self.boundary = boundary
        self.bias = bias
        self.forbidden = forbidden
        self.decoder = decoder
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.patience = patience
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.callback = callback
        self.verbose = verbose

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters.

        Ctrl-C ends training in order: the best parameters so far are kept, with a warning.

        Parameters
        ----------
        X : list of sequences
            Arrays (length, features), dense or scipy.sparse, or lists of tokens: dicts or lists of strings.
        Y : list of label sequences
            Labels of any hashable type; None, and -1 where labels are integers, is "not observed".
        sample_weight : array (sequences,), optional
            How often each sequence counts.
        validation : tuple (X, Y), optional
            Sequences that nothing is learned from. Their loss is looked at after each iteration (each epoch, with
            minibatches): the parameters where it was least are kept, and after `patience` looks without a lower one
            training ends.
        """
        chosen = checked(self)
        again = bool(self.warm_start) and hasattr(self, "theta_")
        problem = with_validation(problem_of(self, chosen, X, Y, sample_weight, known=again), validation)
        start = self.theta_.copy() if again else np.zeros(problem.model.size)
        problem.chosen.optimizer.check(len(start))
        self.history_: list[Epoch] = []
        found = train(problem, start, self)
        self._keep(problem, found)
        self._warn(found)
        return self

    def partial_fit(self, X: Any, Y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go once through some sequences with a minibatch optimiser ("sgd", "adagrad", "adam").

        Attributes are those of the first call; `state_features="all"` gives them weights for labels that come later.

        Parameters
        ----------
        X, Y, sample_weight
            As for `fit`. The penalty counts in full for these sequences.
        classes : list, optional
            All labels; without it those of the first call.
        """
        chosen = checked(self)
        known = hasattr(self, "theta_")
        problem = problem_of(self, chosen, X, Y, sample_weight, known=known, classes=classes)
        if not known:
            self.history_ = []
        found = go_on(problem, self.theta_ if known else np.zeros(problem.model.size), self)
        self._keep(problem, found)
        self._optimizer_state = found.state
        return self

    def encode(self, X: Any) -> Encoded:
        """Lay out sequences once, by the attributes of the fitted estimator, for several calls.

        What it returns can be given as X to `predict` and all other methods but `fit` and `partial_fit`.
        """
        self._require_fitted()
        return self.index_.encode(X)

    def predict(self, X: Any, *, forced: Any = None, allowed: Any = None, forbidden: Any = None) -> list[list[Any]]:
        """Return the decoded labels of each sequence.

        Parameters
        ----------
        X : list of sequences
        forced : list of label sequences, optional
            Labels that are known; None where not.
        allowed : list of sequences of collections of labels, optional
            The labels that each token may have; None: any.
        forbidden : collection of (before, after), optional
            Labels that may not follow one another, beside those of the estimator.
        """
        data, rules = self._data(X, forced, allowed, forbidden)
        return self._spelt(self._codes(data, rules), data)

    def predict_marginals(
        self, X: Any, *, forced: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> list[FloatArray]:
        """Return the probability of each label, arrays (length, labels), columns as `classes_`; see `predict`."""
        data, rules = self._data(X, forced, allowed, forbidden)
        k = len(self.classes_)
        found = self._run(data, rules, posterior, _log_z)
        flat = np.concatenate([one.nodes[:, :k] for one in found]) if found else np.zeros((0, k))
        return np.split(flat, data.offsets[1:-1])

    def predict_n_best(
        self, X: Any, n: int, *, forced: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the n best labellings of each sequence, best first, each with its log-probability; see `predict`.

        A sequence that has fewer labellings has a shorter list.
        """
        data, rules = self._data(X, forced, allowed, forbidden)
        n = whole_number(n, "n", 1)
        found = self._run(data, rules, partial(_n_best, n=n))
        names = self.classes_
        return [
            [([names[y] for y in path], value) for path, value in zip(paths.tolist(), values.tolist(), strict=True)]
            for paths, values in chain.from_iterable(found)
        ]

    def sample(
        self,
        X: Any,
        random_state: RandomState = None,
        *,
        forced: Any = None,
        allowed: Any = None,
        forbidden: Any = None,
    ) -> list[list[Any]]:
        """Draw labels of each sequence from their joint distribution; see `predict`."""
        data, rules = self._data(X, forced, allowed, forbidden)
        draw = generator(random_state)
        found = self._run(data, rules, partial(posterior, back=False), _log_z)
        return self._spelt(np.concatenate([draw_labels(one, draw) for one in found]), data)

    def log_likelihood(self, X: Any, Y: Any) -> FloatArray:
        """Return the log-probability of the observed labels of each sequence, an array (sequences,)."""
        free, rules = self._data(X, None, None, None)
        clamped = constraints(Y, None, None, self.classes_, free.offsets)
        run = partial(posterior, back=False)
        one, two = (np.concatenate([p.log_z for p in self._run(free, r, run)]) for r in (rules, clamped))
        return np.asarray(two - one)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of observed labels that `predict` gets right."""
        data, rules = self._data(X, None, None, None)
        labels = codes_of(flat_labels(Y, data.offsets), self.classes_, strict=False)
        seen = (labels != -1).astype(np.float64)
        if sample_weight is not None:
            sizes = np.diff(data.offsets)
            seen *= np.repeat(example_weights(sample_weight, len(sizes)), sizes)
        if seen.sum() == 0:
            raise InputError("Y", "at least one observed label", "none", "None, or -1 for integers, is not observed")
        return float(((self._codes(data, rules) == labels) * seen).sum() / seen.sum())

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """The weights of attributes, by (attribute, label); attributes of arrays are the numbers of columns."""
        self._require_fitted()
        titles, features = self.index_.titles(), self.model_.features
        keys = zip(features.attributes.tolist(), features.labels.tolist(), strict=True)
        weights = self.parameters_["state"].tolist()
        return {(titles[a], self.classes_[y]): w for (a, y), w in zip(keys, weights, strict=True)}

    def save(self, path: PathLike) -> None:
        """Write the fitted estimator to a file of arrays and JSON, all or nothing; nothing in it is run when read.

        Labels must be strings, numbers, Booleans, or tuples of those.
        """
        self._require_fitted()
        chain_files.save(self, path)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read an estimator that `save` wrote; safe for files of unknown origin."""
        return chain_files.load(cls, path)  # type: ignore[no-any-return]

    def _keep(self, problem: ChainProblem, found: OptimResult) -> None:
        """Set what is learned."""
        self.index_: FeatureIndex = problem.index
        self.classes_: list[Any] = problem.classes
        self.model_: SequenceModel = problem.model
        self.theta_: FloatArray = found.x
        self.parameters_: dict[str, FloatArray] = problem.model.split(found.x)
        self.n_features_in_ = problem.index.n_given
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message

    def _warn(self, found: OptimResult) -> None:
        """Say where training did not end by itself."""
        if found.message == "interrupted":
            text = f"training was interrupted after {found.iterations} iterations; the best parameters so far are kept"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)
        elif not (found.converged or found.message.startswith(("stopped by the callback", "the validation loss"))):
            text = f"training stopped after {found.iterations} iterations: {found.message}; raise max_iter or tol"
            warnings.warn(text, ConvergenceWarning, stacklevel=3)

    def _require_fitted(self) -> None:
        if not hasattr(self, "theta_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _data(self, X: Any, forced: Any, allowed: Any, forbidden: Any) -> tuple[Encoded, Constraints]:
        self._require_fitted()
        data = self.index_.encode(X)
        return data, constraints(forced, allowed, forbidden, self.classes_, data.offsets)

    def _codes(self, data: Encoded, rules: Constraints) -> NDArray[np.int64]:
        """Decode, and return the numbers of the labels."""
        k = len(self.classes_)
        if decoder_of(self) == "mpm":
            found = self._run(data, rules, posterior, _log_z)
            return np.concatenate([one.nodes[:, :k].argmax(axis=1) for one in found])
        best = self._run(data, rules, best_labels, itemgetter(1))
        return np.concatenate([labels for labels, _ in best])

    def _spelt(self, codes: NDArray[np.int64], data: Encoded) -> list[list[Any]]:
        """Return labels for numbers, sequence by sequence."""
        names = list(map(self.classes_.__getitem__, codes.tolist()))
        ends = data.offsets.tolist()
        return [names[a:b] for a, b in pairwise(ends)]

    def _run(
        self,
        data: Encoded,
        rules: Constraints,
        work: Callable[[FloatArray, NDArray[np.int64], Transition], Any],
        values: Callable[[Any], FloatArray] | None = None,
    ) -> list[Any]:
        """Do some work on every piece of the data, side by side; `values` of it must be finite for each sequence."""
        model = self.model_
        ruled = SequenceModel(model.features, model.boundary, model.forbidden | rules.forbidden)
        sequences = Sequences(model.features.compiled(data.X), data.offsets)
        tables = ruled.tables(self.theta_, sequences.tokens)
        transition = Transition(tables.transition)

        def one(first: int, last: int) -> Any:
            scores, offsets = _scores(sequences, tables, rules, first, last)
            found = work(scores, offsets, transition)
            if values is not None:
                require_possible(values(found), first)
            return found

        return Spreading(whole_number(self.n_jobs, "n_jobs", 1))(one, list(sequences.pieces()))


def _scores(
    sequences: Sequences, tables: Tables, rules: Constraints, first: int, last: int
) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the scores of some sequences, -inf for what is ruled out, and their offsets from 0 on."""
    offsets = sequences.offsets[first : last + 1]
    scores = np.empty((int(offsets[-1] - offsets[0]), width_of(len(tables.transition))))
    sequences.scores(tables, first, last, scores)
    rules.rule_out(scores, int(offsets[0]), int(offsets[-1]))
    return scores, offsets - offsets[0]


def _n_best(
    scores: FloatArray, offsets: NDArray[np.int64], transition: Transition, n: int
) -> list[tuple[NDArray[np.int64], FloatArray]]:
    """Return the n best labellings of each sequence, with log-probabilities."""
    found = []
    log_z = posterior(scores.copy(), offsets, transition, back=False).log_z
    require_possible(log_z)
    for s, (a, b) in enumerate(pairwise(offsets.tolist())):
        paths, values = n_best_labels(scores[a:b], transition, n)
        found.append((paths, values - log_z[s]))
    return found
