"""The interface of a sampler: it moves many chains of one model at once, in place.

    sampler = GibbsSampler(potentials)             # numbers of this model; what depends on the graph alone is cached
    chains = Chains.start(potentials, 100, random_state=0)     # or Chains.at(potentials, states, random_state)
    sampler.advance(chains, sweeps=10)             # chains.states (variables, chains) is changed
    sampler.conditionals(chains.states)            # p(x_i | rest) of all variables, (states of all variables, chains)

Observed variables (`Potentials.evidence`) do not move; `held` names further ones that keep the states that each chain
has, so that each chain can be clamped to a row of data of its own. After a step of learning, or at another temperature,
make a new sampler of the new potentials on the same graph, and advance the same chains with it.

A subclass says how many random numbers a sweep of each component takes (`numbers`), and implements `sweep`, which uses
the numbers from ``chains.drawn`` on. Chains may be advanced in several calls, by several threads or by several samplers
in turn: as random numbers are counted, the bits are the same as in one call.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Unsigned, incidences_of
from isinglass.inference.evidence import impossible
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.sites import SiteModel, free_variables, site_model
from isinglass.potentials import Potentials
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import place_in, starts
from isinglass.typing import FloatArray, IntArray

Recorded = Callable[[Chains, np.uint64, np.uint64, np.uint64, States], bool]
PIECE = 2e7  # updates in one call of a compiled loop: a fraction of a second, so that Ctrl-C is heard


class Streams(NamedTuple):
    """Where listed variables (or factors) find their random numbers: number `place` of a sweep of their component."""

    keys: Unsigned  # (components, chains)
    drawn: Unsigned  # (components,)
    numbers: Unsigned  # (components,) that a sweep takes
    component: Unsigned  # (listed,)
    place: Unsigned  # (listed,)


class Sampler(ABC):
    """Moves chains of one model.

    Parameters
    ----------
    potentials : Potentials
    held : iterable of int
        Variables that keep their states, besides those that are observed.
    """

    replicas: int = 1  # columns of the states for each chain; the first ones are the chains of the model itself
    numbers: Unsigned
    work: float  # of a sweep of one chain, in updates of a variable

    def __init__(self, potentials: Potentials, held: Iterable[int] = ()) -> None:
        self.potentials = potentials
        self.graph: FactorGraph = potentials.graph
        self.near = incidences_of(self.graph)
        self.model: SiteModel = site_model(potentials)
        free = free_variables(potentials)
        free[list(held)] = False
        self.free: IntArray = np.flatnonzero(free)
        self.work = float(len(self.free))

    @abstractmethod
    def sweep(self, chains: Chains, sweeps: int, first: int, last: int) -> bool:
        """Move the chains from `first` to `last`; return whether all variables had a possible state."""

    def advance(self, chains: Chains, sweeps: int, threads: int = 1) -> None:
        """Make some sweeps of all chains; threads share the chains."""
        piece = max(1, int(PIECE / (self.work * chains.n + 1)))
        bounds = [chains.n * part // threads for part in range(threads + 1)] if threads > 1 else [0, chains.n]
        pool = ThreadMap(threads)
        while sweeps:
            now = min(piece, sweeps)
            parts = [(chains, now, first, last) for first, last in pairwise(bounds) if first < last]
            if not all(pool(self.sweep, parts)):
                raise ImpossibleEvidenceError(f"a chain is in an impossible state; {impossible(self.potentials)}")
            chains.drawn += np.uint64(now) * self.numbers
            sweeps -= now

    def record(self, chains: Chains, out: States, threads: int = 1) -> None:
        """Make a sweep for each row of `out` (sweeps, variables, chains), and write the states after it."""
        for row in out:
            self.advance(chains, 1, threads)
            row[:] = chains.states[:, : row.shape[1]]

    def _record_by(self, recorded: Recorded, chains: Chains, out: States, threads: int) -> None:
        """Make the sweeps by loops that write the states; threads share the chains. The bits are the same."""
        sweeps, bounds = np.uint64(len(out)), [chains.n * part // threads for part in range(threads + 1)]
        work = [(chains, sweeps, np.uint64(low), np.uint64(high), out) for low, high in pairwise(bounds)]
        if not all(ThreadMap(threads)(recorded, work)):
            raise ImpossibleEvidenceError(f"a chain is in an impossible state; {impossible(self.potentials)}")

    def conditionals(self, states: States, variables: IntArray | None = None) -> FloatArray:
        """Return p(x_i | rest) of all variables, or of listed ones, shape (their states, chains)."""
        return self.traces(states[None], variables)[:, :, 0]

    def traces(self, draws: States, variables: IntArray | None = None) -> FloatArray:
        """Return p(x_i | rest) in draws (draws, variables, chains), shape (states of the variables, chains, draws)."""
        from isinglass.kernels.numba.sampling.gibbs import conditional_traces

        graph, evidence = self.graph, self.potentials.evidence
        listed = np.arange(graph.n_variables) if variables is None else variables
        first = starts(graph.cards[listed])
        out = np.empty((int(first[-1]), draws.shape[2], draws.shape[0]))
        seen = np.isin(listed, list(evidence))
        row = np.empty(int(graph.cards.max(initial=1)))
        places = (listed[~seen].astype(np.uint64), first[:-1][~seen].astype(np.uint64))
        if not conditional_traces(*places, self.near, self.model, draws, row, out):
            raise ImpossibleEvidenceError(f"a chain is in an impossible state; {impossible(self.potentials)}")
        for v in np.flatnonzero(seen):
            out[first[v] : first[v + 1]] = 0.0
            out[first[v] + evidence[int(listed[v])]] = 1.0
        return out


class Counted(NamedTuple):
    """The component of each listed thing, and which of the random numbers of a sweep it uses first."""

    component: Unsigned
    place: Unsigned
    numbers: Unsigned  # (components,) of a sweep

    @classmethod
    def of(cls, component: IntArray, n_components: int, each: int = 1) -> Counted:
        """Give every listed thing so many numbers, by the components of the things."""
        numbers = each * np.bincount(component, minlength=n_components)
        arrays = (component, each * place_in(component), numbers)
        return cls(*(array.astype(np.uint64) for array in arrays))

    def streams(self, chains: Chains) -> Streams:
        """Return what compiled loops need to know about the random numbers of chains."""
        return Streams(chains.keys, chains.drawn, self.numbers, self.component, self.place)
