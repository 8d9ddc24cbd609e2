"""Tables of conditional distributions: p(x_i | rest) at every configuration of the neighbours of a variable.

If a variable has few configurations of neighbours and is drawn many times, such a table makes sampling faster: it saves
the sums and the exponentials. A row holds the sum of the unnormalised probabilities and their cumulative sums. They are
computed by the same arithmetic as without a table (`isinglass.kernels.numba.sampling.gibbs`), so the bits are the same.
"""

from __future__ import annotations

from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.incidences import Incidences, Unsigned, incidences_of, signed_incidences
from isinglass.inference.sampling.sites import SiteModel
from isinglass.segments import place_in, starts
from isinglass.typing import FloatArray, IntArray, Mask

LONGEST, NUMBERS = 2**12, 2**19  # of the table of one variable, and of all: 4 MB
LEAST = 2e4  # updates, before anything is laid out
TIMES = 2  # updates for each configuration, from which on a table pays


class ConditionalTable(NamedTuple):
    """The rows of variables, by their numbers; the neighbours of i are ``other[r]``, r in ``first[i]:first[i + 1]``.

    At the states x of its neighbours, the row of variable i begins at ``row[i] + sum_r stride[r] x[other[r]]``.
    """

    known: Mask  # (variables,) whether there are rows
    row: NDArray[np.uint32]  # (variables,)
    first: Unsigned  # (variables + 1,)
    other: NDArray[np.uint32]
    stride: NDArray[np.uint32]
    sums: FloatArray


class Layout(NamedTuple):
    """A table without its numbers, how many there are, and in how many rows."""

    table: ConditionalTable
    numbers: int
    rows: int


class TableOf:
    """Makes the table of variables of a model as soon as it pays; threads may share it.

    Parameters
    ----------
    graph : FactorGraph
    model : SiteModel
    variables : array
        Those that are drawn.

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.inference.sampling.sites import site_model
    >>> p = ig.models.Potts(ig.grid_graph(3, 3, 3)).potentials(coupling=0.5)
    >>> tables = TableOf(p.graph, site_model(p), np.arange(9))
    >>> bool(tables.after(9).known.any()), tables.after(1e6).known.all().item(), len(tables.after(0).sums)
    (False, True, 675)
    """

    def __init__(self, graph: FactorGraph, model: SiteModel, variables: IntArray) -> None:
        self.graph, self.model, self.variables = graph, model, variables
        self.updates, self.lock = 0.0, Lock()
        self.table: ConditionalTable = graph.cached("no conditional table", lambda: _none(graph))

    def after(self, updates: float) -> ConditionalTable:
        """Return the table for so many updates, all variables together, that follow earlier ones."""
        with self.lock:
            self.updates += updates
            if self.updates >= LEAST and not self.table.known.any():
                self._make_if_it_pays()
            return self.table

    def _make_if_it_pays(self) -> None:
        graph, variables = self.graph, self.variables
        key = ("conditional table", variables.tobytes())
        layout: Layout = graph.cached(key, lambda: _layout(graph, variables))
        if layout.rows and self.updates >= TIMES * layout.rows:
            self.table = _filled(layout, incidences_of(graph), self.model)


def _filled(layout: Layout, sites: Incidences, model: SiteModel) -> ConditionalTable:
    """Compute the numbers of a table."""
    from isinglass.kernels.numba.sampling.gibbs import fill_table

    table = layout.table._replace(sums=np.empty(layout.numbers))
    states = np.zeros((1, len(table.known), 1), np.int32)
    listed = np.flatnonzero(table.known).astype(np.uint64)
    fill_table(listed, sites, model, table, states, np.empty(int(np.max(sites.cards, initial=1))))
    return table


def _none(graph: FactorGraph) -> ConditionalTable:
    n, none = graph.n_variables, np.zeros(0, np.uint32)
    return ConditionalTable(
        np.zeros(n, bool), np.zeros(n, np.uint32), np.zeros(n + 1, np.uint64), none, none, np.zeros(0)
    )


def _layout(graph: FactorGraph, variables: IntArray) -> Layout:
    """Lay out the tables of those listed variables that have short ones; if these are less than half, of none."""
    n, cards = graph.n_variables, graph.cards
    owner, other = _neighbours(graph)
    logs = np.log(cards) + np.bincount(owner, np.log(cards[other]), n)
    sizes = np.exp(np.minimum(logs, np.log(2 * LONGEST))).round()  # numbers of each table; of long ones, too many
    order = variables[np.argsort(sizes[variables], kind="stable")]
    fits = (sizes[order] <= LONGEST) & (np.cumsum(sizes[order]) <= NUMBERS)
    if 2 * fits.sum() < len(variables):
        return Layout(_none(graph), 0, 0)
    known = np.zeros(n, bool)
    known[order[fits]] = True
    numbers = np.where(known, sizes, 0).astype(np.int64)
    kept = known[owner]
    owner, other = owner[kept], other[kept]
    stride, place = cards[owner].copy(), place_in(owner)
    first = starts(np.bincount(owner, minlength=n))
    for k in range(1, int(place.max(initial=0)) + 1):
        at = np.flatnonzero(place == k)
        stride[at] = stride[at - 1] * cards[other[at - 1]]
    table = ConditionalTable(
        known,
        starts(numbers)[:-1].astype(np.uint32),
        first.astype(np.uint64),
        other.astype(np.uint32),
        stride.astype(np.uint32),
        np.zeros(0),
    )
    return Layout(table, int(numbers.sum()), int((numbers // cards).sum()))


def _neighbours(graph: FactorGraph) -> tuple[IntArray, IntArray]:
    """Return all pairs of a variable and a neighbour that has several states, by the first."""
    near, n = signed_incidences(graph), graph.n_variables
    owner = np.repeat(np.repeat(np.arange(n), np.diff(near.first)), np.diff(near.rest))
    several = graph.cards[near.variable] > 1
    pairs = np.unique(owner[several] * n + near.variable[several])
    return pairs // max(n, 1), pairs % max(n, 1)
