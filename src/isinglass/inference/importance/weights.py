"""Sums of importance weights w_1, ..., w_n, given by their logarithms.

    log of the mean:        log (1/n) sum_c w_c
    its standard error:     sd(w) / (sqrt(n) mean(w))             (delta method)
    effective size:         (sum_c w_c)² / sum_c w_c²

Bridge sampling (Bennett 1976; Meng and Wong 1996) joins two sets of weights: `forward` ones, whose mean is r, and
`reverse` ones, whose mean is 1/r. With l the logarithm of a forward weight, or minus that of a reverse one, and with
the shares s_f and s_r of the two sets, r is the root of

    mean over forward of  1 / (s_f r e^-l + s_r)   =   mean over reverse of  1 / (s_f + s_r e^l / r)

whose left side falls and whose right side grows with r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.inference.importance.pareto import pareto_k
from isinglass.typing import FloatArray


class LogMean(NamedTuple):
    """The logarithm of a mean of weights, and how far it can be trusted."""

    value: float
    stderr: float
    ess: float
    pareto_k: float
    largest: float  # the largest weight, as a share of their sum


def log_mean(log_weights: FloatArray) -> LogMean:
    """Return the logarithm of the mean weight.

    Examples
    --------
    >>> found = log_mean(np.log([1.0, 2.0, 3.0]))
    >>> round(float(np.exp(found.value)), 12), round(found.ess, 3), round(found.stderr, 4)
    (2.0, 2.571, 0.2887)
    """
    n, top = len(log_weights), float(log_weights.max())
    if top == -np.inf:
        return LogMean(-np.inf, np.inf, 0.0, np.inf, 1.0)
    w = np.exp(log_weights - top)
    mean, spread = float(w.mean()), float(w.std(ddof=1)) if n > 1 else np.inf
    ess = float(w.sum() ** 2 / (w**2).sum())
    error = float(spread / (np.sqrt(n) * mean))
    return LogMean(top + float(np.log(mean)), error, ess, pareto_k(log_weights), 1.0 / float(w.sum()))


def normalised(log_weights: FloatArray) -> FloatArray:
    """Return weights that sum to one along the last axis; equal ones where all are zero.

    Examples
    --------
    >>> normalised(np.array([[0.0, 0.0], [-np.inf, -np.inf], [-np.inf, 5.0]])).tolist()
    [[0.5, 0.5], [0.5, 0.5], [0.0, 1.0]]
    """
    top = log_weights.max(axis=-1, keepdims=True)
    w = np.exp(log_weights - np.where(top > -np.inf, top, 0.0))
    w = np.where(top > -np.inf, w, 1.0)
    return np.asarray(w / w.sum(axis=-1, keepdims=True))


def bridge(forward: FloatArray, reverse: FloatArray) -> tuple[float, float]:
    """Return log r and its standard error, given logarithms of weights.

    Examples
    --------
    >>> rng = np.random.default_rng(0)  # of normal distributions N(0, 1) and e^3 N(1, 1)
    >>> x, y = rng.normal(0, 1, 4000), rng.normal(1, 1, 4000)
    >>> log_r, stderr = bridge(3 + x - 0.5, -3 - y + 0.5)
    >>> bool(abs(log_r - 3) < 3 * stderr < 0.1)
    True
    """
    from scipy.optimize import brentq
    from scipy.special import expit

    finite = np.concatenate([forward[forward > -np.inf], -reverse])
    if len(finite) == len(reverse):  # all forward weights are zero
        return -np.inf, np.inf
    odds = float(np.log(len(forward) / len(reverse)))

    def parts(log_r: float) -> tuple[FloatArray, FloatArray]:
        return np.asarray(expit(forward - log_r - odds)), np.asarray(expit(reverse + log_r + odds))

    def gap(log_r: float) -> float:
        one, two = parts(log_r)
        return float(one.sum() - two.sum())

    margin = abs(odds) + np.log(len(forward) + len(reverse)) + 1.0
    low, high = float(finite.min()) - margin, float(finite.max()) + margin
    log_r = float(brentq(gap, low, high, xtol=1e-12, rtol=1e-14))
    variance = sum(part.var(ddof=1) / (len(part) * part.mean() ** 2) for part in parts(log_r) if len(part) > 1)
    return log_r, float(np.sqrt(variance))
