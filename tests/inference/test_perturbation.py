"""Gradients by perturbation: beside those through converged runs, and the true ones."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_gradients import GRAPHS, Loss

import isinglass as ig
from checks import quiet as run
from checks import refuses
from isinglass.testing import random_potentials


def same(one, two, rtol=1e-7):
    """Equal norm-wise."""
    a, b = (np.concatenate([g.ravel() for g in d.groups]) for d in (one, two))
    assert np.linalg.norm(a - b) <= rtol * max(np.linalg.norm(b), 1e-3)


def case(graph, seed, scale=0.7):
    rng = np.random.default_rng([seed, 29])
    witness = rng.integers(0, graph.cards)
    evidence = {1: int(witness[1])} if seed % 3 == 2 else {}
    return random_potentials(graph, rng, scale, 0.2 * (seed % 3 > 0), witness, evidence), Loss(graph, rng)


@pytest.mark.parametrize("algorithm", ["bp", "trw", "fbp", "exact", "brute"])
def test_it_is_the_true_gradient_on_forests(algorithm):
    for seed in range(6):
        graph = ig.tree_graph(7, 3, random_state=seed)
        p, loss = case(graph, seed)
        bars = (loss.z, loss.variables, loss.factors)
        same(ig.perturbation(p, algorithm, *bars), run(p, "brute", tape=True).backward(*bars))


def test_given_weights_and_counting_numbers():
    p, loss = case(GRAPHS["repeated"], 0)
    numbers = np.random.default_rng(0).uniform(0.5, 0.9, p.graph.n_factors)
    bars = (loss.z, loss.variables, loss.factors)
    for algorithm in (
        ig.TreeReweighted(tol=1e-14, weights=numbers),
        ig.FractionalBeliefPropagation(tol=1e-14, damping=0.2, counting_numbers=numbers),
    ):
        same(ig.perturbation(p, algorithm, *bars), run(p, algorithm, tape=True).backward(*bars))


def test_a_loose_tolerance_gives_the_derivative_of_the_fixed_point_to_that_tolerance():
    """The imaginary parts converge in relative terms, however small the derivatives are."""
    p, loss = case(ig.grid_graph(4, 4, 3), 0, 0.5)
    best = ig.perturbation(p, "bp", 0.0, loss.variables, tol=1e-14)
    for size in (1e-200, 1e-30, 1.0, 1e30):
        small = [size * v for v in loss.variables]
        mine = ig.perturbation(p, "bp", 0.0, small, tol=1e-6)
        for a, b in zip(mine.groups, best.groups, strict=True):
            assert_allclose(a / size, b, atol=1e-5 * np.abs(b).max())


def test_shared_tables_components_and_a_start():
    rng = np.random.default_rng(0)
    one = random_potentials(ig.grid_graph(2, 3, 2), rng)
    many = one.repeat(3)
    loss = Loss(many.graph, rng)
    bars = ([1.0, 2.0, 3.0], loss.variables, loss.factors)
    for algorithm in (ig.BeliefPropagation(tol=1e-13), ig.MeanField(tol=1e-13), ig.Exact()):
        r = run(many, algorithm, tape=True)
        mine = ig.perturbation(many, algorithm, *bars, init=r)
        assert [g.shape for g in mine.groups] == [g.shape for g in many.groups]
        same(mine, r.backward(*bars))


def test_a_mixed_batch_of_trees_and_loops():
    rng = np.random.default_rng(0)
    parts = [ig.chain_graph(40, 2), ig.grid_graph(3, 3, 2), ig.FactorGraph([2], []), ig.chain_graph(2, 4)]
    p = ig.potentials_union([random_potentials(g, rng, 0.8) for g in parts])
    loss = Loss(p.graph, rng)
    bars = (loss.z, loss.variables, loss.factors)
    mine = ig.perturbation(p, "bp", *bars, tol=1e-13)
    same(mine, run(p, "bp", tol=1e-13, tape=True).backward(*bars))
    assert np.isnan(mine.counting_numbers).all()


def test_evidence_is_an_argument_too():
    p, loss = case(GRAPHS["mixed"], 0)
    bars = (loss.z, loss.variables, loss.factors)
    same(
        ig.perturbation(p, "bp", *bars, evidence={0: 1}, tol=1e-13),
        run(p.with_evidence({0: 1}), ig.BeliefPropagation(tol=1e-13), tape=True).backward(*bars),
    )


def test_refusals():
    p, _ = case(GRAPHS["grid"], 0)
    refuses(r"iterations: expected None.*got 3.*backward", ig.perturbation, p, "bp", iterations=3)
    refuses(r"iterations: expected None", ig.perturbation, p, ig.MeanField(iterations=0))
    refuses(r"the gradient of log Z is the beliefs, got 'max-product'", ig.perturbation, p, "max-product")
    refuses("an inference that converges, got residual", ig.perturbation, p, "bp", max_iter=2)
    q = ig.Potentials(p.graph, [t + 1e-20j for t in p.log_tables])
    refuses("real log tables", ig.perturbation, q, "bp")
    refuses("variables: expected 18 numbers", ig.perturbation, p, "bp", variables=np.zeros(3))
    start = ig.infer(p, "bp", tol=1e-13)
    with pytest.raises(ig.InputError, match="an inference whose derivative converges, got a relative change"):
        ig.perturbation(p, "bp", variables=np.arange(18.0), max_iter=1, tol=1e-13, init=start)
