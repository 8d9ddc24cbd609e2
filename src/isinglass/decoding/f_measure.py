"""The decision of highest expected F-measure, exactly.

With y_i = 1 for a positive truth, d_i = 1 for a positive decision, S = sum_i y_i and k = sum_i d_i,

    F_beta(d, y)  =  (1 + beta²) sum_i d_i y_i / (beta² S + k),        F(0, 0) = 1.

Let p_is = P(y_i = 1, S = s). The expectation for decisions of k positives is a sum over them (Dembczynski, Waegeman,
Cheng and Huellermeier 2011, the "general F-measure maximiser"), so that the best k are those of highest score:

    E F(d)  =  sum_{i: d_i = 1} g_k(i),      g_k(i)  =  (1 + beta²) sum_s p_is / (beta² s + k),      E F(0) = P(S = 0).

If the y_i are independent, g_k(i) grows with p_i, whatever k. With A_k the sum of the k most probable and B_k of the
others, E F_k = (1 + beta²) sum_{a, b} a P(A_k = a) P(B_k = b) / (beta² (a + b) + k) (Lewis 1995; Jansche 2007): the
distributions of A_k and B_k come one from the other, and their product by a convolution.
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import FloatArray, IntArray


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
    ranked, n, b2 = p[order], len(p), beta**2
    others = _tails(ranked)
    first = np.ones(1)
    best, value = 0, float(others[0][0])
    for k in range(1, n + 1):
        first = _one_more(first, ranked[k - 1])
        joint = np.convolve(first * np.arange(k + 1), others[k])
        expected = float((1 + b2) * (joint / (k + b2 * np.arange(len(joint)))).sum())
        if expected > value:
            best, value = k, expected
    return order[:best], value


def _tails(ranked: FloatArray) -> list[FloatArray]:
    """Return the distribution of the sum of all outputs but the first k, for each k."""
    found = [np.ones(1)]
    for p in ranked[::-1]:
        found.append(_one_more(found[-1], p))
    return found[::-1]


def _one_more(sums: FloatArray, p: float) -> FloatArray:
    """Return the distribution of a sum with one more output."""
    longer = np.zeros(len(sums) + 1)
    longer[:-1] = (1 - p) * sums
    longer[1:] += p * sums
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
