"""Covariance graphs: variables that are not joined are independent (Murphy 2012, section 19.4.4.1).

Then the *covariance* S^ has the zeros of the graph. The maximum of the likelihood is found by iterative conditional
fitting (Chaudhuri, Drton and Richardson 2007): with all entries but those of variable i kept, and O = (S^_rest)^-1, a
regression of x_i on the variables z = O x_rest of its neighbours N gives

    b = [ (O S O)_NN ]^-1 (O S_:i)_N,     S^_iN = b,     S^_ii = S_ii - b . (O S_:i)_N + b' O_NN b,

S of the samples. The likelihood never falls; it may have several maxima.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.adjacency import adjacency
from isinglass.learning.gaussian.selection import Fitted
from isinglass.typing import FloatArray


def covariance_graph(covariance: FloatArray, graph: FactorGraph, tol: float = 1e-8, max_iter: int = 1000) -> Fitted:
    """Fit a covariance matrix with the zeros of a graph.

    Examples
    --------
    >>> import isinglass as ig
    >>> S = np.array([[2.0, 1.0, 0.1], [1.0, 2.0, 1.0], [0.1, 1.0, 2.0]])
    >>> fitted = covariance_graph(S, ig.chain_graph(3, 2))
    >>> np.linalg.inv(fitted.precision).round(3)[0, 1:] + 0.0
    array([0.952, 0.   ])
    """
    scale = np.sqrt(np.diag(covariance))
    if np.linalg.eigvalsh(covariance / np.outer(scale, scale))[0] <= len(covariance) ** 2 * np.finfo(float).eps:
        remedy = "more samples than variables"
        raise InputError("X", "samples whose covariance matrix is not singular", "one that is", remedy)
    near, W = [sorted(around) for around in adjacency(graph)], np.diag(np.diag(covariance))
    change, sweep = np.inf, 0
    while sweep < max_iter and change > tol:
        sweep += 1
        before = W.copy()
        for i, around in enumerate(near):
            _fit(W, covariance, i, around)
        change = float(np.abs((W - before) / np.outer(scale, scale)).max())
    if change > tol:
        text = f"conditional fitting stopped after {max_iter} sweeps; raise max_iter or tol"
        warn_of_convergence(text, stacklevel=4)
    K = np.linalg.inv(W)
    return Fitted((K + K.T) / 2, sweep, change, change <= tol)


def _fit(W: FloatArray, S: FloatArray, i: int, around: list[int]) -> None:
    """Fit the row of variable i, in place."""
    if not around:
        return
    rest = np.delete(np.arange(len(W)), i)
    own = np.searchsorted(rest, around)
    O = np.linalg.inv(W[np.ix_(rest, rest)])  # noqa: E741
    cross = (O @ S[rest, i])[own]
    b = np.linalg.solve((O @ S[np.ix_(rest, rest)] @ O)[np.ix_(own, own)], cross)
    W[i, around] = W[around, i] = b
    W[i, i] = S[i, i] - b @ cross + b @ O[np.ix_(own, own)] @ b
