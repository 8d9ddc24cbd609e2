"""Parallel tempering (equations in `isinglass.kernels.numba.sampling.tempering`)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.inference.sampling.sampler import Sampler, Streams
from isinglass.inference.sampling.scores import Scores
from isinglass.potentials import Potentials
from isinglass.segments import starts
from isinglass.typing import FloatArray


class TemperingSampler(Sampler):
    """Gibbs sampling at several temperatures, whose states are exchanged after each sweep.

    Each chain has a replica for each inverse temperature, the first of which is 1. Column ``r * n + c`` of the states
    is replica r of chain c, so that the first n columns are the chains of the model itself.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=1.0)
    >>> sampler = TemperingSampler(p, np.array([1.0, 0.5, 0.25]))
    >>> chains = Chains.start(p, 4 * sampler.replicas, random_state=0)
    >>> sampler.advance(chains, sweeps=20)
    >>> chains.states.shape, sampler.exchange_rates.shape
    ((16, 12), (1, 2))
    """

    def __init__(self, potentials: Potentials, inverse: FloatArray, held: Iterable[int] = ()) -> None:
        super().__init__(potentials, held)
        self.inverse, self.replicas = inverse, len(inverse)
        self.rungs = [GibbsSampler(tempered(potentials, float(b)), held=list(held)) for b in inverse]
        self.place = self.rungs[0].numbers
        self.numbers = self.place + np.uint64(1)
        self.scores = Scores(potentials)
        component = self.graph.variable_component
        self.member = np.argsort(component, kind="stable")
        self.begin = starts(np.bincount(component, minlength=self.graph.n_components))
        self.accepted = np.zeros((self.graph.n_components, max(0, self.replicas - 1)), np.int64)
        self.offered = np.zeros(max(0, self.replicas - 1), np.int64)

    @property
    def exchange_rates(self) -> FloatArray:
        """The share of exchanges that were accepted so far, (components, neighbouring temperatures)."""
        return self.accepted / np.maximum(self.offered, 1)

    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Advance some replicas at their own temperatures, without exchanges."""
        n = chains.n // self.replicas
        return all(
            rung.sweep(chains, sweeps, max(first, r * n), min(last, (r + 1) * n))
            for r, rung in enumerate(self.rungs)
            if max(first, r * n) < min(last, (r + 1) * n)
        )

    def advance(self, chains: Chains, sweeps: int, threads: int = 1) -> None:
        """Sweep all replicas and offer exchanges, in turn of the even and of the odd pairs of temperatures."""
        for _ in range(sweeps):
            before = int(chains.drawn[0]) // int(self.numbers[0]) if len(chains.drawn) else 0
            super().advance(chains, 1, threads)
            self._exchange(chains, before % 2)

    def _exchange(self, chains: Chains, odd: int) -> None:
        from isinglass.kernels.numba.sampling.tempering import exchange

        n = chains.n // self.replicas
        drawn, unused = chains.drawn - self.numbers, np.zeros(0, np.uint64)
        streams = Streams(chains.keys, drawn, self.numbers, unused, unused)
        scores = self.scores(chains.states)
        exchange(
            self.begin, self.member, self.inverse, scores, streams, self.place, odd, n, chains.states, self.accepted
        )
        self.offered[odd::2] += n


def tempered(potentials: Potentials, inverse: float) -> Potentials:
    """Return the model at an inverse temperature: all log tables times a positive number."""
    groups = [inverse * tables for tables in potentials.groups]
    return Potentials._build(potentials.graph, groups, potentials.table_ids, potentials.evidence)
