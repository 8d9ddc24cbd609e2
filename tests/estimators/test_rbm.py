"""Restricted Boltzmann machines: against enumeration, and as estimators."""

import pickle
from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chi2
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import isinglass as ig
from isinglass.errors import ConvergenceWarning, FileFormatError, InputError, no_convergence_warnings
from isinglass.inference.restricted.annealing import annealed_log_weights, annealed_log_z
from isinglass.inference.restricted.gibbs import BlockGibbs, LayerChains
from isinglass.learning.markov import ContrastiveDivergence, PersistentDivergence
from isinglass.learning.restricted import _moments, machine_of
from isinglass.models import BoltzmannMachine, RestrictedBoltzmannMachine
from isinglass.models.spins.restricted import MOST_UNITS


def states(n):
    return np.array(list(product((0.0, 1.0), repeat=n)))


def random_machine(seed, visible=4, hidden=3, scale=1.0):
    rng = np.random.default_rng(seed)
    return RestrictedBoltzmannMachine(
        rng.normal(0, scale, (visible, hidden)), rng.normal(0, scale, visible), rng.normal(0, scale, hidden)
    )


def joint(machine):
    """Return log p(v, h) + log Z of all states (visible states, hidden states), from the definition."""
    v, h = states(machine.n_visible), states(machine.n_hidden)
    return v @ machine.weights @ h.T + (v @ machine.visible_bias)[:, None] + h @ machine.hidden_bias


def data(n=200):
    """Return rows of two kinds, with noise."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, n)
    X = np.where(kind[:, None] == 1, [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1])
    return np.where(rng.random(X.shape) < 0.1, 1 - X, X), kind


def fitted(X=None, **options):
    with no_convergence_warnings():
        return ig.RBM(**{"n_components": 3, "max_iter": 40, "batch_size": 20, **options}).fit(
            data()[0] if X is None else X
        )


@pytest.mark.parametrize("seed", range(4))
def test_energies_and_conditionals_are_those_of_the_joint(seed):
    machine = random_machine(seed, *[(4, 3), (1, 5), (5, 1), (3, 3)][seed])
    table, v, h = joint(machine), states(machine.n_visible), states(machine.n_hidden)
    np.testing.assert_allclose(-machine.free_energy(v), np.logaddexp.reduce(table, axis=1), atol=1e-12)
    assert abs(machine.log_z() - np.logaddexp.reduce(table, axis=None)) < 1e-12
    given_v = np.exp(table - np.logaddexp.reduce(table, axis=1, keepdims=True))
    np.testing.assert_allclose(machine.hidden_probabilities(v), given_v @ h, atol=1e-12)
    given_h = np.exp(table - np.logaddexp.reduce(table, axis=0))
    np.testing.assert_allclose(machine.visible_probabilities(h), given_h.T @ v, atol=1e-12)
    assert abs(ig.infer(machine.potentials(), "brute").log_z - machine.log_z()) < 1e-12
    log_p = -machine.free_energy(v)
    flipped = np.array([[-machine.free_energy(np.abs(row - unit)[None])[0] for unit in np.eye(len(row))] for row in v])
    expected = (log_p[:, None] - np.logaddexp(log_p[:, None], flipped)).sum(axis=1)
    np.testing.assert_allclose(machine.pseudolikelihood(v), expected, atol=1e-12)


def test_the_moments_give_the_gradient_of_the_likelihood():
    X, rng = data(20)[0].astype(float), np.random.default_rng(1)
    theta, every = rng.normal(0, 0.7, 6 * 3 + 6 + 3), states(6)

    def minus_log_likelihood(point):
        machine = machine_of(point, 6, 3)
        return machine.free_energy(X).sum() + len(X) * machine.log_z()

    machine = machine_of(theta, 6, 3)
    p = np.exp(-machine.free_energy(every) - machine.log_z())
    of_model = sum(w * _moments(machine, v[None]) for w, v in zip(p, every, strict=True))
    found = len(X) * of_model - _moments(machine, X)
    steps = 1e-5 * np.eye(len(theta))
    slopes = [(minus_log_likelihood(theta + e) - minus_log_likelihood(theta - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(found, slopes, atol=1e-6)


def test_a_sweep_has_the_transition_matrix_of_both_conditionals():
    machine, each = random_machine(7, 3, 2, 1.2), 50_000
    table, every = joint(machine), states(3)
    given_v = np.exp(table - np.logaddexp.reduce(table, axis=1, keepdims=True))
    given_h = np.exp(table - np.logaddexp.reduce(table, axis=0))
    P, pi = given_v @ given_h.T, np.exp(-machine.free_energy(every) - machine.log_z())
    np.testing.assert_allclose(pi @ P, pi, atol=1e-12, rtol=0)
    chains = LayerChains.at(np.repeat(every, each, axis=0), 3)
    BlockGibbs(machine).advance(chains, 1)
    number = (chains.states @ [4, 2, 1]).reshape(len(every), each)
    counts = np.array([np.bincount(row, minlength=len(every)) for row in number])
    statistic = ((counts - each * P) ** 2 / (each * P)).sum()
    assert chi2.sf(statistic, len(every) * (len(every) - 1)) > 1e-4
    wrong = P.copy()
    wrong[:, 0] *= 1.05  # the test sees a table that is wrong by five percent
    wrong /= wrong.sum(axis=1, keepdims=True)
    assert chi2.sf(((counts - each * wrong) ** 2 / (each * wrong)).sum(), len(every) * (len(every) - 1)) < 1e-4


def test_bits_of_a_chain_depend_neither_on_others_nor_on_threads():
    machine = random_machine(0, 37, 21)
    ends = {}
    for n, threads, pieces in ((7, 1, [6]), (50, 1, [6]), (50, 3, [6]), (50, 1, [1, 2, 3])):
        chains = LayerChains.start(machine.visible_bias, n, 5)
        for sweeps in pieces:
            BlockGibbs(machine).advance(chains, sweeps, threads)
        ends[n, threads, len(pieces)] = chains.visible
    whole = ends[50, 1, 1]
    assert whole.tobytes() == ends[50, 3, 1].tobytes() == ends[50, 1, 3].tobytes()
    assert whole[:7].tobytes() == ends[7, 1, 1].tobytes()
    rbm = fitted(n_jobs=1)
    assert rbm.theta_.tobytes() == fitted(n_jobs=3).theta_.tobytes()


def test_annealing_is_unbiased_and_covers_the_exact_value():
    machine = random_machine(2, 6, 5)
    log_w = annealed_log_weights(machine, np.full(6, 0.3), 3, 20000, 0)
    ratio = np.exp(log_w - machine.log_z())
    assert abs(ratio.mean() - 1) < 4 * ratio.std() / np.sqrt(len(ratio)) < 0.1
    inside = 0
    for seed in range(100):
        found = annealed_log_z(machine, np.zeros(6), 50, 100, seed)
        inside += abs(found.log_z - machine.log_z()) < 2 * found.stderr
    assert 88 <= inside <= 100


def test_annealing_says_when_its_weights_are_useless():
    machine = random_machine(0, 40, 30, 2.0)
    with pytest.warns(ConvergenceWarning, match="effective size"):
        found = annealed_log_z(machine, np.zeros(40), 1, 100, 0)
    assert not found.converged


@pytest.mark.parametrize("method", ["cd", "pcd", "sml", ContrastiveDivergence(sweeps=3)])
def test_training_raises_the_likelihood(method):
    X, _ = data()
    rbm = fitted(method=method, max_iter=60)
    p = X.mean(axis=0)
    independent = len(X) * (p * np.log(p) + (1 - p) * np.log(1 - p)).sum()
    assert rbm.log_likelihood(X) > independent + 0.5 * len(X)
    found = rbm.log_z()
    assert found.stderr == 0
    assert abs(rbm.log_z("ais", random_state=0).log_z - found.log_z) < 0.1
    assert rbm.reconstruct(X).round().astype(int).tolist() != X.tolist()  # the noise goes
    assert abs(rbm.sample(2000, random_state=0, sweeps=50).mean(axis=0) - p).max() < 0.15


def test_the_mean_of_iterates_comes_near_maximum_likelihood():
    X, _ = data()
    family = BoltzmannMachine(6, 1, "restricted")
    exact = ig.MRF(family, max_iter=2000).fit(family.with_hidden(X))
    rbm = fitted(n_components=1, method="sml", max_iter=200, learning_rate=0.2)
    assert exact.log_likelihood(family.with_hidden(X)) - 3 < rbm.log_likelihood(X)
    same = ig.infer(rbm.potentials_, "exact", evidence=dict(enumerate(X[0].tolist())))
    assert abs(same.log_z + rbm.free_energy(X[:1])[0]) < 1e-9


def test_a_penalty_shrinks_weights_but_not_biases():
    X = np.zeros((50, 4))
    loose, tight = fitted(X), fitted(X, l2=1e4, learning_rate=1e-3)
    assert abs(tight.components_).max() < abs(loose.components_).max()
    assert tight.intercept_visible_.max() < -3


def test_files_pickles_and_clones(tmp_path):
    X, _ = data()
    rbm = fitted(method=PersistentDivergence(chains=7))
    rbm.save(tmp_path / "rbm.isg")
    for same in (
        ig.RBM.load(tmp_path / "rbm.isg"),
        ig.estimators.load(tmp_path / "rbm.isg"),
        pickle.loads(pickle.dumps(rbm)),
    ):
        assert same.get_params() == rbm.get_params()
        assert same.transform(X).tobytes() == rbm.transform(X).tobytes()
        assert same.sample(5, 0, 3).tolist() == rbm.sample(5, 0, 3).tolist()
    assert not hasattr(clone(rbm), "machine_")
    with pytest.raises(FileFormatError):
        ig.MRF.load(tmp_path / "rbm.isg")


@pytest.mark.parametrize("method", ["cd", "pcd", "sml"])
def test_training_goes_on_from_a_checkpoint_bit_for_bit(method, tmp_path):
    whole = fitted(method=method, max_iter=6)
    file = tmp_path / "run.npz"
    for stop in (3, 17, 29, 10**9):  # in the middle of epochs, too
        rbm = fitted(method=method, max_iter=6, checkpoint=file, callback=lambda p, stop=stop: p.iteration >= stop)
    assert rbm.theta_.tobytes() == whole.theta_.tobytes()
    with pytest.raises(InputError, match="checkpoint"):
        fitted(method=method, max_iter=6, random_state=1, checkpoint=file)


def test_ctrl_c_inside_a_sweep_loses_nothing(tmp_path, monkeypatch):
    whole, file, calls, moved = fitted(max_iter=3), tmp_path / "run.npz", [], BlockGibbs._moved

    def interrupted(self, *arguments):
        calls.append(1)
        if len(calls) == 14:
            raise KeyboardInterrupt
        return moved(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(BlockGibbs, "_moved", interrupted)
        half = fitted(max_iter=3, checkpoint=file)
    assert half.message_ == "interrupted"
    assert half.n_iter_ == 13
    assert fitted(max_iter=3, checkpoint=file).theta_.tobytes() == whole.theta_.tobytes()


def test_inside_scikit_learn():
    X, y = data()
    with no_convergence_warnings():
        pipe = make_pipeline(ig.RBM(n_components=4, max_iter=60), LogisticRegression()).fit(X, y)
    assert pipe.score(X, y) > 0.95
    assert ig.RBM(n_components=4).set_params(max_iter=3).max_iter == 3
    with pytest.raises(ValueError, match="not fitted"):
        ig.RBM().transform(X)


def test_probabilities_and_warm_starts():
    X = np.linspace(0, 1, 40).reshape(10, 4)
    rbm = fitted(X, n_components=2, max_iter=2, warm_start=True)
    before = rbm.theta_.copy()
    with pytest.warns(ConvergenceWarning, match="no test of convergence"):
        rbm.fit(X)
    assert np.abs(rbm.theta_ - before).max() < 1
    with pytest.raises(InputError, match="warm_start"):
        rbm.set_params(n_components=3).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components: expected a whole number of at least 1"),
        ({"method": "ml"}, "method: expected 'cd', 'pcd' or 'sml'"),
        ({"method": PersistentDivergence(chains=0)}, "method.chains"),
        ({"method": ContrastiveDivergence(sweeps=0)}, "method.sweeps"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"batch_size": 0}, "batch_size"),
        ({"max_iter": 0}, "max_iter"),
        ({"optimizer": "lbfgs"}, "optimizer: expected a minibatch optimizer"),
        ({"l2": -1}, "l2"),
        ({"random_state": None}, "random_state"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(InputError, match=message):
        fitted(**options)


@pytest.mark.parametrize(
    "X", [[[0, 2]], [[0, -1]], [[np.nan, 0]], [0, 1], np.zeros((0, 3)), np.zeros((3, 0)), [["a", "b"]]]
)
def test_wrong_data_are_named(X):
    with pytest.raises(InputError, match="X: expected"):
        fitted(X)


def test_other_wrong_input():
    rbm = fitted()
    for call, name in (
        (lambda: rbm.transform(np.zeros((2, 5))), "X"),
        (lambda: rbm.sample(-1), "n:"),
        (lambda: rbm.sample(1, sweeps=0), "sweeps"),
        (lambda: rbm.log_z("bp"), "method"),
        (lambda: rbm.log_z("ais", chains=1), "chains"),
        (lambda: rbm.log_z("ais", temperatures=0), "temperatures"),
        (lambda: rbm.score(np.zeros((0, 6))), "X"),
        (lambda: random_machine(0, MOST_UNITS + 1, MOST_UNITS + 1).log_z(), "weights"),
        (lambda: RestrictedBoltzmannMachine([[1.0, np.inf]]), "weights"),
        (lambda: RestrictedBoltzmannMachine([[1.0, 2.0]], hidden_bias=[1, 2, 3]), "hidden_bias"),
        (lambda: BoltzmannMachine(2, 1, "some"), "edges"),
        (lambda: BoltzmannMachine(2, 1).with_hidden([[0, 1, 0]]), "X"),
    ):
        with pytest.raises(InputError, match=name):
            call()
    assert rbm.sample(0).shape == (0, 6)
    assert rbm.gibbs(np.zeros((0, 6))).shape == (0, 6)
    assert rbm.transform(np.zeros((0, 6))).shape == (0, 3)


def test_sparse_data_and_steps_that_would_grow():
    X, _ = data()
    assert fitted(csr_array(X)).theta_.tobytes() == fitted(X).theta_.tobytes()
    assert fitted(X).transform(csr_array(X)).shape == (200, 3)
    with pytest.raises(InputError, match=r"learning_rate: expected a number below 0\.02"):
        fitted(X, l2=1e4)
