"""The Pareto shape k of importance weights, which says whether their mean can be trusted.

The largest weights, less the largest of the others, are fitted by a generalised Pareto distribution

    p(x) = (1 + k x / s)^(-1/k - 1) / s

by the quasi-Bayesian estimate of Zhang and Stephens (2009), with a weak prior at k = 0.5. The variance of the weights
is finite if k < 0.5; above 0.7 the mean of any practical number of them is not reliable (Vehtari, Simpson, Gelman, Yao
and Gabry 2024).
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import FloatArray

RELIABLE = 0.7
LEAST = 5  # weights in the tail, for a fit
ROUNDING = 1e-12  # of a weight, relative to the largest
PRIOR = 10.0  # the weight of the prior, in observations


def pareto_k(log_weights: FloatArray) -> float:
    """Return the shape of the tail of weights, given their logarithms, shape (n,).

    -inf if the largest weights are equal, up to rounding; inf if there are too few for a fit, or if all are zero.

    Examples
    --------
    >>> u = (np.arange(4000) + 0.5) / 4000
    >>> light, heavy = pareto_k(-0.2 * np.log(u)), pareto_k(-0.9 * np.log(u))
    >>> bool(abs(light - 0.2) < 0.1), bool(abs(heavy - 0.9) < 0.1)
    (True, True)
    """
    n = len(log_weights)
    length = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    ordered = np.sort(log_weights)
    if length < LEAST or ordered[-1] == -np.inf:
        return np.inf
    scaled = np.exp(ordered - ordered[-1])
    excess = scaled[-length:] - scaled[-length - 1]
    excess = excess[excess > ROUNDING]
    return -np.inf if len(excess) < LEAST else _shape(excess)


def _shape(x: FloatArray) -> float:
    """Fit the generalised Pareto distribution to sorted values above zero; return k."""
    n = len(x)
    points = 30 + int(np.sqrt(n))
    quartile = x[int(n / 4 + 0.5) - 1]
    theta = 1 / x[-1] + (1 - np.sqrt(points / (np.arange(points) + 0.5))) / (3 * quartile)
    theta = theta[theta != 0]
    k = np.log1p(-theta[:, None] * x).mean(axis=1)
    likelihood = n * (np.log(-theta / k) - k - 1)
    weight = np.exp(likelihood - likelihood.max())
    best = float((theta * weight).sum() / weight.sum())
    found = float(np.log1p(-best * x).mean())
    return (n * found + PRIOR * 0.5) / (n + PRIOR)
