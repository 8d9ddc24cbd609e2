"""Builders of common graphs. Scopes: one unary factor for each variable, then the edges.

Variables of grids and lattices are numbered row by row (C order). Edges come axis by axis, the last axis
first: on a grid all horizontal edges, then all vertical ones, then the diagonal ones, if there are any. On a periodic
lattice every site has one edge to the next site along each axis; the next site of the last one is the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, MissingDependencyError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.typing import IntArray
from isinglass.validation import RandomState, array_of, flag, generator, instance, integers, items, whole_number

if TYPE_CHECKING:
    import networkx as nx


def pairwise_graph(n: int, edges: ArrayLike, cards: ArrayLike) -> FactorGraph:
    """Return a graph with one unary factor for each of `n` variables and one factor for each edge.

    Parameters
    ----------
    n : int
    edges : int array (edges, 2)
    cards : int or int array (n,)

    Examples
    --------
    >>> pairwise_graph(3, [(0, 1), (0, 2)], 2).scopes[:]
    [(0,), (1,), (2,), (0, 1), (0, 2)]
    """
    pairs = integers(edges, "edges", 2) if np.size(edges) else np.zeros((0, 2), np.int64)
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        raise InputError("edges", f"variables 0 to {n - 1}", f"{pairs.min()} to {pairs.max()}")
    return _pairwise(n, [pairs], cards)


def grid_graph(height: int, width: int, cards: ArrayLike) -> FactorGraph:
    """Return a grid with unary factors, horizontal edges, vertical edges, in this order.

    Examples
    --------
    >>> grid_graph(2, 2, 2).scopes[4:]
    [(0, 1), (2, 3), (0, 2), (1, 3)]
    """
    return lattice_graph((whole_number(height, "height", 1), whole_number(width, "width", 1)), cards)


def lattice_graph(
    shape: Sequence[int], cards: ArrayLike, neighbours: int | None = None, periodic: bool = False
) -> FactorGraph:
    """Return a lattice of any dimension.

    Parameters
    ----------
    shape : sequence of int
    cards : int or int array (variables,)
    neighbours : int, optional
        The number of neighbours of an inner site of a lattice with d axes. Either the 2d nearest sites (4 in the plane,
        6 in space; the default) or all 3^d - 1 adjacent sites, diagonals included (8 in the plane, 26 in space).
    periodic : bool
        Join opposite borders (in the plane: a torus). An axis with one site then has no edges, and one with two sites
        has each edge twice.

    Examples
    --------
    >>> lattice_graph((2, 2), 2, neighbours=8).scopes[8:]
    [(0, 3), (1, 2)]
    >>> lattice_graph((3,), 2, periodic=True).scopes[3:]
    [(0, 1), (1, 2), (2, 0)]
    """
    sides = [whole_number(s, "shape", 1) for s in items(shape, "shape", "a sequence of side lengths")]
    d = len(sides)
    straight, touching = 2 * d, 3**d - 1
    if neighbours is None:
        neighbours = straight
    if neighbours not in (straight, touching):
        raise InputError("neighbours", f"{straight} or {touching} in {d} dimensions", repr(neighbours))
    steps = [tuple(int(i == axis) for i in range(d)) for axis in reversed(range(d))]
    if neighbours == touching:
        steps += [s for s in product((0, 1, -1), repeat=d) if np.abs(s).sum() > 1 and s[np.flatnonzero(s)[0]] > 0]
    index = np.arange(np.prod(sides, dtype=np.int64)).reshape(sides)
    pairs = _wrapped_pairs if flag(periodic, "periodic") else _shifted_pairs
    return _pairwise(index.size, [pairs(index, step) for step in steps], cards)


def chain_graph(n: int, cards: ArrayLike) -> FactorGraph:
    """Return a chain of `n` variables.

    Examples
    --------
    >>> chain_graph(3, 5)
    FactorGraph: 3 variables (5 states), 5 factors (arity 1-2), forest
    """
    return lattice_graph((whole_number(n, "n", 1),), cards)


def tree_graph(n: int, cards: ArrayLike, random_state: RandomState = None) -> FactorGraph:
    """Return a random recursive tree: each variable is joined to a uniformly drawn earlier one.

    Examples
    --------
    >>> tree_graph(10, 2, random_state=0).is_forest
    True
    """
    n = whole_number(n, "n", 1)
    child = np.arange(1, n)
    parent = generator(random_state).integers(0, child) if n > 1 else child
    return _pairwise(n, [np.stack([parent, child], axis=1)], cards)


def complete_graph(n: int, cards: ArrayLike) -> FactorGraph:
    """Return a graph with an edge between any two of `n` variables.

    Examples
    --------
    >>> complete_graph(4, 2).n_factors
    10
    """
    n = whole_number(n, "n", 1)
    return _pairwise(n, [np.stack(np.triu_indices(n, 1), axis=1)], cards)


def random_graph(n: int, n_edges: int, cards: ArrayLike, random_state: RandomState = None) -> FactorGraph:
    """Return a graph whose `n_edges` edges are drawn uniformly, without repetition, from all pairs.

    Examples
    --------
    >>> random_graph(10, 15, 2, random_state=0).n_factors
    25
    """
    n = whole_number(n, "n", 1)
    n_pairs = n * (n - 1) // 2
    n_edges = whole_number(n_edges, "n_edges")
    if n_edges > n_pairs:
        raise InputError("n_edges", f"at most the {n_pairs} pairs of {n} variables", str(n_edges))
    number = np.sort(generator(random_state).choice(n_pairs, n_edges, replace=False)) if n_edges else np.zeros(0)
    return _pairwise(n, [_pair_of(number.astype(np.int64))], cards)


def from_networkx(graph: nx.Graph, cards: ArrayLike | str) -> FactorGraph:
    """Return the factor graph of an undirected networkx graph; variables are in the order of its nodes.

    Nodes that are strings become the names of the variables.

    Parameters
    ----------
    graph : networkx.Graph
    cards : int, int array (nodes,) or str
        Cardinalities, or the name of the node attribute that holds them.

    Examples
    --------
    >>> import networkx as nx
    >>> from_networkx(nx.cycle_graph(4), 2).scopes[4:]
    [(0, 1), (0, 3), (1, 2), (2, 3)]
    """
    if not hasattr(graph, "is_directed"):
        raise InputError("graph", "a networkx.Graph", type(graph).__name__)
    if graph.is_directed() or graph.is_multigraph():
        raise InputError("graph", "an undirected networkx.Graph", type(graph).__name__, "use nx.Graph(graph)")
    number = {node: i for i, node in enumerate(graph.nodes)}
    edges = sorted((number[u], number[v]) if number[u] < number[v] else (number[v], number[u]) for u, v in graph.edges)
    loops = [u for u, v in edges if u == v]
    if loops:
        raise InputError("graph", "no edge from a node to itself", f"one at node number {loops[0]}")
    if isinstance(cards, str):
        missing = [node for node in graph.nodes if cards not in graph.nodes[node]]
        if missing:
            raise InputError("cards", f"an attribute {cards!r} at every node", f"none at node {missing[0]!r}")
        cards = [graph.nodes[node][cards] for node in graph.nodes]
    made = _pairwise(len(number), [np.array(edges, np.int64).reshape(-1, 2)], cards)
    return made.with_names(list(number)) if number and all(isinstance(node, str) for node in number) else made


def to_networkx(graph: FactorGraph) -> nx.Graph:
    """Return the bipartite graph of variables ``("variable", i)`` and factors ``("factor", a)``.

    Nodes carry `bipartite` (0 or 1) and, for variables, `card` and, if they have one, `name`; edges carry `slot`, the
    axis in the table.

    Examples
    --------
    >>> sorted(to_networkx(chain_graph(2, 2)).degree(("variable", i)) for i in range(2))
    [2, 2]
    """
    try:
        import networkx as nx
    except ImportError as error:
        raise MissingDependencyError("to_networkx needs networkx: pip install networkx") from error
    instance(graph, FactorGraph, "graph")
    result: nx.Graph = nx.Graph()
    result.add_nodes_from((("variable", i), {"bipartite": 0, "card": k}) for i, k in enumerate(graph.cards.tolist()))
    result.add_nodes_from((("factor", a), {"bipartite": 1}) for a in range(graph.n_factors))
    for i, name in enumerate(() if graph.names is None else graph.names.variables):
        result.nodes["variable", i]["name"] = name
    for a, scope in enumerate(graph.scopes):
        result.add_edges_from((("variable", i), ("factor", a), {"slot": s}) for s, i in enumerate(scope))
    return result


def _pairwise(n: int, edge_lists: Sequence[IntArray], cards: ArrayLike) -> FactorGraph:
    """Assemble unary factors and edges, with a Python loop only where cardinalities are mixed."""
    n = whole_number(n, "n")
    card = array_of(cards, "cards", "one number, or one for each variable")
    if card.ndim == 0:
        card = np.full(n, whole_number(card[()], "cards", 1))
    card = integers(card, "cards", 1)
    if len(card) != n:
        raise InputError("cards", f"one number, or one for each of {n} variables", f"{len(card)} numbers")
    edges = np.concatenate(edge_lists) if edge_lists else np.zeros((0, 2), np.int64)
    if edges.shape[1] != 2:
        raise InputError("edges", "two variables in a row", f"shape {edges.shape}")
    unary = np.arange(n)[:, None]
    if n and (card == card[0]).all():
        return FactorGraph.from_groups(card, [unary, edges] if len(edges) else [unary])
    return FactorGraph(card, [*map(tuple, unary.tolist()), *map(tuple, edges.tolist())])


def _shifted_pairs(index: IntArray, step: tuple[int, ...]) -> IntArray:
    """Pairs (site, site + step) of a lattice of site numbers."""
    here = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, index.shape, strict=True))
    there = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, index.shape, strict=True))
    return np.stack([index[here].ravel(), index[there].ravel()], axis=1)


def _wrapped_pairs(index: IntArray, step: tuple[int, ...]) -> IntArray:
    """Pairs (site, site + step) of a lattice whose opposite borders are joined; no site is a neighbour of itself."""
    there = np.roll(index, [-s for s in step], axis=tuple(range(index.ndim)))
    pairs = np.stack([index.ravel(), there.ravel()], axis=1)
    proper: IntArray = pairs[pairs[:, 0] != pairs[:, 1]]
    return proper


def _pair_of(number: IntArray) -> IntArray:
    """Return the pair (i, j), i < j, with ``number = j (j - 1) / 2 + i``."""
    j = ((1 + np.sqrt(1 + 8 * number.astype(np.float64))) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > number  # the square root may round either way
    j += (j + 1) * j // 2 <= number
    return np.stack([number - j * (j - 1) // 2, j], axis=1)
