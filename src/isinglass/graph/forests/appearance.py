"""How often a factor appears in a random spanning forest: the weights of tree-reweighted message passing.

The links of a graph (factors of arity two or more) are thinned to a *maximal acyclic* subset at random; the
probability that link a is in it is its appearance probability rho_a. Any such distribution makes the
tree-reweighted log Z an upper bound (Wainwright, Jaakkola and Willsky 2005), as long as every rho_a is positive.

Where all links of a connected part are pairs, the subset is a spanning tree, a uniform one in blocks of up to DENSE
variables. Blocks (links joined by cycles) are thinned independently of each other:

- A bridge is in every spanning tree: rho = 1, by the search for blocks and not by a threshold.
- A cycle of n links misses one of them: rho = 1 - 1/n.
- Up to DENSE variables, rho_e is the effective resistance of link e, (1_i - 1_j)' L^+ (1_i - 1_j) with L the
  Laplacian of the block (Kirchhoff 1847).

With factors of higher arity, and in larger blocks, links are added in a random order, each if its variables lie in
different trees so far, and rho_a is the share of such subsets. Links that are in none of them are covered by further
subsets, which take such links first. Every subset then has the same weight: rho is the mean of indicators of acyclic
subsets, that is, of a true distribution over them.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.forests.disjoint_sets import acyclic_subset
from isinglass.graph.message_graph import edges_of
from isinglass.kernels.layout import Edges
from isinglass.runtime.blas import one_blas_thread
from isinglass.runtime.interrupts import interruptible
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray

DENSE = 5000  # variables of a block up to which resistances are computed
LONG = 1000  # variables above which Ctrl-C can interrupt the inverse
DRAWS = 200  # acyclic subsets by random order
LEAST, LINKS = 20, 10_000_000  # draws of the largest graphs, and links to look at in all


def appearance_probabilities(graph: FactorGraph, random_state: int = 0) -> FloatArray:
    """Return the appearance probability of each link.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> appearance_probabilities(FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 0), (2, 3)])).round(4).tolist()
    [0.6667, 0.6667, 0.6667, 1.0]
    """
    key = ("appearance", random_state)
    return graph.cached(key, lambda: _probabilities(graph, edges_of(graph), random_state))


def _probabilities(graph: FactorGraph, edges: Edges, seed: int) -> FloatArray:
    """Treat each connected part by itself, so that its weights do not depend on its neighbours."""
    rho = np.ones(len(edges.size))
    if graph.is_forest or not len(rho):
        return rho
    from isinglass.graph.forests.blocks import adjacency, link_blocks

    part = graph.connected_components[edges.slot_variable[edges.first_slot[:-1]]]
    is_pair = np.diff(edges.first_slot) == 2
    all_pairs = ~np.isin(part, part[~is_pair])
    for links in _classes(part, np.flatnonzero(~all_pairs)):
        rho[links] = _of_subsets(*_local_scopes(edges, links), np.random.default_rng(seed))
    plain = np.flatnonzero(all_pairs)
    pairs = edges.slot_variable[edges.first_slot[plain][:, None] + np.arange(2)]
    known: dict[bytes, FloatArray] = {}  # the examples of a batch often have the same shape
    for links in _classes(link_blocks(*adjacency(pairs, graph.n_variables)), np.arange(len(plain))):
        rho[plain[links]] = _of_block(*_local_pairs(pairs[links]), seed, known)
    return rho


def _classes(label: IntArray, links: IntArray) -> Iterator[IntArray]:
    """Yield the links of each label, but for those that are alone: such a link is in every subset."""
    ordered = links[np.argsort(label[links], kind="stable")]
    cuts = np.flatnonzero(np.diff(label[ordered])) + 1
    yield from (one for one in np.split(ordered, cuts) if len(one) > 1)


def _local_scopes(edges: Edges, links: IntArray) -> tuple[IntArray, IntArray, int]:
    """Return the scopes of some links, flat, with their variables numbered from zero, and how many there are."""
    arity = np.diff(edges.first_slot)[links]
    first = starts(arity)
    slots = np.arange(first[-1]) + np.repeat(edges.first_slot[links] - first[:-1], arity)
    variables, local = np.unique(edges.slot_variable[slots], return_inverse=True)
    return first, local.astype(np.int64), len(variables)


def _local_pairs(pairs: IntArray) -> tuple[IntArray, int]:
    """Return pairs with their variables numbered from zero, and how many there are."""
    variables, local = np.unique(pairs, return_inverse=True)
    return local.reshape(-1, 2).astype(np.int64), len(variables)


def _of_block(pairs: IntArray, n: int, seed: int, known: dict[bytes, FloatArray]) -> FloatArray:
    """Return the probabilities of the links of one block with a cycle; those of equal blocks are known."""
    if len(pairs) == n:
        return np.full(n, (n - 1) / n)
    key = pairs.tobytes()
    if key not in known:
        known[key] = _resistances(pairs, n) if n <= DENSE else _of_long_block(pairs, n, np.random.default_rng(seed))
    return known[key]


def _resistances(pairs: IntArray, n: int) -> FloatArray:
    """Return the effective resistances of the links of one block (parallel links allowed).

    A link of a block lies on a cycle of at most n links, whose others make a detour of resistance n - 1 or less. So
    its own is at most 1 - 1/n; only rounding can bring it above, and is cut off there.
    """
    laplacian = np.full((n, n), 1.0 / n)  # adding the constant matrix makes it invertible, and changes no resistance
    i, j = pairs.T
    np.add.at(laplacian, (i, i), 1)
    np.add.at(laplacian, (j, j), 1)
    np.subtract.at(laplacian, (i, j), 1)
    np.subtract.at(laplacian, (j, i), 1)
    with one_blas_thread():
        inverse = interruptible(np.linalg.inv, laplacian) if n > LONG else np.linalg.inv(laplacian)
    rho: FloatArray = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    return np.minimum(rho, (n - 1) / n)


def _of_long_block(pairs: IntArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return shares of spanning trees, each by a random order of the links."""
    return _of_subsets(np.arange(0, 2 * len(pairs) + 1, 2), pairs.ravel(), n, rng)


def _of_subsets(first: IntArray, flat: IntArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Return shares of maximal acyclic subsets, each by a random order of the links."""
    count = np.zeros(len(first) - 1, np.int64)
    draws = min(DRAWS, max(LEAST, LINKS // len(count)))
    for _ in range(draws):
        count += acyclic_subset(first, flat, rng.permutation(len(count)), n)
    return _covered(count, draws, first, flat, n, rng)


def _covered(
    count: IntArray, draws: int, first: IntArray, flat: IntArray, n: int, rng: np.random.Generator
) -> FloatArray:
    """Add maximal acyclic subsets that take links of count zero first, until there are none; return the shares."""
    while not count.all():
        order = np.concatenate([rng.permutation(np.flatnonzero(count == 0)), rng.permutation(np.flatnonzero(count))])
        count = count + acyclic_subset(first, flat, order, n)
        draws += 1
    return count / draws
