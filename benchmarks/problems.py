"""The benchmark problems, drawn from fixed seeds.

Ising models have spins s = 2x - 1, fields N(0, 1) and couplings N(0, 0.5²); "full" models have unary entries
N(0, 1) and pairwise entries N(0, 0.5²).

A grid comes in two orders of its edges. `ig.grid_graph` lists horizontal edges first, and its regularity can be used;
"general" lists vertical edges first, so that the general engine runs. Both are the same model.
"""

from __future__ import annotations

import numpy as np

import isinglass as ig

SPIN = np.array([-1.0, 1.0])


def ising(graph: ig.FactorGraph, rng: np.random.Generator) -> ig.Potentials:
    """Return an Ising model on a pairwise graph."""
    unary, edges = graph.groups
    field, coupling = rng.normal(0, 1, len(unary)), rng.normal(0, 0.5, len(edges))
    return ig.Potentials.from_groups(graph, [field[:, None] * SPIN, coupling[:, None, None] * np.outer(SPIN, SPIN)])


def potts(graph: ig.FactorGraph, rng: np.random.Generator, card: int) -> ig.Potentials:
    """Return a Potts model: unary entries N(0, 1), couplings N(0, 0.5²) on equal states."""
    unary, edges = graph.groups
    field, coupling = rng.normal(0, 1, (len(unary), card)), rng.normal(0, 0.5, len(edges))
    return ig.Potentials.from_groups(graph, [field, coupling[:, None, None] * np.eye(card)])


def full(graph: ig.FactorGraph, rng: np.random.Generator, card: int) -> ig.Potentials:
    """Return a pairwise model with free tables."""
    unary, edges = graph.groups
    return ig.Potentials.from_groups(
        graph, [rng.normal(0, 1, (len(unary), card)), rng.normal(0, 0.5, (len(edges), card, card))]
    )


def grid_model(side: int, card: int = 2, *, shared: bool, general: bool) -> ig.Potentials:
    """Return a grid with unary entries N(0, 1) and one table for all edges or one for each, entries N(0, 0.5²)."""
    rng = np.random.default_rng(side)
    graph, n = ig.grid_graph(side, side, card), side * (side - 1)  # n horizontal edges, then n vertical ones
    unary, tables = rng.normal(0, 1, (side**2, card)), rng.normal(0, 0.5, (1 if shared else 2 * n, card, card))
    if general:
        edges = np.roll(graph.groups[1].scopes, n, axis=0)
        graph, tables = ig.pairwise_graph(side**2, edges, card), np.roll(tables, 0 if shared else n, axis=0)
    return ig.Potentials.from_groups(graph, [unary, tables])


def mixed_grid(side: int, fewest: int, most: int) -> ig.Potentials:
    """Return a grid whose variables have different numbers of states, with own tables."""
    rng = np.random.default_rng(side)
    cards = rng.integers(fewest, most + 1, side**2)
    graph = ig.pairwise_graph(side**2, ig.grid_graph(side, side, 2).groups[1].scopes, cards)
    tables = [rng.normal(0, 1 if group.arity == 1 else 0.5, (len(group), *group.shape)) for group in graph.groups]
    return ig.Potentials.from_groups(graph, tables)


def batch_of_grids(count: int, side: int, *, general: bool) -> tuple[ig.Potentials, np.ndarray]:
    """Return binary grids side by side, own unary tables, one table for all edges; and a state for each variable."""
    rng = np.random.default_rng(0)
    one = grid_model(side, shared=True, general=general)
    unary = rng.normal(0, 1, (count * side**2, 2))
    p = ig.Potentials.from_groups(one.graph.repeat(count), [unary, one.groups[1]])
    return p, rng.integers(0, 2, len(unary))


def sparse(variables: int = 20_000, pairs: int = 20_000, triples: int = 5_000) -> ig.Potentials:
    """Return a binary model of random scopes: unary, pairs and triples, each factor with a table of its own."""
    rng = np.random.default_rng(0)
    scopes = [np.arange(variables)[:, None], _distinct(rng, variables, pairs, 2), _distinct(rng, variables, triples, 3)]
    tables = [rng.normal(0, 1, (len(s), *[2] * s.shape[1])) for s in scopes]
    return ig.Potentials.from_groups(ig.FactorGraph.from_groups([2] * variables, scopes), tables)


def _distinct(rng: np.random.Generator, variables: int, count: int, arity: int) -> np.ndarray:
    """Draw scopes of distinct variables."""
    drawn = rng.integers(0, variables, (2 * count, arity))
    ordered = np.sort(drawn, axis=1)
    return drawn[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)][:count]


def problem(name: str) -> ig.Potentials:
    """Return a problem by name: ising15, 18, 30, 100 or 300, potts100_k5, tree10000, chain10000_k5."""
    seeds = {"ising30": 1, "ising100": 2, "ising300": 3, "ising15": 5, "ising18": 6}
    if name in seeds:
        side = int(name.removeprefix("ising"))
        return ising(ig.grid_graph(side, side, 2), np.random.default_rng(seeds[name]))
    if name == "potts100_k5":
        return potts(ig.grid_graph(100, 100, 5), np.random.default_rng(4), 5)
    if name == "tree10000":
        rng = np.random.default_rng(7)
        edges = [(int(rng.integers(0, i)), i) for i in range(1, 10_000)]
        return ising(ig.pairwise_graph(10_000, edges, 2), rng)
    if name == "chain10000_k5":
        return full(ig.chain_graph(10_000, 5), np.random.default_rng(8), 5)
    raise KeyError(name)
