"""The benchmark problems, drawn from fixed seeds.

Ising models have spins s = 2x - 1, fields N(0, 1) and couplings N(0, 0.5²); "full" models have unary entries
N(0, 1) and pairwise entries N(0, 0.5²).
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
