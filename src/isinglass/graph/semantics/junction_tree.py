"""Junction trees, as objects to look at (Koller and Friedman 2009, sections 10.1 and 10.4).

The nodes are the maximal cliques of a triangulated graph. A tree over them is a junction tree if, for any two cliques,
what they share is in every clique on the path between them. Two neighbours are joined by their separator: what both
hold. Each clique is joined to an earlier one that holds all it shares with earlier ones (running intersection).
Connected parts of the graph are separate trees. A distribution that factorises over the graph is then

    p(x) = prod_cliques p(x_C) / prod_separators p(x_S).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isinglass.errors import MissingDependencyError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.adjacency import adjacency
from isinglass.graph.semantics.chordal import Clique, cardinality_order, chordal_cliques, fill_in
from isinglass.validation import instance

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class JunctionTree:
    """A junction tree; a forest, where the graph has several connected parts.

    Attributes
    ----------
    cliques : tuple of tuples of int
        The variables of each node, sorted.
    edges : tuple of pairs of int
        Pairs of cliques, by number; the first is nearer to the root of its tree, and comes earlier.
    separators : tuple of tuples of int
        What the two cliques of each edge share.
    factor_clique : tuple of int
        A clique that holds the scope of each factor of the graph: the first one. It is -1 for a factor without
        variables in a graph without any.
    fill_in : tuple of pairs of int
        The pairs of variables that were joined to make the graph chordal.
    names : tuple of str or None
        The names of the variables, where the graph has some; `print` shows them.

    Examples
    --------
    >>> import isinglass as ig
    >>> tree = ig.junction_tree(ig.grid_graph(2, 2, 2))
    >>> print(tree)
    JunctionTree: 2 cliques, width 2, 1 pair filled in
    0: 0 1 2
    1: 1 2 3  -- 0 over (1, 2)
    >>> print(ig.junction_tree(ig.FactorGraph({"rain": 2, "wet": 2, "slip": 2}, [("rain", "wet"), ("wet", "slip")])))
    JunctionTree: 2 cliques, width 1
    0: rain, wet
    1: wet, slip  -- 0 over (wet)
    """

    cliques: tuple[Clique, ...]
    edges: tuple[tuple[int, int], ...]
    separators: tuple[Clique, ...]
    factor_clique: tuple[int, ...]
    fill_in: tuple[tuple[int, int], ...]
    names: tuple[str, ...] | None = None

    @property
    def width(self) -> int:
        """The size of the largest clique less one: an upper bound on the treewidth, and equal to it if chordal."""
        return max((len(clique) for clique in self.cliques), default=1) - 1

    def to_networkx(self) -> nx.Graph:
        """Return a networkx graph whose nodes are the cliques (tuples); edges carry their `separator`.

        Examples
        --------
        >>> import isinglass as ig
        >>> sorted(ig.junction_tree(ig.chain_graph(3, 2)).to_networkx().edges(data="separator"))
        [((0, 1), (1, 2), (1,))]
        """
        try:
            import networkx as nx
        except ImportError as error:
            raise MissingDependencyError("to_networkx needs networkx: pip install networkx") from error
        tree: nx.Graph = nx.Graph()
        tree.add_nodes_from(self.cliques)
        for (a, b), separator in zip(self.edges, self.separators, strict=True):
            tree.add_edge(self.cliques[a], self.cliques[b], separator=separator)
        return tree

    def __repr__(self) -> str:
        n, m = len(self.cliques), len(self.fill_in)
        filled = f", {m} {'pair' if m == 1 else 'pairs'} filled in" if m else ""
        return f"JunctionTree: {n} {'clique' if n == 1 else 'cliques'}, width {self.width}{filled}"

    def __str__(self) -> str:
        up = {b: (a, s) for (a, b), s in zip(self.edges, self.separators, strict=True)}
        names = self.names
        between, shown = (" ", str) if names is None else (", ", lambda i: names[i])
        lines = [f"{i}: {between.join(map(shown, c))}" for i, c in enumerate(self.cliques)]
        for b, (a, s) in up.items():
            lines[b] += f"  -- {a} over ({', '.join(map(shown, s))})"
        return "\n".join([repr(self), *lines])


def junction_tree(graph: FactorGraph) -> JunctionTree:
    """Return a junction tree of a graph, triangulated first where it is not chordal.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.junction_tree(ig.chain_graph(4, 2)).separators
    ((1,), (2,))
    """
    instance(graph, FactorGraph, "graph")
    return graph.cached("junction_tree", lambda: _make(graph))


def _make(graph: FactorGraph) -> JunctionTree:
    filled = fill_in(graph)
    near = [set(others) for others in adjacency(graph)]
    for i, j in filled:
        near[i].add(j)
        near[j].add(i)
    frozen = [frozenset(others) for others in near]
    # cliques come out in elimination order; reversed, each meets all earlier ones inside one of them
    nodes = chordal_cliques(frozen, cardinality_order(frozen))[::-1]
    edges, separators = _joined(nodes)
    names = None if graph.names is None else graph.names.variables
    return JunctionTree(tuple(nodes), edges, separators, _owners(graph, nodes), tuple(filled), names)


def _joined(nodes: Sequence[Clique]) -> tuple[tuple[tuple[int, int], ...], tuple[Clique, ...]]:
    """Join each clique to an earlier one that holds all it shares with earlier ones (running intersection)."""
    seen: set[int] = set()
    holder: dict[int, list[int]] = {}  # the cliques of each variable, in order
    edges, separators = [], []
    for b, clique in enumerate(nodes):
        shared = tuple(i for i in clique if i in seen)
        if shared:
            rarest = min(shared, key=lambda i: len(holder[i]))
            a = next(a for a in holder[rarest] if set(shared) <= set(nodes[a]))
            edges.append((a, b))
            separators.append(shared)
        for i in clique:
            holder.setdefault(i, []).append(b)
        seen.update(clique)
    return tuple(edges), tuple(separators)


def _owners(graph: FactorGraph, nodes: Sequence[Clique]) -> tuple[int, ...]:
    """Return the first clique that holds each scope."""
    holders: dict[int, list[int]] = {}
    for c, clique in enumerate(nodes):
        for i in clique:
            holders.setdefault(i, []).append(c)
    members = [set(clique) for clique in nodes]
    owners = []
    for scope in graph.scopes:
        candidates = min((holders[i] for i in scope), key=len) if scope else range(len(nodes))
        owners.append(next((c for c in candidates if members[c] >= set(scope)), -1))
    return tuple(owners)
