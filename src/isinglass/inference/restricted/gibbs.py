"""Block Gibbs sampling of restricted Boltzmann machines: all hidden units at once, then all visible ones.

    h ~ p(h | v),   v ~ p(v | h)                                  (`isinglass.models.spins.restricted` has both)

That is Gibbs sampling in the chromatic order of a bipartite graph. Each chain has a key of its own, and its random
numbers are counted (`isinglass.kernels.numba.sampling.random`). With products that do not look at other rows, a chain
has the same bits however many chains or threads there are.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from isinglass.graph.incidences import Unsigned
from isinglass.models.spins.restricted import RestrictedBoltzmannMachine
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, generator


@dataclass(eq=False)
class LayerChains:
    """Chains of a restricted Boltzmann machine.

    Attributes
    ----------
    visible : array (chains, visible)
        States, 0.0 or 1.0.
    keys : uint64 array (chains,)
    drawn : uint64 array (1,)
        How many random numbers each chain has used.
    """

    visible: FloatArray
    keys: Unsigned
    drawn: Unsigned

    @classmethod
    def at(cls, visible: FloatArray, random_state: RandomState = None) -> LayerChains:
        """Begin a chain at each row; the first chains have the same keys however many there are."""
        keys = generator(random_state).integers(0, 2**64, len(visible), np.uint64)
        return cls(np.array(visible, np.float64, order="C"), keys, np.zeros(1, np.uint64))

    @classmethod
    def start(cls, log_odds: FloatArray, n: int, random_state: RandomState = None) -> LayerChains:
        """Begin `n` chains with independent units of given log-odds (visible,)."""
        chains = cls.at(np.zeros((n, len(log_odds))), random_state)
        chains.visible = chains.draw(np.tile(log_odds, (n, 1)))
        chains.drawn += np.uint64(len(log_odds))
        return chains

    @property
    def n(self) -> int:
        """Number of chains."""
        return len(self.keys)

    @property
    def states(self) -> IntArray:
        """The visible states as whole numbers."""
        return self.visible.astype(np.int64)

    def copy(self) -> LayerChains:
        """Return chains that go on from here on their own."""
        return LayerChains(self.visible.copy(), self.keys.copy(), self.drawn.copy())

    def draw(self, log_odds: FloatArray, skipped: int = 0, first: int = 0) -> FloatArray:
        """Draw units from log-odds (chains, units) by the random numbers after `skipped` ones; `drawn` stays.

        The rows are the chains from `first` on.
        """
        from isinglass.kernels.numba.sampling.units import draw_units

        states = np.empty_like(log_odds)
        draw_units(log_odds, self.keys[first : first + len(log_odds)], self.drawn[0] + np.uint64(skipped), states)
        return states


class BlockGibbs:
    """Moves chains of a restricted Boltzmann machine.

    Examples
    --------
    >>> machine = RestrictedBoltzmannMachine(np.full((6, 4), 0.5), visible_bias=-1.0)
    >>> chains = LayerChains.start(machine.visible_bias, 8, random_state=0)
    >>> BlockGibbs(machine).advance(chains, sweeps=20)
    >>> chains.states.shape
    (8, 6)
    """

    def __init__(self, machine: RestrictedBoltzmannMachine) -> None:
        self.machine = machine

    def advance(self, chains: LayerChains, sweeps: int, threads: int = 1) -> None:
        """Make some sweeps of all chains; threads share the chains."""
        pool, cuts = ThreadMap(threads), [chains.n * part // threads for part in range(threads + 1)]
        parts = [(chains, low, high) for low, high in pairwise(cuts) if low < high]
        for _ in range(sweeps):
            moved = pool(self._moved, parts)
            if moved:
                chains.visible = np.concatenate(moved)
            chains.drawn += np.uint64(self.machine.n_hidden + self.machine.n_visible)

    def _moved(self, chains: LayerChains, low: int, high: int) -> FloatArray:
        """Return the visible units of some chains after a sweep."""
        machine = self.machine
        hidden = chains.draw(machine.hidden_log_odds(chains.visible[low:high]), 0, low)
        return chains.draw(machine.visible_log_odds(hidden), machine.n_hidden, low)
