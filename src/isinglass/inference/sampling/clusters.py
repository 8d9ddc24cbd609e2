"""Swendsen-Wang and Wolff sampling (equations in `isinglass.kernels.numba.sampling.clusters`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.potts import potts_model, wolff_model
from isinglass.inference.sampling.sampler import Sampler, Streams
from isinglass.potentials import Potentials
from isinglass.segments import place_in
from isinglass.typing import IntArray


def _refuse_held(held: Iterable[int], name: str) -> None:
    if list(held):
        raise InputError("held", f"no held variables, for {name!r}", "some", "give them as evidence")


class SwendsenWangSampler(Sampler):
    """Joins equal states by bonds and draws each cluster anew.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.44)
    >>> chains = Chains.start(p, 4, random_state=0)
    >>> SwendsenWangSampler(p).advance(chains, sweeps=20)
    >>> chains.states.shape
    (64, 4)
    """

    def __init__(self, potentials: Potentials, held: Iterable[int] = ()) -> None:
        super().__init__(potentials)
        _refuse_held(held, "swendsen-wang")
        self.potts = potts_model(potentials, "swendsen-wang")
        component = self.potts.component
        of_links = component[self.potts.one]
        links = np.bincount(of_links, minlength=self.graph.n_components)
        self.numbers = (links + np.bincount(component, minlength=len(links))).astype(np.uint64)
        place = np.concatenate([place_in(of_links), links[component] + place_in(component)])
        self.places = place.astype(np.uint64), np.concatenate([of_links, component]).astype(np.uint64)
        self.work = float(2 * len(of_links) + 2 * self.graph.n_variables)

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Draw bonds and clusters."""
        from isinglass.kernels.numba.sampling.clusters import swendsen_wang

        n = self.graph.n_variables
        place, component = self.places
        streams = Streams(chains.keys, chains.drawn, self.numbers, component, place)
        some = np.uint64(sweeps), np.uint64(first), np.uint64(last)
        buffers = np.empty(n, np.int64), np.empty(len(self.potts.phi)), np.empty(n, np.int64)
        swendsen_wang(self.potts, streams, chains.states, *some, *buffers)
        return True


class WolffSampler(Sampler):
    """Moves one cluster at a time: in a sweep, `clusters` of each component.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.44)
    >>> chains = Chains.start(p, 4, random_state=0)
    >>> WolffSampler(p).advance(chains, sweeps=20)
    >>> chains.states.shape
    (64, 4)
    """

    def __init__(self, potentials: Potentials, clusters: int | None = None, held: Iterable[int] = ()) -> None:
        super().__init__(potentials)
        _refuse_held(held, "wolff")
        potts = potts_model(potentials, "wolff")
        self.wolff = wolff_model(potts, self.graph.n_components)
        sizes = np.diff(self.wolff.begin)
        self.steps: IntArray = np.ceil(np.sqrt(sizes)).astype(np.int64)
        if clusters is not None:
            self.steps[:] = clusters
        self.numbers = (self.steps * self.wolff.per_step).astype(np.uint64)
        self.work = float((self.steps * sizes).sum())

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Grow clusters and move them."""
        from isinglass.kernels.numba.sampling.clusters import wolff

        n = self.graph.n_variables
        unused = np.zeros(0, np.uint64)
        streams = Streams(chains.keys, chains.drawn, self.numbers, unused, unused)
        buffers = np.zeros(n, bool), np.empty(n, np.int64), np.empty(int(self.graph.cards.max(initial=1)))
        wolff(self.wolff, streams, self.steps, chains.states, sweeps, first, last, *buffers)
        return True
