"""Elimination orders: valid separators, the true width where it is known, prices, restarts."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import isinglass as ig
import isinglass.graph.elimination.order as order_module
from checks import each_equal, refuses
from isinglass.graph.elimination import bounds
from isinglass.graph.elimination.bounds import square_grid
from isinglass.graph.elimination.greedy import eliminate
from isinglass.graph.elimination.order import interaction_graph
from isinglass.graph.elimination.small import eliminate_small
from isinglass.testing import factor_graphs


def simulate(graph, order, clamped=()):
    """The separators of an order, by playing the elimination with sets."""
    free = {i for i in range(graph.n_variables) if graph.cards[i] > 1 and i not in clamped}
    neighbours = {i: set() for i in free}
    for scope in graph.scopes:
        for a, b in itertools.permutations([i for i in scope if i in free], 2):
            neighbours[a].add(b)
    assert sorted(order) == sorted(free)
    separators = []
    for v in order:
        around = neighbours.pop(v)
        separators.append(around)
        for u in around:
            neighbours[u] |= around - {u}
            neighbours[u].discard(v)
    return separators


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(factor_graphs(max_variables=8, max_factors=12))
@pytest.mark.parametrize("method", ["auto", "min_weight", "min_fill", "weighted_min_fill"])
def test_separators_and_prices(method, graph):
    order = ig.elimination_order(graph, method, restarts=2)
    separators = simulate(graph, order.order.tolist())
    mine = [set(s.tolist()) for s in np.split(order.separators, order.first[1:-1])] if len(order.order) else []
    assert mine == separators
    sizes = [float(np.prod(graph.cards[[v, *s]])) for v, s in zip(order.order, separators, strict=True)]
    assert order.width == max(map(len, separators), default=0)
    np.testing.assert_allclose(order.entries, sum(sizes), rtol=1e-9)
    np.testing.assert_allclose(2**order.log2_largest, max(sizes, default=1), rtol=1e-9)
    assert order.complete


@pytest.mark.parametrize(
    ("graph", "width"),
    [
        (ig.chain_graph(50, 2), 1),
        (ig.tree_graph(200, 2, random_state=0), 1),
        (ig.complete_graph(9, 2), 8),
        (ig.grid_graph(6, 6, 2), 6),
        (ig.grid_graph(3, 40, 2), 3),
        (ig.FactorGraph([2] * 6, [(i, (i + 1) % 6) for i in range(6)]), 2),
        (ig.FactorGraph([3] * 7, [(0, 1, 2), (2, 3, 4), (4, 5, 6)]), 2),
    ],
)
def test_known_widths(graph, width):
    assert ig.elimination_order(graph).width == width


def test_small_changes_of_graphs():
    graph = ig.FactorGraph([2, 2, 1, 2], [(0, 1, 2, 3)])
    order = ig.elimination_order(graph, clamped=[0])
    assert set(order.order.tolist()) == {1, 3}
    assert simulate(graph, order.order.tolist(), clamped={0})[0]
    graph = ig.random_graph(60, 150, 3, random_state=0)
    one = ig.elimination_order(graph, "min_fill", restarts=0)
    many = ig.elimination_order(graph, "min_fill", restarts=30, random_state=5)
    again = ig.elimination_order(ig.random_graph(60, 150, 3, random_state=0), "min_fill", restarts=30, random_state=5)
    assert many.entries <= one.entries
    assert many.order.tolist() == again.order.tolist()
    graph = ig.random_graph(40, 90, 2, random_state=1)
    other = ig.random_graph(30, 80, 3, random_state=2)
    alone = ig.elimination_order(graph).order.tolist()
    together = ig.elimination_order(ig.disjoint_union([other, graph])).order
    assert [v - 30 for v in together.tolist() if v >= 30] == alone


def test_grids_are_swept():
    """Width n on n x n grids, which no greedy rule reaches; also where the variables are numbered at random."""
    graph = ig.grid_graph(16, 16, 2)
    assert ig.elimination_order(graph).width == 16
    numbers = np.random.default_rng(0).permutation(256)
    shuffled = ig.FactorGraph.from_groups(np.full(256, 2), [numbers[g.scopes] for g in graph.groups])
    order = ig.elimination_order(shuffled)
    assert order.width == 16
    assert ig.elimination_order(ig.grid_graph(20, 20, 2)).bytes < 1e9
    separators = simulate(shuffled, order.order.tolist())
    assert [set(s.tolist()) for s in np.split(order.separators, order.first[1:-1])] == separators


@settings(max_examples=50, deadline=None)
@given(factor_graphs(max_variables=8, max_factors=12), st.randoms(use_true_random=False))
def test_a_given_order_is_priced(graph, random):
    given = list(range(graph.n_variables))
    random.shuffle(given)
    order = ig.elimination_order(graph, order=given)
    assert order.order.tolist() == [v for v in given if graph.cards[v] > 1]
    separators = simulate(graph, order.order.tolist())
    assert [set(s.tolist()) for s in np.split(order.separators, order.first[1:-1])][: len(separators)] == separators
    sizes = [float(np.prod(graph.cards[[v, *s]])) for v, s in zip(order.order, separators, strict=True)]
    np.testing.assert_allclose(order.entries, sum(sizes), rtol=1e-9)


@settings(max_examples=60, deadline=None)
@given(factor_graphs(max_variables=9, max_factors=14), st.booleans(), st.integers(0, 3))
def test_compiled_and_plain_searches_agree(graph, use_fill, seed):
    rng = np.random.default_rng(seed)
    kept = np.flatnonzero(graph.cards > 1)
    first, neighbours = interaction_graph(graph, kept)
    ties, weights = rng.random((2, len(kept)))
    arguments = (first, neighbours, np.log2(graph.cards[kept]), weights, ties, use_fill, rng.choice([4.0, 48.0]))
    plain, compiled = eliminate_small(*arguments), eliminate(*arguments, 10**9)
    each_equal(plain, compiled[:4])


@pytest.mark.long
def test_a_long_search_finds_better_orders():
    graph = ig.random_graph(70, 140, 3, random_state=0)
    assert ig.elimination_order(graph, restarts="long").entries < ig.elimination_order(graph, restarts=0).entries


def test_orders_of_large_graphs():
    order = ig.elimination_order(ig.grid_graph(100, 100, 2))
    assert not order.complete
    assert order.bytes > 1e15
    assert "more than" in repr(order)
    assert ig.elimination_order(ig.grid_graph(4, 20_000, 2)).width == 4
    assert ig.elimination_order(ig.chain_graph(60_000, 3)).width == 1
    graph = ig.grid_graph(60, 60, 2)
    assert len(ig.elimination_order(graph).order) == 0
    assert len(order_module.partial_order(graph)) > 2000
    n = 2000
    wheel = ig.pairwise_graph(n + 1, [(0, i) for i in range(1, n + 1)] + [(i, i + 1) for i in range(1, n)], 2)
    assert ig.elimination_order(wheel).width == 2


@pytest.mark.long
@pytest.mark.parametrize("side", [100, 300, 1100])
def test_large_grids_are_refused_without_a_search(side, monkeypatch):
    """The stated costs are those of a lower bound, which grows with the grid, and they agree with each other."""
    monkeypatch.setattr(order_module, "_greedy", lambda *_: pytest.fail("a search was made"))
    monkeypatch.setattr(order_module, "interaction_graph", lambda *_: pytest.fail("the graph was copied"))
    order = ig.elimination_order(ig.grid_graph(side, side + 3, 2), clamped=[0])
    assert not order.complete
    assert order.width >= side - 1
    assert order.log2_largest == min(order.width + 1, 1000)
    assert order.bytes >= 8 * order.entries >= 8 * 2.0**order.log2_largest
    assert f"width at least {order.width}" in repr(order)


def _has_grid(graph, free, a, b, k):
    pairs = {tuple(sorted(scope)) for scope in graph.scopes if len(scope) == 2}
    for v in range(graph.n_variables):
        at = {(i, j): v + i * a + j * b for i in range(k) for j in range(k)}
        links = [(at[i, j], at[i + 1, j]) for i in range(k - 1) for j in range(k)]
        links += [(at[i, j], at[i, j + 1]) for i in range(k) for j in range(k - 1)]
        inside = len(set(at.values())) == k * k and max(at.values()) < len(free)
        if inside and all(free[u] and free[w] and (u, w) in pairs for u, w in links):
            return True
    return False


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_the_largest_grid_is_that_of_a_slow_search(seed):
    rng = np.random.default_rng(seed)
    height, width = rng.integers(3, 12, 2).tolist()
    graph = ig.grid_graph(height, width, 2)
    free = rng.random(graph.n_variables) < rng.choice([0.8, 0.95, 1.0])
    slow = max((k for k in range(2, 12) if _has_grid(graph, free, 1, width, k)), default=0)
    assert square_grid(graph, free, 2) == slow
    assert square_grid(graph, free, slow + 1) == 0
    if slow:
        observed = np.flatnonzero(~free)
        assert ig.elimination_order(graph, clamped=observed).width >= slow


def test_grids_with_holes_diagonals_and_many_states_are_refused_without_a_search(monkeypatch):
    monkeypatch.setattr(order_module, "_greedy", lambda *_: pytest.fail("a search was made"))
    n = np.arange(120 * 120).reshape(120, 120)
    diagonal = np.stack([n[:-1, :-1].ravel(), n[1:, 1:].ravel()], 1)
    edges = np.concatenate([
        np.stack([n[:, :-1].ravel(), n[:, 1:].ravel()], 1), np.stack([n[1:].ravel(), n[:-1].ravel()], 1), diagonal
    ])  # fmt: skip
    assert not ig.elimination_order(ig.pairwise_graph(n.size, edges, 2), clamped=n[60, ::3]).complete
    assert not ig.elimination_order(ig.grid_graph(20, 20, 8)).complete  # 2^63 entries
    assert not ig.elimination_order(ig.pairwise_graph(n.size, n.size - 1 - edges, 2)).complete


@pytest.mark.parametrize("seed", range(5))
def test_dense_minors_bound_the_width(seed):
    graph = ig.random_graph(60, 150, 2, random_state=seed)
    free = np.random.default_rng(seed).random(60) < 0.9
    least = bounds.dense_minor(graph, free, 3)
    assert least <= ig.elimination_order(graph, clamped=np.flatnonzero(~free)).width


def test_the_degeneracy_is_the_largest_least_degree():
    near = np.zeros((7, 7), bool)
    near[:4, :4] = ~np.eye(4, dtype=bool)
    near[3, 4] = near[4, 3] = near[4, 5] = near[5, 4] = True
    assert bounds._degeneracy(near) == 3


def test_large_random_graphs_are_refused_without_a_search(monkeypatch):
    monkeypatch.setattr(order_module, "_greedy", lambda *_: pytest.fail("a search was made"))
    order = ig.elimination_order(ig.random_graph(100_000, 150_000, 2, random_state=0))
    assert not order.complete
    assert order.width >= 48


def test_grids_that_fit_are_searched_as_before(monkeypatch):
    searched = []
    greedy = order_module._greedy
    monkeypatch.setattr(order_module, "_greedy", lambda *args: searched.append(1) or greedy(*args))
    assert ig.elimination_order(ig.grid_graph(20, 20, 2)).complete
    assert ig.elimination_order(ig.grid_graph(10, 200, 2)).complete
    assert len(searched) >= 2


def test_a_search_that_takes_too_many_steps_says_so(monkeypatch):
    monkeypatch.setattr(order_module, "SEARCH_WORK", 20_000)
    order = ig.elimination_order(ig.random_graph(5000, 10_000, 2, random_state=0))
    assert order.gave_up
    assert not order.complete
    assert 2.0**order.log2_largest <= order.entries
    assert "took too many steps" in repr(order)


def test_wrong_input():
    graph = ig.chain_graph(3, 2)
    refuses("method: expected 'auto' or", ig.elimination_order, graph, "best")
    refuses("clamped", ig.elimination_order, graph, clamped=[3])
    refuses("restarts", ig.elimination_order, graph, restarts=-1)
    refuses("restarts", ig.elimination_order, graph, restarts="longer")
    refuses(r"order: expected all variables .* none of \[1\]", ig.elimination_order, graph, order=[0, 2])
    refuses("order: expected distinct", ig.elimination_order, graph, order=[0, 2, 2, 1])
    with pytest.raises(ig.InputError, match=r"order: .* at most 2\^48"):
        ig.elimination_order(ig.FactorGraph([2] * 60, [(0, i) for i in range(1, 60)]), order=range(60))


def test_bytes_by_hand():
    """A chain with 2, 3, 4 states: buckets of 6, 12 and 4 entries; messages of 3, 4 and 1 into the next ones."""
    order = ig.elimination_order(ig.FactorGraph([2, 3, 4], [(0, 1), (1, 2)]), order=[0, 1, 2])
    assert order.bytes == 8 * ((3 + 4 + 1) + 2 * 12 + 12)  # messages, two working tables, the largest input
