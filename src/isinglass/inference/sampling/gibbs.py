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
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.sampler import Counted, Sampler
from isinglass.potentials import Potentials
from isinglass.segments import starts

Scan = Literal["chromatic", "systematic", "random"]
SCANS: tuple[Scan, ...] = ("chromatic", "systematic", "random")


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
        self.scan = scan
        key = ("gibbs order", scan, self.free.tobytes())
        self.order, self.ends, self.counted = self.graph.cached(key, self._order)
        self.numbers = self.counted.numbers
        self.most_states = int(self.graph.cards.max(initial=1))

    def _order(self) -> tuple[Unsigned, Unsigned, Counted]:
        """Return the sequence of a sweep, where each component ends in a random scan, and the random numbers."""
        component = self.graph.variable_component[self.free]
        keys = colours_of(self.graph)[self.free] if self.scan == "chromatic" else component
        order = self.free[np.argsort(keys, kind="stable")]
        component = self.graph.variable_component[order]
        ends = starts(np.bincount(component, minlength=self.graph.n_components)).astype(np.uint64)
        counted = Counted.of(component, self.graph.n_components, 2 if self.scan == "random" else 1)
        return order.astype(np.uint64), ends, counted

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Draw every variable once in each sweep (with a random scan: on average)."""
        some = np.uint64(sweeps), np.uint64(first), np.uint64(last)
        return self._recorded(chains, *some, chains.states[None, :0])

    def record(self, chains: Chains, out: States, threads: int = 1) -> None:
        """Make a sweep for each row of `out`, in one call of a compiled loop: the bits are the same."""
        self._record_by(self._recorded, chains, out, threads)
        chains.drawn += np.uint64(len(out)) * self.numbers

    def _recorded(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64, out: States) -> bool:
        """Make sweeps, and write the states after each, unless `out` has no variables."""
        from isinglass.kernels.numba.sampling.gibbs import sweeps_at_random, sweeps_in_order

        rest = self.near, self.model, self.counted.streams(chains), chains.states[None], out
        some = sweeps, first, last, np.empty(self.most_states)
        if self.scan == "random":
            return bool(sweeps_at_random(self.order, self.ends, *rest, *some))
        return bool(sweeps_in_order(self.order, *rest, *some))
