"""The information that samples hold of the parameters of a log-linear model (Agresti 2013, sections 9.5 and 16.2).

For p(x) ~ exp(theta . f(x)) the Fisher information of one sample is the covariance of the features,

    I = Cov[f] = d E[f] / d theta,

column j by one inference at theta + i h e_j (a complex step); in small models by enumeration. Parameters of tables are
redundant, so that I is singular: its rank is the number of free parameters, and a linear function c . theta can be
estimated if c is in the row space of I. Its variance, for n samples, is then c I^+ c / n whatever generalised inverse
is taken. Where a model may be wrong, the sandwich

    I^+ K I^+,        K = sum_n w_n s_n s_n',    s_n = f(x_n) - E[f],

takes the place of I^+ (Huber 1967; White 1982).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array, vstack

from isinglass.inference import Exact, infer
from isinglass.learning.markov.objective import with_zeros
from isinglass.learning.markov.samples import Samples
from isinglass.losses.observed import table_strides
from isinglass.models import Model
from isinglass.models.canonical import Scope, canonical_tables
from isinglass.potentials import Potentials, sum_tables
from isinglass.typing import Array, FloatArray, Mask

STEP = 1e-20  # of the complex step
ENUMERATED = 2_000_000  # joint states times parameters up to which they are summed over
CONSTANT = 1e-11  # a feature that varies by less than this, relative to its size or to others, is constant
RANK = 1e-9  # eigenvalues below this share of the largest count as zero


def covariance(model: Model, theta: FloatArray, zeros: tuple[Mask, ...] | None = None) -> FloatArray:
    """Return the covariance of the features under a model, by exact inference.

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> covariance(table_model(ig.FactorGraph([2], [(0,)])), np.zeros(2)).tolist()
    [[0.25, -0.25], [-0.25, 0.25]]
    """
    if math.prod(model.graph.cards.astype(float).tolist()) * model.size <= ENUMERATED:
        return _enumerated(model, theta, zeros)
    columns = np.zeros((model.size, model.size))
    for j, unit in enumerate(np.eye(model.size)):
        p = with_zeros(model.potentials(theta + 1j * STEP * unit), zeros)
        counts = sum_tables(p, infer(p, Exact()).factors.groups)
        columns[:, j] = model.transpose(counts).imag / STEP
    return (columns + columns.T) / 2


def _enumerated(model: Model, theta: FloatArray, zeros: tuple[Mask, ...] | None) -> FloatArray:
    """Return the covariance of the features by a sum over all joint states."""
    cells = np.array(list(np.ndindex(*model.graph.cards.tolist())), np.int64).reshape(-1, model.graph.n_variables)
    scores = with_zeros(model.potentials(theta), zeros).log_score(cells)
    p = np.exp(scores - scores.max())
    p /= p.sum()
    found = features(model, cells)
    size = np.abs(found).max(axis=0, initial=0.0)
    found -= p @ found
    found[:, np.abs(found).max(axis=0, initial=0.0) <= CONSTANT * size] = 0.0
    return np.asarray((found * p[:, None]).T @ found, np.float64)


def features(model: Model, states: Array) -> FloatArray:
    """Return the features of complete samples, an array (samples, parameters).

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> features(table_model(ig.FactorGraph([2], [(0,)])), np.array([[0], [1]])).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    constant, columns = model.potentials(np.zeros(model.size)), []
    for unit in np.eye(model.size):
        pairs = zip(model.potentials(unit).groups, constant.groups, strict=True)
        moved = [np.subtract(t, c, out=np.zeros_like(c), where=np.isfinite(c)).ravel() for t, c in pairs]
        columns.append(csr_array(np.concatenate([np.zeros(0), *moved])[None]))
    places, first = [np.zeros((len(states), 0), np.int64)], 0
    for group, tables, ids in zip(model.graph.groups, constant.groups, constant.table_ids, strict=True):
        inside = states[:, group.scopes] @ table_strides(group)
        places.append(first + ids * group.table_size + inside)
        first += tables.size
    entries = np.concatenate(places, axis=1)
    shape = len(states), first
    ends = np.arange(len(states) + 1) * entries.shape[1]
    shown = csr_array((np.ones(entries.size), entries.ravel(), ends), shape=shape)
    return np.asarray((shown @ vstack(columns).T).toarray() if columns else np.zeros((len(states), 0)), np.float64)


class Information(NamedTuple):
    """A generalised inverse of an information matrix, and its rank.

    Attributes
    ----------
    inverse : array (parameters, parameters)
    rank : int
    projection : array (parameters, parameters)
        Onto the row space of the correlations of the features.
    scale : array (parameters,)
        The standard deviations of the features; one where a feature is constant.
    """

    inverse: FloatArray
    rank: int
    projection: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray) -> Information:
        """Decompose a symmetric matrix with eigenvalues that are not negative, whatever the units of the features."""
        size = np.sqrt(np.maximum(np.diag(matrix), 0.0))
        varies = size > CONSTANT * size.max(initial=0.0)
        scale = np.where(varies, size, 1.0)
        matrix = np.where(varies[:, None] & varies, matrix, 0.0)
        values, vectors = np.linalg.eigh(matrix / np.outer(scale, scale))
        kept = values > RANK * max(values.max(initial=0.0), 0.0)
        basis = vectors[:, kept]
        inverse = (basis / values[kept]) @ basis.T / np.outer(scale, scale)
        return cls(inverse, int(kept.sum()), basis @ basis.T, scale)

    def estimable(self, functions: FloatArray) -> Mask:
        """Tell which linear functions of the parameters, the rows, can be estimated."""
        scaled = functions / self.scale
        miss = scaled - scaled @ self.projection
        return np.asarray(np.abs(miss).max(axis=1, initial=0.0) <= 1e-6 * np.abs(scaled).max(axis=1, initial=0.0))


def sandwich(model: Model, theta: FloatArray, samples: Samples, matrix: FloatArray, inverse: FloatArray) -> FloatArray:
    """Return the covariance of the estimates where the model may be wrong, for complete samples."""
    seen = features(model, samples.states)
    total = samples.weights.sum()
    scores = seen - (samples.weights @ seen) / total
    middle = (samples.weights[:, None] * scores).T @ scores
    return np.asarray(inverse @ middle @ inverse / total**2, np.float64)


def contrasts(model: Model) -> tuple[list[tuple[Scope, tuple[int, ...]]], FloatArray]:
    """Return the treatment contrasts of a model of tables: their scopes and states, and each as a function of theta.

    They are the entries of the canonical potentials with state 0 as the reference.
    """
    reference = np.zeros(model.graph.n_variables, np.int64)
    names: list[tuple[Scope, tuple[int, ...]]] = []
    columns = []
    for unit in np.eye(model.size):
        tables = canonical_tables(_finite(model.potentials(unit)), reference)
        scopes = sorted((s for s in tables if s), key=lambda s: (len(s), s))
        columns.append(np.concatenate([np.zeros(0), *(tables[s][(slice(1, None),) * len(s)].ravel() for s in scopes)]))
        if not names:
            names = [(s, x) for s in scopes for x in _states_of(tables[s].shape)]
    return names, np.array(columns).T


def _finite(potentials: Potentials) -> Potentials:
    """Return potentials whose constant hard zeros are zero."""
    groups = [np.where(np.isfinite(tables), tables, 0.0) for tables in potentials.groups]
    return Potentials._build(potentials.graph, groups, potentials.table_ids, {})


def _states_of(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Return all states but the reference, of a canonical table."""
    return [tuple(k + 1 for k in x) for x in np.ndindex(*(k - 1 for k in shape))]


def rounded(log_count: float) -> int:
    """Return the whole number with a logarithm; one beyond the floats has their precision.

    Examples
    --------
    >>> rounded(math.log(12)), len(str(rounded(2000.5 * math.log(10))))
    (12, 2001)
    """
    bits = max(0, int(log_count / math.log(2)) - 900)
    return round(math.exp(log_count - bits * math.log(2))) << bits
