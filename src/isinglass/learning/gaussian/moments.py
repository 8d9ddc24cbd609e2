"""What samples of a Gaussian field say: their mean and covariance; and the graph that a field is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.builders import pairwise_graph
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.gaussian.field import samples_of
from isinglass.learning.training.checks import positive_weights
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers, positive, real_numbers


@dataclass(frozen=True, eq=False)
class Moments:
    """The mean and covariance of samples, which are all that a Gaussian likelihood needs.

    Attributes
    ----------
    mean : array (n,)
    covariance : array (n, n)
        Divided by the number of samples: the maximum of the likelihood, where nothing is known of the graph.
    count : float
        Samples.
    """

    mean: FloatArray
    covariance: FloatArray
    count: float

    @classmethod
    def of(cls, X: Any, sample_weight: Any = None) -> Moments:
        """Return the moments of samples (samples, variables).

        Examples
        --------
        >>> Moments.of([[0.0, 0.0], [2.0, 4.0]]).covariance
        array([[1., 2.],
               [2., 4.]])
        """
        values = samples_of(X, None)
        if not values.size:
            raise InputError("X", "at least one sample of one variable", f"shape {values.shape}")
        weights = np.ones(len(values)) if sample_weight is None else positive_weights(sample_weight, len(values))
        share = weights / weights.sum()
        mean = share @ values
        far = values - mean
        with np.errstate(over="ignore", invalid="ignore"):  # refused below
            covariance = (far * share[:, None]).T @ far
        constant = np.ptp(values[weights > 0], axis=0) == 0
        return cls(mean, covariance, float(weights.sum()))._checked("X", constant)

    @classmethod
    def given(cls, covariance: Any, count: Any, mean: Any = None) -> Moments:
        """Return moments that are known: a covariance, divided by the number of samples, and that number."""
        expected = "a symmetric matrix of finite numbers"
        matrix = real_numbers(covariance, "covariance", expected)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
            raise InputError("covariance", expected, f"shape {matrix.shape}")
        if not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0):
            raise InputError("covariance", expected, "another")
        centre = np.zeros(len(matrix)) if mean is None else real_numbers(mean, "mean", f"{len(matrix)} numbers")
        if centre.shape != (len(matrix),) or not np.isfinite(centre).all():
            raise InputError("mean", f"{len(matrix)} finite numbers", f"{mean!r:.40}")
        symmetric = (matrix + matrix.T) / 2
        found = cls(centre, symmetric, positive(count, "n_samples"))._checked("covariance", np.diag(symmetric) <= 0)
        least = float(np.linalg.eigvalsh(found.correlation)[0])
        if least < -1e-9:
            raise InputError("covariance", "no negative eigenvalue", f"{least:.3g}, as a correlation matrix")
        return found

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.mean)

    @property
    def correlation(self) -> FloatArray:
        """The correlation matrix."""
        scale = np.sqrt(np.diag(self.covariance))
        return np.asarray(self.covariance / np.outer(scale, scale), np.float64)

    def _checked(self, argument: str, constant: Any) -> Moments:
        variances = np.diag(self.covariance)
        bad = ~np.isfinite(self.covariance).all(axis=1) | ((variances < np.finfo(float).tiny) & ~np.asarray(constant))
        if bad.any():
            got = f"{variances[np.argmax(bad)]:.3g} for variable {int(np.argmax(bad))}"
            raise InputError(argument, "finite variances above 1e-308", got, "use other units")
        if np.any(constant):
            i = int(np.argmax(constant))
            raise InputError(argument, "variables that vary", f"variable {i}, which is constant", "leave it out")
        return self


def joined(graph: Any, n: int) -> FactorGraph:
    """Return the graph of n variables as pairs: of a factor graph, a list of pairs, or None for all pairs.

    Examples
    --------
    >>> joined([(0, 1), (1, 0)], 3).scopes[3:]
    [(0, 1)]
    """
    if graph is None:
        return pairwise_graph(n, np.argwhere(np.triu(np.ones((n, n)), 1)), 2)
    if isinstance(graph, FactorGraph):
        if graph.n_variables != n:
            raise InputError("graph", f"one of {n} variables", f"{graph.n_variables}")
        pairs = [(a, b) for scope in graph.scopes for a in scope for b in scope]
    else:
        pairs = [(int(a), int(b)) for a, b in _listed(graph, n)]
    edges = sorted({(min(a, b), max(a, b)) for a, b in pairs if a != b})
    return pairwise_graph(n, np.array(edges, np.int64).reshape(-1, 2), 2)


def _listed(pairs: Any, n: int) -> IntArray:
    """Check pairs of variables."""
    expected = f"a FactorGraph, or pairs of variables 0 to {n - 1}"
    if isinstance(pairs, str) or not hasattr(pairs, "__len__") or hasattr(pairs, "nodes"):
        raise InputError("graph", expected, type(pairs).__name__, "of networkx: list(graph.edges)")
    if not len(pairs):
        return np.zeros((0, 2), np.int64)
    found = integers(pairs, "graph", 2)
    if found.shape[1] != 2:
        raise InputError("graph", expected, f"shape {found.shape}")
    if found.min() < 0 or found.max() >= n:
        raise InputError("graph", expected, f"{found.min()} to {found.max()}")
    return found
