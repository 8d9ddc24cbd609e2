"""Derivatives through the residual schedule, where tables are uniform and residuals tie or vanish.

Links whose change is within the tolerance take turns, so that the sequence does not depend on a step that is smaller:
finite differences, with steps far below a coarse tolerance, are those of one sequence.
"""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import each_close
from checks import quiet as run

TOLERANCE = 1e-3  # of runs, far above every step
STEP = 1e-6


def bars_of(graph, seed=0):
    return np.split(np.random.default_rng(seed).normal(size=graph.cards.sum()), np.cumsum(graph.cards)[:-1])


def differences(p, algorithm, bars, direction):
    """Return one-sided differences along a direction, up and down."""

    def value(s):
        tables = [t + s * v for t, v in zip(p.log_tables, direction, strict=True)]
        return np.concatenate(bars) @ run(ig.Potentials(p.graph, tables), algorithm).variables.flat

    here = value(0.0)
    return (value(STEP) - here) / STEP, (here - value(-STEP)) / STEP


def along(gradient, p, direction):
    finite = [np.where(t > -np.inf, v, 0) for t, v in zip(p.log_tables, direction, strict=True)]
    return sum((g * v).sum() for g, v in zip(gradient, finite, strict=True))


def chain_with_a_uniform_table():
    return ig.Potentials(ig.FactorGraph([2] * 3, [(0, 1), (1, 2)]), [[[0, 0], [0, 2.0]], np.zeros((2, 2))])


@pytest.mark.parametrize("tape", [True, "sqrt"])
@pytest.mark.parametrize("iterations", [2, 3, 10])
def test_a_table_whose_message_is_what_it_was_has_a_derivative(iterations, tape):
    p = chain_with_a_uniform_table()
    bars = [[0, 1.0]] * 3
    algorithm = ig.BeliefPropagation(iterations=iterations, schedule="residual")
    mine = run(p, algorithm, tape=tape).backward(variables=bars)
    exact = run(p, "exact", tape=True).backward(variables=bars)
    each_close(mine.log_tables, exact.log_tables, atol=1e-12)
    assert abs(mine.log_tables[1]).min() > 0.05


def test_a_table_is_met_at_what_its_variables_send_last():
    """The message through the uniform table never changes, while what it depends on does, from the far end on."""
    tables = [[[0, 0], [0, 2.0]], np.zeros((2, 2)), [[1.0, 0], [0, 1.0]], [[0, 0], [3.0, 0]]]
    p = ig.Potentials(ig.chain_graph(5, 2), [np.zeros(2)] * 5 + tables)
    bars = bars_of(p.graph)
    mine = run(p, ig.BeliefPropagation(iterations=8, schedule="residual"), tape=True).backward(variables=bars)
    exact = run(p, "exact", tape=True).backward(variables=bars)
    each_close(mine.log_tables, exact.log_tables, atol=1e-12)


def test_a_curvature_along_a_uniform_table():
    p = chain_with_a_uniform_table()
    rng = np.random.default_rng(1)
    direction, bars = [rng.normal(size=(2, 2)) for _ in range(2)], bars_of(p.graph)

    def product(algorithm):
        return np.stack(list(ig.hessian_vector_product(p, algorithm, direction, variables=bars).log_tables))

    mine = product(ig.BeliefPropagation(iterations=10, schedule="residual"))
    assert_allclose(mine, product(ig.BeliefPropagation(iterations=10, schedule="sequential")), atol=1e-12)
    assert_allclose(mine, product(ig.BeliefPropagation()), atol=1e-12)


def table(rng, shape, kind):
    """Return a table: uniform, a product, with one value on its diagonal, in a corner, any, or with a hard zero."""
    uniform = np.zeros(shape)
    if kind == "product":
        parts = [rng.choice([0.0, 1.0, 2.0], n) for n in shape]
        return sum(part.reshape([-1] + [1] * (len(shape) - a - 1)) for a, part in enumerate(parts))
    if kind == "diagonal":
        uniform[tuple([np.arange(min(shape))] * len(shape))] = 1.5
    if kind == "any":
        return rng.normal(size=shape)
    if kind == "corner":
        uniform.flat[0] = 2.0
    if kind == "zero":
        uniform.flat[int(rng.integers(uniform.size))] = -np.inf
    return uniform


KINDS = ["uniform", "uniform", "product", "diagonal", "diagonal", "any", "corner", "zero"]


@st.composite
def models(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(2, 6))
    pairs = [(i, int(rng.integers(i))) for i in range(1, n)]
    if draw(st.booleans()):
        every = list(combinations(range(n), 2))
        pairs = [every[k] for k in rng.permutation(len(every))[: draw(st.integers(1, 8))]]
    triples = [tuple(rng.permutation(n)[:3].tolist())] if n > 2 and draw(st.booleans()) else []
    scopes = [(pairs + triples)[k] for k in rng.permutation(len(pairs + triples))]
    graph = ig.FactorGraph(rng.choice([2, 2, 3], n), scopes + [(i,) for i in range(n) if rng.random() < 0.4])
    return ig.Potentials(graph, [table(rng, graph.cards[list(s)], rng.choice(KINDS)) for s in graph.scopes])


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(
    models(),
    st.sampled_from([ig.BeliefPropagation, ig.BeliefPropagation, ig.TreeReweighted]),
    st.sampled_from([1, 2, 3, 5, 10, 30]),
    st.sampled_from([0.0, 0.0, 0.3]),
    st.sampled_from([True, "sqrt"]),
    st.integers(0, 2**32 - 1),
)
def test_gradients_with_ties_and_uniform_tables(p, kind, iterations, damping, tape, seed):
    """Where residuals above the tolerance tie, a step may change the sequence: the differences disagree then."""
    algorithm = kind(iterations=iterations, damping=damping, schedule="residual", tol=TOLERANCE)
    bars, rng = bars_of(p.graph, seed), np.random.default_rng(seed)
    try:
        gradient = run(p, algorithm, tape=tape).backward(variables=bars).log_tables
    except ig.ImpossibleEvidenceError:
        assume(False)
    one = int(rng.integers(p.graph.n_factors))  # a single table, and all of them
    for chosen in ([one], range(p.graph.n_factors)):
        direction = [rng.normal(size=t.shape) * (a in chosen) for a, t in enumerate(p.log_tables)]
        up, down = differences(p, algorithm, bars, direction)
        if abs(up - down) < 1e-3 * (1 + abs(up)):
            assert_allclose(along(gradient, p, direction), (up + down) / 2, rtol=2e-4, atol=2e-4)


def test_a_tape_and_threads_change_no_bit():
    rng = np.random.default_rng(3)
    examples = []
    graph = ig.grid_graph(3, 3, 2)
    for _ in range(6):
        tables = [table(rng, graph.cards[list(s)], rng.choice(KINDS[:-1])) for s in graph.scopes]
        examples.append(ig.Potentials(graph, tables))
    p = ig.potentials_union(examples)
    bars = bars_of(p.graph)
    for iterations in (1, 2, 7, 40):
        plain = run(p, "bp", schedule="residual", iterations=iterations)
        found = []
        for tape, threads in ((True, 1), (True, 2), ("sqrt", 1), ("sqrt", 2)):
            r = run(p, "bp", schedule="residual", iterations=iterations, tape=tape, n_jobs=threads)
            assert_array_equal(r.variables.flat, plain.variables.flat)
            assert_array_equal(r.component_log_z, plain.component_log_z)
            found.append(np.concatenate([g.ravel() for g in r.backward(variables=bars).log_tables]))
        for other in found[1:]:
            assert_array_equal(other, found[0])


def test_training_moves_a_term_that_starts_at_zero():
    """Two kinds of edges, whose tables start at zero: the second kind was never updated, and stayed there."""
    rng = np.random.default_rng(0)
    edges, kinds = [(0, 1), (2, 3), (4, 5), (1, 2), (3, 4), (5, 0)], np.repeat(np.eye(2), 3, axis=0)
    labels = [np.repeat(rng.integers(0, 2, 3), 2) for _ in range(20)]
    examples = [(y[:, None] + 1.5 * rng.normal(size=(6, 1)), edges, kinds) for y in labels]

    def fitted(schedule):
        return ig.GraphCRF(ig.BeliefPropagation(schedule=schedule, iterations=5), l2=0.1).fit(examples, labels)

    mine, other = fitted("residual"), fitted("sequential")
    assert mine.converged_
    assert abs(mine.parameters_["edge"][1]).min() > 0.01
    assert_allclose(mine.objective_, other.objective_, rtol=1e-5)


@pytest.mark.parametrize("seed", range(1, 5))
def test_changes_of_rounding_do_not_keep_links_from_their_turn(seed):
    """A part whose messages change in their last bits for ever, and a chain of uniform messages, joined by nothing."""
    rng, noisy, length = np.random.default_rng(seed), list(combinations(range(5), 2)), 8
    chain = [(5 + i, 6 + i) for i in range(length - 1)]
    graph = ig.FactorGraph([2] * (5 + length), [*noisy, (0, 5), *chain[::-1], *((i,) for i in range(5 + length))])
    tables = [*rng.normal(size=(len(noisy), 2, 2)), np.zeros((2, 2)), *[0.8 * np.eye(2)] * (length - 1)]
    p = ig.Potentials(graph, [*tables, *rng.normal(size=(5, 2)), *np.zeros((length, 2))])
    bars = np.zeros(2 * graph.n_variables)
    bars[[11, -1]] = 1.0  # state 1 at both ends of the chain
    found = run(p, "bp", schedule="residual", iterations=40, tol=0, tape=True).backward(variables=bars)
    expected = (1 + np.tanh(0.4) ** (length - 1)) / 4  # variance and covariance in a chain of Ising spins
    assert [found.log_tables[end][1] for end in (-length, -1)] == pytest.approx([expected] * 2, rel=1e-9)
