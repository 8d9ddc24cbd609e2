"""Training in stages: each begins with the parameters of the one before, by their names."""

import pickle

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs, grid, images
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from checks import each_equal, refuses
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.learning.checkpoint import resume
from isinglass.learning.optimizers import Adam
from isinglass.learning.training.stages import stage_file

SHORT = {"loss": "cl", "max_iter": 2}
both = pytest.mark.parametrize("kind", KINDS)


@both
def test_stages_are_fits_one_after_the_other(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(stages=[SHORT, "uquad", ig.losses.make("ucl")]).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="max_iter"):
        by_hand = make(**SHORT).fit(X, Y).set_params(warm_start=True, max_iter=200)
    ends = [by_hand.theta_, *(by_hand.set_params(loss=loss).fit(X, Y).theta_ for loss in ("uquad", "ucl"))]
    assert crf.theta_.tobytes() == ends[-1].tobytes()
    assert abs(ends[0] - ends[1]).max() > 1e-3
    assert abs(ends[1] - ends[2]).max() > 1e-3
    assert crf.stage_ == 2
    assert crf.n_iter_ == by_hand.n_iter_
    assert crf.objective_ == by_hand.objective_
    numbers = [epoch.stage for epoch in crf.history_]
    assert numbers == sorted(numbers)
    assert set(numbers) == {0, 1, 2}
    assert [e.value for e in crf.history_ if e.stage == 2] == [e.value for e in by_hand.history_]


@both
def test_predictions_are_made_as_in_the_last_stage(kind):
    make, data = KINDS[kind]
    X, Y = data()
    last = {"iterations": 1, "decoder": "map", "bias": False, "loss": "uquad"}
    crf = make(stages=[{"bias": False}, last], bias=True).fit(X, Y)
    plain = make(**last)
    for name in ("theta_", "parameters_", "n_states_", "n_features_in_"):
        setattr(plain, name, getattr(crf, name))
    assert crf.n_features_in_ == 2
    each_equal(crf.predict_marginals(X), plain.predict_marginals(X))
    each_equal(crf.predict(X), plain.predict(X))
    assert crf.score(X, Y) == plain.score(X, Y)
    assert crf.infer(X).info.iterations == 1


def test_parameters_are_carried_by_name():
    X, Y = images()
    crf = grid(stages=[{"edges": "none"}, {"edges": "shared"}, {"edges": "directions", "max_iter": 1}])
    with pytest.warns(ig.ConvergenceWarning, match="stage 2 of training stopped after 1 iterations"):
        crf.fit(X, Y)
    by_hand = grid(edges="none", warm_start=True).fit(X, Y)
    assert set(by_hand.parameters_) == {"node"}
    by_hand.set_params(edges="shared").fit(X, Y)
    node = by_hand.parameters_["node"]
    assert abs(by_hand.parameters_["edge"]).max() > 0
    start = grid(edges="directions", warm_start=True, max_iter=1)
    start.theta_ = np.concatenate([node.ravel(), np.zeros(8)])  # "edge" is dropped
    with pytest.warns(ig.ConvergenceWarning, match="max_iter"):
        assert start.fit(X, Y).theta_.tobytes() == crf.theta_.tobytes()
    assert set(crf.parameters_) == {"node", "edge/horizontal", "edge/vertical"}


@both
def test_own_parameters_as_a_stage(kind):
    make, data = KINDS[kind]
    X, Y = data()
    staged = make(iterations=3, stages=[{}, {"own_parameters": True}]).fit(X, Y)
    shared = make(iterations=3, warm_start=True).fit(X, Y)
    assert staged.theta_.tobytes() == shared.set_params(own_parameters=True).fit(X, Y).theta_.tobytes()
    assert staged.parameters_["node"].ndim == 3
    assert_array_equal(staged.predict(X)[0], shared.predict(X)[0])


WRONG = {
    "no list": ("ucl", r"stages: expected a list"),
    "none": ([], r"stages: expected at least one stage"),
    "number": (["ucl", 3], r"stages\[1\]: expected the name of a loss, or a mapping"),
    "loss": (["ucl", "ulc"], r"stages\[1\]\.loss: .*did you mean 'ucl'"),
    "parameter": ([{"colour": 1}], r"stages\[0\]: expected parameters among .*loss.* got 'colour'"),
    "nested": ([{"stages": ["ucl"]}], r"stages\[0\]: expected parameters among"),
    "start": (["ucl", {"warm_start": True}], r"stages\[1\]: expected parameters among"),
    "file": (["ucl", {"checkpoint": "a"}], r"stages\[1\]: expected parameters among"),
    "combination": (
        ["ucl", {"inference": "exact", "iterations": None, "gradient": "implicit"}],
        r"stages\[1\]\.gradient: ",
    ),
    "shape": (["ucl", {"bias": False}], r"stages: expected the same shapes of parameters as before, got 'node' of"),
    "own": ([{"own_parameters": True}, {}], r"stages: expected the same shapes .* after \(2, "),
    "optimizer": (["ucl", {"optimizer": Adam(batch_size=-1)}], r"batch_size"),
}


@pytest.mark.parametrize("name", WRONG)
@both
def test_everything_is_checked_before_any_work(kind, name):
    make, data = KINDS[kind]
    stages, words = WRONG[name]
    seen = []
    refuses(words, make(stages=stages, bias=True, callback=seen.append).fit, *data())
    assert not seen


def test_a_wrong_choice_of_data_is_one_of_its_stage():
    refuses(r"stages\[1\]\.edges: expected 'directions'", grid(stages=["ucl", {"edges": "some"}]).fit, *images())


class KilledError(Exception):
    """As if the process were killed."""


def killer(_progress):
    raise KilledError


@both
def test_killed_in_any_stage_and_gone_on(kind, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()
    adam = Adam(epochs=2, batch_size=2, random_state=0)
    stages = [SHORT, {"loss": "uquad", "optimizer": adam}, {"loss": "ucl"}]
    whole = make(stages=stages).fit(X, Y)
    path = tmp_path / "run.npz"
    for i in range(3):  # once in each stage: what was done before is done no more
        deadly = [{**one, "callback": killer if j == i else None} for j, one in enumerate(stages)]
        with pytest.raises(KilledError):
            make(stages=deadly, checkpoint=path).fit(X, Y)
        assert resume(stage_file(path, i)).state.iteration == 1
    again = make(stages=stages, checkpoint=path).fit(X, Y)
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    assert again.history_ == whole.history_
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.npz", "run.stage1.npz", "run.stage2.npz"]
    done = make(stages=stages, checkpoint=path, callback=killer).fit(X, Y)  # a finished run stays finished
    assert done.theta_.tobytes() == whole.theta_.tobytes()
    with pytest.raises(ig.InputError, match=r"checkpoint: .*run.stage1.npz.* of other data, choices or start"):
        make(stages=[SHORT, "ccl"], checkpoint=path).fit(X, Y)


@both
def test_an_interrupt_keeps_the_stage_that_was_reached(kind, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()

    def interrupt(progress):
        if progress.iteration == 3:
            raise KeyboardInterrupt

    stages = [{"iterations": 1, "callback": interrupt}, {"own_parameters": True}]
    crf = make(stages=stages)
    with pytest.warns(ig.ConvergenceWarning, match="stage 0 of training was interrupted after"):
        crf.fit(X, Y)
    assert crf.stage_ == 0
    assert crf.message_ == "interrupted"
    assert crf.parameters_["node"].ndim == 2
    assert crf.infer(X).info.iterations == 1
    stages[0]["callback"] = None
    crf.save(tmp_path / "a")
    again = type(crf).load(tmp_path / "a")
    assert again.stage_ == 0
    assert_array_equal(again.predict_marginals(X)[0], crf.predict_marginals(X)[0])


@both
def test_the_callback_ends_all_stages(kind):
    make, data = KINDS[kind]
    crf = make(stages=["cl", "ucl"], callback=lambda p: p.iteration == 2).fit(*data())
    assert (crf.stage_, crf.n_iter_, len(crf.history_)) == (0, 2, 2)


@both
def test_validation_ends_a_stage_and_no_more(kind):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(stages=["cl", "ucl"], l2=1e-6, patience=1).fit(X, Y, validation=data(seed=5))
    by_hand = make(loss="cl", l2=1e-6, patience=1, warm_start=True).fit(X, Y, validation=data(seed=5))
    assert by_hand.message_.startswith("the validation loss")
    by_hand.set_params(loss="ucl").fit(X, Y, validation=data(seed=5))
    assert crf.theta_.tobytes() == by_hand.theta_.tobytes()
    assert all(epoch.validation is not None for epoch in crf.history_)


@pytest.mark.long
@both
def test_scikit_learn_files_and_pickles(kind, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()
    stages = ["cl", {"loss": ig.losses.SmoothedUnivariate(lam=3.0), "class_weight": {0: 1.0, 1: 2.0}}, "ucl"]
    crf = make(stages=stages).fit(X, Y)
    assert crf.stages is stages
    assert stages[1].keys() == {"loss", "class_weight"}
    assert clone(crf).fit(X, Y).theta_.tobytes() == crf.theta_.tobytes()
    crf.save(tmp_path / "a")
    for again in (type(crf).load(tmp_path / "a"), pickle.loads(pickle.dumps(crf))):
        assert again.get_params() == crf.get_params()
        assert again.history_ == crf.history_
        assert again.stage_ == 2
        assert_array_equal(again.predict_marginals(X)[0], crf.predict_marginals(X)[0])
        again.set_params(warm_start=True, stages=None).fit(X, Y)
    search = GridSearchCV(make(), {"stages": [None, ["cl", "uquad"]]}, cv=2, error_score="raise").fit(*data(4))
    assert search.best_score_ > 0.7


@pytest.mark.parametrize("stage", [-1, 2, "0", None])
def test_forged_stages_are_refused(stage, tmp_path):
    grid(stages=["cl", "ucl"]).fit(*images()).save(tmp_path / "a")
    file = read_arrays(tmp_path / "a")
    write_arrays(tmp_path / "a", file.arrays, schema="grid-crf", version=2, metadata={**file.metadata, "stage": stage})
    with pytest.raises(ig.FileFormatError):
        ig.GridCRF.load(tmp_path / "a")


def test_a_warm_start_with_other_parameters():
    X, Y = images()
    crf = grid(edges="none", warm_start=True).fit(X, Y)
    node = crf.parameters_["node"]
    seen = []
    crf.set_params(edges="directions", callback=lambda p: seen.append(p.value)).fit(X, Y)
    assert abs(crf.parameters_["edge/horizontal"]).max() > 0
    begun = grid(warm_start=True)
    begun.theta_ = np.concatenate([node.ravel(), np.zeros(8)])
    assert begun.fit(X, Y).theta_.tobytes() == crf.theta_.tobytes()
    with pytest.raises(ig.InputError, match=r"warm_start: expected the same shapes .*'node' of shape \(2, 2\) after"):
        crf.set_params(bias=False).fit(X, Y)
    crf.set_params(bias=True).theta_ = np.zeros(3)
    refuses(r"warm_start: expected the parameters of the last fit, got 3 numbers", crf.fit, X, Y)


def test_a_warm_start_is_that_of_the_first_stage():
    X, Y = graphs()
    first = graph(loss="cl", warm_start=True).fit(X, Y)
    crf = graph(stages=["uquad", "ucl"], warm_start=True)
    crf.theta_ = first.theta_
    first.set_params(loss="uquad").fit(X, Y).set_params(loss="ucl").fit(X, Y)
    assert crf.fit(X, Y).theta_.tobytes() == first.theta_.tobytes()


def test_a_stage_that_stops_at_a_jump_names_what_goes_on():
    """Twelve rings of ten nodes, each with a run of one to four positives."""
    rng = np.random.default_rng(2)
    ring, X, Y = [(i, (i + 1) % 10) for i in range(10)], [], []
    for _ in range(12):
        y = np.zeros(10, int)
        y[(rng.integers(10) + np.arange(rng.integers(1, 5))) % 10] = 1
        X.append((np.c_[1.5 * y + rng.standard_t(1.5, size=10), np.ones(10)], ring))
        Y.append(y)
    half, pure = ig.losses.hybrids("f1", "mse", weights=(0.5, 1))
    crf = ig.GraphCRF(iterations=3, decoder="f1", stages=[half, pure], max_iter=5, l2=0.01)
    with pytest.warns(ig.ConvergenceWarning, match="the loss jumps .* optimizer='adam' goes on across jumps"):
        crf.fit(X, Y)
    on = ig.GraphCRF(**crf.get_params()).set_params(stages=[half, {"loss": pure, "optimizer": "adam"}])
    with pytest.warns(ig.ConvergenceWarning, match="max_iter|5 epochs"):
        on.fit(X, Y)
    assert on.n_iter_ == 60 > crf.n_iter_
    assert on.objective_ < crf.objective_
    assert [half.for_decoder(ig.decoding.F1(form)).jumps for form in ("independent", "even-split")] == [True, False]


def test_what_is_printed(capsys):
    X, Y = images()
    grid(stages=[SHORT, {"loss": "ucl", "verbose": False}], verbose=True).fit(X, Y)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "stage 0"
    assert len(printed) == 3
