"""The quadratic program of cutting planes: a concave quadratic function on the simplex.

    max_alpha   b . alpha - 1/2 alpha' G alpha         alpha >= 0,  sum alpha = 1

by an active-set method (Nocedal and Wright 2006, section 16.5): on the support of alpha the optimality conditions are
linear; a step towards their solution ends where an entry becomes zero, and when the support is optimal, the entry with
the largest slope joins it. Any alpha on the simplex is feasible, so a lower bound that is computed from the result is
true however accurate the result is.
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import FloatArray

STEPS = 1000  # changes of the support, at most


def maximise_on_simplex(G: FloatArray, b: FloatArray, start: FloatArray) -> FloatArray:
    """Return alpha, from a feasible start.

    Examples
    --------
    >>> maximise_on_simplex(np.eye(2), np.array([1.0, 0.5]), np.array([0.5, 0.5])).round(6).tolist()
    [0.75, 0.25]
    >>> maximise_on_simplex(np.zeros((2, 2)), np.array([1.0, 2.0]), np.array([1.0, 0.0])).tolist()
    [0.0, 1.0]
    """
    alpha = np.maximum(start, 0.0)
    alpha = alpha / alpha.sum()
    support = alpha > 0
    scale = max(1.0, float(np.abs(G).max(initial=0.0)), float(np.abs(b).max(initial=0.0)))
    for _ in range(STEPS):
        wanted = _on_support(G, b, support, scale)
        fall = support & (wanted < alpha) & (wanted <= 0)
        if fall.any():
            ratios = alpha[fall] / (alpha[fall] - wanted[fall])
            alpha = alpha + ratios.min() * (wanted - alpha)
            leaving = np.flatnonzero(fall)[ratios <= ratios.min()]
            alpha[leaving], support[leaving] = 0.0, False
            continue
        alpha = wanted
        slope = b - G @ alpha
        level = float(slope @ alpha)
        best = int(np.argmax(np.where(support, -np.inf, slope)))
        if support.all() or slope[best] <= level + 1e-12 * scale:
            break
        support[best] = True
    alpha = np.maximum(alpha, 0.0)
    found: FloatArray = alpha / alpha.sum()
    return found


def _on_support(G: FloatArray, b: FloatArray, support: np.ndarray, scale: float) -> FloatArray:
    """Solve the optimality conditions with alpha zero outside the support; a tiny ridge makes them solvable."""
    S = np.flatnonzero(support)
    system = np.zeros((len(S) + 1, len(S) + 1))
    system[:-1, :-1] = G[np.ix_(S, S)] + 1e-13 * scale * np.eye(len(S))
    system[-1, :-1] = system[:-1, -1] = 1.0
    found = np.zeros(len(b))
    found[S] = np.linalg.solve(system, np.append(b[S], 1.0))[:-1]
    return found
