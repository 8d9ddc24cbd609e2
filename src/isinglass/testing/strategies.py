"""Hypothesis strategies for random models: mixed cardinalities and arities, hard zeros, evidence, isolated variables.

Hypothesis draws the structure and a seed; a NumPy generator with that seed draws the values. The structure is one draw
of bytes, two for each choice, because a draw for each would take longer than what is tested. So drawing is fast, and
the structure shrinks well: zeros choose what is smallest. Hard zeros never forbid one assignment, the *witness*, so
that the model stays possible.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import cache
from itertools import combinations, permutations
from typing import Protocol, TypeVar

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from isinglass.graph.factor_graph import FactorGraph
from isinglass.potentials import Potentials
from isinglass.typing import IntArray

T = TypeVar("T")

_SEEDS = st.integers(0, 2**32 - 1)  # strategies that are made once: Hypothesis looks at every new one
_SHARES = st.sampled_from([0.0, 0.0, 0.3, 0.6])
_FEW = st.integers(0, 3)


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
    choose = _chooser(draw, 3 + max_variables + (6 * max_variables if forest else 2 * max_factors))
    n = choose(_often_large(max_variables))
    cards = [choose(_cards(max_card)) for _ in range(n)]
    if forest:
        return FactorGraph(cards, _tree_scopes(choose, n, max_arity))
    number, arities = choose(_often_large(max_factors + 1)) - 1, _arities(min(max_arity, n))
    return FactorGraph(cards, [choose(_scopes(n, choose(arities))) for _ in range(number)])


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
        chosen = draw(_observed(graph.n_variables, draw(_FEW)))
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
def _observed(n: int, few: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Draw so many of n variables, or all."""
    return st.sampled_from(list(combinations(range(n), min(few, n))))


class _Choose(Protocol):
    """Chooses one of some options."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def _chooser(draw: st.DrawFn, most: int) -> _Choose:
    """Draw at once what is needed for so many choices."""
    drawn = draw(_bytes(2 * most))
    numbers = (256 * high + low for high, low in zip(drawn[::2], drawn[1::2], strict=True))

    def choose(options: Sequence[T], /) -> T:
        return options[next(numbers) * len(options) >> 16]

    return choose


@cache
def _bytes(size: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=size, max_size=size)


@cache
def _often_large(most: int) -> list[int]:
    """Return the numbers from 1 to `most`, three or more twice."""
    return [*range(1, min(most, 2) + 1), *sorted([*range(3, most + 1)] * 2)]


@cache
def _cards(most: int) -> list[int]:
    """Return numbers of states, one state once."""
    return [1, *sorted([*range(2, most + 1)] * 3)]


@cache
def _arities(most: int) -> list[int]:
    """Return arities of a factor, none once, a pair often."""
    return sorted([*range(most + 1), *range(1, most + 1), *range(2, min(most, 2) + 1)])


@cache
def _scopes(n: int, arity: int) -> list[tuple[int, ...]]:
    """Return all scopes of so many of n variables, in any order."""
    return list(permutations(range(n), arity))


def _tree_scopes(choose: _Choose, n: int, max_arity: int) -> list[tuple[int, ...]]:
    """Choose scopes without a cycle: each factor connects new variables with at most one that has a factor already."""
    left = list(range(n))
    order = [left.pop(left.index(choose(left))) for _ in range(n)]
    scopes: list[tuple[int, ...]] = [(choose(range(n)),) for _ in range(choose(range(3)))]
    used = 1
    while used < n:
        new = choose(range(1, min(max_arity - 1, n - used) + 1))
        anchor = [choose(order[:used])] if choose(range(4)) else []
        scope = [*anchor, *order[used : used + new]]
        scopes.append(tuple(scope[i] for i in choose(_scopes(len(scope), len(scope)))))
        used += new
    return scopes
