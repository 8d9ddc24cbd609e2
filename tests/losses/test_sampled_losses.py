"""Losses by sampling: expected derivatives against enumeration, chains of examples, and training with them."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.errors import InputError, no_convergence_warnings
from isinglass.gradients import rule
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.learning.total import blocks
from isinglass.learning.training import loop, problem
from isinglass.learning.training.keeping import Keeping
from isinglass.losses import ContrastiveDivergence, Likelihood, LossProblem, PersistentDivergence, StochasticLikelihood
from isinglass.losses.sampled.divergence import counted
from isinglass.losses.sampled.memory import chains_of, split
from isinglass.testing import random_potentials
from transition_oracle import Joint, of_sampler

MIXED = ig.FactorGraph([3, 2, 2, 2], [(0, 1, 2), (1, 2, 3), (0, 3), (3,)])
EXACT = rule("envelope").differentiate(ig.Exact())
MANY = 40_000


def model():
    return random_potentials(MIXED, np.random.default_rng(3))


def at_exact_samples(p, labels, n=MANY):
    """Return the memory of chains that are exact samples, free and clamped."""
    memory = {"example": np.asarray(0)}
    for kind, held in (("free", p), ("clamped", Likelihood().clamp(p, labels))):
        chains = chains_of(held, n, 0, [{"example": np.asarray(0)}], kind)
        chains.states[:] = ig.sample(held, n, random_state=5).T
        memory |= split(p.graph, chains, kind)[0]
    return [memory]


def scatter(groups, p):
    """Return a bound on four standard errors of the mean of `MANY` counts."""
    return [4 * np.sqrt(np.abs(g) + 1) / np.sqrt(MANY) for g in groups]


@pytest.mark.parametrize("labels", [[2, 0, 1, 1], [2, -1, 1, -1]])
@pytest.mark.parametrize("cls", [PersistentDivergence, StochasticLikelihood])
def test_exact_samples_give_the_gradient_of_the_likelihood(labels, cls):
    p, y = model(), np.array(labels)
    truth = Likelihood().evaluate(LossProblem(p, y), EXACT)
    problem = LossProblem(p, y, memory=at_exact_samples(p, y))
    found = cls(chains=MANY, sweeps=2).evaluate(problem, EXACT)
    for a, b, bound in zip(found.groups, truth.groups, scatter(truth.groups, p), strict=True):
        assert (np.abs(a - b) < bound).all()
    doubled = cls(chains=MANY, sweeps=2).evaluate(replace(problem, weights=np.full(4, 2.0)), EXACT)
    for a, b in zip(found.groups, doubled.groups, strict=True):
        np.testing.assert_allclose(2 * a, b)


@pytest.mark.parametrize("k", [1, 3])
def test_contrastive_divergence_has_the_mean_of_k_sweeps(k):
    p, y = model(), np.array([2, 0, 1, 1])
    joint = Joint(p)
    P = np.linalg.matrix_power(of_sampler(joint, GibbsSampler(p), "gibbs chromatic"), k)
    end = P[joint.number[tuple(y.tolist())]]
    every = [counted(p, x[:, None], np.ones(1))[1] for x in joint.states]
    means = [sum(w * one[g] for w, one in zip(end, every, strict=True)) for g in range(len(p.groups))]
    start = counted(p, y[:, None], np.ones(1))[1]
    found = ContrastiveDivergence(k, MANY).evaluate(LossProblem(p, y), EXACT)
    for a, b, c, bound in zip(found.groups, means, start, scatter(start, p), strict=True):
        assert (np.abs(a - (b - c)) < bound).all()
        assert np.abs(a).max() > bound.max()  # it is not zero


def test_an_example_has_the_same_chains_in_any_batch_and_goes_on():
    one, two = (random_potentials(MIXED, np.random.default_rng(seed)) for seed in (3, 4))
    y, loss = np.array([2, 0, -1, 1]), PersistentDivergence()
    batch = ig.potentials_union([one, two])
    kept, alone = Keeping(), Keeping()
    for _ in range(3):
        found = loss.evaluate(LossProblem(batch, np.tile(y, 2), memory=kept.of(np.array([4, 7]))), EXACT)
        kept.put(np.array([4, 7]), found.memory)
        single = loss.evaluate(LossProblem(two, y, memory=alone.of(np.array([7]))), EXACT)
        alone.put(np.array([7]), single.memory)
        assert found.value[1] == pytest.approx(single.value[0], rel=1e-12, abs=1e-12)
    assert {name: a.tolist() for name, a in kept.now[7].items()} == {n: a.tolist() for n, a in alone.now[7].items()}
    again = loss.evaluate(LossProblem(two, y, memory=alone.of(np.array([7]))), EXACT)
    assert again.value[0] != single.value[0]  # the chains have moved


def test_examples_without_labels_count_nothing():
    p = ig.potentials_union([model(), model()])
    y = np.array([-1, -1, -1, -1, 0, 1, 1, 0])
    found = PersistentDivergence(chains=50).evaluate(LossProblem(p, y), EXACT)
    assert found.value[0] == 0
    rest = [g[len(g) // 2 :] if len(g) > 1 else g for g in found.groups]
    assert any(np.abs(g).max() > 0 for g in rest)


def test_what_is_said_of_them():
    X, Y = grids(4)
    refuses("validation: expected none with loss 'pcd'", ig.GridCRF(loss="pcd").fit, X, Y, validation=(X, Y))
    found = {c.guarantee for c in ig.combinations() if c.loss in ("cd", "pcd", "sml")}
    assert len(found) == 1
    assert "estimate" in found.pop()
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, -np.inf], [1.0, 0.0]]])
    for loss in (ContrastiveDivergence(), PersistentDivergence()):
        with pytest.raises((InputError, ig.ImpossibleEvidenceError)):
            loss.evaluate(LossProblem(p, np.array([0, 1])), EXACT)


def grids(n=40, hidden=0.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2, 3, 1))
    field = X[..., 0] + 2 * X[..., 0].mean(axis=(1, 2), keepdims=True) + 2 * rng.normal(size=(n, 1, 1))
    Y = (field + rng.logistic(size=field.shape) > 0).astype(int)
    Y[rng.random(Y.shape) < hidden] = -1
    return X, Y


def fitted(loss, max_iter=40, hidden=0.0, **options):
    X, Y = grids(hidden=hidden)
    with no_convergence_warnings():
        return ig.GridCRF(inference="exact", loss=loss, l2=0.5, max_iter=max_iter, **options).fit(X, Y)


@pytest.mark.long
@pytest.mark.parametrize("hidden", [0.0, 0.25])
def test_training_comes_near_maximum_likelihood(hidden):
    X, _ = grids()
    truth = fitted("cl", 300, hidden, gradient="envelope").predict_marginals(X)
    near = ContrastiveDivergence(sweeps=5)  # whose fixed point is another one, but near
    for loss, steps, most in (("sml", 120, 0.03), ("pcd", 40, 0.1), (near, 40, 0.1)):
        assert np.abs(fitted(loss, steps, hidden).predict_marginals(X) - truth).max() < most
    rough = fitted("cl", 300, hidden, gradient="envelope", edges="none").predict_marginals(X)
    assert np.abs(rough - truth).max() > 0.25  # the comparison says something


@pytest.mark.long
def test_graphs_and_minibatches():
    rng = np.random.default_rng(1)
    X, Y = [], []
    for n in (3, 4, 5) * 10:
        x = rng.normal(size=(n, 2))
        X.append((x, np.array([(i, (i + 1) % n) for i in range(n)])))
        Y.append((x[:, 0] + rng.logistic(size=n) > 0).astype(int))
    Y[0][:] = -1
    with no_convergence_warnings():
        exact = ig.GraphCRF(inference="exact", loss="cl", gradient="envelope").fit(X, Y)
        found = ig.GraphCRF(inference="exact", loss="sml", max_iter=60).fit(X, Y)
        sgd = ig.GraphCRF(inference="exact", loss="cd", optimizer="sgd", max_iter=10).fit(X, Y)
    worst = [np.abs(a - b).max() for a, b in zip(found.predict_marginals(X), exact.predict_marginals(X), strict=True)]
    assert max(worst) < 0.06
    assert sgd.score(X[1:], Y[1:]) > 0.6


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(problem, "blocks", partial(blocks, most=30))  # several blocks of examples
    one, two = (fitted("pcd", 3, 0.2, n_jobs=n).theta_ for n in (1, 3))
    assert one.tobytes() == two.tobytes()


@pytest.mark.long
@pytest.mark.parametrize("loss", ["cd", "pcd", "sml"])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(loss, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_PAUSE", 0.0)
    whole, file = fitted(loss, 4, 0.2), tmp_path / "run.npz"
    for stop in (2, 25, 47, 10**9):  # in the middle of epochs, too
        crf = fitted(loss, 4, 0.2, checkpoint=file, callback=lambda p, stop=stop: p.iteration >= stop)
    assert crf.theta_.tobytes() == whole.theta_.tobytes()


def test_ctrl_c_inside_an_evaluation_loses_nothing(tmp_path, monkeypatch):
    whole, file, calls = fitted("pcd", 3, 0.2), tmp_path / "run.npz", []
    advance = GibbsSampler.advance

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 31:
            raise KeyboardInterrupt
        advance(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(GibbsSampler, "advance", interrupted)
        half = fitted("pcd", 3, 0.2, checkpoint=file)
    assert half.message_ == "interrupted"
    assert fitted("pcd", 3, 0.2, checkpoint=file).theta_.tobytes() == whole.theta_.tobytes()


def test_what_a_file_keeps_is_checked(tmp_path):
    kept = Keeping()
    kept.put(np.array([0, 2]), [{"a.states": np.zeros((2, 3))}, {"a.states": np.ones((1, 3)), "a.drawn": np.uint64(7)}])
    arrays = kept.arrays(1)
    again = Keeping()
    again.restore(1, arrays, 3)
    assert again.now[2]["a.drawn"] == 7
    assert again.now[0]["a.states"].tolist() == np.zeros((2, 3)).tolist()
    assert kept.arrays(0) == {}
    for name, wrong in (("a.states.examples", np.array([0, 9])), ("a.states.lengths", np.array([2, 2]))):
        refuses("checkpoint", Keeping().restore, 1, {**arrays, name: wrong}, 3)
    p, y = model(), np.array([0, 0, 0, 0])
    memory = at_exact_samples(p, y, 4)
    for name, wrong in (("free.states", np.full((4, 4), 9, np.uint8)), ("free.keys", np.zeros(3, np.uint64))):
        problem = LossProblem(p, y, memory=[{**memory[0], name: wrong}])
        refuses("checkpoint", PersistentDivergence().evaluate, problem, EXACT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "steepest"}, "optimizer: expected one for gradients that are estimates, with loss 'cd'"),
        ({"optimizer": ig.learning.optimizers.Lbfgs()}, "optimizer: expected one for gradients"),
        ({"l1": 0.1}, "optimizer: .* and no l1"),
        ({"class_weight": "balanced"}, "class_weight: expected None with loss 'cd'"),
        ({"own_parameters": True}, "own_parameters"),
        ({"loss": ContrastiveDivergence(sweeps=0)}, "loss.sweeps"),
        ({"loss": PersistentDivergence(chains=0)}, "loss.chains"),
        ({"loss": PersistentDivergence(random_state=-1)}, "loss.random_state"),
    ],
)
def test_wrong_options_are_named(options, message):
    X, Y = grids(4)
    refuses(message, ig.GridCRF(**{"loss": "cd", "inference": "exact", "max_iter": 2, **options}).fit, X, Y)
