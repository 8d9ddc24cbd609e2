"""Hidden Markov models, learned from labelled data by counting, with naive Bayes for the attributes of a token.

    p(X, y)      =  p(y_1) prod_t p(y_t | y_{t-1}) prod_t p(x_t | y_t)               (Murphy 2012, equation 19.65)
    p(x_t | y)   ~  prod_a p(a | y)^{X_ta}                                           over the attributes of token t

X_ta is how often token t has the attribute a, usually 0 or 1; p(a | y) sums to one over attributes. With one attribute
for each token, such as its word, this is the classical HMM. Every probability is a smoothed relative frequency,

    p(y | x)  =  (N(x, y) + alpha) / sum_y' (N(x, y') + alpha),        p(a | y) and p(y_1) likewise,

so that p(y | X) is a chain whose scores are the logarithms of these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from isinglass.errors import InputError
from isinglass.estimators.parameters import DecoderLike, Forbidden, IgnoredLabel
from isinglass.estimators.persistence import register
from isinglass.estimators.sequence.base import SequenceEstimator, decoder_of
from isinglass.estimators.sequence.constraints import forbidden_table
from isinglass.estimators.sequence.features import Encoded, FeatureIndex
from isinglass.estimators.sequence.labels import classes_of, codes_of, observed_labels
from isinglass.learning.training.checks import example_weights
from isinglass.models.chain.attributes import StateFeatures
from isinglass.models.chain.model import SequenceModel, ends_of
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import jobs_of, positive, whole_number


@register
@dataclass(eq=False, repr=False)
class HMM(SequenceEstimator):
    """A hidden Markov model, learned from labelled sequences by counting.

    `log_likelihood`, `predict_marginals` and the other methods are those of labels given tokens, as in `ChainCRF`.

    Parameters
    ----------
    alpha : float, default=1.0
        The pseudo-count, added to every count; positive.
    n_jobs : int, optional
        The number of threads for predictions; -1: one for each processor. The default is the environment variable
        ISINGLASS_THREADS, or one.

    Attributes
    ----------
    parameters_ : dict of str to array
        Log-probabilities: "state" (attributes * labels,), "transition" (labels, labels), rows: the earlier label,
        "start" (labels,), and "end" (all zero). Forbidden entries are also zero.
    state_features_ : dict
        log p(attribute | label) of each pair (attribute, label).
    objective_ : float
        The negative log-probability of tokens and labels, including the pseudo-counts.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> hmm = HMM(alpha=0.1).fit(X, Y)
    >>> hmm.predict([[["w=a"], ["w=cat"], ["w=barks"]]])
    [['D', 'N', 'V']]
    >>> round(float(np.exp(hmm.state_features_["w=dog", "N"])), 4)  # 2.1 / 2.4
    0.875
    """

    schema: ClassVar[str] = "hmm"

    alpha: float = 1.0
    forbidden: Forbidden = None
    decoder: DecoderLike = "auto"
    n_states: int | None = None
    ignore_label: IgnoredLabel = None
    n_jobs: int | None = None

    def fit(self, X: Any, Y: Any, sample_weight: Any = None) -> Self:
        """Learn the probabilities by counting.

        Parameters
        ----------
        X : list of sequences
            Arrays (length, features), dense or scipy.sparse, or lists of tokens: dicts or lists of strings. Values
            must not be negative.
        Y : list of label sequences
            Labels of one hashable type. "Not observed" is None; for numbers also -1, or a masked entry. The token and
            its transitions are then not counted.
        sample_weight : array (sequences,), optional
            The weight of each sequence.
        """
        self._check()
        alpha = self._alpha()
        index, data = FeatureIndex.learn(X, False)
        if (data.X.data < 0).any():
            raise InputError("X", "attributes that are counts", f"{data.X.data.min():g}", "use ChainCRF, or indicators")
        flat = observed_labels(Y, data.offsets, "Y", True, self.ignore_label)
        classes = classes_of(flat, self.n_states)
        sizes = np.diff(data.offsets)
        weights = np.ones(len(sizes)) if sample_weight is None else example_weights(sample_weight, len(sizes))
        emissions, moves = _counts(data, codes_of(flat, classes), np.repeat(weights, sizes), len(classes))
        self._set(index, classes, emissions + alpha, moves, alpha)
        return self

    def _set(
        self, index: FeatureIndex, classes: list[Any], emissions: FloatArray, moves: FloatArray, alpha: float
    ) -> None:
        """Set what is learned from counts (labels, attributes) and (labels + 1, labels)."""
        k, forbidden = len(classes), forbidden_table(self.forbidden, classes)
        ruled_out = forbidden[:, :k]
        if (moves[ruled_out] > 0).any():
            x, y = np.argwhere(ruled_out & (moves > 0))[0]
            pair = (classes[x] if x < k else None, classes[y])
            raise InputError("Y", "labels that the model allows", f"the forbidden transition {pair!r:.60}")
        smoothed = np.where(ruled_out, 0.0, moves + alpha)
        states, steps = _log_shares(emissions), _log_shares(smoothed)
        self.index_, self.classes_ = index, classes
        self.model_ = SequenceModel(StateFeatures.all_pairs(index.n_attributes, k), True, forbidden)
        self.theta_ = self.model_.joined(states.T.ravel(), steps[:k], steps[k], np.zeros(k))
        self.parameters_ = self.model_.split(self.theta_)
        self.objective_ = -float((emissions * states).sum() + (smoothed * steps).sum())
        self.history_ = []
        self.n_features_in_ = index.n_given
        self.n_iter_, self.converged_, self.message_ = 1, True, "counted"

    def _check(self) -> None:
        decoder_of(self)
        if self.n_states is not None:
            whole_number(self.n_states, "n_states", 2)
        jobs_of(self.n_jobs)
        self._alpha()

    def _alpha(self) -> float:
        return positive(self.alpha, "alpha", "a small one hardly smooths")


def _counts(data: Encoded, labels: IntArray, weights: FloatArray, card: int) -> tuple[FloatArray, FloatArray]:
    """Count attributes by label (labels, attributes), and labels by the one before (labels + 1, labels; last: none)."""
    seen = np.flatnonzero(labels >= 0)
    by_label = csr_array((weights[seen], (labels[seen], seen)), shape=(card, len(labels)))
    before = np.concatenate([[-1], labels[:-1]])
    before[ends_of(data.offsets)[0]] = card
    both = np.flatnonzero((labels >= 0) & (before >= 0))
    moves = np.zeros((card + 1, card))
    np.add.at(moves, (before[both], labels[both]), weights[both])
    return (by_label @ data.X).toarray(), moves


def _log_shares(counts: FloatArray) -> FloatArray:
    """Return the logarithms of the shares of each row, zero where a count is zero.

    Examples
    --------
    >>> np.exp(_log_shares(np.array([[3.0, 1.0, 0.0]]))).round(12).tolist()
    [[0.75, 0.25, 1.0]]
    """
    totals = counts.sum(axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.ones_like(counts), where=counts > 0)
    return np.asarray(np.log(shares))
