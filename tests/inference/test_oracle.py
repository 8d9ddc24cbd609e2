"""Message passing, forward and backward, beside a plain reference at 60 digits, where linear values underflow too."""

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose
from test_gradients import GRAPHS, Loss

import isinglass as ig
from checks import quiet as run
from isinglass.graph.forests.appearance import appearance_probabilities
from isinglass.graph.message_graph import edges_of
from isinglass.testing import random_potentials

KINDS = ["bp", "trw", "fbp"]


def algorithm_and_counting(kind, graph, **options):
    counting = np.ones(graph.n_factors)
    if kind == "trw":
        counting[edges_of(graph).link_factor] = appearance_probabilities(graph)
        return ig.TreeReweighted(**options), counting
    if kind == "fbp":
        counting = np.random.default_rng(2).uniform(0.5, 1.4, graph.n_factors)
        return ig.FractionalBeliefPropagation(counting_numbers=counting, **options), counting
    return ig.BeliefPropagation(**options), counting


def case(name, scale, seed, zeros=0.3):
    graph = GRAPHS[name]
    rng = np.random.default_rng([seed, 23])
    witness = rng.integers(0, graph.cards)
    evidence = {2: int(witness[2])} if seed % 2 else {}
    return random_potentials(graph, rng, scale, zeros, witness, evidence), Loss(graph, rng), rng


def check(p, loss, rng, algorithm, plain):
    """Compare log Z, beliefs, and the gradient along two directions."""
    mine = run(p, algorithm, tape=True)
    log_z, variables, factors = plain(oracle.Model(p))
    assert_allclose(mine.log_z, float(log_z), rtol=1e-12, atol=1e-12)
    for belief, expected in zip(mine.variables, variables, strict=True):
        assert_allclose(belief, [float(v) for v in expected], rtol=1e-9, atol=1e-290)
    for a, belief in enumerate(mine.factors):
        assert_allclose(belief.ravel(), [float(v) for v in factors[a].values()], rtol=1e-9, atol=1e-290)
    gradients = mine.backward(loss.z, loss.variables, loss.factors)
    for _ in range(2):
        direction = [np.where(t > -np.inf, rng.normal(size=t.shape), 0) for t in p.log_tables]
        expected = oracle.derivative(
            p, plain, lambda r: oracle.loss(r, loss.z, loss.variables, loss.factors), direction
        )
        terms = [(g * v).ravel() for g, v in zip(gradients.log_tables, direction, strict=True)]
        value, size = np.concatenate(terms).sum(), np.linalg.norm(np.concatenate(terms))
        assert abs(value - expected) <= 1e-9 * max(size, abs(expected)) + 1e-14


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
@pytest.mark.parametrize("scale", [1.0, 50.0, 300.0])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["mixed", "repeated"])
def test_message_passing(name, kind, scale, schedule):
    for seed in range(2):
        p, loss, rng = case(name, scale, seed)
        damping = 0.25 * seed
        options = {"iterations": 3, "schedule": schedule, "damping": damping}
        algorithm, counting = algorithm_and_counting(kind, p.graph, **options)

        def plain(model, c=counting, d=damping):
            return oracle.message_passing(model, c, 3, d, schedule == "sequential")

        check(p, loss, rng, algorithm, plain)


@pytest.mark.parametrize("scale", [1.0, 5.0, 50.0])
def test_mean_field(scale):
    p, loss, rng = case("mixed", scale, 0, zeros=0.0)
    check(p, loss, rng, ig.MeanField(iterations=3), lambda model: oracle.mean_field(model, 3))
