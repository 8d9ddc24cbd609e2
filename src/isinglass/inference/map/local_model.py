"""A reduced model as the flat arrays of local search, and its moves: sweeps, random sweeps and random forests."""

from __future__ import annotations

import numpy as np

from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.potentials import Potentials
from isinglass.typing import IntArray


class LocalModel:
    """The links around each variable, for `kernels.numba.map.local` and `forest`.

    Attributes
    ----------
    n : int
        Number of variables.

    Examples
    --------
    >>> import isinglass as ig
    >>> model = LocalModel(ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.0]]]))
    >>> x = np.array([1, 1])
    >>> model.climb(x), x.tolist()
    (1, [0, 1])
    """

    def __init__(self, potentials: Potentials) -> None:
        self.potentials = potentials
        self.edges = edges_of(potentials.graph)
        model = LinkModel.of(potentials, np.ones(len(self.edges.size)))
        self.phi, self.psi, self.table = model.phi, model.psi, model.table
        self.slots = np.empty(len(self.edges.slot_edge), np.int64)
        self.slots[self.edges.slot_edge] = np.arange(len(self.slots))
        self.n = potentials.graph.n_variables
        widest = int(potentials.graph.cards.max(initial=1))
        self._every = np.arange(self.n)
        self._t, self._conflicts = np.zeros(widest), np.zeros(widest, np.int64)
        self._stamp, self._marks = np.zeros(self.n, np.int64), 0
        self._forest = _ForestScratch(self.n, len(self.edges.size), len(self.phi))

    def start(self) -> IntArray:
        """Return the best state of each variable by its own potential alone."""
        first = self.edges.first_state
        tops = np.repeat(np.maximum.reduceat(self.phi, first[:-1]), self.edges.cards)
        places = np.flatnonzero(self.phi == tops)
        owner = np.repeat(self._every, self.edges.cards)[places]
        states = np.zeros(self.n, np.int64)
        states[owner[::-1]] = (places - first[owner])[::-1]  # the first of several
        return states

    def climb(self, x: IntArray, order: IntArray | None = None) -> int:
        """Give each variable its best state, given the others, in place; return how many changed."""
        from isinglass.kernels.numba.map.local import climb

        changed: int = climb(self._every if order is None else order, *self._arrays, x, self._t, self._conflicts)
        return changed

    def anneal(self, x: IntArray, temperature: float, rng: np.random.Generator) -> float:
        """Draw each variable's state given the others, in random order; return the change of score."""
        from isinglass.kernels.numba.map.local import anneal

        order, uniforms = rng.permutation(self.n), rng.random(self.n)
        gain: float = anneal(order, uniforms, temperature, *self._arrays, x, self._t, self._conflicts)
        return gain

    def forest(self, x: IntArray, rng: np.random.Generator) -> None:
        """Maximise exactly over a random forest of variables, in place; x must have no conflict."""
        from isinglass.kernels.numba.map import forest

        order, s = rng.permutation(self.n), self._forest
        forest.grow(order, self.edges, s.parent, s.inside)
        count = forest.order_forest(order, self.edges, s.inside, s.up, s.seen, s.queue)
        forest.maximise(
            count, s.queue, s.up, self.edges, self.table, self.phi, self.psi, s.inside, x, s.best, s.q
        )  # fmt: skip

    def perturb(self, x: IntArray, steps: int, size: int, temperature: float, rng: np.random.Generator) -> None:
        """Redraw balls of variables around random centers and climb inside them; keep what is not worse, in place."""
        from isinglass.kernels.numba.map.local import perturb

        size = min(size, self.n)
        centers, uniforms = rng.integers(0, self.n, steps), rng.random((steps, size))
        perturb(
            centers, uniforms, temperature, self._marks + 1, *self._arrays, x, self._t, self._conflicts, self._stamp,
            self._forest.queue, np.zeros(size, np.int64), np.zeros(2),
        )  # fmt: skip
        self._marks += steps

    @property
    def _arrays(self) -> tuple[object, ...]:
        return self.edges, self.slots, self.table, self.phi, self.psi


class _ForestScratch:
    """Working memory of `kernels.numba.map.forest`."""

    def __init__(self, n: int, links: int, states: int) -> None:
        self.parent = np.zeros(n + links, np.int64)
        self.inside = np.zeros(n, bool)
        self.up, self.queue, self.best = np.zeros((3, n), np.int64)
        self.seen = np.zeros(links, bool)
        self.q = np.zeros(states)
