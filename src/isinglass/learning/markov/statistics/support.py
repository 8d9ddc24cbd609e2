"""Where the maximum of the likelihood has its mass, if it lies at infinity (Fienberg and Rinaldo 2012).

Empty cells of a table can push parameters to infinity: along a direction c with

    c . f(x) = 0  for all x that were seen,      c . f(x) >= 0  for all others,

the likelihood grows, and cells with c . f(x) > 0 lose all their mass. The extended maximum likelihood estimate is the
ordinary one of the model without these cells. A linear program finds all of them at once:

    maximise  sum_x t_x   subject to   c . f(x) >= t_x,  0 <= t_x <= 1  for x that were not seen,  c . f(x) = 0  for
    others.
"""

from __future__ import annotations

import math

import numpy as np

from isinglass.learning.markov.samples import Samples
from isinglass.learning.markov.statistics.information import features
from isinglass.models import Model
from isinglass.typing import FloatArray, IntArray, Mask

MOST_CELLS = 2048  # of tables that are looked at


def vanishing_cells(model: Model, samples: Samples) -> IntArray:
    """Return the joint states (cells, variables) whose probability vanishes at the maximum of the likelihood.

    None are looked for in tables of more than `MOST_CELLS` cells, or with samples that miss values.

    Examples
    --------
    A diagonal of structural zeros, and one empty cell that takes its row with it:

    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> seen = Samples(np.array([[0, 0], [1, 0]]), np.ones(2))
    >>> vanishing_cells(table_model(ig.FactorGraph([2, 2], [(0,), (1,)])), seen).tolist()
    [[0, 1], [1, 1]]
    """
    graph = model.graph
    none = np.zeros((0, graph.n_variables), np.int64)
    if math.prod(graph.cards.tolist()) > MOST_CELLS or not samples.whole.all():
        return none
    cells = np.array(list(np.ndindex(*graph.cards.tolist())), np.int64).reshape(-1, graph.n_variables)
    possible = np.isfinite(model.potentials(np.zeros(model.size)).log_score(cells))
    cells = cells[possible]
    place = {tuple(x): k for k, x in enumerate(cells.tolist())}
    seen = np.zeros(len(cells), np.bool_)
    seen[[place[tuple(x)] for x in samples.states.tolist()]] = True
    return none if seen.all() else cells[~seen][_lost(_basis(features(model, cells)), seen)]


def _basis(rows: FloatArray) -> FloatArray:
    """Return independent columns that span those of a matrix and the constant."""
    full = np.column_stack([np.ones(len(rows)), rows])
    left, values, _ = np.linalg.svd(full, full_matrices=False)
    return np.asarray(left[:, values > 1e-10 * values[0]], np.float64)


def _lost(rows: FloatArray, seen: Mask) -> Mask:
    """Solve the linear program: which of the cells that were not seen lose their mass."""
    from scipy.optimize import linprog

    empty, size = rows[~seen], rows.shape[1]
    count = len(empty)
    found = linprog(
        np.concatenate([np.zeros(size), -np.ones(count)]),
        A_ub=np.hstack([-empty, np.eye(count)]),
        b_ub=np.zeros(count),
        A_eq=np.hstack([rows[seen], np.zeros((int(seen.sum()), count))]),
        b_eq=np.zeros(int(seen.sum())),
        bounds=[(None, None)] * size + [(0, 1)] * count,
        method="highs",
    )
    if found.x is None:
        raise RuntimeError(f"the linear program of the support failed: {found.message}")
    return np.asarray(found.x[size:] > 0.5)
