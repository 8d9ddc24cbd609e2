"""Local searches for modes that a sampler has missed.

    Z  =  sum_x exp S(x)  >=  sum_{x in A} exp S(x)          for any set A of different assignments

No diagnostic of samples can detect a mode that was never visited. So local searches (iterated conditional modes) are
started from different states. There are two tests. An estimate of log Z that is below the sum over all assignments
found has missed a mode. And if the chains visit only a few assignments, they have missed a mode if the searches find
others of considerable mass. For this, let s be the share of samples whose assignment occurs only once. The visited
assignments have about 1 - s of the mass that the chains can reach (Good 1953). If this is more than a half, unvisited
assignments must have little mass.
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.sampling.chains import States
from isinglass.inference.sampling.scores import Scores
from isinglass.inference.sampling.starts import dispersed_states
from isinglass.inference.streams import streams
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

SEARCHES = 32
SWEEPS = 100  # the most of each search
DRAWS = 1024  # the most that are compared with what the searches find
AT_ONCE = 2**22  # numbers in memory
COVERED, MISSED = 0.5, 0.05


def seen_mass(potentials: Potentials, draws: States) -> FloatArray:
    """Return a lower bound on log Z of each component, from draws (variables, samples) and local searches."""
    states = np.concatenate([draws, local_maxima(potentials)], axis=1)
    return _log_mass(Scores(potentials)(states), _counts(potentials, states)[1])


def missed_modes(potentials: Potentials, draws: States) -> Mask:
    """Tell in which components chains keep to a few assignments, though there are others of some mass.

    `draws` has shape (draws, variables, chains).
    """
    columns = draws.transpose(1, 0, 2).reshape(draws.shape[1], draws.shape[0] * draws.shape[2])
    columns = columns[:, :: -(-columns.shape[1] // DRAWS) or 1]
    n = columns.shape[1]
    states = np.concatenate([columns, local_maxima(potentials)], axis=1)
    scores, (count, first) = Scores(potentials)(states), _counts(potentials, states)
    met = np.arange(states.shape[1]) < n
    covered = 1 - (first & (count == 1) & met).sum(axis=1) / max(n, 1)
    visited, unseen = _log_mass(scores, first & met), _log_mass(scores, first & ~met)
    return np.asarray((covered > COVERED) & (unseen > visited + np.log(MISSED)))


def local_maxima(potentials: Potentials) -> States:
    """Return what local searches from different starts find, (variables, searches)."""
    model, found = LocalModel(potentials), dispersed_states(potentials, SEARCHES, streams(potentials, 0))
    for k in range(SEARCHES):
        x = found[:, k].astype(np.int64)
        for _ in range(SWEEPS):
            if not model.climb(x):
                break
        found[:, k] = x
    return found


def _counts(potentials: Potentials, states: States) -> tuple[IntArray, Mask]:
    """Count, in each component, how often the assignment of a column occurs, and mark the first occurrences."""
    graph = potentials.graph
    mark = np.random.default_rng(0).integers(0, 2**64, graph.n_variables, np.uint64)  # equal sums: equal assignments
    sums = np.zeros((graph.n_components, states.shape[1]), np.uint64)
    step = max(1, AT_ONCE // max(1, graph.n_variables))
    for k in range(0, states.shape[1], step):
        marked = mark[:, None] * states[:, k : k + step].astype(np.uint64)
        np.add.at(sums[:, k : k + step], graph.variable_component, marked)
    count, first = np.zeros(sums.shape, np.int64), np.zeros(sums.shape, bool)
    for k, row in enumerate(sums):
        _, where, owner, times = np.unique(row, return_index=True, return_inverse=True, return_counts=True)
        count[k], first[k, where] = times[owner], True
    return count, first


def _log_mass(scores: FloatArray, which: Mask) -> FloatArray:
    """Return the logarithm of the sum of exp(scores) over some columns."""
    chosen = np.where(which, scores, -np.inf)
    top = chosen.max(axis=1, initial=-np.inf)
    top[top == -np.inf] = 0.0
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(chosen - top[:, None]).sum(axis=1)) + top)
