"""Covariance selection: the most likely precision matrix with given zeros (Dempster 1972; Speed and Kiiveri 1986).

The estimate S^ agrees with the covariance S of the samples on all edges of the graph and on the diagonal, and its
inverse K is zero elsewhere. Iterative proportional fitting goes over the cliques C of the graph,

    K_CC  <-  K_CC + (S_CC)^-1 - (S^_CC)^-1,      S^  <-  S^ + G (S_CC - S^_CC) G',   G = S^_:C (S^_CC)^-1.

On chordal graphs one sweep is enough, and there is a closed form over the cliques and separators of a junction tree,

    K = sum_C [(S_CC)^-1] - sum_S [(S_SS)^-1],        [.] filled up with zeros  (Lauritzen 1996, proposition 5.9).

The graphical lasso finds the graph, too (Friedman, Hastie and Tibshirani 2008):

    maximise  log det K - tr(S K) - alpha sum_(i != j) |K_ij|.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.chordal import cliques, is_chordal
from isinglass.graph.semantics.junction_tree import junction_tree
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import FloatArray, IntArray

INNER = 1e-4  # tolerance of the regressions inside the graphical lasso: with looser ones its gap never closes
REMEDY = "more samples, smaller cliques, or method='lasso'"


class Fitted(NamedTuple):
    """A precision matrix, and how it was found.

    Attributes
    ----------
    precision : array (n, n)
    iterations : int
        Sweeps.
    residual : float
        The largest distance to a moment that should match, as a correlation.
    converged : bool
    """

    precision: FloatArray
    iterations: int
    residual: float
    converged: bool


def covariance_selection(covariance: FloatArray, graph: FactorGraph, tol: float = 1e-8, max_iter: int = 1000) -> Fitted:
    """Fit a precision matrix with the zeros of a graph, by iterative proportional fitting.

    Examples
    --------
    >>> import isinglass as ig
    >>> chain = ig.chain_graph(3, 2)
    >>> S = np.array([[2.0, 1.0, 0.9], [1.0, 2.0, 1.0], [0.9, 1.0, 2.0]])
    >>> fitted = covariance_selection(S, chain)
    >>> np.linalg.inv(fitted.precision).round(6)  # the corner is what the chain implies
    array([[2. , 1. , 0.5],
           [1. , 2. , 1. ],
           [0.5, 1. , 2. ]])
    """
    n = len(covariance)
    require_memory(32.0 * n * n, memory_limit_bytes(None), "proportional fitting", "use a smaller graph")
    parts = [np.array(c) for c in (junction_tree(graph).cliques if is_chordal(graph) else cliques(graph))]
    targets = [_inverse(covariance, part) for part in parts]
    mask, scale = _pattern(graph), np.sqrt(np.diag(covariance))
    K, W = np.diag(1 / np.diag(covariance)), np.diag(np.diag(covariance))
    residual, sweep = np.inf, 0
    while sweep < max_iter and residual > tol:
        sweep += 1
        for part, target in zip(parts, targets, strict=True):
            square = np.ix_(part, part)
            own = np.linalg.inv(W[square])
            K[square] += target - own
            G = W[:, part] @ own
            W = W + G @ (covariance[square] - W[square]) @ G.T
        W = _inverse_of_fit(K)
        residual = float(np.abs((W - covariance) / np.outer(scale, scale))[mask].max())
    if residual > tol:
        text = f"proportional fitting stopped after {max_iter} sweeps, {residual:.1e} from the moments of the samples"
        warn_of_convergence(f"{text}; raise max_iter or tol, or there are too few samples", stacklevel=4)
    return Fitted((K + K.T) / 2, sweep, residual, residual <= tol)


def closed_form(covariance: FloatArray, graph: FactorGraph, tol: float = 1e-8) -> Fitted:
    """Return the maximum of the likelihood on a chordal graph; warn if rounding is larger than the tolerance.

    Examples
    --------
    >>> import isinglass as ig
    >>> closed_form(np.eye(3), ig.chain_graph(3, 2)).iterations
    1
    """
    if not is_chordal(graph):
        raise InputError("graph", "a chordal graph for method='closed-form'", "another", "use method='ipf'")
    tree, K = junction_tree(graph), np.zeros(covariance.shape)
    for sign, parts in ((1.0, tree.cliques), (-1.0, tree.separators)):
        for part in parts:
            square = np.ix_(part, part)
            if part:
                K[square] += sign * _inverse(covariance, np.array(part))
    scale = np.sqrt(np.diag(covariance))
    residual = float(np.abs((_inverse_of_fit(K) - covariance) / np.outer(scale, scale))[_pattern(graph)].max())
    if not residual <= tol:
        text = f"the closed form is {residual:.1e} from the moments of the samples, by rounding"
        warn_of_convergence(f"{text}; raise tol, or leave out variables that others nearly determine", stacklevel=4)
    return Fitted((K + K.T) / 2, 1, residual, residual <= tol)


def graphical_lasso(covariance: FloatArray, alpha: float, tol: float = 1e-4, max_iter: int = 100) -> Fitted:
    """Fit a sparse precision matrix whose graph is not known, by scikit-learn.

    Examples
    --------
    >>> S = np.array([[2.0, 1.0, 0.4], [1.0, 2.0, 1.0], [0.4, 1.0, 2.0]])
    >>> graphical_lasso(S, 0.2).precision[0, 2] == 0
    np.True_
    """
    from sklearn.covariance import graphical_lasso as lasso
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the residual tells
        try:
            _, K, iterations = lasso(
                covariance, alpha=alpha, tol=tol / 10, enet_tol=tol * INNER, max_iter=max_iter, return_n_iter=True
            )
        except (FloatingPointError, ValueError) as error:
            got = f"{alpha:g}, for which it fails: {error!s:.80}"
            raise InputError("alpha", "a penalty for which the graphical lasso converges", got, "raise it") from None
    K = np.where((K != 0) & (K.T != 0), (K + K.T) / 2, 0.0)
    residual = _kkt(covariance, K, alpha)
    if residual > tol:
        text = f"the graphical lasso stopped {residual:.1e} from its conditions; raise alpha, tol or max_iter"
        warn_of_convergence(text, stacklevel=4)
    return Fitted(K, int(iterations), residual, residual <= tol)


def _kkt(covariance: FloatArray, K: FloatArray, alpha: float) -> float:
    """Return by how much the conditions of a maximum of the penalised likelihood fail, as a correlation."""
    slope, free = np.linalg.inv(K) - covariance, ~np.eye(len(K), dtype=bool)
    apart = np.where(K != 0, np.abs(slope - alpha * free * np.sign(K)), np.maximum(np.abs(slope) - alpha, 0.0))
    scale = np.sqrt(np.diag(covariance))
    return float((apart / np.outer(scale, scale)).max())


def _pattern(graph: FactorGraph) -> FloatArray:
    """Return which entries are free: edges and the diagonal."""
    mask = np.eye(graph.n_variables, dtype=bool)
    for a, b in (s for s in graph.scopes if len(s) == 2):
        mask[a, b] = mask[b, a] = True
    return mask


def _inverse(covariance: FloatArray, part: IntArray) -> FloatArray:
    """Return the inverse of a block; refuse one that samples do not determine."""
    block = covariance[np.ix_(part, part)]
    scale = np.sqrt(np.diag(block))
    values, vectors = np.linalg.eigh(block / np.outer(scale, scale))
    if values[0] <= len(part) * np.finfo(float).eps * values[-1]:
        got = f"a covariance of variables {part.tolist()!s:.60} that is singular"
        raise InputError("X", "samples that determine each clique of the graph", got, REMEDY)
    return np.asarray((vectors / values) @ vectors.T / np.outer(scale, scale), np.float64)


def _inverse_of_fit(K: FloatArray) -> FloatArray:
    found = np.linalg.inv((K + K.T) / 2)
    return np.asarray((found + found.T) / 2, np.float64)
