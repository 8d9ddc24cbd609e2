"""Exact inference on chains against enumeration and against the general exact inference."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import chisquare
from sequence_helpers import chains, labellings, padded, potentials, split, transition

import isinglass as ig
from isinglass.errors import ImpossibleEvidenceError
from isinglass.inference.chain.exact import (
    best_labels,
    derivative,
    draw_labels,
    n_best_labels,
    posterior,
    require_possible,
)


def run(scores, offsets, table, **options):
    return posterior(padded(scores), offsets, transition(table), **options)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(chains())
def test_equals_enumeration(batch):
    scores, offsets, table = batch
    k = len(table)
    found = run(scores, offsets, table)
    pairs = found.pairs()
    total = np.zeros((k, k))
    weights = np.arange(1.0, len(offsets))
    possible = found.log_z > -np.inf
    for s, one in enumerate(split(scores, offsets)):
        paths, values = labellings(one, table)
        assert (len(paths) > 0) == possible[s]
        if not possible[s]:
            continue
        log_z = logsumexp(values)
        assert_allclose(found.log_z[s], log_z, rtol=1e-12, atol=1e-10)
        p = np.exp(values - log_z)
        rows = np.arange(offsets[s], offsets[s + 1])
        nodes, edges = np.zeros((len(rows), k)), np.zeros((len(rows), k, k))
        for t in range(len(rows)):
            np.add.at(nodes[t], paths[:, t], p)
            if t:
                np.add.at(edges[t], (paths[:, t - 1], paths[:, t]), p)
        assert_allclose(found.nodes[rows, :k], nodes, atol=1e-10)
        assert (found.nodes[rows, k:] == 0).all()
        assert_allclose(pairs[rows], edges, atol=1e-10)
        total += weights[s] * edges.sum(axis=0)
    assert_allclose(found.transitions(np.where(possible, weights, 0.0)), total, atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(chains(scale=1.0))
def test_equals_exact_and_brute(batch):
    scores, offsets, table = batch
    found = run(scores, offsets, table)
    for s, one in enumerate(split(scores, offsets)):
        for algorithm in ("exact", "brute"):
            if found.log_z[s] == -np.inf:
                with pytest.raises(ImpossibleEvidenceError):
                    ig.infer(potentials(one, table), algorithm)
                continue
            result = ig.infer(potentials(one, table), algorithm)
            assert_allclose(found.log_z[s], result.log_z, atol=1e-10)
            k = len(table)
            assert_allclose(found.nodes[offsets[s] : offsets[s + 1], :k], np.asarray(result.variables), atol=1e-10)


@settings(max_examples=60, deadline=None)
@given(chains(longest=4), st.integers(1, 7))
def test_best_paths(batch, n):
    scores, offsets, table = batch
    labels, values = best_labels(padded(scores), offsets, transition(table))
    for s, one in enumerate(split(scores, offsets)):
        paths, expected = labellings(one, table)
        several, ends = n_best_labels(padded(one), transition(table), n)
        assert len(several) == min(n, len(paths))
        assert_allclose(ends, expected[:n], rtol=1e-12, atol=1e-12)
        assert len(np.unique(several, axis=0)) == len(several)
        if not len(paths):
            assert values[s] == -np.inf
            continue
        assert_allclose(values[s], expected[0], rtol=1e-12, atol=1e-12)
        for path, value in zip([labels[offsets[s] : offsets[s + 1]], *several], [values[s], *ends], strict=True):
            own = one[np.arange(len(one)), path].sum() + table[path[:-1], path[1:]].sum()
            assert_allclose(own, value, rtol=1e-12, atol=1e-12)


def test_ties_and_empty_sequences():
    labels, _ = best_labels(padded(np.zeros((4, 3))), np.array([0, 4]), transition(np.zeros((3, 3))))
    assert_array_equal(labels, 0)
    offsets = np.array([0, 0, 2, 2])
    found = run(np.zeros((2, 2)), offsets, np.zeros((2, 2)))
    assert_allclose(found.log_z, [0, 2 * np.log(2), 0])
    labels, values = best_labels(padded(np.zeros((2, 2))), offsets, transition(np.zeros((2, 2))))
    assert len(labels) == 2
    assert_array_equal(values, 0)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(chains(longest=4, most=4, scale=1.0), st.booleans())
def test_derivative_of_beliefs(batch, with_pairs):
    scores, offsets, table = batch
    found = run(scores, offsets, table)
    assume((found.log_z > -np.inf).all())
    k, rng = len(table), np.random.default_rng(0)
    node_bars, pair_bars = rng.normal(size=scores.shape), rng.normal(size=(len(scores), k, k)) * with_pairs
    slopes, totals = derivative(found, node_bars, pair_bars if with_pairs else None)

    def value(scores, table):
        moved = run(scores, offsets, table)
        return (moved.nodes[:, :k] * node_bars).sum() + (moved.pairs() * pair_bars).sum()

    step = 1e-5
    for place in np.ndindex(scores.shape):
        change = np.zeros_like(scores)
        change[place] = step
        slope = (value(scores + change, table) - value(scores - change, table)) / (2 * step)
        assert_allclose(slopes[place], slope, atol=1e-8)
    for place in np.ndindex(table.shape):
        change = np.zeros_like(table)
        change[place] = step
        slope = (value(scores, table + change) - value(scores, table - change)) / (2 * step)
        assert_allclose(totals[place], slope, atol=1e-8)


@pytest.mark.parametrize("scale", [1.0, 300.0])
def test_long_chains_are_stable(scale):
    rng = np.random.default_rng(1)
    n, k = 10_000, 5
    scores, table = scale * rng.normal(size=(n, k)), scale * rng.normal(size=(k, k))
    table[1, 2] = -np.inf
    found = run(scores, np.array([0, n]), table)
    exact = ig.infer(potentials(scores, table), "exact")
    assert_allclose(found.log_z[0], exact.log_z, rtol=1e-12)
    assert_allclose(found.nodes[:, :k], np.asarray(exact.variables), atol=1e-9)
    assert found.flagged[0] == (scale > 1)


def test_a_path_that_linear_numbers_would_lose():
    """Each step costs the only way that can end 200 nats more; after two steps it is below every float."""
    n, k = 6, 2
    table = np.array([[0.0, -np.inf], [-np.inf, -200.0]])
    scores = np.zeros((n, k))
    scores[-1, 0] = -np.inf
    found = run(scores, np.array([0, n]), table)
    assert_allclose(found.log_z, -200.0 * (n - 1))
    assert_allclose(found.nodes[:, :k], [[0.0, 1.0]] * n, atol=1e-12)
    assert found.flagged[0]


def test_impossible_labels_and_chains():
    n = 12
    table = np.array([[-200.0, -np.inf], [-np.inf, 0.0]])
    scores = np.zeros((n, 2))
    scores[0, 1] = -np.inf
    found = run(scores, np.array([0, n]), table)
    assert_allclose(found.log_z, -200.0 * (n - 1))
    assert_array_equal(found.nodes[:, :2], [[1.0, 0.0]] * n)
    scores = np.zeros((3, 2))
    scores[2] = -np.inf
    found = run(scores, np.array([0, 2, 3]), np.zeros((2, 2)))
    with pytest.raises(ImpossibleEvidenceError, match="sequence 11"):
        require_possible(found.log_z, 10)


@pytest.mark.parametrize("scale", [0.7, 300.0])
def test_samples_follow_the_joint_distribution(scale):
    rng = np.random.default_rng(3)
    k, n, copies = 3, 4, 20_000
    scores, table = rng.normal(size=(n, k)), rng.normal(size=(k, k))
    table[0, 1] = -np.inf
    if scale > 1:  # an offset that only logarithms bear, and which changes nothing
        scores += np.array([0.0, 0.0, -scale])
        scores[:, 2] += scale
        table[2, 2] -= scale
        table[2, 2] -= 100.0
    offsets = np.arange(copies + 1) * n
    found = run(np.tile(scores, (copies, 1)), offsets, table, back=False)
    drawn = draw_labels(found, np.random.default_rng(4)).reshape(copies, n)
    paths, values = labellings(scores, table)
    p = np.exp(values - logsumexp(values))
    keys = {tuple(path): i for i, path in enumerate(paths.tolist())}
    counts = np.bincount([keys[tuple(path)] for path in drawn.tolist()], minlength=len(paths))
    often = p * copies >= 5
    observed = np.append(counts[often], counts[~often].sum())
    expected = np.append(p[often], p[~often].sum()) * copies
    keep = expected > 0
    assert chisquare(observed[keep], expected[keep]).pvalue > 1e-3
