"""What every method of structure learning is: options, and a graph for samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.learning.markov.data import encode, label_array
from isinglass.learning.markov.frames import frame_graph, is_frame
from isinglass.learning.training.checks import example_weights, observed
from isinglass.registry import Registry, choose, require_declared
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers


class Observations(NamedTuple):
    """Complete samples with their weights, and how many states each variable has."""

    states: IntArray
    weights: FloatArray
    cards: IntArray

    @property
    def total(self) -> float:
        """The weight of all samples."""
        return float(self.weights.sum())

    def counts(self, scope: Sequence[int]) -> FloatArray:
        """Return the table of counts of some variables."""
        shape = self.cards[list(scope)].tolist()
        code = np.zeros(len(self.states), np.int64)
        for i, k in zip(scope, shape, strict=True):
            code = code * k + self.states[:, i]
        return np.bincount(code, self.weights, int(np.prod(shape))).reshape(shape)

    def of_seen_states(self) -> Observations:
        """Number the states of each variable anew, without those that no sample shows.

        Such a state says nothing of edges, but would have a weight of minus infinity.

        Examples
        --------
        >>> seen = Observations(np.array([[0, 2], [1, 2]]), np.ones(2), np.array([2, 4])).of_seen_states()
        >>> seen.states.tolist(), seen.cards.tolist()
        ([[0, 0], [1, 0]], [2, 1])
        """
        kept = self.states[self.weights > 0]
        states, cards = np.empty_like(kept), np.empty_like(self.cards)
        for i in range(kept.shape[1]):
            seen, states[:, i] = np.unique(kept[:, i], return_inverse=True)
            cards[i] = len(seen)
        return Observations(states, self.weights[self.weights > 0], cards)


class StructureLearner(ABC):
    """Base class; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def learn(self, data: Observations) -> FactorGraph:
        """Return a graph for samples."""


STRUCTURES: Registry[type[StructureLearner]] = Registry("structure")

S = TypeVar("S", bound=type[StructureLearner])


def register(cls: S) -> S:
    """File a method under its name (a class decorator, the outermost)."""
    require_declared(cls, name=str, summary=str)
    STRUCTURES.register(cls.name)(cls)
    return cls


def learn_structure(
    X: Any,
    method: str | StructureLearner = "chow-liu",
    cards: ArrayLike | None = None,
    sample_weight: Any = None,
    **options: object,
) -> FactorGraph:
    """Learn a graph from samples.

    Parameters
    ----------
    X : array (samples, variables), or data frame
        Complete samples: states, counted from 0, or labels such as strings. For a data frame, the graph has the names
        of the columns and of their states.
    method : str or StructureLearner
        "chow-liu": the tree of maximum likelihood. "neighbourhood": the neighbours of each variable by a sparse
        regression on all others. "group-l1": all edges at once, by a sparse pseudolikelihood. "greedy": a chordal
        graph, by adding edges one by one while a criterion decreases.
    cards : int array (variables,), optional
        The numbers of states; by default the largest state in `X` plus one.
    sample_weight : array (samples,), optional
        The weight of each sample.
    **options
        Options of the method, such as `strength` or `criterion`.

    Returns
    -------
    FactorGraph
        It has a unary factor for each variable, and a factor for each edge ("greedy": for each maximal clique).

    Examples
    --------
    >>> import isinglass as ig
    >>> X = ig.sample(ig.models.Ising(ig.chain_graph(4, 2)).potentials(coupling=0.8, field=0.0), 500, random_state=0)
    >>> ig.learn_structure(X).scopes[4:]
    [(0, 1), (1, 2), (2, 3)]
    """
    learner = choose(STRUCTURES, StructureLearner, method, options, "chow-liu")  # type: ignore[type-abstract]
    if not is_frame(X):
        return learner.learn(observations(_numbered(X), cards, sample_weight))
    named = frame_graph(X, [])
    if cards is not None:
        raise InputError("cards", "None for a data frame", f"{cards!r:.40}", "its categories are the states")
    found = learner.learn(observations(encode(X, named)[0], named.cards, sample_weight))
    return found.with_names(named.names)


def _numbered(X: Any) -> Any:
    """Return labels by their numbers in sorted order; states as they are.

    Examples
    --------
    >>> _numbered(np.array([["no", "red"], ["yes", "blue"]])).tolist()
    [[0, 1], [1, 0]]
    """
    values = label_array(X)
    if values.dtype.kind != "O" or values.ndim != 2:
        return X
    sizes = [len({str(v) for v in column}) for column in values.T.tolist()]
    largest = [max((v for v in column if isinstance(v, int)), default=0) + 1 for column in values.T.tolist()]
    return encode(values, FactorGraph(np.maximum(np.maximum(sizes, largest), 1), []))[0]


def observations(X: Any, cards: ArrayLike | None, sample_weight: Any) -> Observations:
    """Check complete samples, and count the states of each variable where `cards` does not say."""
    states = integers(observed(X, "X"), "X", 2)
    if not states.size:
        raise InputError("X", "at least one sample of one variable", f"shape {states.shape}")
    if (states < 0).any():
        n, i = (int(v) for v in np.argwhere(states < 0)[0])
        remedy = "impute missing values, or leave out such samples"
        raise InputError("X", "states from 0 on", f"{states[n, i]} for variable {i} of sample {n}", remedy)
    known = states.max(axis=0) + 1 if cards is None else integers(cards, "cards", 1)
    if len(known) != states.shape[1]:
        raise InputError("cards", f"one number for each of {states.shape[1]} variables", f"{len(known)}")
    if (states >= known).any():
        i = int(np.argmax((states >= known).any(axis=0)))
        raise InputError("X", f"states from 0 to {known[i] - 1} for variable {i}", f"{states[:, i].max()}")
    weights = np.ones(len(states)) if sample_weight is None else example_weights(sample_weight, len(states))
    if not weights.sum() > 0:
        raise InputError("sample_weight", "at least one weight above zero", "none")
    return Observations(states, weights, known)
