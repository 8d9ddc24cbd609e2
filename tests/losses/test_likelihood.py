"""The likelihood: scores and clamped models against brute force; its gradient against differences of log Z."""

import numpy as np
import pytest
from loss_helpers import GRAPHS, along, draw, moved
from numpy.testing import assert_allclose

import isinglass as ig
from checks import refuses, richardson
from isinglass.losses import Likelihood
from isinglass.testing import random_potentials

LOSS = Likelihood()


@pytest.mark.parametrize("name", GRAPHS)
def test_scores_are_those_of_the_labels(name):
    for seed in (0, 3):
        p, labels, _, rng = draw(name, seed, 0.2 * (seed > 0))
        assert LOSS.fully_observed(p, labels)
        score, slopes = LOSS.score(p, labels)
        assert_allclose(score.sum(), p.log_score(labels), rtol=1e-13)
        assert_allclose(score, ig.infer(LOSS.clamp(p, labels), "brute").component_log_z, rtol=1e-12, atol=1e-13)
        directions = [rng.normal(size=t.shape) for t in p.groups]
        steps = richardson(lambda s, p=p, v=directions, y=labels: LOSS.score(moved(p, v, s), y)[0].sum())
        assert_allclose(along(slopes, directions, p), steps, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_gradient_is_beliefs_less_indicators(name):
    """d(log Z - score) = b - [y], against brute-force log Z; with hidden variables b - b given y."""
    for seed in (0, 1, 2):
        p, labels, _, rng = draw(name, seed)
        directions = [rng.normal(size=t.shape) for t in p.groups]

        def value(step, p=p, v=directions, y=labels):
            q = moved(p, v, step)
            return ig.infer(q, "brute").log_z - ig.infer(LOSS.clamp(q, y), "brute").log_z

        free = ig.infer(p, "exact", tape=True).backward(log_z=1.0).groups
        if LOSS.fully_observed(p, labels):
            kept = LOSS.score(p, labels)[1]
        else:
            kept = ig.infer(LOSS.clamp(p, labels), "exact", tape=True).backward(log_z=1.0).groups
        mine = along(free, directions, p) - along(kept, directions, p)
        assert_allclose(mine, richardson(value), rtol=1e-8, atol=1e-9)
        assert value(0.0) >= -1e-12


def test_shared_tables_are_counted():
    p = ig.Potentials.from_groups(ig.grid_graph(2, 2, 2), [np.zeros((4, 2)), np.zeros((1, 2, 2))])
    _, (unary, pair) = LOSS.score(p, [0, 0, 1, 1])
    assert unary.tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
    assert pair.tolist() == [[[1, 2], [0, 1]]]


def test_weights_belong_to_examples():
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(1)).repeat(2)
    labels = [0, 1, 1, 1, 0, 1]
    plain, _ = LOSS.score(p, labels)
    value, slopes = LOSS.score(p, labels, [2.0, 2.0, 2.0, 0.5, 0.5, 0.5])
    assert_allclose(value, plain * [2.0, 0.5])
    assert_allclose(sum((s * t).sum() for s, t in zip(slopes, p.groups, strict=True)), value.sum())
    with pytest.raises(ig.InputError, match="weights: expected one weight for all variables of an example, got 1"):
        LOSS.score(p, labels, [2.0, 1.0, 2.0, 0.5, 0.5, 0.5])


def test_evidence_and_labels_go_together():
    p = random_potentials(ig.chain_graph(3, 2), np.random.default_rng(1), evidence={1: 1})
    assert LOSS.fully_observed(p, [0, -1, 1])
    assert_allclose(LOSS.score(p, [0, -1, 1])[0], p.log_score([0, 1, 1]))
    assert dict(LOSS.clamp(p, [-1, -1, 1]).evidence) == {1: 1, 2: 1}
    refuses("label 0 for variable 1, whose evidence is 1", LOSS.clamp, p, [0, 0, 1])


def test_hidden_and_forbidden_labels_have_no_score():
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[0.0, 0.0], [[0.0, -np.inf], [0.0, 0.0]]])
    refuses("labels: expected a label for each variable, got -1 for variable 1; take", LOSS.score, p, [0, -1])
    refuses(r"labels \(0, 1\) for factor 1 on variables \(0, 1\); a hard zero", LOSS.score, p, [0, 1])
