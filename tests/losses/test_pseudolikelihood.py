"""Pseudolikelihood: against brute-force conditionals; its gradient against complex steps and differences."""

import numpy as np
import pytest
from loss_helpers import GRAPHS, along, draw, moved
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from checks import refuses, richardson
from isinglass.losses import Likelihood, Pseudolikelihood
from isinglass.testing import random_potentials

LOSS = Pseudolikelihood()


def neighbours(graph, i):
    return {j for scope in graph.scopes if i in scope for j in scope} - {i}


def by_conditionals(p, labels, weights):
    """Minus the log-conditional of each variable by brute force, given all known ones."""
    graph, total = p.graph, np.zeros(p.graph.n_components, p.dtype)
    known = {i: int(y) for i, y in enumerate(labels) if y >= 0} | dict(p.evidence)
    for i in np.flatnonzero(labels >= 0).tolist():
        if i in p.evidence or not neighbours(graph, i) <= known.keys():
            continue
        rest = {j: x for j, x in known.items() if j != i}
        belief = ig.infer(p, "brute", evidence=rest).variable(i)
        weight = 1.0 if weights is None else weights[i]
        total[graph.variable_component[i]] -= weight * np.log(belief[labels[i]])
    return total


@pytest.mark.parametrize("name", GRAPHS)
def test_values_are_conditionals(name):
    for seed in range(6):
        p, labels, weights, _ = draw(name, seed, 0.25 * (seed > 2))
        value, slopes = LOSS.value_and_grad(p, labels, weights)
        assert_allclose(value, by_conditionals(p, labels, weights), rtol=1e-11, atol=1e-12)
        assert [s.shape for s in slopes] == [t.shape for t in p.groups]


@pytest.mark.parametrize("name", GRAPHS)
def test_gradients(name):
    for seed in range(6):
        p, labels, weights, rng = draw(name, seed, 0.25 * (seed > 2))
        directions = [rng.normal(size=t.shape) for t in p.groups]

        def value(step, p=p, v=directions, y=labels, w=weights):
            return LOSS.value_and_grad(moved(p, v, step), y, w)[0].sum()

        mine = along(LOSS.value_and_grad(p, labels, weights)[1], directions, p)
        assert_allclose(mine, value(1e-20j).imag / 1e-20, rtol=1e-12, atol=1e-13)
        assert_allclose(mine, richardson(value), rtol=1e-8, atol=1e-9)

        def slope(step, p=p, v=directions, y=labels, w=weights):
            return along(LOSS.value_and_grad(moved(p, v, step), y, w)[1], v, p)

        curvature = slope(1e-20j).imag / 1e-20
        assert_allclose(curvature, richardson(slope), rtol=1e-8, atol=1e-8)
        assert curvature != 0 or not mine


def test_shared_tables_add_up():
    rng = np.random.default_rng(2)
    graph = ig.grid_graph(3, 3, 3)
    tied = ig.Potentials.from_groups(graph, [rng.normal(size=(9, 3)), rng.normal(size=(1, 3, 3))])
    free = ig.Potentials(graph, list(tied.log_tables))
    labels = rng.integers(0, 3, 9)
    (value, slopes), (expected, all_slopes) = LOSS.value_and_grad(tied, labels), LOSS.value_and_grad(free, labels)
    assert_allclose(value, expected, rtol=1e-14)
    assert_allclose(slopes[1][0], all_slopes[1].sum(axis=0), rtol=1e-12, atol=1e-14)


def test_a_variable_with_a_hidden_neighbour_has_no_term():
    p = random_potentials(ig.chain_graph(5, 2), np.random.default_rng(0))
    value, slopes = LOSS.value_and_grad(p, [0, 1, 0, -1, 1])
    ends, _ = LOSS.value_and_grad(p, [0, 1, 0, -1, 1], [1.0, 1.0, 0.0, 0.0, 0.0])
    assert_allclose(value, ends, rtol=1e-15)
    touched = [i for i in range(5) if slopes[0][i].any()]
    assert touched == [0, 1]


def test_evidence_counts_as_observed():
    p = random_potentials(ig.chain_graph(4, 3), np.random.default_rng(0))
    everything, _ = LOSS.value_and_grad(p, [0, 1, 2, 0], [1.0, 0.0, 1.0, 1.0])
    for labels in ([0, -1, 2, 0], [0, 1, 2, 0]):
        value, _ = LOSS.value_and_grad(p.with_evidence({1: 1}), labels)
        assert_allclose(value, everything, rtol=1e-15)
        assert_allclose(value, by_conditionals(p.with_evidence({1: 1}), np.array(labels), None), rtol=1e-12)
    with pytest.raises(ig.InputError, match="label 2 for variable 1, whose evidence is 1; use -1 for it"):
        LOSS.value_and_grad(p.with_evidence({1: 1}), [0, 2, 2, 0])


def test_odd_models():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -np.inf], [5000.0, -5000.0]]])
    value, slopes = LOSS.value_and_grad(p, [1, 1])
    assert_allclose(value, [10000.0])
    assert_array_equal(slopes[0][0], [[0.0, 0.0], [1.0, -1.0]])
    with pytest.raises(ig.InputError, match="label 0 for variable 0, which has probability zero given its neighbours"):
        LOSS.value_and_grad(p, [0, 1])
    value, slopes = LOSS.value_and_grad(ig.Potentials(ig.FactorGraph([2, 4], []), []), [0, 3])
    assert_allclose(value, [np.log(8)])
    assert slopes == ()
    assert LOSS.value_and_grad(ig.Potentials(ig.FactorGraph([], []), []), [])[0].tolist() == [0.0]
    p, labels, weights, rng = draw("mixed", 0)
    directions = [rng.normal(size=t.shape) for t in p.groups]
    values = [LOSS.value_and_grad(moved(p, directions, s), labels, weights)[0].sum() for s in np.linspace(-3, 3, 13)]
    assert (np.diff(values, 2) >= -1e-12).all()
    with pytest.raises(ig.InputError, match="potentials: expected a Potentials, got Result"):
        LOSS.value_and_grad(ig.infer(draw("grid", 0)[0], "brute"), [0])


LIKELIHOOD = Likelihood()


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_are_those_of_the_labels(name):
    for seed in (0, 3):
        p, labels, _, rng = draw(name, seed, 0.2 * (seed > 0))
        assert LIKELIHOOD.fully_observed(p, labels)
        score, slopes = LIKELIHOOD.score(p, labels)
        assert_allclose(score.sum(), p.log_score(labels), rtol=1e-13)
        assert_allclose(score, ig.infer(LIKELIHOOD.clamp(p, labels), "brute").component_log_z, rtol=1e-12, atol=1e-13)
        directions = [rng.normal(size=t.shape) for t in p.groups]
        steps = richardson(lambda s, p=p, v=directions, y=labels: LIKELIHOOD.score(moved(p, v, s), y)[0].sum())
        assert_allclose(along(slopes, directions, p), steps, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_gradient_is_beliefs_less_indicators(name):
    """d(log Z - score) = b - [y], against brute-force log Z; with hidden variables b - b given y."""
    for seed in (0, 1, 2):
        p, labels, _, rng = draw(name, seed)
        directions = [rng.normal(size=t.shape) for t in p.groups]

        def value(step, p=p, v=directions, y=labels):
            q = moved(p, v, step)
            return ig.infer(q, "brute").log_z - ig.infer(LIKELIHOOD.clamp(q, y), "brute").log_z

        free = ig.infer(p, "exact", tape=True).backward(log_z=1.0).groups
        if LIKELIHOOD.fully_observed(p, labels):
            kept = LIKELIHOOD.score(p, labels)[1]
        else:
            kept = ig.infer(LIKELIHOOD.clamp(p, labels), "exact", tape=True).backward(log_z=1.0).groups
        mine = along(free, directions, p) - along(kept, directions, p)
        assert_allclose(mine, richardson(value), rtol=1e-8, atol=1e-9)
        assert value(0.0) >= -1e-12


def test_labels_of_the_likelihood():
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(1), evidence={1: 1})
    assert LIKELIHOOD.fully_observed(p, [0, -1, 1])
    assert_allclose(LIKELIHOOD.score(p, [0, -1, 1])[0], p.log_score([0, 1, 1]))
    assert dict(LIKELIHOOD.clamp(p, [-1, -1, 1]).evidence) == {1: 1, 2: 1}
    refuses("label 0 for variable 1, whose evidence is 1", LIKELIHOOD.clamp, p, [0, 0, 1])
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[0.0, 0.0], [[0.0, -np.inf], [0.0, 0.0]]])
    refuses("labels: expected a label for each variable, got -1 for variable 1; take", LIKELIHOOD.score, p, [0, -1])
    refuses(r"labels \(0, 1\) for factor 1 on variables \(0, 1\); a hard zero", LIKELIHOOD.score, p, [0, 1])
    p = ig.Potentials.from_groups(ig.grid_graph(2, 2, 2), [np.zeros((4, 2)), np.zeros((1, 2, 2))])
    _, (unary, pair) = LIKELIHOOD.score(p, [0, 0, 1, 1])
    assert unary.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert pair.tolist() == [[[1, 2], [0, 1]]]


def test_weights_belong_to_examples():
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(1)).repeat(2)
    labels = [0, 1, 1, 1, 0, 1]
    plain, _ = LIKELIHOOD.score(p, labels)
    value, slopes = LIKELIHOOD.score(p, labels, [2.0, 2.0, 2.0, 0.5, 0.5, 0.5])
    assert_allclose(value, plain * [2.0, 0.5])
    assert_allclose(sum((s * t).sum() for s, t in zip(slopes, p.groups, strict=True)), value.sum())
    with pytest.raises(ig.InputError, match="weights: expected one weight for all variables of an example, got 1"):
        LIKELIHOOD.score(p, labels, [2.0, 1.0, 2.0, 0.5, 0.5, 0.5])
