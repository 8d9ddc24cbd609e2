"""Pseudolikelihood with sums over hidden neighbours: against brute force, for any pattern of what is hidden."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.losses import Pseudolikelihood, hidden
from isinglass.testing import random_potentials

ALL = Pseudolikelihood(joint_states=10**6)


def drawn(seed):
    """A random model of mixed arities and cardinalities, labels of which four in ten are hidden, and weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    scopes = [tuple(rng.permutation(n)[: rng.integers(1, min(n, 3) + 1)].tolist()) for _ in range(rng.integers(1, 8))]
    graph = ig.FactorGraph(rng.integers(1, 4, n), scopes)
    graph = graph.repeat(2) if seed % 3 == 0 else graph
    labels = rng.integers(0, graph.cards)
    labels[rng.random(graph.n_variables) < 0.4] = -1
    p = random_potentials(graph, rng)
    if seed % 5 == 0 and (labels < 0).any():
        p = p.with_evidence({int(np.argmax(labels < 0)): 0})
    return p, labels, rng.random(graph.n_variables)


def by_brute_force(p, labels, i):
    """Minus the log-probability of a label given all other observed ones."""
    rest = {j: int(y) for j, y in enumerate(labels) if y >= 0 and j != i} | dict(p.evidence)
    return -np.log(ig.infer(p, "brute", evidence=rest).variable(i)[labels[i]])


@pytest.mark.parametrize("block", range(4))
def test_values_are_conditionals_given_all_that_is_observed(block):
    for seed in range(25 * block, 25 * block + 25):
        p, labels, weights = drawn(seed)
        expected = np.zeros(p.graph.n_components)
        for i in np.flatnonzero(labels >= 0).tolist():
            if i not in p.evidence:
                expected[p.graph.variable_component[i]] += weights[i] * by_brute_force(p, labels, i)
        assert_allclose(ALL.value_and_grad(p, labels, weights)[0], expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_gradients_by_complex_steps(seed):
    p, labels, weights = drawn(seed)
    ways = [np.random.default_rng(seed).normal(size=table.shape) for table in p.groups]
    moved = [table + 1e-20j * way for table, way in zip(p.groups, ways, strict=True)]
    step = ig.Potentials.from_groups(p.graph, moved, p.table_ids).with_evidence(p.evidence)
    slopes = ALL.value_and_grad(p, labels, weights)[1]
    along = sum((slope * way).sum() for slope, way in zip(slopes, ways, strict=True))
    assert along == pytest.approx(ALL.value_and_grad(step, labels, weights)[0].sum().imag / 1e-20, rel=1e-11, abs=1e-12)


def test_sums_are_as_long_as_is_asked_for():
    p = random_potentials(ig.chain_graph(6, 3), np.random.default_rng(0))
    labels = [0, -1, 2, -1, -1, 1]  # 0: 9 joint states, 2: 81, 5: 27
    used = {limit: Pseudolikelihood(limit).terms(p, labels).used for limit in (0, 8, 9, 27, 80, 81)}
    assert {limit: np.flatnonzero(mask).tolist() for limit, mask in used.items()} == {
        0: [], 8: [], 9: [0], 27: [0, 5], 80: [0, 5], 81: [0, 2, 5],
    }  # fmt: skip
    value, slopes = Pseudolikelihood(27).value_and_grad(p, labels)
    assert value[0] == pytest.approx(by_brute_force(p, np.array(labels), 0) + by_brute_force(p, np.array(labels), 5))
    assert not slopes[0][2].any()


def test_it_is_cut_into_chunks(monkeypatch):
    graph = ig.grid_graph(5, 5, 2)
    p = random_potentials(graph, np.random.default_rng(0))
    labels = np.where(np.random.default_rng(1).random(25) < 0.3, -1, 1)
    whole = ALL.value_and_grad(p, labels)
    monkeypatch.setattr(hidden, "_CHUNK", 50)
    for most in (2**23, 0):  # kept, and made anew
        monkeypatch.setattr(hidden, "_KEPT", most)
        terms = ALL.terms(p, labels)
        assert (terms.summed.kept is None) == (most == 0)
        assert len(list(terms.summed._made())) > 5
        for _ in range(2):
            value, slopes = terms.value_and_grad(p, np.ones(25))
            assert_allclose(value, whole[0], rtol=1e-13)
            for one, two in zip(slopes, whole[1], strict=True):
                assert_allclose(one, two, atol=1e-13)


def test_hard_zeros_and_large_tables():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -np.inf], [5000.0, -5000.0]]])
    value, slopes = ALL.value_and_grad(p, [0, -1])
    assert value[0] == pytest.approx(5000.0)
    assert_allclose(slopes[0], [[[-1.0, 0.0], [1.0, 0.0]]], atol=1e-12)
    assert ALL.value_and_grad(p, [-1, 1])[0][0] == pytest.approx(10000.0)
    forbidden = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 0.0], [-np.inf, -np.inf]]])
    with pytest.raises(ig.InputError, match="label 1 for variable 0, which has probability zero"):
        ALL.value_and_grad(forbidden, [1, -1])


def test_wrong_limits():
    p = random_potentials(ig.chain_graph(2, 2), np.random.default_rng(0))
    for limit in (-1, 0.5, "all"):
        with pytest.raises(ig.InputError, match="joint_states"):
            Pseudolikelihood(limit).value_and_grad(p, [0, -1])
    with pytest.raises(ig.InputError, match="joint_states"):
        ig.ChainCRF(loss=Pseudolikelihood(9)).fit([[["a"], ["b"]]], [["x", "y"]])
