"""Messages that reparameterise a model, the bound that they prove, and the assignment that they suggest.

Any messages prove a bound (`kernels.numba.map.reparameterise`); solvers only differ in how they find good ones. So
every relaxation, a linear program of another library included, hands its multipliers over as messages, and the bound
is computed from the model's own tables: it is true whatever the solver's tolerances are.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.message_graph import partners_of
from isinglass.inference.assignment import EPSILON, TERMS, is_wide, tops_of
from isinglass.inference.map.local_model import LocalModel
from isinglass.inference.map.search import Search
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask


class Reparameterisation:
    """A reduced model with one message for each edge.

    Attributes
    ----------
    m : array
        The messages, laid out by edge (``edges.start``); zero at first.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[1.0, 0.0], [[0.0, 0.5], [2.0, 0.0]]])
    >>> r = Reparameterisation(p)
    >>> r.bound(), r.decode().tolist()
    (3.0, [1, 0])
    >>> for _ in range(2):
    ...     r.sweep()
    >>> r.bound()
    2.0
    """

    def __init__(self, potentials: Potentials) -> None:
        self.local = LocalModel(potentials)
        self.edges = edges = self.local.edges
        model = LinkModel.of(potentials, np.ones(len(edges.size)))
        self.constant = float(model.constant.real.sum())
        self.edge_table = model.edge_table
        self.partner = partners_of(potentials.graph)
        self.m: FloatArray = np.zeros(int(edges.start[-1]))
        self.order = np.arange(self.local.n)
        self._earlier, self._later = _neighbours_in_order(self)
        self._weight = _weights(self)
        widest = int(potentials.graph.cards.max(initial=1))
        self._theta, self._row = np.zeros((2, widest))
        self._digits = np.zeros(int(np.diff(edges.first_slot).max(initial=1)), np.int64)
        most = int(np.diff(edges.first_edge).max(initial=1)) + int(np.diff(edges.first_slot).max(initial=1))
        self._unit = 2 * EPSILON * most if is_wide(potentials) else 0.0
        self._size = tops_of(potentials)[1] if self._unit else 0.0  # of what the constant is the sum of
        self._tops = np.zeros(self.local.n), np.zeros(len(edges.size))

    def sweep(self) -> None:
        """Make a forward and a backward pass of sequential tree-reweighted updates; neither raises the bound."""
        from isinglass.kernels.numba.map.reparameterise import sweep

        for order, earlier, later in (
            (self.order, self._earlier, self._later),
            (self.order[::-1].copy(), self._later, self._earlier),
        ):
            sweep(
                order, earlier, later, self._weight, self.edges, self.local.slots, self.partner, self.local.table,
                self.edge_table, self.local.phi, self.local.psi, self.m, self._theta, self._digits,
            )  # fmt: skip

    def bound(self) -> float:
        """Return the upper bound on every score that the messages prove; in wide models, with its rounding."""
        from isinglass.kernels.numba.map.reparameterise import dual_bound

        local = self.local
        dual_bound(
            self.edges, local.table, local.phi, local.psi, self.m, self._unit, *self._tops, self._theta, self._digits
        )  # fmt: skip
        bound = self.constant + float(self._tops[0].sum()) + float(self._tops[1].sum())
        if not self._unit:
            return bound
        size = self._size + float(np.abs(self._tops[0]).sum() + np.abs(self._tops[1]).sum())
        return bound + TERMS * EPSILON * size

    def decode(self, given: IntArray | None = None) -> IntArray:
        """Decide one variable after the other by what the messages say; `given` has -1 where nothing is decided."""
        from isinglass.kernels.numba.map.reparameterise import decode

        local = self.local
        x = np.full(local.n, -1) if given is None else given.copy()
        decode(
            self.order, self.edges, local.slots, local.table, local.phi, local.psi, self.m, x, self._theta, self._row,
            self._digits,
        )  # fmt: skip
        return x

    def offer(self, search: Search, given: IntArray | None = None) -> None:
        """Tighten the bound; decode, climb to a local maximum, and offer it."""
        search.tighten(self.bound())
        x = self.decode(given)
        for _ in range(100):
            if not self.local.climb(x):
                break
        search.offer(x)


def _neighbours_in_order(r: Reparameterisation) -> tuple[Mask, Mask]:
    """Tell for each edge whether its link holds an earlier, and a later variable."""
    edges = r.edges
    if not len(edges.size):
        return np.zeros(0, bool), np.zeros(0, bool)
    rank = np.empty(r.local.n, np.int64)
    rank[r.order] = np.arange(r.local.n)
    of_slot = rank[edges.slot_variable]
    first = np.minimum.reduceat(of_slot, edges.first_slot[:-1])
    last = np.maximum.reduceat(of_slot, edges.first_slot[:-1])
    own = of_slot[r.local.slots]
    return own > first[edges.edge_link], own < last[edges.edge_link]


def _weights(r: Reparameterisation) -> FloatArray:
    """Return w_i, the share of theta_i that each link with a later variable gets."""
    owner = np.repeat(r.order, np.diff(r.edges.first_edge))
    counts = [np.bincount(owner[flags], minlength=r.local.n) for flags in (r._earlier, r._later)]
    return 1.0 / np.maximum(np.maximum(*counts), 1)
