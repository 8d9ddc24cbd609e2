"""Hypothesis strategies for random models: mixed cardinalities and arities, hard zeros, evidence, isolated variables.

Hypothesis draws the structure and a seed; a NumPy generator with that seed draws the values. So drawing is fast, and
the structure shrinks well. Hard zeros never forbid one assignment, the *witness*, so that the model stays possible.
"""

from __future__ import annotations

import os
from functools import cache
from itertools import permutations

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from isinglass.graph.factor_graph import FactorGraph
from isinglass.potentials import Potentials
from isinglass.typing import IntArray

_SEEDS = st.integers(0, 2**32 - 1)  # strategies that are made once: Hypothesis looks at every new one
_SHARES = st.sampled_from([0.0, 0.0, 0.3, 0.6])


def tried(examples: int) -> settings:
    """Return settings with so many examples of each property, or as many as ``ISINGLASS_EXAMPLES`` says."""
    count = int(os.environ.get("ISINGLASS_EXAMPLES", examples))
    return settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def factor_graphs(
    draw: st.DrawFn,
    max_variables: int = 6,
    max_card: int = 4,
    max_arity: int = 4,
    max_factors: int = 8,
    forest: bool = False,
) -> FactorGraph:
    """Draw a factor graph; a variable may have one state or no factor, and a scope may occur twice."""
    n = draw(_often_large(max_variables))
    cards = [draw(_cards(max_card)) for _ in range(n)]
    if forest:
        return FactorGraph(cards, draw(_tree_scopes(n, max_arity)))
    number, arity = draw(_often_large(max_factors + 1)) - 1, _arities(min(max_arity, n))
    return FactorGraph(cards, [draw(_scopes(n, draw(arity))) for _ in range(number)])


@st.composite
def potentials(
    draw: st.DrawFn,
    graphs: st.SearchStrategy[FactorGraph] | None = None,
    scale: float = 1.0,
    zeros: bool = True,
    evidence: bool = True,
) -> Potentials:
    """Draw potentials with entries N(0, scale²), some hard zeros and some observed variables."""
    graph = draw(_any_graph() if graphs is None else graphs)
    rng = np.random.default_rng(draw(_SEEDS))
    share = draw(_SHARES) if zeros else 0.0
    witness = rng.integers(0, graph.cards)
    observed: dict[int, int] = {}
    if evidence and graph.n_variables:
        chosen = draw(_observed(graph.n_variables))
        observed = {i: int(witness[i]) for i in chosen}
    return random_potentials(graph, rng, scale, share, witness, observed)


def random_potentials(
    graph: FactorGraph,
    rng: np.random.Generator,
    scale: float = 1.0,
    zeros: float = 0.0,
    witness: IntArray | None = None,
    evidence: dict[int, int] | None = None,
) -> Potentials:
    """Return potentials with entries N(0, scale²), a share of them -inf; the witness is never forbidden."""
    if witness is None:
        witness = rng.integers(0, graph.cards)
    tables = []
    for scope in graph.scopes:
        shape = tuple(graph.cards[list(scope)])
        table = rng.normal(0, scale, shape)
        forbidden = np.asarray(rng.random(shape) < zeros)
        forbidden[tuple(witness[list(scope)])] = False
        tables.append(np.where(forbidden, -np.inf, table))
    return Potentials(graph, tables, evidence)


@cache
def _any_graph() -> st.SearchStrategy[FactorGraph]:
    return factor_graphs()


@cache
def _observed(n: int) -> st.SearchStrategy[list[int]]:
    """Draw up to three of n variables."""
    return st.lists(_below(n), max_size=3, unique=True)


@cache
def _below(n: int) -> st.SearchStrategy[int]:
    """Draw a number from 0 to n - 1."""
    return st.integers(0, n - 1)


@cache
def _often_large(most: int) -> st.SearchStrategy[int]:
    """Draw a number from 1 to `most`, three or more twice as often; lists of Hypothesis would mostly be short."""
    return st.sampled_from([*range(1, most + 1), *range(3, most + 1)])


@cache
def _cards(most: int) -> st.SearchStrategy[int]:
    """Draw a number of states, seldom one."""
    return st.sampled_from([*range(1, most + 1), *range(2, most + 1), *range(2, most + 1)])


@cache
def _arities(most: int) -> st.SearchStrategy[int]:
    """Draw the arity of a factor, seldom none, often a pair."""
    return st.sampled_from([*range(most + 1), *range(1, most + 1), *range(2, min(most, 2) + 1)])


@cache
def _scopes(n: int, arity: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw so many of n variables, in any order."""
    return st.sampled_from(list(permutations(range(n), arity)))


@st.composite
def _tree_scopes(draw: st.DrawFn, n: int, max_arity: int) -> list[tuple[int, ...]]:
    """Draw scopes without a cycle: each factor connects new variables with at most one that has a factor already."""
    order = draw(st.permutations(range(n)))
    scopes: list[tuple[int, ...]] = [(i,) for i in draw(st.lists(st.integers(0, n - 1), max_size=2))]
    used = 1
    while used < n:
        new = draw(st.integers(1, min(max_arity - 1, n - used)))
        fresh = order[used : used + new]
        anchor = [order[draw(st.integers(0, used - 1))]] if draw(st.integers(0, 3)) else []
        scopes.append(tuple(draw(st.permutations([*anchor, *fresh]))))
        used += new
    return scopes
