"""Gibbs sampling (equations in `isinglass.kernels.numba.sampling.gibbs`; Geman and Geman 1984).

Scans: "chromatic" draws all variables of one colour, then those of the next (variables of one colour share no factor,
so that their sequence does not matter; Gonzalez et al. 2011); "systematic" draws them by number; "random" draws as many
as there are, each chosen at random with replacement, which makes the chain reversible. `backwards` turns the sequence
round: that is the reversal of the chain, p(x) P(x, y) = p(y) P'(y, x).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.incidences import Unsigned, colours_of
from isinglass.inference.evidence import impossible
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.conditionals import TableOf
from isinglass.inference.sampling.sampler import Counted, Sampler
from isinglass.inference.sampling.sites import BinaryLayout, EqualLinks, binary_components, binary_layout, equal_links
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import starts
from isinglass.typing import IntArray

Scan = Literal["chromatic", "systematic", "random"]
TABLED = 10  # sweeps of a single chain, from which on a table of odds pays
SHARED = 2e4  # updates of a sweep, from which on threads share the variables of a colour
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

    def __init__(
        self, potentials: Potentials, scan: Scan = "chromatic", held: Iterable[int] = (), backwards: bool = False
    ) -> None:
        super().__init__(potentials, held)
        self.scan, self.backwards, graph = scan, backwards, self.graph
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

    def advance(self, chains: Chains, sweeps: int, threads: int = 1) -> None:
        """Make some sweeps; threads share the chains or, if these are fewer, the variables of each colour."""
        if threads <= chains.n or self.scan != "chromatic" or self.work * chains.n < SHARED:
            super().advance(chains, sweeps, threads)
            return
        pool = ThreadMap(threads)
        parts = [part for part in (self.binary, self.others) if part is not None]
        for _ in range(sweeps):
            for part in parts:
                for begin, end in pairwise(part.bounds.astype(np.int64).tolist()):
                    cuts = [begin + (end - begin) * k // threads for k in range(threads + 1)]
                    pieces = [(chains, low, high) for low, high in pairwise(cuts) if low < high]
                    if not all(pool(part.piece, pieces)):
                        raise ImpossibleEvidenceError(impossible(self.potentials))
            chains.drawn += self.numbers

    def record(self, chains: Chains, out: States, threads: int = 1) -> None:
        """Make a sweep for each row of `out`, in one call of a compiled loop if possible: the bits are the same."""
        parts = [part for part in (self.binary, self.others) if part is not None]
        if not parts or threads > chains.n:
            super().record(chains, out, threads)
            return
        binary = self.free[:0] if self.binary is None else self.binary.variables
        for part in parts:
            before = out[:, binary]  # what the part before has written: other components, whose last states come now
            self._record_by(part.recorded, chains, out, threads)
            if part is not self.binary:
                out[:, binary] = before
        chains.drawn += np.uint64(len(out)) * self.numbers

    def by_colour(self, variables: IntArray) -> tuple[IntArray, Unsigned]:
        """Return variables by colour, and where each colour begins."""
        colours = colours_of(self.graph)[variables]
        if self.backwards and len(colours):
            colours = colours.max() - colours
        order = np.argsort(colours, kind="stable")
        return variables[order], starts(np.bincount(colours)).astype(np.uint64)


class _BinaryPart:
    """Components of binary variables with links of two: vector instructions for many variables or chains."""

    def __init__(self, sampler: GibbsSampler, variables: IntArray) -> None:
        graph, self.variables = sampler.graph, variables

        def make() -> tuple[BinaryLayout, Unsigned, Counted]:
            order, bounds = sampler.by_colour(variables)
            counted = Counted.of(graph.variable_component[order], graph.n_components)
            return binary_layout(graph, order), bounds, counted

        layout, self.bounds, self.counted = graph.cached(("binary order", sampler.backwards, variables.tobytes()), make)
        self.model = layout.model(sampler.model)
        self.swept = 0  # by single chains, before a table is made for them

    @cached_property
    def table(self) -> EqualLinks | None:
        """A table of odds, where each variable has links of one slope."""
        return equal_links(self.model)

    def sweep(
        self,
        chains: Chains,
        sweeps: np.uint64,
        first: np.uint64,
        last: np.uint64,
        bounds: Unsigned | None = None,
    ) -> bool:
        listed = self.bounds if bounds is None else bounds
        if last - first == np.uint64(1) and self._pays(sweeps):
            return self._by_table(chains, sweeps, first, listed)
        return self._by_odds(chains, sweeps, first, last, listed, chains.states[None, :0])

    def recorded(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64, out: States) -> bool:
        """Make sweeps, and write the states after each."""
        return self._by_odds(chains, sweeps, first, last, self.bounds, out)

    def _by_odds(
        self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64, bounds: Unsigned, out: States
    ) -> bool:
        from isinglass.kernels.numba.sampling.binary import LANES, binary_sweeps

        buffers = np.empty(LANES), np.empty(LANES, np.uint64), np.empty(LANES, chains.states.dtype)
        streams = self.counted.streams(chains)
        binary_sweeps(bounds, self.model, streams, chains.states, out, sweeps, first, last, *buffers)
        return True

    def _pays(self, sweeps: np.uint64) -> bool:
        """Tell whether there is a table for single chains, which is made after some sweeps; it changes no bit."""
        self.swept += int(sweeps)
        return self.swept >= TABLED and self.table is not None

    def _by_table(self, chains: Chains, sweeps: np.uint64, chain: np.uint64, bounds: Unsigned) -> bool:
        from isinglass.kernels.numba.sampling.binary import LANES
        from isinglass.kernels.numba.sampling.equal import equal_sweeps

        buffers = np.empty(LANES), np.empty(LANES, np.uint64), np.empty(LANES, chains.states.dtype)
        equal_sweeps(bounds, self.table, self.counted.streams(chains), chains.states, sweeps, chain, *buffers)
        return True

    def piece(self, chains: Chains, begin: int, end: int) -> bool:
        """Draw some variables of one colour, in all chains."""
        return self.sweep(chains, np.uint64(1), np.uint64(0), np.uint64(chains.n), np.array([begin, end], np.uint64))


class _OtherPart:
    """Any other components: one variable after the other."""

    def __init__(self, sampler: GibbsSampler, variables: IntArray) -> None:
        graph, self.sampler = sampler.graph, sampler
        key = ("gibbs order", sampler.scan, sampler.backwards, variables.tobytes())
        self.order, self.bounds, self.ends, self.counted = graph.cached(key, lambda: self._order(variables))
        self.row = int(graph.cards.max(initial=1))
        self.tables = TableOf(graph, sampler.model, variables)

    def _order(self, variables: IntArray) -> tuple[Unsigned, Unsigned, Unsigned, Counted]:
        sampler, graph = self.sampler, self.sampler.graph
        order, bounds = sampler.by_colour(variables)
        if sampler.scan != "chromatic":
            order = variables[np.argsort(graph.variable_component[variables], kind="stable")]
        if sampler.backwards and sampler.scan == "systematic":
            order = order[::-1]
        component = graph.variable_component[order]
        ends = starts(np.bincount(component, minlength=graph.n_components)).astype(np.uint64)
        counted = Counted.of(component, graph.n_components, 2 if sampler.scan == "random" else 1)
        return order.astype(np.uint64), bounds, ends, counted

    def sweep(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64) -> bool:
        return self.recorded(chains, sweeps, first, last, chains.states[None, :0])

    def recorded(self, chains: Chains, sweeps: np.uint64, first: np.uint64, last: np.uint64, out: States) -> bool:
        """Make sweeps, and write the states after each, unless `out` has no variables."""
        from isinglass.kernels.numba.sampling.gibbs import LANES, sweeps_at_random, sweeps_in_order

        sampler, streams = self.sampler, self.counted.streams(chains)
        table = self.tables.after(float(sweeps) * float(last - first) * len(self.order))
        rest = (sampler.near, sampler.model, table, streams, chains.states[None], out)
        some = (sweeps, first, last, np.empty(self.row))
        if sampler.scan == "random":
            return bool(sweeps_at_random(self.order, self.ends, *rest, *some))
        return bool(sweeps_in_order(self.order, *rest, *some, np.empty(LANES, np.uint32)))

    def piece(self, chains: Chains, begin: int, end: int) -> bool:
        """Draw some variables of one colour, in all chains."""
        from isinglass.kernels.numba.sampling.gibbs import LANES, sweeps_in_order

        sampler, counted, part = self.sampler, self.counted, slice(begin, end)
        streams = counted._replace(component=counted.component[part], place=counted.place[part]).streams(chains)
        once = np.uint64(1), np.uint64(0), np.uint64(chains.n)
        states, table = chains.states[None], self.tables.after(float(end - begin) * chains.n)
        rest = (sampler.near, sampler.model, table, streams, states, states[:, :0], *once, np.empty(self.row))
        return bool(sweeps_in_order(self.order[part], *rest, np.empty(LANES, np.uint32)))
