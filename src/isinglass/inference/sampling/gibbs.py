"""Gibbs sampling (equations in `isinglass.kernels.numba.sampling.gibbs`; Geman and Geman 1984).

Scans: "chromatic" draws all variables of one colour, then those of the next (variables of one colour share no factor,
so that their sequence does not matter; Gonzalez et al. 2011); "systematic" draws them by number; "random" draws as many
as there are, each chosen at random with replacement, which makes the chain reversible.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import numpy as np

from isinglass.graph.incidences import Unsigned, colours_of
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.sampler import Counted, Sampler
from isinglass.inference.sampling.sites import BinaryLayout, binary_components, binary_layout
from isinglass.potentials import Potentials
from isinglass.segments import starts
from isinglass.typing import IntArray

Scan = Literal["chromatic", "systematic", "random"]
SCANS = ("chromatic", "systematic", "random")


class GibbsSampler(Sampler):
    """Draws each variable given all others.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.3, field=0.1)
    >>> chains = Chains.start(p, 16, random_state=0)
    >>> GibbsSampler(p).advance(chains, sweeps=50)
    >>> bool(0.5 < chains.states.mean() < 1)
    True
    """

    def __init__(self, potentials: Potentials, scan: Scan = "chromatic", held: Iterable[int] = ()) -> None:
        super().__init__(potentials, held)
        self.scan, graph = scan, self.graph
        chosen = binary_components(potentials) if scan == "chromatic" else np.zeros(graph.n_components, bool)
        fast = chosen[graph.variable_component[self.free]]
        self.binary = _BinaryPart(self, self.free[fast]) if fast.any() else None
        self.others = _OtherPart(self, self.free[~fast]) if not fast.all() else None
        self.numbers = np.zeros(graph.n_components, np.uint64)
        for part in (self.binary, self.others):
            self.numbers += part.counted.numbers if part is not None else np.uint64(0)

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Draw every variable once in each sweep (with a random scan: on average)."""
        some = np.uint64(sweeps), np.uint64(first), np.uint64(last)
        parts = [part for part in (self.binary, self.others) if part is not None]
        return all(part.sweep(chains, *some) for part in parts)  # what is impossible ends the run

    def by_colour(self, variables: IntArray) -> tuple[IntArray, Unsigned]:
        """Return variables by colour, and where each colour begins."""
        colours = colours_of(self.graph)[variables]
        order = np.argsort(colours, kind="stable")
        return variables[order], starts(np.bincount(colours)).astype(np.uint64)


class _BinaryPart:
    """Components of binary variables with links of two: vector instructions for many variables or chains."""

    def __init__(self, sampler: GibbsSampler, variables: IntArray) -> None:
        graph = sampler.graph

        def make() -> tuple[BinaryLayout, Unsigned, Counted]:
            order, bounds = sampler.by_colour(variables)
            counted = Counted.of(graph.variable_component[order], graph.n_components)
            return binary_layout(graph, order), bounds, counted

        layout, self.bounds, self.counted = graph.cached(("binary order", variables.tobytes()), make)
        self.model = layout.model(sampler.model)

    def sweep(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64) -> bool:
        from isinglass.kernels.numba.sampling.binary import LANES, binary_sweeps

        buffers = np.empty(LANES), np.empty(LANES, np.uint64), np.empty(LANES, chains.states.dtype)
        streams = self.counted.streams(chains)
        binary_sweeps(self.bounds, self.model, streams, chains.states, sweeps, first, last, *buffers)
        return True


class _OtherPart:
    """Any other components: one variable after the other."""

    def __init__(self, sampler: GibbsSampler, variables: IntArray) -> None:
        graph, self.sampler = sampler.graph, sampler
        key = ("gibbs order", sampler.scan, variables.tobytes())
        self.order, self.ends, self.counted = graph.cached(key, lambda: self._order(variables))
        self.row = int(graph.cards.max(initial=1))

    def _order(self, variables: IntArray) -> tuple[Unsigned, Unsigned, Counted]:
        sampler, graph = self.sampler, self.sampler.graph
        if sampler.scan == "chromatic":
            order = sampler.by_colour(variables)[0]
        else:
            order = variables[np.argsort(graph.variable_component[variables], kind="stable")]
        component = graph.variable_component[order]
        ends = starts(np.bincount(component, minlength=graph.n_components)).astype(np.uint64)
        counted = Counted.of(component, graph.n_components, 2 if sampler.scan == "random" else 1)
        return order.astype(np.uint64), ends, counted

    def sweep(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64) -> bool:
        from isinglass.kernels.numba.sampling.gibbs import sweeps_at_random, sweeps_in_order

        sampler, streams = self.sampler, self.counted.streams(chains)
        rest = (sampler.near, sampler.model, streams, chains.states[None], sweeps, first, last, np.empty(self.row))
        if sampler.scan == "random":
            return bool(sweeps_at_random(self.order, self.ends, *rest))
        return bool(sweeps_in_order(self.order, *rest))
