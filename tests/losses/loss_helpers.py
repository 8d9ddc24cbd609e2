"""Models, labels and finite differences that the tests of losses share."""

from dataclasses import replace

import numpy as np

import isinglass as ig
from isinglass.inference.result import FactorBeliefs, VariableBeliefs
from isinglass.testing import random_potentials

GRAPHS = {
    "grid": ig.grid_graph(2, 3, 2),
    "mixed": ig.FactorGraph([2, 3, 2, 4], [(0, 1, 2), (2, 3), (0,), (3,), (1, 3), (0, 3), ()]),
    "repeated": ig.FactorGraph([2, 3, 2, 2, 3, 1], [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (1, 3, 4), (2,), (0, 1)]),
    "union": ig.disjoint_union([ig.FactorGraph([3, 2], [(0, 1)]), ig.FactorGraph([2, 2], [(1, 0), (0,)])]),
}
BELIEF_LOSSES = ["ucl", "ccl", "uquad", "cquad", "suclass", "scclass"]


def draw(name, seed, zeros=0.0):
    """Potentials, labels of which some are hidden, and weights of which some are zero."""
    graph, rng = GRAPHS[name], np.random.default_rng([seed, 23])
    witness = rng.integers(0, graph.cards)
    p = random_potentials(graph, rng, 1.0, zeros, witness)
    labels = np.where(rng.random(len(witness)) < 0.2 * (seed % 3), -1, witness)
    weights = rng.uniform(0, 2, len(witness)) * (rng.random(len(witness)) < 0.9) if seed % 2 else None
    return p, labels, weights, rng


def flat_factors(result):
    return np.concatenate([np.zeros(0), *(g.ravel() for g in result.factors.groups)])


def with_beliefs(result, variables, factors):
    """The result with other flat beliefs."""
    graph = result.potentials.graph
    return replace(result, variables=VariableBeliefs(graph, variables), factors=FactorBeliefs(graph, factors))


def moved(p, directions, step):
    tables = [t + step * v for t, v in zip(p.groups, directions, strict=True)]
    return ig.Potentials.from_groups(p.graph, tables, p.table_ids, p.evidence)


def along(groups, directions, p):
    """The derivative along a direction, where hard zeros do not move."""
    parts = zip(groups, directions, p.groups, strict=True)
    return sum(np.where(t.real > -np.inf, g * v, 0).sum() for g, v, t in parts)
