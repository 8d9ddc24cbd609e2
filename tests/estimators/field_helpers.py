"""What tests of Markov random fields share."""

import itertools

import numpy as np

import isinglass as ig
from isinglass.models.canonical import canonical_tables, largest_difference
from isinglass.testing import random_potentials


def cells(graph):
    return np.array(list(np.ndindex(*graph.cards.tolist()))).reshape(-1, graph.n_variables)


def truth(graph, seed=0, scale=1.0):
    return random_potentials(graph, np.random.default_rng(seed), scale)


def exact_table(potentials):
    return ig.infer(potentials).joint(range(potentials.graph.n_variables))


def difference(one, two):
    """Return how far two models are apart, in canonical parameters."""
    reference = np.zeros(one.graph.n_variables, int)
    return largest_difference(canonical_tables(one, reference), canonical_tables(two, reference))


def chordal_graph(rng, n=6, p=0.4, cards=(2, 3)):
    """Return a random chordal graph with a factor for each maximal clique, and some smaller ones."""
    edges = [e for e in itertools.combinations(range(n), 2) if rng.random() < p]
    card = rng.choice(cards, n)
    full = ig.triangulate(ig.FactorGraph(card, [*((i,) for i in range(n)), *edges]))
    cliques = [tuple(rng.permutation(c).tolist()) for c in ig.cliques(full)]
    return ig.FactorGraph(card, [*cliques, (0,), *(edges[:1])])
