"""Early stopping by the loss on validation data, whole or resumed."""

import os

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid
from numpy.testing import assert_allclose

import isinglass as ig
from isinglass.learning.optimizers import Adam, Lbfgs, OwlQn
from isinglass.learning.training.choices import choices_of
from isinglass.validation import memory_size
from isinglass_experiments.data import entity_attributes, load_wnut17

pytestmark = pytest.mark.filterwarnings("ignore:training stopped .* parameters still grow")  # in `few`
LOSSES = ["ucl", "cl", "pseudo", "cquad"]


def few(kind, seed=3):
    """Two examples with features of pure noise, which are learned by heart, and three others."""
    make, data = KINDS[kind]
    rng = np.random.default_rng(seed)

    def noisy(n):
        X, Y = data(n)
        if kind == "grid":
            return Y[..., None] + 1.2 * rng.normal(size=(*Y.shape, 6)), Y
        return [(y[:, None] + 1.2 * rng.normal(size=(len(y), 6)), e) for (_, e), y in zip(X, Y, strict=True)], Y

    return lambda **options: make(**{"l2": 0.0, "edge_l2": 0.1, "tol": 1e-7, **options}), noisy(2), noisy(4)


def by_hand(crf, theta, held_out):
    """The univariate loss of the validation data."""
    crf.theta_ = theta
    beliefs = np.concatenate([b.reshape(-1, 2) for b in crf.predict_marginals(held_out[0])])
    labels = np.concatenate([np.ravel(y) for y in held_out[1]])
    return -np.log(beliefs[np.arange(len(labels)), labels]).sum()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_parameters_are_kept(kind):
    make, train, held_out = few(kind)
    points = []
    crf = make(callback=lambda p: points.append(p.x.copy()), patience=4).fit(*train, validation=held_out)
    looks = [epoch.validation for epoch in crf.history_]
    assert_allclose(looks, [by_hand(make().fit(*train), x, held_out) for x in points], rtol=1e-12)
    best = int(np.argmin(looks))
    assert crf.theta_.tobytes() == points[best].tobytes()
    assert crf.objective_ == crf.history_[best].value
    assert len(looks) == best + 1 + 4 == crf.n_iter_
    assert crf.message_ == "the validation loss has not fallen for 4 iterations"
    assert not crf.converged_
    longer = make().fit(*train)
    assert longer.n_iter_ > crf.n_iter_
    assert all(epoch.validation is None for epoch in longer.history_)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_without_impatience_the_best_is_kept_too(kind):
    make, train, held_out = few(kind)
    points = []
    crf = make(callback=lambda p: points.append(p.x.copy()), patience=10**6).fit(*train, validation=held_out)
    best = int(np.argmin([epoch.validation for epoch in crf.history_]))
    assert not crf.converged_  # these parameters are no minimum of what was minimised
    assert crf.message_ == f"the validation loss was least after iteration {best + 1}"
    assert crf.n_iter_ == make().fit(*train).n_iter_ == len(points)
    assert crf.theta_.tobytes() == points[best].tobytes()


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_resumed_runs_are_those_of_one_run(kind, tmp_path):
    make, train, held_out = few(kind)
    whole = make(patience=3).fit(*train, validation=held_out)
    for last in range(1, whole.n_iter_ + 1):
        path = tmp_path / f"{last}"
        stop = {"callback": lambda p, last=last: p.iteration == last, "checkpoint": path}
        make(patience=3, **stop).fit(*train, validation=held_out)
        again = make(patience=3, checkpoint=path).fit(*train, validation=held_out)
        assert again.theta_.tobytes() == whole.theta_.tobytes()
        assert (again.history_, again.message_, again.n_iter_) == (whole.history_, whole.message_, whole.n_iter_)
        assert again.objective_ == whole.objective_
    longer = make(patience=5, checkpoint=path).fit(*train, validation=held_out)  # a run may have more patience
    assert longer.history_ == make(patience=5).fit(*train, validation=held_out).history_
    others = (held_out[0][::-1], held_out[1][::-1])
    for data in (None, others):
        with pytest.raises(ig.InputError, match="a checkpoint of this problem"):
            make(patience=3, checkpoint=path).fit(*train, validation=data)


def test_minibatches_are_looked_at_after_each_epoch(tmp_path):
    make, train, held_out = few("graph")
    adam = Adam(learning_rate=0.3, epochs=40, batch_size=1, random_state=0)
    whole = make(optimizer=adam, patience=3).fit(*train, validation=held_out)
    looks = [epoch.validation for epoch in whole.history_]
    assert all((look is None) == (i % 2 == 0) for i, look in enumerate(looks))
    seen = [look for look in looks if look is not None]
    assert len(seen) == int(np.argmin(seen)) + 1 + 3 < 40
    for last in (1, 2, 5, len(looks)):
        stop = {"callback": lambda p, last=last: p.iteration == last, "checkpoint": tmp_path / f"{last}"}
        make(optimizer=adam, patience=3, **stop).fit(*train, validation=held_out)
        again = make(optimizer=adam, patience=3, checkpoint=tmp_path / f"{last}").fit(*train, validation=held_out)
        assert again.theta_.tobytes() == whole.theta_.tobytes()
        assert again.history_ == whole.history_


@pytest.mark.parametrize("loss", LOSSES)
def test_the_loss_alone_is_that_of_the_objective(loss):
    X, Y = graphs()
    Y = [np.where(np.arange(len(y)) == 1, -1, y) for y in Y]
    crf = graph(loss=loss, l2=0.0)
    f = crf._problem(choices_of(crf), X, Y).objective()
    theta = np.random.default_rng(0).normal(size=f.size)
    assert_allclose(f.unpenalised(theta), f(theta)[0], rtol=1e-12)


def test_files_keep_the_history(tmp_path):
    make, train, held_out = few("grid")
    crf = make(patience=2).fit(*train, validation=held_out)
    crf.save(tmp_path / "a")
    assert ig.GridCRF.load(tmp_path / "a").history_ == crf.history_


def test_class_weights_count_in_validation():
    make, train, held_out = few("grid")
    plain, heavy = (
        make(class_weight=w, max_iter=1, tol=1e9).fit(*train, validation=held_out) for w in ([2, 2], [1, 1])
    )
    assert plain.history_ == heavy.history_ == []
    crf = make(class_weight=[2.0, 2.0], callback=lambda p: True).fit(*train, validation=held_out)
    assert_allclose(crf.history_[0].validation, 2 * by_hand(make().fit(*train), crf.theta_, held_out), rtol=1e-12)


def test_verbose_shows_how_it_goes(capsys):
    make, train, held_out = few("grid")
    make(verbose=True, callback=lambda p: p.iteration == 3).fit(*train, validation=held_out)
    words = capsys.readouterr().out.splitlines()[2].split()
    assert words[0] == "3"
    assert words[2] == "|g|"
    assert words[4:6] == ["inference:", "2"]
    assert words[-4:-1:2] == ["0%", "validation"]
    grid(inference="exact", iterations=None, verbose=True).fit(*train)
    assert "100% converged" in capsys.readouterr().out


def test_a_smaller_tol_gives_a_smaller_gradient():
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 8) for _ in range(40)]
    X = [np.eye(3)[y] + rng.normal(size=(8, 3)) for y in Y]
    usual, tight = (ig.ChainCRF(tol=tol, max_iter=2000).fit(X, Y) for tol in (1e-4, 1e-10))
    assert "ftol = 1e-10" in usual.message_
    assert "the gradient norm" in tight.message_
    assert tight.history_[-1].gradient_norm < 1e-9
    assert [epoch.value for epoch in tight.history_[: usual.n_iter_]] == [epoch.value for epoch in usual.history_]


@pytest.mark.parametrize(("tol", "ftol"), [(1e-3, 1e-10), (1e-4, 1e-10), (1e-6, 1e-14), (0.0, 0.0)])
def test_the_relative_decrease_that_ends_training_follows_tol(tol, ftol):
    for estimator in (ig.ChainCRF(tol=tol), ig.ChainCRF(tol=tol, l1=0.1), ig.ChainCRF(tol=tol, optimizer="steepest")):
        assert_allclose(estimator._choices().optimizer.ftol, ftol, rtol=1e-12)
    assert ig.ChainCRF(tol=tol, optimizer=Lbfgs(ftol=1e-3))._choices().optimizer.ftol == 1e-3
    assert ig.ChainCRF(tol=1e-4)._choices().optimizer == Lbfgs(tol=1e-4, max_iter=200)


def equal_labels():
    """Return complete graphs of six nodes, all of the same label, with features that say little."""
    rng = np.random.default_rng(0)
    edges = np.array([(i, j) for i in range(6) for j in range(i)])
    Y = [np.full(6, rng.integers(2)) for _ in range(20)]
    return [(0.1 * y[:, None] + rng.normal(size=(6, 1)), edges) for y in Y], Y


@pytest.mark.filterwarnings("ignore:training stopped")
def test_truncated_belief_propagation_is_flagged():
    bp = ig.BeliefPropagation(iterations=2, schedule="flooding")
    with pytest.warns(ig.ConvergenceWarning, match="a likelihood above one.*inference='trw'"):
        crf = ig.GraphCRF(bp, loss="cl", l2=1e-3, max_iter=20).fit(*equal_labels())
    assert crf.objective_ < 0


@pytest.mark.long
@pytest.mark.parametrize("inference", ["trw", "exact"])
def test_upper_bounds_need_no_word(inference):
    crf = ig.GraphCRF(inference, loss="cl", gradient="envelope", l2=1e-3).fit(*equal_labels())
    assert crf.objective_ > 0


THEIRS = {10: 40999.68354, 20: 13982.005114, 50: 2081.92, 100: 1882.61}  # python-crfsuite 0.9.12, c1 = c2 = 0.1


@pytest.mark.long
@pytest.mark.skipif("ISINGLASS_DATA" not in os.environ, reason="needs the data folder")
def test_as_low_as_crfsuite_after_as_many_evaluations():
    data = load_wnut17()
    seen = []

    def note(progress):
        seen.append((progress.state.evaluations, progress.value))
        return progress.state.evaluations >= max(THEIRS)

    crf = ig.ChainCRF(l2=0.1, optimizer=OwlQn(l1=0.1, tol=0), callback=note)
    crf.fit([entity_attributes(words) for words in data.words_train], data.Y_train)
    for most, value in THEIRS.items():
        assert min(v for n, v in seen if n <= most) <= 1.01 * value


def test_units_of_memory():
    units = {"": 1, "B": 1, "K": 1000, "KB": 1000, "MB": 1000**2, "gb": 1000**3, "T": 1000**4}
    units |= {"Ki": 1024, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, " tib": 1024**4}
    assert {unit: memory_size(f"3{unit}") for unit in units} == {unit: 3 * bytes_ for unit, bytes_ in units.items()}
