"""The decision of highest expected F-measure, exactly.

With y_i = 1 for a positive truth, d_i = 1 for a positive decision, S = sum_i y_i and k = sum_i d_i,

    F_beta(d, y)  =  (1 + beta²) sum_i d_i y_i / (beta² S + k),        F(0, 0) = 1.

Let p_is = P(y_i = 1, S = s). The expectation for decisions of k positives is a sum over them (Dembczynski, Waegeman,
Cheng and Huellermeier 2011, the "general F-measure maximiser"), so that the best k are those of highest score:

    E F(d)  =  sum_{i: d_i = 1} g_k(i),      g_k(i)  =  (1 + beta²) sum_s p_is / (beta² s + k),      E F(0) = P(S = 0).

If the y_i are independent, g_k(i) grows with p_i, whatever k. With A_k the sum of the k most probable and B_k of the
others, E F_k = (1 + beta²) sum_{a, b} a P(A_k = a) P(B_k = b) / (beta² (a + b) + k) (Lewis 1995; Jansche 2007): the
distributions of A_k and B_k come one from the other.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import positive

_MOST = 1e6  # of beta
_ENTRIES = 2**23  # of all distributions of sums that are kept at a time


def checked_beta(beta: float) -> float:
    """Refuse a weight of recall that is no positive number, or beyond all measure."""
    found = positive(beta, "beta")
    if found > _MOST:
        raise InputError("beta", f"a positive number up to {_MOST:g}", f"{found:g}")
    return found


def best_independent(p: FloatArray, beta: float) -> tuple[IntArray, float]:
    """Return the positive decisions of highest expected F for independent outputs, and that expectation.

    Parameters
    ----------
    p : array (n,)
        The probability that each output is positive.
    beta : float
        How much more recall counts than precision.

    Returns
    -------
    chosen : int array (k,)
    value : float

    Examples
    --------
    >>> chosen, value = best_independent(np.array([0.4, 0.1, 0.45]), 1.0)
    >>> chosen.tolist(), round(value, 4)
    ([2, 0], 0.4949)
    """
    order = np.argsort(-p, kind="stable")
    counts, values = best_counts(p[order][None], beta)
    return order[: counts[0]], float(values[0])


def best_counts(ranked: FloatArray, beta: float) -> tuple[IntArray, FloatArray]:
    """Return how many of the most probable outputs to choose for the highest expected F, and that expectation.

    Parameters
    ----------
    ranked : array (examples, n)
        The probabilities of independent outputs, the largest first.
    beta : float
    """
    step = max(1, _ENTRIES // max(1, ranked.shape[1] ** 2))
    found = [_best_counts(ranked[i : i + step], beta**2) for i in range(0, len(ranked), step)]
    counts = np.concatenate([np.zeros(0, np.int64), *(one for one, _ in found)])
    return counts, np.concatenate([np.zeros(0), *(one for _, one in found)])


def _best_counts(ranked: FloatArray, b2: float) -> tuple[IntArray, FloatArray]:
    n_examples, n = ranked.shape
    others, first = _tails(ranked), np.ones((n_examples, 1))
    best, value = np.zeros(n_examples, np.int64), others[0][:, 0].copy()
    for k in range(1, n + 1):
        first = _one_more(first, ranked[:, k - 1])
        a, b = np.arange(k + 1.0)[:, None], np.arange(n - k + 1.0)
        ratios = others[k] @ (a / (k + b2 * (a + b))).T  # E of a / (beta² S + k), for each a
        expected = (1 + b2) * (first * ratios).sum(axis=1)
        better = expected > value
        best[better], value[better] = k, expected[better]
    return best, value


def _tails(ranked: FloatArray) -> list[FloatArray]:
    """Return the distribution of the sum of all outputs but the first k, for each k."""
    found = [np.ones((len(ranked), 1))]
    for p in ranked.T[::-1]:
        found.append(_one_more(found[-1], p))
    return found[::-1]


def _one_more(sums: FloatArray, p: FloatArray) -> FloatArray:
    """Return the distributions of sums with one more output each."""
    longer = np.zeros((len(sums), sums.shape[1] + 1))
    longer[:, :-1] = (1 - p)[:, None] * sums
    longer[:, 1:] += p[:, None] * sums
    return longer


def best_joint(joint: FloatArray, none: float, beta: float) -> tuple[IntArray, float]:
    """Return the positive decisions of highest expected F for any joint distribution, and that expectation.

    Parameters
    ----------
    joint : array (n, n)
        p_is for s = 1, ..., n.
    none : float
        P(S = 0).
    beta : float

    Examples
    --------
    Two outputs that are always equal, and positive with probability .3:

    >>> chosen, value = best_joint(np.array([[0.0, 0.3], [0.0, 0.3]]), 0.7, 1.0)
    >>> chosen.tolist(), value
    ([], 0.7)
    """
    n, b2 = len(joint), beta**2
    best, value = np.zeros(0, np.int64), float(none)
    counts = np.arange(1, n + 1)
    for k in range(1, n + 1):
        scores = joint @ ((1 + b2) / (b2 * counts + k))
        order = np.argsort(-scores, kind="stable")[:k]
        expected = float(scores[order].sum())
        if expected > value:
            best, value = order, expected
    return best, value
