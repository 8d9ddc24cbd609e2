"""How often a factor appears in a random spanning forest: the weights of tree-reweighted message passing.

The links of a graph (factors of arity two or more) are thinned to a *maximal acyclic* subset at random; the
probability that link a is in it is its appearance probability rho_a. Any such distribution makes the
tree-reweighted log Z an upper bound (Wainwright, Jaakkola and Willsky 2005), as long as every rho_a is positive.

- Pairwise graphs of moderate size: uniform spanning trees, for which rho_e is the effective resistance of edge e,
  (1_i - 1_j)' L^+ (1_i - 1_j) with L the graph's Laplacian (Kirchhoff 1847).
- Otherwise: forests drawn by adding links in a random order, each if its variables lie in different trees; every
  link comes first in at least one draw, so that all are covered.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.edges import Edges, edges_of
from isinglass.graph.factor_graph import FactorGraph
from isinglass.validation import IntArray

DENSE = 5000  # variables of a connected part up to which resistances are computed
DRAWS = 200
ROUNDING = 1e-9  # resistances this near to one belong to bridges, whose probability is one


def appearance_probabilities(graph: FactorGraph, random_state: int = 0) -> NDArray[np.float64]:
    """Return the appearance probability of each link.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> appearance_probabilities(FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)])).round(4).tolist()
    [0.6667, 0.6667, 0.6667]
    """
    key = ("appearance", random_state)
    return graph.cached(key, lambda: _probabilities(graph, edges_of(graph), random_state))


def _probabilities(graph: FactorGraph, edges: Edges, seed: int) -> NDArray[np.float64]:
    """Treat each connected part by itself, so that its weights do not depend on its neighbours."""
    n_links = len(edges.size)
    rho = np.ones(n_links)
    if graph.is_forest or not n_links:
        return rho
    part = graph.connected_components[edges.slot_variable[edges.first_slot[:-1]]]
    by_part = np.argsort(part, kind="stable")
    cuts = np.flatnonzero(np.diff(part[by_part])) + 1
    for links in np.split(by_part, cuts):
        scopes = [edges.slot_variable[edges.first_slot[f] : edges.first_slot[f + 1]] for f in links]
        variables = np.unique(np.concatenate(scopes))
        local = [np.searchsorted(variables, scope) for scope in scopes]
        if all(len(scope) == 2 for scope in scopes) and len(variables) <= DENSE:
            rho[links] = _resistances(np.array(local), len(variables))
        else:
            rho[links] = _drawn(local, len(variables), seed)
    return rho


def _resistances(pairs: IntArray, n: int) -> NDArray[np.float64]:
    """Effective resistances of the edges of a connected graph (parallel edges allowed)."""
    laplacian = np.full((n, n), 1.0 / n)  # adding the constant matrix makes it invertible, and changes no resistance
    i, j = pairs.T
    np.add.at(laplacian, (i, i), 1)
    np.add.at(laplacian, (j, j), 1)
    np.subtract.at(laplacian, (i, j), 1)
    np.subtract.at(laplacian, (j, i), 1)
    inverse = np.linalg.inv(laplacian)
    rho: NDArray[np.float64] = inverse[i, i] + inverse[j, j] - 2 * inverse[i, j]
    return np.where(rho > 1 - ROUNDING, 1.0, rho)


def _drawn(scopes: list[IntArray], n: int, seed: int) -> NDArray[np.float64]:
    """Frequencies over random maximal acyclic subsets; link k comes first in draw k, modulo their number."""
    from isinglass.graph.greedy import acyclic_subset

    rng = np.random.default_rng(seed)
    first = np.concatenate([[0], np.cumsum([len(s) for s in scopes])]).astype(np.int64)
    flat = np.concatenate(scopes)
    draws = max(DRAWS, len(scopes))
    count = np.zeros(len(scopes))
    for draw in range(draws):
        order = rng.permutation(len(scopes))
        leader = np.flatnonzero(order == draw % len(scopes))[0]
        order[0], order[leader] = order[leader], order[0]
        count += acyclic_subset(first, flat, order, n)
    return count / draws
