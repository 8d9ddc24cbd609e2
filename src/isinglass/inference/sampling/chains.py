"""Markov chains of one model: their states and their random streams.

Chain c of component (example) k has its own random stream. Its key comes from the stream of the component
(`isinglass.inference.algorithm.streams`). `drawn` counts the random numbers that each component has used. So a chain
can be continued bit for bit, and its numbers do not depend on the other chains or on what else is in a batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Unsigned
from isinglass.inference.algorithm import streams
from isinglass.inference.sampling.starts import dispersed_states
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import RandomState, assignments

States = NDArray[np.integer[Any]]
"""uint8, or int32 where a variable has more than 256 states."""


@dataclass(eq=False)
class Chains:
    """Chains that samplers move in place.

    Attributes
    ----------
    states : unsigned or int array (variables, chains)
        uint8 if no variable has more than 256 states, else int32.
    keys : uint64 array (components, chains)
    drawn : uint64 array (components,)
        How many random numbers each chain of a component has used.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.4)
    >>> chains = Chains.start(p, 4, random_state=0)
    >>> chains.states.shape, chains.keys.shape
    ((9, 4), (1, 4))
    """

    states: States
    keys: Unsigned
    drawn: Unsigned

    @classmethod
    def start(cls, potentials: Potentials, n: int, random_state: RandomState = None) -> Chains:
        """Begin `n` chains at states that are possible and far apart (`isinglass.inference.sampling.starts`)."""
        random = streams(potentials, random_state)
        keys = _keys(random, n)
        states = dispersed_states(potentials, n, random)
        return cls(states.astype(state_type(potentials.graph)), keys, np.zeros(len(random), np.uint64))

    @classmethod
    def at(cls, potentials: Potentials, states: ArrayLike, random_state: RandomState = None) -> Chains:
        """Begin chains at given assignments, shape (chains, variables); those of observed variables are replaced."""
        given = assignments(states, potentials.graph.cards).copy()
        if given.ndim != 2:
            raise InputError("states", "assignments of shape (chains, variables)", f"shape {given.shape}")
        given[:, list(potentials.evidence)] = list(potentials.evidence.values())
        keys = _keys(streams(potentials, random_state), len(given))
        turned = np.ascontiguousarray(given.T.astype(state_type(potentials.graph)))
        return cls(turned, keys, np.zeros(len(keys), np.uint64))

    @property
    def n(self) -> int:
        """Number of chains."""
        return int(self.states.shape[1])

    @property
    def assignments(self) -> IntArray:
        """The states of each chain, (chains, variables), as `Potentials.log_score` takes them."""
        return np.ascontiguousarray(self.states.T.astype(np.int64))

    def copy(self) -> Chains:
        """Return chains that go on from here on their own."""
        return Chains(self.states.copy(), self.keys.copy(), self.drawn.copy())


def state_type(graph: FactorGraph) -> type[np.uint8] | type[np.int32]:
    """Return the type in which the states of a graph's variables are kept."""
    return np.uint8 if graph.cards.max(initial=1) <= 256 else np.int32


def _keys(random: list[np.random.Generator], n: int) -> Unsigned:
    """Draw the key of each chain of each component; the first chains have the same keys however many there are."""
    found = [rng.integers(0, 2**64, n, np.uint64) for rng in random]
    return np.array(found, np.uint64).reshape(len(random), n)
