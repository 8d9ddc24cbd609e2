"""l2="auto": chosen on examples that are held out, by one mechanism for all estimators."""

import signal
import time

import numpy as np
import pytest
from estimator_helpers import graph, graphs, grid, images
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from isinglass.estimators import load
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.learning.optimizers import Adam
from isinglass.learning.training.penalty_search import DECADE, FOLDS, MOST, SEED, best_step, next_step, value_of
from second_interpreter import context

TIGHT = {"tol": 1e-7, "max_iter": 500}


def sequences(n=24, seed=0):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(2, 6), 3)) for _ in range(n)]
    return X, [(x @ [2, -2, 1] + rng.normal(size=len(x)) > 0).astype(int) for x in X]


def label_sets(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, (X @ rng.normal(size=(3, 3)) + rng.normal(size=(n, 3)) > 0).astype(int)


def samples(n=60, seed=0):
    X = np.random.default_rng(seed).integers(0, [2, 3, 2], (n, 3))
    X[:, 1] = np.where(np.arange(n) % 4, 2 * X[:, 0], X[:, 1])
    X[:, 2] = np.where(X[:, 1] == 2, 1, X[:, 2])
    return X[np.lexsort(X.T[::-1])], None  # in the order in which distinct samples are listed


def field(**options):
    return ig.MRF(ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2)]), **options)


def of_marginals(crf, X, Y):
    found = crf.predict_marginals(X)
    return -sum(
        float(np.log(b.reshape(-1, 2)[np.arange(np.size(y)), np.ravel(y)]).sum()) for b, y in zip(found, Y, strict=True)
    )


def of_likelihood(crf, X, Y):
    return -float(np.sum(crf.log_likelihood(X) if Y is None else crf.log_likelihood(X, Y)))


CASES = {
    "grid": (lambda **o: grid(n_states=2, **o), images, of_marginals, 12),
    "graph": (lambda **o: graph(n_states=2, **o), graphs, of_marginals, 12),
    "multilabel": (ig.MultiLabelCRF, label_sets, of_marginals, 40),
    "chain": (lambda **o: ig.ChainCRF(state_features="all", **o), sequences, of_likelihood, 24),
    "memm": (lambda **o: ig.MEMM(state_features="all", boundary=True, **o), sequences, of_likelihood, 24),
    "field": (field, samples, of_likelihood, 60),
}


def chosen(data, rows):
    return data[rows] if isinstance(data, np.ndarray) else None if data is None else [data[i] for i in rows]


def by_hand(make, X, Y, loss, l2):
    """Train on all folds but one, and return the losses of the folds."""
    parts = np.array_split(np.random.default_rng(SEED).permutation(len(X)), FOLDS)
    found = []
    for part in parts:
        rows, others = np.sort(part), np.setdiff1d(np.arange(len(X)), part)
        crf = make(l2=l2, **TIGHT).fit(chosen(X, others), chosen(Y, others))
        found.append(loss(crf, chosen(X, rows), chosen(Y, rows)))
    return found


@pytest.mark.parametrize("kind", CASES)
def test_it_is_what_one_would_do_by_hand(kind):
    make, data, loss, n = CASES[kind]
    X, Y = data(n)
    crf = make(l2="auto", **TIGHT).fit(X, Y)
    for trial in crf.l2_path_:
        assert trial.losses == pytest.approx(by_hand(make, X, Y, loss, trial.l2), rel=1e-4)
    losses = {trial.l2: trial.loss for trial in crf.l2_path_}
    assert crf.l2_ == min(losses, key=losses.get)
    for neighbour in (crf.l2_ / 10 ** (1 / DECADE), crf.l2_ * 10 ** (1 / DECADE)):
        assert min(abs(one / neighbour - 1) for one in losses) < 1e-9
    again = make(l2=crf.l2_, **TIGHT).fit(X, Y)
    assert crf.theta_.tobytes() == again.theta_.tobytes()
    assert (crf.history_, crf.n_iter_, again.l2_, again.l2_path_) == (again.history_, again.n_iter_, crf.l2_, [])


@given(st.integers(-MOST, MOST), st.floats(0.1, 3.0), st.floats(0.1, 3.0))
def test_the_least_of_a_valley_is_found(best, left, right):
    def valley(k):
        return left * (best - k) if k < best else right * (k - best)

    tried = {}
    while (step := next_step(tried)) is not None:
        assert abs(step) <= MOST
        tried[step] = valley(step)
    assert best_step(tried) == best
    assert len(tried) <= abs(best) + 4


def test_weights_count_where_examples_are_held_out():
    X, Y = sequences()
    rng = np.random.default_rng(1)
    weights = rng.integers(0, 3, len(X)).astype(float)
    crf = ig.ChainCRF(state_features="all", l2="auto", **TIGHT).fit(X, Y, weights)
    part = np.sort(np.array_split(np.random.default_rng(SEED).permutation(len(X)), FOLDS)[0])
    others = np.setdiff1d(np.arange(len(X)), part)
    first = crf.l2_path_[0]
    alone = ig.ChainCRF(state_features="all", l2=first.l2, **TIGHT)
    alone.fit(chosen(X, others), chosen(Y, others), weights[others])
    expected = -float(weights[part] @ alone.log_likelihood(chosen(X, part), chosen(Y, part)))
    assert first.losses[0] == pytest.approx(expected, rel=1e-4)


def test_a_table_of_counts_is_its_samples():
    X, _ = samples()
    counts = np.zeros((2, 3, 2), int)
    np.add.at(counts, tuple(X.T), 1)
    one, two = field(l2="auto").fit(X), field(l2="auto").fit(counts=counts)
    assert one.l2_ == two.l2_
    assert np.allclose([t.losses for t in one.l2_path_], [t.losses for t in two.l2_path_], rtol=1e-3)
    predicted = field(l2="auto").fit(X, outputs=[True, False, False])
    assert predicted.theta_.tobytes() == field(l2=predicted.l2_).fit(X, outputs=[True, False, False]).theta_.tobytes()


def test_validation_data_are_what_is_held_out():
    (X, Y), held = images(8), images(6, seed=3)
    crf = grid(l2="auto").fit(X, Y, validation=held)
    assert all(len(trial.losses) == 1 for trial in crf.l2_path_)
    again = grid(l2=crf.l2_).fit(X, Y, validation=held)
    assert crf.theta_.tobytes() == again.theta_.tobytes()
    best = next(trial for trial in crf.l2_path_ if trial.l2 == crf.l2_)
    assert best.loss == pytest.approx(of_marginals(again, *held), rel=1e-9)


@pytest.mark.filterwarnings("ignore::isinglass.errors.ConvergenceWarning")
@pytest.mark.parametrize(
    "options",
    [
        {"loss": "suclass"},
        {"stages": [{"loss": "cl", "max_iter": 3}, {"own_parameters": True}]},
        {"stages": [{"loss": "cl", "l2": 0.5}, "ucl"]},
        {"edge_l2": 0.7},
        {"optimizer": Adam(batch_size=4, epochs=3, random_state=0)},
    ],
    ids=["start", "stages", "own", "edges", "minibatches"],
)
def test_other_choices_stay(options):
    X, Y = images(6)
    crf = grid(l2="auto", max_iter=15, **options).fit(X, Y)
    again = grid(l2=crf.l2_, max_iter=15, **options).fit(X, Y)
    assert crf.theta_.tobytes() == again.theta_.tobytes()
    assert crf.history_ == again.history_


def test_threads_change_nothing():
    X, Y = images(9)
    one, two = (grid(l2="auto", n_jobs=n).fit(X, Y) for n in (1, 2))
    assert one.theta_.tobytes() == two.theta_.tobytes()
    assert one.l2_path_ == two.l2_path_


def search_slowly(path):
    graph(l2="auto", tol=1e-9, checkpoint=path, callback=lambda progress: time.sleep(0.05)).fit(*graphs(6))


def test_a_killed_search_goes_on_bit_for_bit(tmp_path):
    path = tmp_path / "run.npz"
    process = context.Process(target=search_slowly, args=(path,))
    process.start()
    record, deadline = tmp_path / "run.l2.npz", time.monotonic() + 120
    while not (
        record.exists() and read_arrays(record).arrays["counts"].sum() >= 4 and (tmp_path / "run.l2-1-1.npz").exists()
    ):
        assert time.monotonic() < deadline
        assert process.is_alive()
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not path.exists()  # it was still looking for l2
    X, Y = graphs(6)
    calls = []
    resumed = graph(l2="auto", tol=1e-9, checkpoint=path, callback=calls.append).fit(X, Y)
    whole = graph(l2="auto", tol=1e-9).fit(X, Y)
    assert resumed.theta_.tobytes() == whole.theta_.tobytes()
    assert (resumed.l2_path_, resumed.history_) == (whole.l2_path_, whole.history_)
    done = sum(sum(trial.iterations) for trial in whole.l2_path_) + whole.n_iter_
    assert 0 < len(calls) < done
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.l2.npz", "run.npz"]
    again = graph(l2="auto", tol=1e-9, checkpoint=path).fit(X, Y)  # a finished run stays finished
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    assert again.l2_path_ == whole.l2_path_
    with pytest.raises(ig.InputError, match="checkpoint: expected a checkpoint of this problem"):
        graph(l2="auto", tol=1e-9, checkpoint=path).fit(X[:-1], Y[:-1])
    file = read_arrays(record)
    arrays = {**file.arrays, "counts": file.arrays["counts"] + 9}
    write_arrays(record, arrays, schema=file.schema, metadata=file.metadata)
    with pytest.raises(ig.FileFormatError, match="what a search for l2 has found"):
        graph(l2="auto", tol=1e-9, checkpoint=path).fit(X, Y)


class Stop:
    """A callback that ends training after some iterations."""

    def __init__(self, after, error=None):
        self.left, self.error = after, error

    def __call__(self, progress):
        self.left -= 1
        if self.left == 0 and self.error is not None:
            raise self.error
        return self.left == 0


@pytest.mark.parametrize("after", [2, 60])
def test_ctrl_c_keeps_the_best_so_far(after):
    X, Y = graphs(8)
    whole = graph(l2="auto", tol=1e-9).fit(X, Y)
    with pytest.warns(UserWarning, match="the search for l2 was interrupted after .* best parameters so far are kept"):
        crf = graph(l2="auto", tol=1e-9, callback=Stop(after, KeyboardInterrupt)).fit(X, Y)
    assert crf.message_ == "interrupted"
    assert not crf.converged_
    assert crf.l2_path_ == whole.l2_path_[: len(crf.l2_path_)]
    assert len(crf.history_) == crf.n_iter_
    assert crf.l2_ == (min(crf.l2_path_, key=lambda t: t.loss).l2 if crf.l2_path_ else 1.0)
    assert bool(crf.l2_path_) is (after > 2)
    crf.predict(X)
    stopped = graph(l2="auto", tol=1e-9, callback=Stop(after)).fit(X, Y)
    assert stopped.message_ == "stopped by the callback"
    assert stopped.theta_.tobytes() == crf.theta_.tobytes()


def test_progress_says_what_is_tried(capsys):
    crf = grid(l2="auto", verbose=True).fit(*images(6))
    lines = capsys.readouterr().out.splitlines()
    for trial in crf.l2_path_:
        assert f"l2 = {trial.l2:.3g}, fold 2 of 3" in lines
        assert f"l2 = {trial.l2:.3g}: loss {trial.loss:.8g} of the examples held out" in lines


def test_scikit_learn_clones_and_searches():
    X, Y = images(9)
    crf = grid(l2="auto")
    assert clone(crf).l2 == "auto"
    search = GridSearchCV(crf, {"l2": ["auto", 100.0]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"l2": "auto"}
    assert search.best_estimator_.l2_ < 10


@pytest.mark.parametrize("kind", CASES)
def test_files_keep_what_was_chosen(kind, tmp_path):
    make, data, _, n = CASES[kind]
    X, Y = data(n)
    path = tmp_path / "a.isg"
    crf = make(l2="auto").fit(X, Y)
    crf.save(path)
    again = load(path)
    assert (again.l2, again.l2_, again.l2_path_) == ("auto", crf.l2_, crf.l2_path_)
    assert again.theta_.tobytes() == crf.theta_.tobytes()
    refitted = again.set_params(warm_start=True).fit(X, Y)
    assert refitted.l2_path_
    file = read_arrays(path)

    def forged(**changes):
        arrays = {**file.arrays, **changes.pop("arrays", {})}
        write_arrays(path, arrays, schema=file.schema, version=file.version, metadata={**file.metadata, **changes})
        return load(path)

    for changes in ({"l2": -1.0}, {"l2": "auto"}, {"arrays": {"l2-path": np.zeros((2, 2))}}):
        with pytest.raises(ig.FileFormatError):
            forged(**changes)


def test_files_of_older_versions_have_the_number_alone(tmp_path):
    path = tmp_path / "a.isg"
    grid(l2=0.3).fit(*images()).save(path)
    file = read_arrays(path)
    metadata = {key: value for key, value in file.metadata.items() if key != "l2"}
    write_arrays(path, file.arrays, schema=file.schema, version=file.version, metadata=metadata)
    assert (load(path).l2_, load(path).l2_path_) == (0.3, [])


def test_partial_fit_has_no_examples_to_hold_out():
    X, Y = sequences()
    with pytest.raises(ig.InputError, match="l2: expected a number for partial_fit, got 'auto'; or choose it with fit"):
        ig.ChainCRF(l2="auto", optimizer="sgd").partial_fit(X, Y)
    crf = ig.ChainCRF(l2="auto").fit(X, Y)
    known = crf.l2_
    assert crf.set_params(optimizer="adam").partial_fit(X, Y).l2_ == known


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: grid(l2="auto").fit(*images(1)), "X: expected at least two examples .* give l2 a number, or"),
        (lambda: grid(l2="Auto").fit(*images()), "l2: expected a number of at least 0, or 'auto', got 'Auto'"),
        (lambda: grid(l2="auto", loss="pcd").fit(*images()), "l2: expected a number with loss 'pcd'"),
        (lambda: grid(edge_l2="auto").fit(*images()), "edge_l2: expected a number"),
        (lambda: field(l2="auto", method="ipf").fit(samples()[0]), "l2: expected 0 for method='ipf', got 'auto'"),
        (lambda: field(l2="auto", method="pcd").fit(samples()[0]), "l2: expected a number for method='pcd'"),
        (lambda: field(l2="auto", prior="laplace").fit(samples()[0]), "l2: expected 0 if a prior is given, got 'auto'"),
        (lambda: field(l2="auto").fit(counts=np.full((2, 3, 2), 0.5)), "counts: expected whole numbers"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(fit, message):
    with pytest.raises(ig.InputError, match=message):
        fit()


def test_two_examples_are_two_folds():
    crf = grid(l2="auto").fit(*images(2))
    assert all(len(trial.losses) == 2 for trial in crf.l2_path_)
    assert crf.l2_ in [value_of(k) for k in range(-MOST, MOST + 1)]
