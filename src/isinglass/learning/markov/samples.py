"""Samples of a Markov random field: distinct rows with their weights, and copies of the graph side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, IntArray, Mask


class TermCounts(NamedTuple):
    """What a pseudolikelihood uses of some samples.

    Attributes
    ----------
    observed : int
        Values that are not missing: each should have a term.
    left_out : int
        Values without a term, as a neighbour is missing.
    samples, samples_left_out : int
        Samples with observed values, and those of them without any term.
    """

    observed: int
    left_out: int
    samples: int
    samples_left_out: int


@dataclass(frozen=True, eq=False)
class Samples:
    """Distinct samples and their weights.

    Attributes
    ----------
    states : int array (samples, variables)
        -1 where a value is missing.
    weights : array (samples,)
    counts : int array (samples,), optional
        How many of the user's samples each stands for; by default one.
    """

    states: IntArray
    weights: FloatArray
    counts: IntArray | None = None

    @classmethod
    def of(cls, states: IntArray, weights: FloatArray) -> Samples:
        """Add up the weights of equal samples; those of weight zero go.

        Examples
        --------
        >>> s = Samples.of(np.array([[0, 1], [1, 1], [0, 1]]), np.ones(3))
        >>> s.states.tolist(), s.weights.tolist()
        ([[0, 1], [1, 1]], [2.0, 1.0])
        """
        first, where = distinct_rows(states)
        total = np.asarray(np.bincount(where, weights, len(first)), np.float64)
        counts = np.bincount(where[weights > 0], minlength=len(first))
        return cls(states[first[total > 0]], total[total > 0], counts[total > 0])

    @property
    def whole(self) -> Mask:
        """Which samples miss nothing."""
        return np.asarray((self.states >= 0).all(axis=1))

    def only(self, chosen: Mask) -> Samples:
        """Return some of them."""
        return Samples(self.states[chosen], self.weights[chosen])


class Copies:
    """One copy of a graph for each sample, side by side."""

    def __init__(self, model: Model, samples: Samples) -> None:
        n = len(samples.weights)
        self.graph = model.graph.repeat(n)
        self.table_ids = [np.tile(ids, n) for ids in model.table_ids]
        self.labels = samples.states.ravel()
        self.variable_weights = np.repeat(samples.weights, model.graph.n_variables)
        self.component_weights = np.repeat(samples.weights, model.graph.n_components)

    def potentials(self, one: Potentials) -> Potentials:
        """Return the copies of potentials, which share their tables."""
        return Potentials._build(self.graph, one.groups, self.table_ids, {})
