"""Tiny images and graphs that the tests of estimators share."""

import numpy as np

import isinglass as ig


def images(n=4, seed=0, states=2):
    """Noisy images 3 x 4 with smooth labels."""
    rng = np.random.default_rng(seed)
    Y = (np.add.outer(np.arange(3), np.arange(4)) + rng.integers(0, states, (n, 1, 1))) // 2 % states
    X = np.eye(states)[Y] + 0.5 * rng.normal(size=(n, 3, 4, states))
    return X, Y


def graphs(n=4, seed=0, edge_features=False):
    """Rings of four to six nodes with a chord."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        size = 4 + i % 3
        y = (np.arange(size) + i) // 2 % 2
        edges = np.array([(j, (j + 1) % size) for j in range(size)] + [(0, 2)])
        parts = (np.c_[y + 0.5 * rng.normal(size=size), np.ones(size)], edges)
        X.append((*parts, rng.random((len(edges), 2))) if edge_features else parts)
        Y.append(y)
    return X, Y


def grid(**options):
    return ig.GridCRF(**{"iterations": 2, "l2": 0.3, "bias": True, **options})


def graph(**options):
    return ig.GraphCRF(**{"iterations": 2, "l2": 0.3, "bias": False, **options})  # the features have a constant


KINDS = {"grid": (grid, images), "graph": (graph, graphs)}
