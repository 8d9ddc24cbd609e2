"""Whether probabilities can be believed: reliability, expected calibration error, Brier score.

With p the predicted probabilities of one variable, y its label, and the confidence c = max_k p_k:

    Brier  =  mean  sum_k (p_k - [y = k])²                                         (Brier 1950), between 0 and 2
    ECE    =  sum_b  n_b / n  |accuracy_b - confidence_b|                          (Naeini et al. 2015)

over bins b of equal width in the confidence; in a bin, `accuracy` is the share of labels that were the most probable
one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers, real_numbers, whole_number

BINS = 15
ROUNDING = 1e-6  # by which probabilities may miss one


class Reliability(NamedTuple):
    """Bins of confidence: how many variables are in each, their mean confidence, and the share that is right.

    Means of empty bins are NaN.
    """

    edges: FloatArray
    counts: IntArray
    confidence: FloatArray
    accuracy: FloatArray

    @property
    def error(self) -> float:
        """The expected calibration error."""
        some = self.counts > 0
        gaps = np.abs(self.accuracy[some] - self.confidence[some])
        return float((self.counts[some] * gaps).sum() / max(int(self.counts.sum()), 1))


def reliability(y: ArrayLike, proba: ArrayLike, bins: int = BINS) -> Reliability:
    """Sort predictions by confidence, and compare it with how often they were right.

    Parameters
    ----------
    y : int array (n,)
        Labels, the numbers of columns; -1 is not observed.
    proba : array (n, states)
    bins : int

    Examples
    --------
    >>> found = reliability([0, 1, 1, 0], [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1], [0.4, 0.6]], bins=2)
    >>> found.counts.tolist(), found.accuracy.round(3).tolist(), round(found.error, 3)
    ([0, 4], [nan, 0.5], 0.325)
    """
    labels, p = _checked(y, proba)
    edges = np.linspace(0.0, 1.0, whole_number(bins, "bins", 1) + 1)
    confidence, right = p.max(axis=1), p.argmax(axis=1) == labels
    place = np.minimum((confidence * (len(edges) - 1)).astype(np.int64), len(edges) - 2)
    counts = np.bincount(place, minlength=len(edges) - 1)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(place, values, len(counts)) / counts for values in (confidence, right.astype(float))]
    return Reliability(edges, counts, *means)


def calibration_error(y: ArrayLike, proba: ArrayLike, bins: int = BINS) -> float:
    """Return the expected calibration error, from 0 to 1.

    Examples
    --------
    >>> round(calibration_error([0, 1], [[0.8, 0.2], [0.2, 0.8]]), 6)
    0.2
    """
    return reliability(y, proba, bins).error


def brier_score(y: ArrayLike, proba: ArrayLike) -> float:
    """Return the mean squared distance of probabilities from the labels, from 0 to 2.

    Examples
    --------
    >>> round(brier_score([0, 1], [[0.8, 0.2], [0.5, 0.5]]), 6)
    0.29
    """
    labels, p = _checked(y, proba)
    return float(((p - np.eye(p.shape[1])[labels]) ** 2).sum(axis=1).mean())


def _checked(y: ArrayLike, proba: ArrayLike) -> tuple[IntArray, FloatArray]:
    """Check labels and probabilities; return those of observed labels."""
    labels = integers(y, "y", 1)
    p = real_numbers(proba, "proba", "probabilities, an array (n, states)")
    if p.ndim != 2 or len(p) != len(labels):
        raise InputError("proba", f"an array ({len(labels)}, states)", f"shape {p.shape}")
    if not (np.isfinite(p).all() and (p >= -ROUNDING).all() and (np.abs(p.sum(axis=1) - 1) <= ROUNDING).all()):
        raise InputError("proba", "probabilities that sum to one", "others")
    if labels.size and (labels.min() < -1 or labels.max() >= p.shape[1]):
        raise InputError("y", f"labels from 0 to {p.shape[1] - 1}, or -1", f"{labels.min()} to {labels.max()}")
    seen = labels >= 0
    if not seen.any():
        raise InputError("y", "at least one observed label", "none")
    return labels[seen], p[seen]
