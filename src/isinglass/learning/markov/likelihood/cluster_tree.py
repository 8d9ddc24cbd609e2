"""Beliefs on a junction tree that are kept exact while single tables change: what makes proportional fitting local.

Every cluster C of the tree has its marginal p(x_C). When the model is multiplied by a function r(x_A) of mean one, A in
C,

    p(x_C)  <-  p(x_C) r(x_A),

and a neighbour D learns of it through their separator S:  p(x_D) <- p(x_D) p_new(x_S) / p_old(x_S). A walk around the
tree that sends this message along each edge that it goes down or up always stands at a cluster whose marginal is exact
(Jirousek and Preucil 1995).

In a large cluster the functions are first collected in a block, a small set of variables that holds several of their
scopes: the block's marginal is enough to fit all of them one after the other, and the cluster is multiplied once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.junction_tree import JunctionTree, junction_tree
from isinglass.potentials import Potentials
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import bytes_text

Scope = tuple[int, ...]
Fit = Callable[[int, FloatArray], FloatArray]
"""From a factor and its flat marginal to the ratio that it is multiplied by."""

LARGE = 1024  # entries of a cluster from which on its factors are fitted in blocks
BLOCK = 1024  # entries of a block


class _Block(NamedTuple):
    """Some factors of a cluster, and their scopes as places in a small table.

    Attributes
    ----------
    of_cluster : int array (entries of the cluster,), or None where the block is the whole cluster
    size : int
    factors : list of int
    places : list of int arrays (size,)
        For each factor, the entry of its table that each entry of the block shows.
    """

    of_cluster: IntArray | None
    size: int
    factors: list[int]
    places: list[IntArray]


class _Link(NamedTuple):
    """An edge of the tree: the entry of the separator that each entry of its two clusters shows."""

    parent: int
    child: int
    size: int
    of_parent: IntArray
    of_child: IntArray


class ClusterTree:
    """The exact marginals of the clusters of a junction tree.

    Parameters
    ----------
    graph : FactorGraph
    factors : sequence of int
        The factors that will be fitted.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.log([[[2.0, 1.0], [1.0, 2.0]]])])
    >>> tree = ClusterTree(p.graph, [3, 4])
    >>> tree.start(p)
    >>> tree.marginal(3).round(4).tolist()
    [0.3333, 0.1667, 0.1667, 0.3333]
    """

    def __init__(self, graph: FactorGraph, factors: Sequence[int]) -> None:
        self.graph = graph
        self.tree: JunctionTree = junction_tree(graph)
        self.sizes = [prod(graph.cards[list(c)].tolist()) for c in self.tree.cliques]
        self._require_memory(factors)
        self.blocks: list[list[_Block]] = [[] for _ in self.sizes]
        self.home: dict[int, tuple[int, _Block]] = {}
        for c in range(len(self.sizes)):
            mine = [a for a in factors if self.tree.factor_clique[a] == c]
            self.blocks[c] = [self._block(c, scope, held) for scope, held in self._split(c, mine)]
            self.home.update({a: (c, block) for block in self.blocks[c] for a in block.factors})
        self.links = [self._link(e) for e in range(len(self.tree.edges))]
        self.walk = list(self._walk())
        self.beliefs: list[FloatArray] = []

    def start(self, potentials: Potentials) -> None:
        """Compute the marginals of all clusters."""
        logs = [np.zeros(size) for size in self.sizes]
        for a, table in enumerate(potentials.log_tables):
            c = self.tree.factor_clique[a]
            if potentials.graph.scopes[a]:
                logs[c] += table.ravel()[self._places(self.tree.cliques[c], potentials.graph.scopes[a])]
        self.beliefs = [np.exp(log - log.max()) for log in logs]
        for link in reversed(self.links):  # messages up, each cluster scaled to sum to one
            self._scale(link.child)
            self._multiply(link.parent, link.of_parent, self._sums(link.child, link.of_child, link.size))
        for c in range(len(self.beliefs)):
            self._scale(c)
        for link in self.links:
            self.send(link, down=True)

    def sweep(self, fit: Fit) -> None:
        """Walk around the tree once; `fit` says by what each factor's table is multiplied."""
        for step in self.walk:
            if isinstance(step, int):
                for block in self.blocks[step]:
                    self._fit(step, block, fit)
            else:
                self.send(*step)
        for link in self.links:
            self.send(link, down=True)

    def marginal(self, factor: int) -> FloatArray:
        """Return the marginal of a fitted factor, flat."""
        c, block = self.home[factor]
        small = self.beliefs[c] if block.of_cluster is None else self._sums(c, block.of_cluster, block.size)
        k = block.factors.index(factor)
        return _summed(block.places[k], small)

    def send(self, link: _Link, down: bool) -> None:
        """Tell one end of an edge what the other knows."""
        source, of_source, target, of_target = (
            (link.parent, link.of_parent, link.child, link.of_child)
            if down
            else (link.child, link.of_child, link.parent, link.of_parent)
        )
        new, old = self._sums(source, of_source, link.size), self._sums(target, of_target, link.size)
        self._multiply(target, of_target, _ratio(new, old))

    def _fit(self, c: int, block: _Block, fit: Fit) -> None:
        """Fit the factors of a block, then multiply the cluster by what changed."""
        whole = block.of_cluster is None
        before = self.beliefs[c] if whole else self._sums(c, block.of_cluster, block.size)  # type: ignore[arg-type]
        now = before.copy()
        for a, places in zip(block.factors, block.places, strict=True):
            now *= fit(a, _summed(places, now))[places]
        if whole:
            self.beliefs[c] = now
        else:
            self._multiply(c, block.of_cluster, _ratio(now, before))  # type: ignore[arg-type]

    def _sums(self, c: int, places: IntArray, size: int) -> FloatArray:
        return _summed(places, self.beliefs[c], size)

    def _multiply(self, c: int, places: IntArray, ratio: FloatArray) -> None:
        self.beliefs[c] = self.beliefs[c] * ratio[places]

    def _scale(self, c: int) -> None:
        self.beliefs[c] = self.beliefs[c] / self.beliefs[c].sum()

    def _places(self, clique: Scope, scope: Sequence[int]) -> IntArray:
        """Return, for each entry of a clique's table, the entry of the table over `scope` that it shows."""
        cards = self.graph.cards
        strides = dict(zip(scope, _strides([int(cards[i]) for i in scope]), strict=True))
        total = np.zeros((1,) * len(clique), np.int64)
        for axis, i in enumerate(clique):
            if i in strides:
                shape = [1] * len(clique)
                shape[axis] = int(cards[i])
                total = total + (np.arange(cards[i]) * strides[i]).reshape(shape)
        return np.broadcast_to(total, cards[list(clique)].tolist()).ravel()

    def _block(self, c: int, scope: Scope, factors: list[int]) -> _Block:
        clique = self.tree.cliques[c]
        of_cluster = None if scope == clique else self._places(clique, scope)
        size = prod(self.graph.cards[list(scope)].tolist())
        return _Block(of_cluster, size, factors, [self._places(scope, self.graph.scopes[a]) for a in factors])

    def _split(self, c: int, factors: list[int]) -> Iterator[tuple[Scope, list[int]]]:
        """Put the factors of a cluster into blocks: one for all in a small cluster, else few that hold many each."""
        clique = self.tree.cliques[c]
        if self.sizes[c] <= LARGE or len(factors) < 3:
            if factors:
                yield clique, factors
            return
        left = list(factors)
        while left:
            scope = set(self.graph.scopes[left[0]])
            while (wider := self._wider(clique, scope, left)) is not None:
                scope = wider
            held = [a for a in left if scope >= set(self.graph.scopes[a])]
            left = [a for a in left if a not in set(held)]
            yield tuple(sorted(scope)), held

    def _wider(self, clique: Scope, scope: set[int], left: list[int]) -> set[int] | None:
        """Return a block with one more variable, the one that completes most factors; None if it would be large."""
        cards, scopes = self.graph.cards, [set(self.graph.scopes[a]) for a in left]
        size = prod(cards[list(scope)].tolist())
        open_ones = [i for i in clique if i not in scope and size * cards[i] <= BLOCK]
        if not open_ones:
            return None
        best = max(open_ones, key=lambda i: sum(scope | {i} >= s for s in scopes if i in s))
        gained = any(scope | {best} >= s for s in scopes if best in s)
        return scope | {best} if gained else None

    def _link(self, e: int) -> _Link:
        (a, b), separator = self.tree.edges[e], self.tree.separators[e]
        size = prod(self.graph.cards[list(separator)].tolist())
        cliques = self.tree.cliques
        return _Link(a, b, size, self._places(cliques[a], separator), self._places(cliques[b], separator))

    def _walk(self) -> Iterator[int | tuple[_Link, bool]]:
        """Go around the trees: clusters to fit, and messages along edges, down and up again."""
        below: list[list[_Link]] = [[] for _ in self.sizes]
        for link in self.links:
            below[link.parent].append(link)
        children = {link.child for link in self.links}
        stack: list[int | tuple[_Link, bool]] = []
        stack += [c for c in range(len(self.sizes)) if c not in children][::-1]
        while stack:
            step = stack.pop()
            yield step
            if isinstance(step, int):
                for link in reversed(below[step]):
                    stack += [(link, False), link.child, (link, True)]

    def _require_memory(self, factors: Sequence[int]) -> None:
        maps = 2 + len(self.tree.edges) / max(len(self.sizes), 1) + min(len(factors), 16)
        needed = 8.0 * maps * sum(self.sizes)
        what = f"the tables of a junction tree of width {self.tree.width} need {bytes_text(needed)}"
        require_memory(needed, memory_limit_bytes(None), what, "use method='ml' with an approximate inference")


def _strides(shape: Sequence[int]) -> list[int]:
    """Return the steps of a table in C order."""
    return [prod(shape[k + 1 :]) for k in range(len(shape))]


def _summed(places: IntArray, values: FloatArray, size: int = 0) -> FloatArray:
    """Add up values by their places."""
    return np.asarray(np.bincount(places, values, size), np.float64)


def _ratio(new: FloatArray, old: FloatArray) -> FloatArray:
    """Divide; 0 / 0 is 0."""
    return np.divide(new, old, out=np.zeros_like(new), where=old > 0)
