"""Training that is killed goes on from its checkpoint, bit for bit."""

import contextlib
import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from estimator_helpers import KINDS, graph, graphs
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass.learning import checkpoint
from isinglass.learning.checkpoint import resume
from isinglass.learning.optimizers import Adam
from isinglass.learning.training import fingerprint
from second_interpreter import context


def described(crf):
    return f"{crf.n_iter_} {len(crf.history_)} {crf.theta_.tobytes().hex()} {crf.message_}\n"


def train(kind, path, written):
    """Train slowly, in a process of its own; write the result and what is printed into a file."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    make, data = KINDS[kind]
    with open(written, "w") as file, contextlib.redirect_stderr(file):
        crf = make(tol=1e-9, checkpoint=path, callback=lambda progress: time.sleep(0.2))
        file.write(described(crf.fit(*data())))


def started(folder, kind, path):
    """Start training, and wait until three iterations are in its checkpoint."""
    process = context.Process(target=train, args=(kind, path, folder / "written"))
    process.start()
    deadline = time.monotonic() + 120
    while not (path.exists() and resume(path).state.iteration >= 3):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("kind", KINDS)
def test_survives_kill_9(kind, tmp_path):
    path = tmp_path / "run.npz"
    process = started(tmp_path, kind, path)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert (tmp_path / "written").read_text() == ""
    make, data = KINDS[kind]
    whole = make(tol=1e-9).fit(*data())
    assert 3 <= resume(path).state.iteration < whole.n_iter_
    for _ in range(2):  # a finished run stays finished
        assert described(make(tol=1e-9, checkpoint=path).fit(*data())) == described(whole)


def test_ctrl_c_ends_training_in_order(tmp_path):
    process = started(tmp_path, "graph", tmp_path / "run.npz")
    os.kill(process.pid, signal.SIGINT)
    process.join()
    assert process.exitcode == 0
    written = (tmp_path / "written").read_text()
    assert written.endswith(" interrupted\n")
    assert "the best parameters so far are kept" in written
    again = graph(tol=1e-9, checkpoint=tmp_path / "run.npz").fit(*graphs())
    assert described(again) == described(graph(tol=1e-9).fit(*graphs()))


def stopped(path, X, Y, weights=None, **options):
    return graph(checkpoint=path, callback=lambda p: p.iteration == 3, **options).fit(X, Y, weights)


def test_a_run_that_goes_on_is_one_run(tmp_path):
    X, Y = graphs()
    whole = graph(warm_start=True).fit(X, Y)
    stopped(tmp_path / "a", X, Y)
    crf = graph(checkpoint=tmp_path / "a").fit(X, Y)
    assert crf.history_ == whole.history_
    assert crf.theta_.tobytes() == whole.theta_.tobytes()
    with pytest.warns(ig.ConvergenceWarning, match="max_iter"):
        graph(checkpoint=tmp_path / "b", max_iter=2).fit(X, Y)
    assert_array_equal(graph(checkpoint=tmp_path / "b").fit(X, Y).theta_, graph().fit(X, Y).theta_)


def test_minibatches_go_on_too(tmp_path):
    X, Y = graphs()
    adam = Adam(epochs=3, batch_size=2, random_state=0)
    stopped(tmp_path / "a", X, Y, optimizer=adam)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        crf = graph(checkpoint=tmp_path / "a", optimizer=adam).fit(X, Y)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        whole = graph(optimizer=adam).fit(X, Y)
    assert crf.theta_.tobytes() == whole.theta_.tobytes()


@pytest.mark.long
def test_minibatches_do_not_write_a_file_at_each_step(tmp_path, monkeypatch):
    X, Y = graphs()
    times, sizes = iter(range(10**6)), []
    monkeypatch.setattr(checkpoint, "monotonic", lambda: next(times) / 50)  # an iteration takes 0.02 s
    write = checkpoint.write_entries
    monkeypatch.setattr(checkpoint, "write_entries", lambda path, a: (write(path, a), sizes.append(path_size(path)))[0])
    adam = Adam(epochs=100, batch_size=1, random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        whole = graph(checkpoint=tmp_path / "a", optimizer=adam).fit(X, Y)
    assert whole.n_iter_ == 400
    assert sum(sizes) < 12 * path_size(tmp_path / "a")
    assert resume(tmp_path / "a").state.iteration == 400  # the last one is there
    again = graph(checkpoint=tmp_path / "a", optimizer=adam)
    with pytest.warns(ig.ConvergenceWarning, match="epochs"):
        again.fit(X, Y)
    assert described(again) == described(whole)


def path_size(path):
    return Path(path).stat().st_size


def test_a_checkpoint_of_another_problem_is_refused(tmp_path):
    X, Y = graphs()
    path = tmp_path / "a"
    stopped(path, X, Y)
    other = [(x + 1e-12, e) for x, e in X]
    for options, data in [
        ({}, (other, Y)),
        ({}, ([(x, e[::-1]) for x, e in X], Y)),
        ({}, (X, [1 - y for y in Y])),
        ({}, (X, Y, [1, 1, 1, 2])),
        ({"l2": 0.4}, (X, Y)),
        ({"loss": "uquad"}, (X, Y)),
        ({"iterations": 3}, (X, Y)),
        ({"n_states": 3}, (X, Y)),
        ({"optimizer": "steepest"}, (X, Y)),
    ]:
        with pytest.raises(ig.InputError, match=r"checkpoint: .* name another file, or remove this one"):
            graph(checkpoint=path, **options).fit(*data)
    assert resume(path).state.iteration == 3


def test_fingerprints_are_of_contents():
    large = np.arange(5000.0)
    other = large.copy()
    other[2500] = 0.0
    same = [
        ([large], [large.copy()]),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        (Adam(epochs=3), Adam(epochs=5)),
        (ig.BeliefPropagation(n_jobs=2), ig.BeliefPropagation(n_jobs=3)),
        (np.float64(0.5), 0.5),
        (np.random.default_rng(0), np.random.default_rng(1)),
    ]
    different = [
        ([large], [other]),
        ({"a": large}, {"a": other}),
        ((1, (2, 3)), ((1, 2), 3)),
        ("a", b"a"),
        (1, True),
        (Adam(learning_rate=0.1), Adam(learning_rate=0.2)),
        (ig.BeliefPropagation(), ig.TreeReweighted()),
        (graph, graphs),
        (Path.exists, Path.is_file),
        ({"a": 1}, {"a": 2}),
        ({1, 2}, {1, 3}),
        (partial(max, 1), partial(max, 2)),
        (np.sin, np.cos),
        (np.zeros((2, 3)), np.zeros((3, 2))),
        (np.array(["a", None]), np.array(["b", None])),
    ]
    assert all(fingerprint(a) == fingerprint(b) for a, b in same)
    assert all(fingerprint(a) != fingerprint(b) for a, b in different)
    assert fingerprint([1], [2]) != fingerprint([1, 2])


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "a"
    path.write_text("a letter")
    with pytest.raises(ig.FileFormatError):
        graph(checkpoint=path).fit(*graphs())
    assert path.read_text() == "a letter"
    with pytest.raises(ig.InputError, match=r"checkpoint: .*nowhere.* create the folder first"):
        graph(checkpoint=tmp_path / "nowhere" / "a").fit(*graphs())
