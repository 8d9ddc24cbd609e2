"""Gibbs sampling of blocks that are forests (equations in `isinglass.kernels.numba.sampling.forests`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isinglass.graph.forests.induced import Forests, forest_blocks
from isinglass.graph.incidences import signed_incidences
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.sampler import Counted, Sampler
from isinglass.potentials import Potentials


class TreeGibbsSampler(Sampler):
    """Draws forests of variables exactly, given all others. On a forest, every sweep is an independent draw.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.4)
    >>> chains = Chains.start(p, 4, random_state=0)
    >>> TreeGibbsSampler(p).advance(chains, sweeps=20)
    >>> chains.states.shape
    (64, 4)
    """

    def __init__(self, potentials: Potentials, held: Iterable[int] = ()) -> None:
        super().__init__(potentials, held)
        graph, free = self.graph, np.zeros(self.graph.n_variables, bool)
        free[self.free] = True

        def make() -> tuple[Forests, Counted]:
            blocks = forest_blocks(graph, free)
            return blocks, Counted.of(graph.variable_component[blocks.variable], graph.n_components)

        self.sites = signed_incidences(graph)
        self.blocks, self.counted = graph.cached(("forests", self.free.tobytes()), make)
        self.numbers = self.counted.numbers
        self.work = 5.0 * len(self.blocks.variable)

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Draw every block once in each sweep."""
        from isinglass.kernels.numba.sampling.forests import forest_sweeps

        some = np.uint64(sweeps), np.uint64(first), np.uint64(last)
        buffers = np.empty(len(self.model.phi)), np.empty(int(self.graph.cards.max(initial=1)))
        streams = self.counted.streams(chains)
        return bool(forest_sweeps(self.blocks, self.sites, self.model, streams, chains.states, *some, *buffers))
