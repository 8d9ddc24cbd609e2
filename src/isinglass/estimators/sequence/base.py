"""The base class of estimators for sequences: predictions from scores of tokens and one transition table.

A fitted estimator is a `SequenceModel` with parameters theta. A labelling of a sequence has the score

    sum_t f_t(y_t) + sum_t g(y_{t-1}, y_t)

and p(y | X) is proportional to its exponential: for a CRF by definition, for an HMM because f and g are logarithms of
probabilities, for an MEMM once its local normalisers are in f (`isinglass.inference.chain.exact.subtract_local`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, pairwise, product
from operator import attrgetter, itemgetter
from threading import local
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass import decoding
from isinglass.errors import require
from isinglass.estimators.parameters import DecoderLike, IgnoredLabel
from isinglass.estimators.persistence import Saved
from isinglass.estimators.predicting import warn_of_scores
from isinglass.estimators.sequence.constraints import Constraints, constraints
from isinglass.estimators.sequence.features import Encoded, FeatureIndex
from isinglass.estimators.sequence.files import chain_contents, restore_chain
from isinglass.estimators.sequence.labels import NOT_OBSERVED, codes_of, observed_labels
from isinglass.estimators.weights import ExplainedSequence
from isinglass.inference.chain.exact import (
    Room,
    Transition,
    best_labels,
    draw_labels,
    n_best_labels,
    posterior,
    require_possible,
)
from isinglass.learning.training.checks import renamed, share_right
from isinglass.learning.training.choices import is_automatic
from isinglass.models.chain.attributes import Tokens
from isinglass.models.chain.layout import width_of
from isinglass.models.chain.model import SequenceModel, Sequences
from isinglass.runtime.collecting import no_collection
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, generator, jobs_of, whole_number

_log_z = attrgetter("log_z")


class SequenceEstimator(ExplainedSequence):
    """Base class of estimators that label sequences; subclasses learn `index_`, `classes_`, `model_` and `theta_`.

    Parameters
    ----------
    forbidden : collection of (before, after), optional
        Forbidden transitions; the probabilities of the others are renormalised. (None, y): y may not be first, (x,
        None): x may not be last.
    n_states : int, optional
        The number of labels, where they are 0, 1, ..., n_states - 1 and some may have no examples. By default the
        labels that occur are the classes.
    ignore_label : optional
        A further label that means "not observed", such as 255; None, and -1 among numbers, always do.
    decoder : "auto", "map" or "mpm", default="auto"
        "map", which "auto" is: the most probable labelling; "mpm": the most probable label of each token.

    Attributes
    ----------
    classes_ : list
        The labels, sorted if possible.
    state_features_ : dict
        The weight of each pair (attribute, label).
    n_features_in_
    """

    version: ClassVar[int] = 2  # 1 wrote tuples as lists
    decoder: DecoderLike
    ignore_label: IgnoredLabel
    index_: FeatureIndex
    classes_: list[Any]
    model_: SequenceModel
    theta_: FloatArray
    parameters_: dict[str, FloatArray]

    def _normalise(self, scores: FloatArray, offsets: IntArray, transition: Transition) -> None:
        """Change scores so that p(y | X) is proportional to the exponential of their sum; a CRF's are so already."""

    def encode(self, X: Any) -> Encoded:
        """Encode sequences once, with the attributes of the fitted estimator, for several calls.

        The result can be used as X in `predict` and all other methods, except `fit` and `partial_fit`.
        """
        self._require_fitted()
        return self.index_.encode(X)

    def predict(self, X: Any, *, forced: Any = None, allowed: Any = None, forbidden: Any = None) -> list[list[Any]]:
        """Return the decoded labels of each sequence.

        Parameters
        ----------
        X : list of sequences
        forced : list of label sequences, optional
            Known labels; None for unknown ones.
        allowed : list of sequences of collections of labels, optional
            The labels that each token may have; None: any.
        forbidden : collection of (before, after), optional
            Forbidden transitions, in addition to those of the estimator.
        """
        data, rules = self._data(X, forced, allowed, forbidden)
        return self._spelt(self._codes(data, rules), data)

    def predict_marginals(
        self, X: Any, *, forced: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> list[FloatArray]:
        """Return the probability of each label, arrays (length, labels) in the order of `classes_`; see `predict`."""
        warn_of_scores(getattr(self, "loss", None))
        data, rules = self._data(X, forced, allowed, forbidden)
        beliefs = self._beliefs(data, rules)
        return [beliefs[a:b] for a, b in pairwise(data.offsets.tolist())]

    def predict_n_best(
        self, X: Any, n: int, *, forced: Any = None, allowed: Any = None, forbidden: Any = None
    ) -> list[list[tuple[list[Any], float]]]:
        """Return the n most probable labellings of each sequence, each with its log-probability; see `predict`.

        The list is shorter if a sequence has fewer labellings.
        """
        data, rules = self._data(X, forced, allowed, forbidden)
        n = whole_number(n, "n", 1)
        found, names = self._run(data, rules, partial(_n_best, n=n)), self.classes_
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
        codes = np.concatenate([np.zeros(0, np.int64), *(draw_labels(one, draw) for one in found)])
        return self._spelt(codes, data)

    def log_likelihood(self, X: Any, Y: Any) -> FloatArray:
        """Return the log-probability of the observed labels of each sequence, an array (sequences,); at most 0."""
        free, rules = self._data(X, None, None, None)
        with renamed("forced", "Y"):
            clamped = constraints(Y, None, None, self.classes_, free.offsets, self.ignore_label)
        run = partial(posterior, back=False)
        one, two = (np.concatenate([[], *(p.log_z for p in self._run(free, r, run))]) for r in (rules, clamped))
        return np.asarray(np.minimum(two - one, 0.0))  # rounding of very large scores may be above

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of observed labels that `predict` gets right."""
        data, rules = self._data(X, None, None, None)
        flat = observed_labels(Y, data.offsets, ignore_label=self.ignore_label)
        labels = codes_of(flat, self.classes_, strict=False)
        return share_right(self._codes(data, rules), labels, np.diff(data.offsets), sample_weight, NOT_OBSERVED)

    @property
    def state_features_(self) -> dict[tuple[Any, Any], float]:
        """The weight of each pair (attribute, label); for arrays, attributes are column numbers."""
        self._require_fitted()
        titles, features = self.index_.titles(), self.model_.features
        keys = zip(features.attributes.tolist(), features.labels.tolist(), strict=True)
        weights = self.parameters_["state"].tolist()
        return {(titles[a], self.classes_[y]): w for (a, y), w in zip(keys, weights, strict=True)}

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weight of each transition (before, after)."""
        self._require_fitted()
        weights = self.parameters_["transition"].ravel().tolist()
        return dict(zip(product(self.classes_, repeat=2), weights, strict=True))

    def _parameter_name(self, i: int) -> str:
        features = self.model_.features
        if i >= features.size:
            return super()._parameter_name(i)
        attribute, label = self.index_.titles()[features.attributes[i]], self.classes_[features.labels[i]]
        return f"the weight of attribute {attribute!r} for label {label!r}"

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        return chain_contents(self)

    def _restore(self, saved: Saved) -> None:
        restore_chain(self, saved)

    def _data(self, X: Any, forced: Any, allowed: Any, forbidden: Any) -> tuple[Encoded, Constraints]:
        self._require_fitted()
        data = self.index_.encode(X)
        return data, constraints(forced, allowed, forbidden, self.classes_, data.offsets, self.ignore_label)

    def _codes(self, data: Encoded, rules: Constraints) -> IntArray:
        """Decode, and return the numbers of the labels."""
        if decoder_of(self) == "mpm":
            return np.asarray(self._beliefs(data, rules).argmax(axis=1))
        best = self._run(data, rules, best_labels, itemgetter(1))
        return np.concatenate([np.zeros(0, np.int64), *(codes for codes, _ in best)])

    def _beliefs(self, data: Encoded, rules: Constraints) -> FloatArray:
        """Return the probability of each label of all tokens (tokens, labels)."""
        k = self.model_.features.card
        found = self._run(data, rules, posterior, _log_z)
        return np.concatenate([np.zeros((0, k)), *(one.nodes[:, :k] for one in found)])

    def _spelt(self, codes: IntArray, data: Encoded) -> list[list[Any]]:
        """Return labels for numbers, sequence by sequence."""
        classes = np.fromiter(self.classes_, object, len(self.classes_))
        names = classes[codes].tolist()
        with no_collection():
            return [names[a:b] for a, b in pairwise(data.offsets.tolist())]

    def _run(
        self,
        data: Encoded,
        rules: Constraints,
        work: Callable[[FloatArray, IntArray, Transition], Any],
        values: Callable[[Any], FloatArray] | None = None,
    ) -> list[Any]:
        """Do some work on every piece of the data, side by side; `values` of it must be finite for each sequence."""
        sequences = Sequences(Tokens(self.model_.features, data.tokens), data.offsets)
        tables = self.model_.tables(self.theta_, sequences.tokens)
        own, ruled = Transition(tables.transition), Transition(rules.ruled(tables.transition))

        rooms = local()

        def one(first: int, last: int) -> Any:
            cut = sequences.offsets[first : last + 1]
            room = rooms.own = getattr(rooms, "own", None) or Room()
            offsets, scores = cut - cut[0], room.take("scores", int(cut[-1] - cut[0]), width_of(own.card))
            sequences.scores(tables, first, last, scores)
            self._normalise(scores, offsets, own)
            rules.rule_out(scores, int(cut[0]), offsets)
            found = work(scores, offsets, ruled)
            if values is not None:
                require_possible(values(found), first)
            return found

        return ThreadMap(jobs_of(self.n_jobs))(one, list(sequences.pieces()))


def _n_best(scores: FloatArray, offsets: IntArray, transition: Transition, n: int) -> list[tuple[IntArray, FloatArray]]:
    """Return the n best labellings of each sequence, with log-probabilities."""
    found = []
    log_z = posterior(scores.copy(), offsets, transition, back=False).log_z
    require_possible(log_z)
    for s, (a, b) in enumerate(pairwise(offsets.tolist())):
        paths, values = n_best_labels(scores[a:b], transition, n)
        found.append((paths, np.minimum(values - log_z[s], 0.0)))
    return found


def decoder_of(estimator: Any) -> str:
    """Return the name of the decoder."""
    given = estimator.decoder
    name = "map" if is_automatic(given) else decoding.make(given).name
    require(name in ("map", "mpm"), "decoder", "'map' or 'mpm'", repr(name))
    return name
