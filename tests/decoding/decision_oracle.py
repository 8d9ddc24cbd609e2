"""Brute force for decisions: all assignments with their probabilities, and the least expected loss of any decision."""

from itertools import product

import numpy as np

import isinglass as ig


def distribution(p):
    """Return all assignments (rows) and their probabilities."""
    states = np.array(list(product(*map(range, p.graph.cards))))
    for i, x in p.evidence.items():
        states = states[states[:, i] == x]
    logs = np.asarray(p.log_score(states))
    weights = np.exp(logs - logs.max())
    return states, weights / weights.sum()


def expected_losses(p, outputs, loss, decisions=None):
    """Return all decisions about some outputs and their expected losses."""
    states, chances = distribution(p)
    truths = states[:, outputs]
    if decisions is None:
        decisions = np.array(list(product(*(range(p.graph.cards[i]) for i in outputs))))
    return decisions, np.array([chances @ loss(d, truths) for d in decisions])


def f_loss(beta=1.0, positive=1):
    """Return 1 - F_beta of one decision for many truths, with F(0, 0) = 1."""

    def loss(decision, truths):
        d, y = decision == positive, truths == positive
        top, bottom = (1 + beta**2) * (d & y).sum(axis=1), beta**2 * y.sum(axis=1) + d.sum()
        return 1 - np.where(bottom > 0, top / np.where(bottom > 0, bottom, 1), 1.0)

    return loss


def product_model(rng, cards):
    """Return independent variables with random distributions."""
    graph = ig.FactorGraph(cards, [(i,) for i in range(len(cards))])
    return ig.Potentials(graph, [rng.normal(scale=1.5, size=k) for k in cards])
