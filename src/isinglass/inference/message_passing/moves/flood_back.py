"""The reverse of flooding: each component is reversed by the same loop as if it were alone.

Three loops can reverse an iteration: that of `grids`, in planes; that of `pairs`, variable by variable; and the general
one of `adjoints`, link by link. They sum in different orders, so their results differ in the last bits. Therefore the
choice of the loop depends only on the structure and the numbers of the component, not on the batch or on the loop that
computed its messages (those all give the same bits):

    planes   a regular grid, real potentials, no hard zeros
    pairs    factors of at most two variables
    links    anything else; with damping, counting numbers, derivatives by these, or logarithms: every component
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import entry_components, pairwise_components, partners_of
from isinglass.inference.message_passing import passes
from isinglass.inference.message_passing.model.log_model import links_with
from isinglass.inference.message_passing.moves.grid_bars import GridBars
from isinglass.inference.message_passing.moves.grids import Grids
from isinglass.inference.message_passing.moves.lattices import lattices_of, part_of
from isinglass.inference.message_passing.moves.planes import BeliefDerivatives, grids_at_once, work_of
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.inference.message_passing.shares import smallest
from isinglass.kernels.layout import SAFE
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import Largest
from isinglass.typing import Array, FloatArray, IntArray, Mask

LOOK = 4  # iterations at rest that are reversed at once in planes: a small grid stays in the cache


@dataclass(eq=False)
class FloodBack:
    """The reverse of flooding in one run; derivatives of grids stay in planes until it is finished.

    Attributes
    ----------
    graph : FactorGraph
    start : array or None
        The logarithms of the messages that the run starts with; None if they are uniform.
    """

    graph: FactorGraph
    start: Array | None
    without_zeros: Mask | None = field(default=None, init=False)
    laid_out: list[Grids] | None = field(default=None, init=False)
    bars: dict[int, GridBars] = field(default_factory=dict, init=False)  # for each member of `laid_out`
    spare: Array | None = field(default=None, init=False)

    def grids(self, run: Run) -> list[Grids]:
        """Return the components that go back in planes."""
        if self.laid_out is None:
            self.laid_out = []
            kernels = run.kernels.grids if run.dtype.kind == "f" else None
            for lattice in () if kernels is None else lattices_of(self.graph):
                mine = self.positive(run)[lattice.members]
                if kernels is not None and mine.any():
                    self.laid_out.append(Grids.of(part_of(self.graph, lattice, mine), run, kernels))
        return self.laid_out

    @cached_property
    def pairwise(self) -> Mask:
        """Which components may go back by pairs."""
        return pairwise_components(self.graph)

    @cached_property
    def partner(self) -> IntArray:
        """The edge at the other end of each pair."""
        return partners_of(self.graph)

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Turn derivatives by the messages after a step into those by the messages before it."""
        if not run.is_plain or len(bars.counting):
            self._on_edges(run, step, moved, np.zeros_like(moved), bars)
            return
        laid_out = self.grids(run)
        rest = moved.copy() if laid_out else moved
        for number, grids in enumerate(laid_out):
            rest[grids.lattice.members] = False
            active = moved[grids.lattice.members]
            if active.any():
                if number not in self.bars:
                    self.bars[number] = GridBars.of(grids, bars, run)
                self.bars[number].reverse(run, step, active)
        pairwise = np.zeros_like(moved) if run.kernels.pairs is None else self.pairwise
        self._on_edges(run, step, rest, pairwise, bars)

    def read_out_back(self, run: Run, beliefs: Array, beliefs_bar: Array, bars: Derivatives) -> bool:
        """Carry derivatives by beliefs to messages in planes, if those of all variables are there."""
        if not run.is_plain or len(bars.counting) or len(self.grids(run)) != 1:
            return False
        (grids,) = self.grids(run)
        if len(grids.lattice.members) < len(run.wanted) or not grids.lattice.in_order:
            return False
        given = BeliefDerivatives(beliefs, beliefs_bar, bars.phi[-1])
        self.bars[0] = GridBars.of_beliefs(grids, given, run)
        return True

    def _on_edges(self, run: Run, step: Step, moved: Mask, pairwise: Mask, bars: Derivatives) -> None:
        """Reverse a step by pairs where that is possible, else by links."""
        if not np.count_nonzero(moved):  # much faster than any() for few
            return
        by_pairs, by_links = moved & pairwise, moved & ~pairwise
        any_pairs, any_links = np.count_nonzero(by_pairs) > 0, np.count_nonzero(by_links) > 0
        for t in range(step.iterations - 1, -1, -1):
            run.m = step.move.messages_before(run, step, t)
            if any_links:
                at = step.t + t
                passes.flood_back(run, run.values(at), bars.bars(at), by_links, bars.flagged)
            if any_pairs:
                self._pairs_back(run, step.t + t, by_pairs, bars)

    def _pairs_back(self, run: Run, t: int, moved: Mask, bars: Derivatives) -> None:
        new = np.zeros_like(bars.m) if self.spare is None else self.spare
        passes.flood_pairs_back(run, self.partner, run.values(t), new, bars.bars(t), moved)
        bars.m, self.spare = new, bars.m

    def iterations_at_once(self, run: Run) -> int:
        """Return how many iterations a loop may reverse without a pause for Ctrl-C."""
        return min((grids_at_once(work_of(grids.lattice)) for grids in self.grids(run)), default=1)

    def looks(self, run: Run) -> IntArray:
        """Return how many iterations each component is reversed at once: one, unless it is in planes."""
        looks = np.ones(len(run.wanted), np.int64)
        if run.is_plain:
            for grids in self.grids(run):
                looks[grids.lattice.members] = LOOK
        return looks

    def sizes(self, run: Run, bars: Derivatives, largest: Largest) -> FloatArray:
        """Return the largest derivative by a log message so far, of real and imaginary parts, (parts, components)."""
        in_planes = np.zeros(largest.n, bool)
        for number in self.bars:
            in_planes[self.grids(run)[number].lattice.members] = True
        found = np.zeros((1, largest.n)) if in_planes.all() else largest.parts(bars.m)
        for number, mine in self.bars.items():
            lattice = self.grids(run)[number].lattice
            found[0, lattice.members] = mine.sizes(run)
        return found

    def finish(self, run: Run, bars: Derivatives) -> None:
        """Leave all derivatives in `bars`."""
        for mine in self.bars.values():
            mine.give(run, bars)
        self.bars = {}

    def positive(self, run: Run) -> Mask:
        """Tell which components have no hard zeros, in potentials, tables and the messages that they start with."""
        if self.without_zeros is None:
            self.without_zeros = self._without_zeros(run)
        return self.without_zeros

    def _without_zeros(self, run: Run) -> Mask:
        edges = run.edges
        positive = np.ones(len(run.wanted), bool)
        if self.start is not None and not (self.start.real > -np.inf).all():
            positive[entry_components(edges)[self.start.real == -np.inf]] = False
        for values in run.models:
            if not run.least > np.log(SAFE) and not smallest(run.spread, values.phi, 1.0) > 0:
                positive[np.repeat(edges.variable_component, edges.cards)[values.phi == 0]] = False
            if not smallest(run.spread, values.psi, 1.0) > 0:
                positive[edges.component[links_with(values.psi == 0, values.table, edges.size)]] = False
        return positive
