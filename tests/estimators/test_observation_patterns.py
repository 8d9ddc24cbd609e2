"""Markov random fields that predict outputs from inputs, with another pattern in each sample."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.learning.optimizers import Lbfgs

GRAPH = ig.FactorGraph([2] * 6, [(i, (i + 1) % 6) for i in range(6)] + [(i,) for i in range(6)] + [(0, 3)])
RNG = np.random.default_rng(0)
TRUTH = ig.Potentials(GRAPH, [RNG.normal(size=tuple(2 for _ in scope)) for scope in GRAPH.scopes])
DRAWN = ig.sample(TRUTH, 60, "brute", random_state=1)  # compiles nothing, when tests are collected
ROLES = np.array([RNG.permutation([0, 0, 1, 1, 2, 2]) for _ in range(60)])  # input, output, hidden
X, OUTPUTS = np.where(ROLES == 2, -1, DRAWN), ROLES == 1


def mrf(loss=None, **options):
    options = {"inference": "exact", "gradient": "unrolled", "l2": 0.1, "max_iter": 40, **options}
    return ig.MRF(GRAPH, loss=loss, **options)


def conditional(p, row, outputs):
    """Return -log p(outputs | inputs), by brute force."""
    given = {i: int(x) for i, x in enumerate(row) if x >= 0 and not outputs[i]}
    both = {i: int(x) for i, x in enumerate(row) if x >= 0}
    return ig.infer(p, "brute", evidence=given).log_z - ig.infer(p, "brute", evidence=both).log_z


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_the_conditional_likelihood_of_the_outputs_is_minimised():
    fitted = mrf(optimizer=Lbfgs(tol=1e-9)).fit(X, outputs=OUTPUTS)
    by_hand = sum(conditional(fitted.potentials_, x, o) for x, o in zip(X, OUTPUTS, strict=True))
    assert fitted.objective_ == pytest.approx(by_hand + 0.1 * (fitted.theta_**2).sum(), rel=1e-9)
    assert by_hand < sum(conditional(ig.Potentials(GRAPH, [np.zeros(t.shape) for t in TRUTH.log_tables]), x, o)
                         for x, o in zip(X, OUTPUTS, strict=True))  # fmt: skip
    weighted = mrf(max_iter=5).fit(X, outputs=OUTPUTS, sample_weight=np.full(60, 2.0))
    twice = mrf(max_iter=5).fit(np.concatenate([X, X]), outputs=np.concatenate([OUTPUTS, OUTPUTS]))
    assert_allclose(weighted.theta_, twice.theta_, atol=1e-8)


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize("decoder", ["mpm", "identity", "f1", "bayes"])
def test_predictions_are_decided_given_the_inputs(decoder):
    fitted = mrf(decoder=decoder, max_iter=3).fit(X, outputs=OUTPUTS)
    found = fitted.predict(X, OUTPUTS)
    for x, o, mine in list(zip(X, OUTPUTS, found, strict=True))[:8]:
        result = ig.infer(
            fitted.potentials_, "exact", evidence={i: int(v) for i, v in enumerate(x) if v >= 0 and not o[i]}
        )
        expected = ig.decoding.make(decoder)(result, o)
        assert_allclose(mine[o], expected[o], atol=1e-10)
        assert_array_equal(mine[(x >= 0) & ~o], x[(x >= 0) & ~o])
        hidden = mine[(x < 0) & ~o]
        assert (np.isnan(hidden) if decoder == "identity" else hidden == -1).all()
    assert_array_equal(
        fitted.predict(np.where(OUTPUTS, 1 - X, X), OUTPUTS), found
    )  # values of outputs are not looked at


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_losses_of_decisions_in_stages_through_bp():
    options = {"inference": "bp", "iterations": 5, "decoder": "f1", "max_iter": 6}
    staged = mrf(stages=[{"loss": "cl", "max_iter": 2}, *ig.losses.hybrids("f1")], **options)
    staged.fit(X, outputs=OUTPUTS)
    assert {epoch.stage for epoch in staged.history_} >= {0, 1, 2}
    started = mrf("f1", **options).fit(X, outputs=OUTPUTS)
    assert started.started_from_ == "ucl"
    options["decoder"] = "identity"
    one, two = (mrf("mse", **options, n_jobs=jobs).fit(X, outputs=OUTPUTS).theta_ for jobs in (1, 2))
    assert_array_equal(one, two)
    laplace = mrf("l1", **options | {"decoder": "mpm"}, prior="laplace").set_params(l2=0.0).fit(X, outputs=OUTPUTS)
    assert (laplace.theta_ == 0).any()


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_labels_files_and_one_mask_for_all(tmp_path):
    names = np.array(["no", "yes"], object)[DRAWN]
    mask = np.array([True, False, False, True, False, False])
    fitted = mrf("mse", max_iter=4, stages=["ucl", "hamming"]).fit(names, outputs=mask)
    found = fitted.predict(names, mask)
    assert set(found.ravel()) == {"no", "yes"}
    fitted.save(tmp_path / "m.isg")
    again = ig.MRF.load(tmp_path / "m.isg")
    assert again.stages == ["ucl", "hamming"]
    assert_array_equal(again.predict(names, mask), found)
    assert_array_equal(fitted.predict(np.where(mask, None, names)), found)  # by default what is missing


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mrf("f1").fit(X), "outputs: expected a mask of the variables to predict, .* got none"),
        (
            lambda: mrf(stages=["cl", "mse"]).fit(X),
            "outputs: expected a mask of the variables to predict, with stages=",
        ),
        (
            lambda: mrf().fit(X, outputs=OUTPUTS, sample_weight=np.zeros(60)),
            "sample_weight: expected a positive weight",
        ),
        (
            lambda: mrf(inference=ig.FractionalBeliefPropagation(2, counting_numbers=np.ones(13))).fit(
                X, outputs=OUTPUTS
            ),
            "inference: expected no options that are arrays over factors",
        ),
        (lambda: mrf().fit(X, outputs=OUTPUTS[:, :3]), r"outputs: expected a bool array \(60, 6\), or \(6,\)"),
        (lambda: mrf().fit(X, outputs=OUTPUTS.astype(int)), "outputs: expected a bool array .* of dtype int64"),
        (lambda: mrf().fit(X, outputs=np.zeros(6, bool)), "outputs: expected at least one output .* none in sample 0"),
        (lambda: mrf().fit(X, outputs=X < 0), "outputs: expected at least one output whose value is known"),
        (
            lambda: mrf().fit(counts=np.ones([2] * 6), outputs=OUTPUTS),
            "counts: expected None where outputs are predicted",
        ),
        (lambda: mrf(method="pseudo").fit(X, outputs=OUTPUTS), "method: expected 'ml' where outputs are predicted"),
        (lambda: mrf("f1", decoder="map").fit(X, outputs=OUTPUTS), "decoder: expected one with a differentiable"),
        (lambda: mrf("mse", gradient="envelope").fit(X, outputs=OUTPUTS), "gradient: expected a rule for loss 'ucl'"),
        (lambda: mrf(prior="dirichlet", l2=0.0).fit(X, outputs=OUTPUTS), "prior: expected 'gaussian' or 'laplace'"),
        (lambda: mrf(max_iter=1).fit(X, outputs=OUTPUTS).predict(X, OUTPUTS[:5]), "outputs: expected a bool array"),
        (
            lambda: mrf(max_iter=1).fit(X, outputs=OUTPUTS).predict(DRAWN),
            "outputs: expected at least one missing value",
        ),
        (
            lambda: mrf(max_iter=1, decoder="soft").fit(X, outputs=OUTPUTS).predict(X, OUTPUTS),
            "decoder: expected one of states or numbers, got 'soft'; use predict_proba",
        ),
    ],
)
def test_wrong_input_is_answered_kindly(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["viterbi", "perceptron"])
def test_learning_by_map_learns_by_default(loss):
    """Training by most probable assignments ends at zero by optimizers that find the minimum."""
    rng = np.random.default_rng(0)
    pair = ig.FactorGraph([2, 2], [(0,), (1,), (0, 1)])
    states = np.repeat(rng.integers(0, 2, (60, 1)), 2, axis=1) ^ (rng.random((60, 2)) < 0.1)
    fitted = ig.MRF(pair, loss=loss, decoder="map").fit(states, outputs=[False, True])
    assert fitted.theta_.any()
    assert (fitted.predict(np.c_[states[:, 0], -np.ones(60, int)])[:, 1] == states[:, 0]).all()
    with pytest.raises(ig.InputError, match=r"outputs=mask.*without inputs this loss is least at zero"):
        ig.MRF(pair, loss=loss).fit(states)
