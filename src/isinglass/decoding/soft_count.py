"""Thresholds that make a given number of outputs positive, softly.

With l_i the logits of n outputs, the largest first, and 0 < k < n, the threshold lambda solves

    sum_i sigma((l_i - lambda) / t)  =  k.

It is smooth in the logits: with s_i = sigma' at output i,

    dlambda/dl_i  =  s_i / sum_j s_j,            dlambda/dt  =  - sum_i s_i (l_i - lambda) / (t sum_j s_j),

and as t goes to zero it lies half way between l_(k) and l_(k+1). The equation is solved as

    log sum_{i > k} sigma(z_i)  -  log sum_{i <= k} sigma(-z_i)  =  0,          z_i = (l_i - lambda) / t,

the shares on the wrong side of the threshold, which keeps its digits at low temperatures: by Newton's method, which
also carries the imaginary part of a complex step, inside an interval that is halved where a step would leave it.
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import Array, FloatArray, Mask

STEPS, CLOSE = 100, 1e-14


def solvable(logits: FloatArray, count: int) -> Mask:
    """Tell which rows have a threshold, if some of their logits may be infinite.

    Examples
    --------
    >>> solvable(np.array([[2.0, 1.0, -1.0], [np.inf, 1.0, -1.0]]), 1).tolist()
    [True, False]
    """
    if not 0 < count < logits.shape[1]:
        return np.zeros(len(logits), bool)
    top, low = logits[:, :count], logits[:, count:]
    return np.asarray((top < np.inf).any(axis=1) & (low > -np.inf).any(axis=1))


def soft_thresholds(logits: Array, count: int, temperature: float) -> Array:
    """Return the threshold of each row of logits (rows, outputs), the largest first.

    Examples
    --------
    >>> soft_thresholds(np.array([[4.0, 2.0, 0.0, -2.0]]), 2, 0.5).round(6).tolist()
    [1.0]
    """
    real = logits.real
    finite = np.where(np.isfinite(real), real, np.nan)
    margin = temperature * (np.log(real.shape[1]) + 1)
    low, high = np.nanmin(finite, axis=1) - margin, np.nanmax(finite, axis=1) + margin
    found = np.clip((real[:, count - 1] + real[:, count]) / 2, low, high)
    for _ in range(STEPS):
        value, slope = _excess(real, found, count, temperature)
        low, high = np.where(value > 0, found, low), np.where(value > 0, high, found)
        step = found - value / slope
        after = np.where((step >= low) & (step <= high), step, (low + high) / 2)
        done = np.abs(after - found) <= CLOSE * (1 + np.abs(found))
        found = after
        if done.all():
            break
    if np.iscomplexobj(logits):
        value, slope = _excess(logits, found.astype(logits.dtype), count, temperature)
        return np.asarray(found - value / slope)
    return np.asarray(found)


def threshold_slopes(logits: Array, thresholds: Array, temperature: float) -> tuple[Array, Array]:
    """Return dlambda/dl (rows, outputs), and dlambda/dt (rows,).

    Examples
    --------
    >>> weights, by_temperature = threshold_slopes(np.array([[1.0, -1.0]]), np.array([0.5]), 0.5)
    >>> weights.round(3).tolist(), by_temperature.round(3).tolist()
    ([[0.813, 0.187]], [-0.253])
    """
    z = (logits - thresholds[:, None]) / temperature
    logs = _log_sigmoid(z) + _log_sigmoid(-z)
    weights = np.exp(logs - logs.real.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return weights, -(weights * np.where(np.isfinite(z), z, 0.0)).sum(axis=1)


def _excess(logits: Array, thresholds: Array, count: int, temperature: float) -> tuple[Array, Array]:
    """Return the left side of the equation, which falls with the threshold, and its slope."""
    z = (logits - thresholds[:, None]) / temperature
    below, slope_below = _log_sum(z[:, count:])
    above, slope_above = _log_sum(-z[:, :count])
    return below - above, -(slope_below + slope_above) / temperature


def _log_sum(z: Array) -> tuple[Array, Array]:
    """Return the log of the sum of sigma(z) over each row, and its derivative by a shift of z."""
    logs = _log_sigmoid(z)
    top = logs.real.max(axis=1, keepdims=True)
    parts = np.exp(logs - top)
    total = parts.sum(axis=1)
    return top[:, 0] + np.log(total), (parts * np.exp(_log_sigmoid(-z))).sum(axis=1) / total


def _log_sigmoid(z: Array) -> Array:
    """Return log sigma(z), without overflow."""
    low = z.real < 0
    found: Array = np.where(low, z, 0.0) - np.log1p(np.exp(np.where(low, z, -z)))
    return found
