"""Scoring rules: how far one belief b over states x is from the label y.

    log          -log b(y)                    derivative by b(x):  -[x = y] / b(y)
    quadratic    -2 b(y) + sum_x b(x)²        derivative by b(x):  2 b(x) - 2 [x = y]
    error        sum_{x != y} b(x)            derivative by b(x):  [x != y]

The first two are proper: the expectation over y ~ p is least at b = p. The quadratic one is the squared distance of b
from the label's indicator, less 1 (Brier). Domke 2009, sections 3.5 and 3.6, table 4.1.

The error is linear: its derivative is the cost of each decision.

A rule takes beliefs (n, states) and labels (n,), real or complex, and returns values (n,) and derivatives (n, states).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from isinglass.typing import Array, IntArray

Rule = Callable[[Array, IntArray], tuple[Array, Array]]

TINY = float(np.finfo(np.float64).tiny)  # below it, 1 / b may overflow


def log_rule(beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
    """Return minus the logarithm of the label's belief; inf where that is zero.

    Examples
    --------
    >>> value, bar = log_rule(np.array([[0.25, 0.75]]), np.array([0]))
    >>> value.round(4).tolist(), bar.tolist()
    ([1.3863], [[-4.0, 0.0]])
    """
    rows = np.arange(len(labels))
    right = beliefs[rows, labels]
    possible = right.real >= TINY
    safe = np.where(possible, right, 1.0)
    bars = np.zeros_like(beliefs)
    bars[rows, labels] = -1.0 / safe
    return np.where(possible, -np.log(safe), np.inf), bars


def quadratic_rule(beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
    """Return the squared distance from the label's indicator, less 1.

    Examples
    --------
    >>> value, bar = quadratic_rule(np.array([[0.25, 0.75]]), np.array([0]))
    >>> value.tolist(), bar.tolist()
    ([0.125], [[-1.5, 1.5]])
    """
    rows = np.arange(len(labels))
    values = np.einsum("ij,ij->i", beliefs, beliefs) - 2.0 * beliefs[rows, labels]
    bars = 2.0 * beliefs
    bars[rows, labels] -= 2.0
    return values, bars


def error_rule(beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
    """Return the belief in other states than the label.

    Examples
    --------
    >>> value, bar = error_rule(np.array([[0.25, 0.75]]), np.array([0]))
    >>> value.tolist(), bar.tolist()
    ([0.75], [[0.0, 1.0]])
    """
    bars = np.ones_like(beliefs)
    bars[np.arange(len(labels)), labels] = 0.0
    return np.einsum("ij,ij->i", beliefs, bars), bars
