"""Whether the likelihood has a maximum, and where it has its mass if that lies at infinity (Fienberg and Rinaldo 2012).

There is none where the mean of the features lies on the boundary of their polytope: along a direction c with

    c . f(x) = 0  for all x that were seen,      c . f(x) >= 0  for all others,

against which the likelihood grows without end, cells with c . f(x) > 0 lose all their mass. The extended maximum
likelihood estimate is the ordinary one of the model without these cells. Such a c is in the null space N of the
features of what was seen, c = N y; with the rows g(x) of f(x) N for all others, a linear program finds one:

    maximise  sum_x g(x) . y   subject to   g(x) . y >= 0,  -1 <= y_k <= 1.

Where its maximum is zero, there is none. Otherwise the cells with g(x) . y > 0 are left out, and it is solved again.
Parameters with a penalty stay finite, so that c has no entries for them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.errors import IsinglassError
from isinglass.learning.markov.samples import Samples
from isinglass.learning.markov.statistics.information import features
from isinglass.models import Model
from isinglass.models.canonical import Scope
from isinglass.runtime.blas import one_blas_thread
from isinglass.typing import FloatArray, IntArray, Mask

MOST_CELLS = 20_000  # of tables that are looked at
MOST_COLUMNS = 600  # of their features; at both limits the programs take some fifteen seconds
ROUNDING = 1e-9
GAIN = 1e-6  # a smaller g(x) . y is zero

Column = int | tuple[Scope, tuple[int, ...]]
"""A parameter, by its number; or a treatment contrast, by its variables and their states."""


class Existence(NamedTuple):
    """Whether the likelihood has a maximum.

    Attributes
    ----------
    decided : bool
        False for tables of more than `MOST_CELLS` cells, or with more than `MOST_COLUMNS` parameters.
    cells : int array (cells, variables)
        The joint states that lose all their mass as the likelihood grows without end; none where it has a maximum.
    direction : tuple of (Column, float)
        The parameters or contrasts that then grow, relative to the one that grows most; that one first.
    """

    decided: bool
    cells: IntArray
    direction: tuple[tuple[Column, float], ...] = ()


def existence(model: Model, samples: Samples, free: Mask) -> Existence:
    """Decide whether the likelihood of complete samples has a maximum; `free` parameters are those without a penalty.

    Examples
    --------
    A diagonal of structural zeros, and one empty cell that takes its row with it:

    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> seen = Samples(np.array([[0, 0], [1, 0]]), np.ones(2))
    >>> found = existence(table_model(ig.FactorGraph([2, 2], [(0,), (1,)])), seen, np.ones(4, bool))
    >>> found.cells.tolist(), found.direction
    ([[0, 1], [1, 1]], ((((1,), (1,)), -1.0),))
    """
    graph, none = model.graph, np.zeros((0, model.graph.n_variables), np.int64)
    columns: Sequence[Column] = np.flatnonzero(free).tolist()
    if model.is_table_model and free.all():
        columns = _contrasts(model)
    if len(columns) > MOST_COLUMNS:
        return Existence(False, none)

    def rows_of(states: IntArray) -> FloatArray:
        if columns and isinstance(columns[0], tuple):
            found = [(states[:, list(scope)] == x).all(axis=1) for scope, x in columns]  # type: ignore[misc]
            return np.array(found, np.float64).T
        return features(model, states)[:, columns]

    seen = _spread(samples.states, MOST_CELLS)
    with one_blas_thread():
        few = _spread(seen, 3 * len(columns) + 10)  # most often they tell
        some = np.random.default_rng(0).integers(0, graph.cards, (50, graph.n_variables))  # few may show a feature as 0
        rows = rows_of(np.concatenate([few, some]))
        scale = np.abs(rows).max(axis=0, initial=0.0)
        scale[scale == 0] = 1.0
        null = _null_space(rows[: len(few)] / scale)
        if null.shape[1] and len(few) < len(seen):
            null = null @ _null_space(rows_of(seen) / scale @ null)
    if not null.shape[1]:
        return Existence(True, none)
    if math.prod(graph.cards.tolist()) > MOST_CELLS:
        return Existence(False, none)
    cells = np.array(list(np.ndindex(*graph.cards.tolist())), np.int64).reshape(-1, graph.n_variables)
    cells = cells[np.isfinite(model.potentials(np.zeros(model.size)).log_score(cells))]
    place = {tuple(x): k for k, x in enumerate(cells.tolist())}
    empty = np.ones(len(cells), np.bool_)
    empty[[place[tuple(x)] for x in samples.states.tolist()]] = False
    with one_blas_thread():
        every = rows_of(np.concatenate([seen[:1], cells[empty]])) / scale
        lost, y = _lost((every[1:] - every[0]) @ null)
        direction = -(null @ y) / scale
    if not lost.any():
        return Existence(True, none)
    direction /= np.abs(direction).max()
    first = np.argsort(-np.abs(direction), kind="stable")
    named = tuple((columns[j], round(float(direction[j]), 6)) for j in first if abs(direction[j]) > 1e-6)
    return Existence(True, cells[empty][lost], named)


def _contrasts(model: Model) -> list[tuple[Scope, tuple[int, ...]]]:
    """Return the treatment contrasts of all sets of variables inside scopes that have parameters."""
    graph = model.graph
    sets = {
        part
        for a in model.free_factors.tolist()
        for size in range(1, len(graph.scopes[a]) + 1)
        for part in itertools.combinations(sorted(graph.scopes[a]), size)
    }
    return [
        (part, states)
        for part in sorted(sets, key=lambda part: (len(part), part))
        for states in itertools.product(*(range(1, int(graph.cards[i])) for i in part))
    ]


def _spread(rows: IntArray, count: int) -> IntArray:
    """Return so many rows at most, of all parts of an array."""
    return rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)]


def _null_space(rows: FloatArray) -> FloatArray:
    """Return an orthonormal basis, as columns, of what is orthogonal to all differences of rows."""
    _, values, right = np.linalg.svd(np.linalg.qr(rows - rows[0], mode="r"), full_matrices=True)
    return np.asarray(right[int((values > ROUNDING * max(values.max(initial=0.0), 1.0)).sum()) :].T, np.float64)


def _lost(rows: FloatArray) -> tuple[Mask, FloatArray]:
    """Return which cells lose their mass, and the first y; linear programs, until no further cell is found."""
    size = np.abs(rows).max(axis=1, initial=0.0)
    lost, first = np.zeros(len(rows), np.bool_), np.zeros(rows.shape[1])
    some = np.flatnonzero(size > ROUNDING)
    scaled = rows[some] / size[some, None]
    _, one, where = np.unique(np.round(scaled, 9), axis=0, return_index=True, return_inverse=True)
    g, rest = scaled[one], np.arange(len(one))
    while len(rest):
        y = _steepest(g[rest])
        gone = g[rest] @ y > GAIN
        if not gone.any():
            break
        first = first if first.any() else y
        lost[some[np.isin(where.ravel(), rest[gone])]] = True
        rest = rest[~gone]
    return lost, first


def _steepest(g: FloatArray) -> FloatArray:
    """Maximise sum_x g(x) . y subject to g(x) . y >= 0 and |y_k| <= 1, with the constraints that it meets alone."""
    from scipy.optimize import linprog

    step = 10 * g.shape[1] + 100
    met = np.zeros(len(g), np.bool_)
    met[:: max(1, len(g) // step)] = True
    while True:
        for method in ("highs", "highs-ipm"):
            found = linprog(-g.mean(axis=0), A_ub=-g[met], b_ub=np.zeros(met.sum()), bounds=(-1, 1), method=method)
            if found.x is not None:
                break
        else:
            text = "the linear program that decides whether the likelihood has a maximum failed"
            raise IsinglassError(f"{text}: {found.message}; use l2 or a prior")
        y = np.asarray(found.x, np.float64)
        gain = np.where(met, 0.0, g @ y)
        if gain.min() > -GAIN / 10:
            return y
        met[np.argsort(gain)[:step]] = True
