"""Random chains, and the same chains as factor graphs or as lists of all labellings."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

import isinglass as ig
from isinglass.inference.chain.exact import Transition
from isinglass.models.chain.layout import width_of


@st.composite
def chains(draw, longest=5, most=5, scale=None):
    """A batch of chains: scores (tokens, labels), offsets, transitions; some entries are ruled out."""
    k = draw(st.integers(1, most))
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size = draw(st.sampled_from([0.1, 1.0, 30.0, 300.0])) if scale is None else scale
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores, table = size * rng.normal(size=(offsets[-1], k)), size * rng.normal(size=(k, k))
    if draw(st.booleans()):
        table[rng.random((k, k)) < 0.3] = -np.inf
    if draw(st.booleans()):
        scores[rng.random(scores.shape) < 0.2] = -np.inf
    return scores, offsets, table


def padded(scores):
    """A copy in rows as wide as the loops want them, with rubbish in the padding."""
    out = np.full((len(scores), width_of(scores.shape[1])), 7.0)
    out[:, : scores.shape[1]] = scores
    return out


def transition(table):
    return Transition(np.asarray(table, float))


def potentials(scores, table):
    """One chain as a factor graph."""
    n, k = scores.shape
    tables = [scores] if n == 1 else [scores, np.broadcast_to(table, (n - 1, k, k))]
    return ig.Potentials.from_groups(ig.chain_graph(n, k), tables)


def labellings(scores, table):
    """All labellings of one chain and their scores, best first; the possible ones."""
    n, k = scores.shape
    paths = np.array(list(product(range(k), repeat=n)))
    values = scores[np.arange(n), paths].sum(axis=1) + table[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > -np.inf]
    return paths[order], values[order]


def split(scores, offsets):
    return np.split(scores, offsets[1:-1])
