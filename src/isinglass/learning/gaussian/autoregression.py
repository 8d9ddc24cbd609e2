"""Vector autoregression as a chain graph (Dahlhaus and Eichler 2000; Murphy 2012, section 19.4.4.1).

    y_t = c + A_1 y_(t-1) + ... + A_p y_(t-p) + noise of precision K

Entries of A_k that are not zero are arrows from the past, k steps back; those of K are undirected edges inside a time
slice. Given p slices of the past, the next T slices are a Gaussian field whose precision matrix has a band of blocks:
with B the block matrix of rows y_t - A_1 y_(t-1) - ..., it is B' (I x K) B.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import block_diag, csc_array, diags_array, eye_array, kron

from isinglass.inference.gaussian.field import GaussianField
from isinglass.typing import FloatArray, Mask


class ChainGraph(NamedTuple):
    """A chain graph of one slice of a time series.

    Attributes
    ----------
    arrows : list of (lag, source, target)
        Component `source`, `lag` steps back, points at `target`.
    edges : list of pairs
        Components of one slice that are joined.
    """

    arrows: list[tuple[int, int, int]]
    edges: list[tuple[int, int]]


def chain_graph(coefficients: FloatArray, precision: FloatArray) -> ChainGraph:
    """Return the chain graph of coefficients (lags, n, n) and of the precision (n, n) of the noise.

    Examples
    --------
    >>> chain_graph(np.array([[[0.5, 0.0], [0.2, 0.5]]]), np.eye(2))
    ChainGraph(arrows=[(1, 0, 0), (1, 0, 1), (1, 1, 1)], edges=[])
    """
    arrows = [(int(k) + 1, int(j), int(i)) for k, i, j in np.argwhere(coefficients != 0)]
    edges = [(int(i), int(j)) for i, j in np.argwhere(np.triu(precision, 1) != 0)]
    return ChainGraph(sorted(arrows), edges)


def process(
    coefficients: FloatArray, constant: FloatArray, precision: FloatArray, past: FloatArray, steps: int
) -> GaussianField:
    """Return the field of the next slices, one after the other, given the past.

    Parameters
    ----------
    coefficients : array (lags, n, n)
    constant : array (n,)
    precision : array (n, n)
        Of the noise.
    past : array (lags, n)
        The last slices, the latest at the end.
    steps : int
    """
    lags, n = len(coefficients), len(constant)
    B = eye_array(steps * n, format="csc")
    for k in range(1, min(lags, steps - 1) + 1):
        B = B - kron(diags_array([np.ones(steps - k)], offsets=[-k], shape=(steps, steps)), coefficients[k - 1])
    mean = np.concatenate([past, np.zeros((steps, n))])
    for t in range(lags, lags + steps):
        mean[t] = constant + sum(coefficients[k] @ mean[t - 1 - k] for k in range(lags))
    J = csc_array(B.T @ block_diag([csc_array(precision)] * steps, format="csc") @ B)
    return GaussianField(J, mean=mean[lags:].ravel())


def slices(series: Sequence[FloatArray], lags: int) -> tuple[FloatArray, FloatArray]:
    """Return the slices that have a past, and for each of them 1 and the slices before it, the latest first."""
    targets, inputs = [], []
    for Y in series:
        targets.append(Y[lags:])
        before = [Y[lags - k : len(Y) - k] for k in range(1, lags + 1)]
        inputs.append(np.concatenate([np.ones((len(Y) - lags, 1)), *before], axis=1))
    return np.concatenate(targets), np.concatenate(inputs)


def restricted_least_squares(Y: FloatArray, Z: FloatArray, free: Mask, precision: FloatArray) -> FloatArray:
    """Return B (n, inputs), zero where it is not free, that minimises sum_t (y_t - B z_t)' K (y_t - B z_t)."""
    n, (row, column) = Y.shape[1], np.nonzero(free)
    if free.all():  # the weights K then make no difference
        return np.asarray(np.linalg.lstsq(Z, Y, rcond=None)[0].T, np.float64)
    right = (precision @ Y.T @ Z)[row, column]
    matrix = precision[np.ix_(row, row)] * (Z.T @ Z)[np.ix_(column, column)]
    found = np.zeros((n, Z.shape[1]))
    found[row, column] = np.linalg.lstsq(matrix, right, rcond=None)[0]
    return found
