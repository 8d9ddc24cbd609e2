"""Diagnostics of Markov chains (Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16(2)).

A trace has shape (quantities, chains, draws). Every chain is split into halves first: M chains of N draws, S = M N.

    W = mean_m var_m,   B / N = var of the M means,   var+ = (N - 1) / N W + B / N,   R-hat = (var+ / W)^(1/2)
    rho_t = 1 - (W - mean_m acov_m(t)) / var+,   tau = -1 + 2 sum_k (rho_2k + rho_2k+1),   ESS = S / tau

The sums of pairs end where they become negative (Geyer 1992) and are made monotone. Values are replaced by normal
scores of their ranks, Phi^-1((r - 3/8) / (S + 1/4)): this gives the rank-normalised R-hat (the larger one of the values
and of their distances to the median) and the bulk ESS. The tail ESS is the smaller one of the indicators of the 5 % and
95 % quantiles. The standard error of the mean is the standard deviation over the square root of the ESS of the values
themselves.

Quantities that never change, in no chain, are known: R-hat is 1, the ESS is S and the standard error zero. Where no
chain moves, but chains differ, R-hat is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.typing import FloatArray

LEAST_DRAWS = 4  # of a chain: two in each half


@dataclass(frozen=True, eq=False)
class Diagnostics:
    """Diagnostics of some quantities, arrays (quantities,).

    Attributes
    ----------
    r_hat : array
        Rank-normalised split R-hat.
    ess_bulk, ess_tail : array
        Effective sample sizes of all chains together.
    stderr : array
        Monte Carlo standard errors of the means.
    """

    r_hat: FloatArray
    ess_bulk: FloatArray
    ess_tail: FloatArray
    stderr: FloatArray


def diagnose(trace: FloatArray) -> Diagnostics:
    """Return the diagnostics of a trace (quantities, chains, draws); unknown, with fewer than four draws in a chain.

    What is unknown has infinite R-hats and standard errors, and effective sizes of zero.


    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> found = diagnose(rng.normal(size=(1, 4, 1000)))
    >>> bool(found.r_hat[0] < 1.01), bool(found.ess_bulk[0] > 3000), round(float(found.stderr[0]), 2)
    (True, True, 0.02)
    """
    quantities, chains, draws = trace.shape
    if draws < LEAST_DRAWS:
        unknown, none = np.full(quantities, np.inf), np.zeros(quantities)
        return Diagnostics(unknown, none, none, unknown)
    if not quantities:
        return Diagnostics(*np.zeros((4, 0)))
    from isinglass.kernels.numba.sampling.diagnostics import BUCKETS, KINDS, PAD, diagnose_all

    size = 2 * chains * (draws // 2)
    out = np.empty((quantities, 8))
    numbers, work = np.empty((2, size)), np.zeros(size + 2 * chains * PAD)
    few = np.empty(2 * chains), np.empty(3), np.empty(2 * KINDS)
    keys, whole = np.empty((2, size), np.uint64), np.empty((2, size), np.int64)
    buffers = (*numbers, work, *few, keys[0], whole[0], keys[1], whole[1], np.empty(BUCKETS, np.int64))
    diagnose_all(np.ascontiguousarray(trace), rank_scores(size), out, *buffers)
    for column, values in enumerate((normal_scores, _low_tail, _high_tail, None)):
        long = np.flatnonzero(out[:, 4 + column] < 0)
        if len(long):
            halves = split(trace[long])
            out[long, 4 + column] = effective_size(halves if values is None else values(halves))
    moving = out[:, 3] > 0
    stderr = np.where(moving, out[:, 3] / np.sqrt(out[:, 7]), 0.0)
    return Diagnostics(out[:, 0], out[:, 4], out[:, 5:7].min(axis=1), stderr)


def _low_tail(halves: FloatArray) -> FloatArray:
    return (halves <= np.quantile(halves, 0.05, axis=(1, 2), keepdims=True)).astype(np.float64)


def _high_tail(halves: FloatArray) -> FloatArray:
    return (halves <= np.quantile(halves, 0.95, axis=(1, 2), keepdims=True)).astype(np.float64)


def split(trace: FloatArray) -> FloatArray:
    """Split each chain into halves; of an odd number of draws, the middle one is left out.

    Examples
    --------
    >>> split(np.arange(5.0).reshape(1, 1, 5)).tolist()
    [[[0.0, 1.0], [3.0, 4.0]]]
    """
    quantities, chains, draws = trace.shape
    half = draws // 2
    parts = np.stack([trace[..., :half], trace[..., draws - half :]], axis=2)
    return parts.reshape(quantities, 2 * chains, half)


def rank_scores(size: int) -> FloatArray:
    """Return the normal scores of the ranks 1, 1.5, 2, ... among `size` values.

    Examples
    --------
    >>> rank_scores(3).round(2).tolist()
    [-0.87, -0.4, 0.0, 0.4, 0.87]
    """
    from scipy.special import ndtri

    ranks = np.arange(2 * size - 1) / 2 + 1
    scores: FloatArray = ndtri((ranks - 0.375) / (size + 0.25))
    return scores


def normal_scores(values: FloatArray) -> FloatArray:
    """Replace values (quantities, ...) by normal scores of their ranks; equal ones get the mean of their ranks."""
    from scipy.stats import rankdata

    flat = values.reshape(len(values), -1)
    ranks = rankdata(flat, axis=1)
    found: FloatArray = rank_scores(flat.shape[1])[(2 * ranks - 2).astype(np.int64)].reshape(values.shape)
    return found


def effective_size(chains: FloatArray) -> FloatArray:
    """Return the effective sample size of the mean of chains (quantities, chains, draws) as they are."""
    quantities, m, n = chains.shape
    size = float(m * n)
    covariance = _autocovariances(chains).mean(axis=1)
    within = covariance[:, 0] * n / (n - 1)
    total = within * (n - 1) / n + chains.mean(axis=2).var(axis=1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within[:, None] - covariance) / total[:, None]
    rho[:, 0] = 1.0
    pairs = rho[:, : n - n % 2].reshape(quantities, -1, 2).sum(axis=2)
    positive = np.logical_and.accumulate(pairs > 0, axis=1)
    monotone = np.minimum.accumulate(np.where(positive, pairs, 0.0), axis=1)
    tau = np.maximum(2 * monotone.sum(axis=1) - 1, 1 / np.log10(size))
    return np.where(total > 0, size / tau, size)


def _autocovariances(chains: FloatArray) -> FloatArray:
    """Return the autocovariances of each chain at all lags, divided by the number of draws."""
    from scipy.fft import irfft, next_fast_len, rfft

    n = chains.shape[2]
    length = next_fast_len(2 * n)
    spectrum = rfft(chains - chains.mean(axis=2, keepdims=True), length, axis=2)
    found: FloatArray = irfft(spectrum.real**2 + spectrum.imag**2, length, axis=2)[..., :n] / n
    return found
