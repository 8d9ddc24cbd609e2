"""The whole objective against differences in theta: every valid choice of loss, inference and gradient rule."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass import losses
from isinglass.errors import no_convergence_warnings
from isinglass.gradients import RULES, rule
from isinglass.inference import ALGORITHMS
from isinglass.learning import Objective
from isinglass.learning.combinations import objection
from isinglass.models import graph_model

TRIANGLE = [(0, 1), (1, 2), (0, 2)]
ALL = ig.combinations()
FREE = [name for name, loss in losses.LOSSES.items() if loss.facts.uses == "potentials"]  # of inference
SAMPLED = [name for name, loss in losses.LOSSES.items() if loss.facts.sampled]  # no derivatives of their values
DIFFERENT = [c for c in ALL if c.loss not in FREE or (c.inference == "exact" and c.gradient == "unrolled")]
DIFFERENT = [c for c in DIFFERENT if c.loss not in SAMPLED]
OPTIONS = {  # tight where the derivative is that of a fixed point
    "bp": {"tol": 1e-13},
    "trw": {"tol": 1e-13},
    "fbp": {"tol": 1e-13},
    "max-product": {},
    "mf": {"tol": 1e-15, "max_iter": 20000},
    "convex": {"tol": 1e-12},
}
TRUNCATED = {name: {"iterations": 3} for name in ("bp", "trw", "fbp", "mf", "smf", "max-product")}
OBSERVED = {"observed": [0, 1, 1, 1, 0, 0], "partly": [0, -1, 1, 1, 0, -1]}


def random_model(edges, seed=0, edge_features=False):
    """Two examples on one graph of three nodes, with two features."""
    rng = np.random.default_rng(seed)
    parts = [(rng.normal(size=(3, 2)), edges, rng.normal(size=(len(edges), 2))) for _ in range(2)]
    return graph_model([p if edge_features else p[:2] for p in parts], 2)


LOOPY, FOREST = random_model(TRIANGLE), random_model(TRIANGLE[:2])


def theta_for(objective, seed=1):
    return 0.5 * np.random.default_rng(seed).normal(size=objective.size)


def value(objective, theta):
    """The value alone, without the way back."""
    return float(objective.losses(theta).sum() + (np.tile(objective.l2, objective.stages) * theta**2).sum())


def check_gradient(objective, rtol, n_directions=2):
    """Compare slopes in some directions with Richardson's extrapolated differences."""
    theta = theta_for(objective)
    found, gradient = objective(theta)
    assert_allclose(value(objective, theta), found, rtol=1e-12)
    rng = np.random.default_rng(2)
    for _ in range(n_directions):
        v = rng.normal(size=objective.size)
        coarse, fine = (
            (value(objective, theta + s * v) - value(objective, theta - s * v)) / (2 * s) for s in (2e-3, 1e-3)
        )
        assert_allclose(gradient @ v, (4 * fine - coarse) / 3, rtol=rtol, atol=rtol)


def made(combination, labels, model=LOOPY, **more):
    loss, inference, gradient = combination[:3]
    fixed_point = gradient != "unrolled"
    options = (OPTIONS if fixed_point else TRUNCATED).get(inference, {})
    algorithm = ALGORITHMS[inference](**options)
    weights = np.repeat([1.0, 2.5], 3)
    l2 = np.linspace(0.1, 0.3, model.size)
    return Objective(model, np.array(labels), losses.make(loss), algorithm, rule(gradient), l2, weights, **more)


@pytest.fixture(autouse=True)
def _quiet():
    with no_convergence_warnings():
        yield


@pytest.mark.long
@pytest.mark.parametrize("labels", OBSERVED)
@pytest.mark.parametrize("combination", DIFFERENT, ids=lambda c: "-".join(c[:3]))
def test_gradient_of_every_combination(combination, labels):
    check_gradient(made(combination, OBSERVED[labels]), 1e-6)


def test_the_table_is_the_whole_of_what_is_valid():
    assert {c[0] for c in ALL} == set(losses.LOSSES)
    assert {c[1] for c in ALL} == set(ALGORITHMS)
    assert {c[2] for c in ALL} == {"unrolled", "perturbation", "implicit", "envelope"}
    assert len({c[:3] for c in ALL}) == len(ALL)
    assert all(objection(losses.make(a), ALGORITHMS[b](), rule(c)) is None for a, b, c, _ in ALL)


@pytest.mark.long
def test_losses_without_inference_go_with_everything():
    """Pseudolikelihood needs no inference: the choice of a rule is irrelevant to it, and gives the same bits."""
    assert "pseudo" in FREE
    for loss in FREE:
        found = [c for c in ALL if c.loss == loss]
        assert {c[1:3] for c in found} == {(a, r) for a in ALGORITHMS for r in RULES}
        exact = "the exact derivative, without inference, whatever the gradient rule"
        estimate = "an estimate of the derivative, by Markov chains, whatever inference and gradient rule"
        assert {c.guarantee for c in found} == {estimate if loss in SAMPLED else exact}
        answers = [made(c, OBSERVED["partly"])(theta_for(LOOPY)) for c in found]
        assert len({(value, gradient.tobytes()) for value, gradient in answers}) == 1


@pytest.mark.long
@pytest.mark.parametrize("labels", OBSERVED)
@pytest.mark.parametrize("loss", [name for name in losses.LOSSES if name not in FREE])
def test_all_rules_and_exact_inference_agree_on_forests(loss, labels):
    truth = made((loss, "brute", "unrolled"), OBSERVED[labels], FOREST)
    theta = theta_for(truth)
    value, slope = truth(theta)
    for combination in ALL:
        exact = ALGORITHMS[combination.inference].facts.exact
        if combination.loss != loss or exact == "never":
            continue
        objective = made(combination, OBSERVED[labels], FOREST)
        options = OPTIONS.get(combination.inference, {})  # until convergence, whatever the rule
        objective.algorithm = ALGORITHMS[combination.inference](**options)
        found, gradient = objective(theta)
        assert_allclose(found, value, rtol=0, atol=1e-8, err_msg=str(combination))
        assert_allclose(gradient, slope, rtol=0, atol=1e-8, err_msg=str(combination))


def test_exact_likelihood_is_the_log_probability_of_the_labels():
    labels = np.array(OBSERVED["observed"])
    objective = Objective(FOREST, labels, losses.make("cl"), ig.BeliefPropagation(), rule("envelope"))
    theta = theta_for(objective)
    p = FOREST.potentials(theta)
    expected = ig.infer(p, "brute").log_z - p.log_score(labels)
    assert_allclose(objective(theta)[0], expected, atol=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("labels", OBSERVED)
@pytest.mark.parametrize("loss", [name for name, loss in losses.LOSSES.items() if loss.facts.uses == "beliefs"])
@pytest.mark.parametrize("inference", ["bp", "trw"])
def test_parameters_of_their_own_for_each_iteration(loss, inference, labels):
    objective = made((loss, inference, "unrolled"), OBSERVED[labels], stages=3)
    assert objective.size == 3 * LOOPY.size
    check_gradient(objective, 1e-6)


@pytest.mark.parametrize("loss", ["cl", "pseudo"])
def test_stages_are_for_losses_of_beliefs(loss):
    with pytest.raises(ig.InputError, match=r"stages: expected 1, .*; use a loss such as 'ucl'"):
        made((loss, "bp", "unrolled"), OBSERVED["partly"], stages=3)


def test_equal_stages_are_one_vector():
    staged, plain = (made(("ucl", "bp", "unrolled"), OBSERVED["partly"], stages=s) for s in (3, 1))
    theta = theta_for(plain)
    values, gradient = staged.parts(np.tile(theta, 3))
    expected, slope = plain.parts(theta)
    assert_allclose(values, expected)
    assert_allclose(gradient.reshape(3, -1).sum(0), slope)


def test_edge_features_and_parts_of_the_objective():
    model = random_model(TRIANGLE, edge_features=True)
    objective = made(("ccl", "bp", "unrolled"), OBSERVED["partly"], model)
    check_gradient(objective, 1e-6)
    theta = theta_for(objective)
    values, gradient = objective.parts(theta)
    assert values.shape == (2,)
    value, whole = objective(theta)
    assert_allclose(value, values.sum() + (objective.l2 * theta**2).sum())
    assert_allclose(whole, gradient + 2 * objective.l2 * theta)
    assert [info.iterations for info in objective.infos] == [3]


def test_a_likelihood_needs_one_weight_for_an_example():
    objective = made(("cl", "bp", "unrolled"), OBSERVED["partly"])
    objective.weights = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    with pytest.raises(ig.InputError, match="one weight for all variables of an example"):
        objective(theta_for(objective))


@pytest.mark.parametrize("loss", ["uquad", "ucl", "cl"])
def test_beliefs_of_the_evaluation_before_are_used_again(loss):
    rng = np.random.default_rng(2)
    model = ig.models.grid_model(rng.normal(size=(2, 5, 5, 2)), 3)
    labels = rng.integers(-1, 3, 50)
    made = [
        Objective(model, labels, losses.make(loss), ig.ConvexFreeEnergy(reuse=reuse), rule("implicit"))
        for reuse in (False, True)
    ]
    first, step = 3 * rng.normal(size=model.size), 1e-3 * rng.normal(size=model.size)
    for theta in (first, first + step):
        (value, gradient), (same, slope) = (objective(theta) for objective in made)
        assert_allclose(same, value, rtol=1e-10)
        assert_allclose(slope, gradient, rtol=1e-7, atol=1e-7)
    cold, warm = (objective.infos[-1].iterations for objective in made)
    assert warm < cold
    assert [len(objective.before) for objective in made] == [0, 2 if loss == "cl" else 1]
    assert all(result.reverse is None for result in made[1].before)


@pytest.mark.long
@pytest.mark.parametrize("loss", ["ucl", "cl"])
def test_messages_of_the_evaluation_before_are_used_again(loss):
    rng = np.random.default_rng(2)
    model = ig.models.grid_model(rng.normal(size=(2, 5, 5, 2)), 3)
    labels = rng.integers(-1, 3, 50)
    made = [
        Objective(model, labels, losses.make(loss), ig.TreeReweighted(reuse=reuse, tol=1e-11), rule("unrolled"))
        for reuse in (False, True)
    ]
    first, step = rng.normal(size=model.size), 1e-4 * rng.normal(size=model.size)
    for theta in (first, first + step):
        (value, gradient), (same, slope) = (objective(theta) for objective in made)
        assert_allclose(same, value, rtol=1e-9)
        assert_allclose(slope, gradient, rtol=1e-7, atol=1e-7)
    cold, warm = (objective.infos[-1].iterations for objective in made)
    assert warm < cold
    assert all(result.reverse is None and result.messages is not None for result in made[1].before)
    with pytest.raises(ig.InputError, match="reuse: expected False with a number of iterations"):
        ig.infer(model.potentials(first), "trw", reuse=True, iterations=3)
