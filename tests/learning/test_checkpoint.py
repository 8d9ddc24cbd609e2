"""States in files: resumed bit for bit, also after SIGKILL; damaged files are refused."""

import contextlib
import os
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optim_helpers import BATCHED, WHOLE, Logistic, rosenbrock, same_bits, same_states

from checks import refuses
from isinglass.errors import FileFormatError
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.learning.checkpoint import Journal, resume, save_checkpoint
from isinglass.learning.optimizers import OPTIMIZERS, Adam, Lbfgs, LbfgsState, OwlQn, Sgd, make_optimizer

F = Logistic(n=33, features=7)
OPTIONS = {
    "lbfgs": {"tol": 0.0, "ftol": 0.0, "memory": 4},
    "owlqn": {"tol": 0.0, "ftol": 0.0, "l1": np.linspace(0, 30, 7)},
    "steepest": {"tol": 0.0, "ftol": 0.0},
    **{name: {"averaging": True, "batch_size": 5, "random_state": 1, "burn_in": 1} for name in BATCHED},
}


def made(name, length):
    return make_optimizer(name, **{"epochs" if name in BATCHED else "max_iter": length}, **OPTIONS[name])


def run(optimizer, **options):
    if optimizer.name in BATCHED:
        return optimizer.minimise_batches(F.on, F.n, np.full(7, 0.5), **options)
    return optimizer.minimise(F, np.full(7, 0.5), **options)


@pytest.mark.parametrize("name", [*WHOLE, *BATCHED])
def test_five_and_five_make_ten(name, tmp_path):
    whole = run(made(name, 10))
    half = run(made(name, 5))
    half.state.save(tmp_path / "state.npz")
    state = OPTIMIZERS[name].state_type.load(tmp_path / "state.npz")
    assert same_states(state, half.state)
    rest = run(made(name, 10), state=state)
    assert same_states(rest.state, whole.state)
    assert same_bits(rest.x, whole.x)
    assert same_bits(rest.gradient, whole.gradient)
    for a, b in ((rest, whole),):
        assert (a.value, a.iterations, a.evaluations) == (b.value, b.iterations, b.evaluations)
        assert (a.converged, a.message) == (b.converged, b.message)


@pytest.mark.long
@pytest.mark.parametrize("name", [*WHOLE, *BATCHED])
@pytest.mark.parametrize("every", [1, 3])
def test_resumes_from_any_iteration_of_the_journal(name, every, tmp_path):
    path, optimizer = tmp_path / "run.npz", made(name, 4)
    whole = run(optimizer)
    for stop in range(every, whole.iterations + 1, 2):
        journal = Journal(path, optimizer, every, callback=lambda p, stop=stop: p.iteration == stop)
        run(optimizer, callback=journal)
        again, state = resume(path)
        assert again == replace(optimizer)
        assert state.iteration == stop // every * every
        assert same_states(run(again, state=state).state, whole.state)


def test_a_finished_run_stays_finished(tmp_path):
    optimizer = Lbfgs(tol=1e-6)
    result = run(optimizer, callback=Journal(tmp_path / "a", optimizer))
    again, state = resume(tmp_path / "a")
    second = again.minimise(F, state=state)
    assert second.converged
    assert (second.message, second.evaluations) == (result.message, result.evaluations)


def test_equal_states_give_equal_bytes(tmp_path):
    for name in "ab":
        optimizer = made("owlqn", 5)
        run(optimizer, callback=Journal(tmp_path / name, optimizer))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["a", "b"]


def test_any_option_survives(tmp_path):
    for optimizer in (
        OwlQn(l1=np.float32(0.1), tol=0.1 + 0.2),
        OwlQn(l1=np.asarray(2.0)),
        OwlQn(l1=[0] * 7),
        Sgd(random_state=np.int64(4)),
        Sgd(random_state=None, schedule="sqrt"),
    ):
        save_checkpoint(tmp_path / "a", optimizer, run(replace(optimizer)).state)
        assert resume(tmp_path / "a").optimizer == optimizer
    save_checkpoint(tmp_path / "a", Adam(random_state=np.random.default_rng(0)), run(Adam()).state)
    assert resume(tmp_path / "a").optimizer == Adam()


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    run(made("lbfgs", 3)).state.save(path)
    old = path.read_bytes()

    def broken(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", broken)
    result = run(Lbfgs(), callback=Journal(path, Lbfgs()))
    assert result.message == "interrupted"
    assert path.read_bytes() == old
    assert list(tmp_path.iterdir()) == [path]


def damaged(tmp_path, schema="optimizer-state", version=1, **changes):
    path = tmp_path / "a"
    save_checkpoint(path, Lbfgs(), Lbfgs(max_iter=3).minimise(rosenbrock, [-1.2, 1.0]).state)
    arrays = read_arrays(path).arrays
    for name, value in changes.items():
        key = name.replace("__", ".")
        if value is None:
            del arrays[key]
        else:
            arrays[key] = np.asarray(value)
    write_arrays(path, arrays, schema=schema, version=version)
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": "grid-crf"}, "expected the schema 'optimizer-state', got 'grid-crf'"),
        ({"version": 9}, "expected the schema 'optimizer-state' up to version 1, got version 9"),
        ({"state__x": None}, "expected an entry state.x, got none"),
        ({"state__x": [1, 2]}, "expected state.x to be a vector, got dtype int64"),
        ({"state__gradient": [1.0]}, r"expected state.gradient with 2 entries a vector, got shape \(1,\)"),
        ({"state__steps": [1.0, 2.0]}, "expected state.steps to be a matrix"),
        ({"state__iteration": 2.0}, "expected state.iteration to be a whole number"),
        ({"state__optimizer": "magic"}, "expected an optimizer among .* got 'magic'"),
        ({"option__memory": '"many"'}, "expected options of 'lbfgs', got memory: expected a whole number"),
        ({"option__memory": "{"}, "expected option.memory in JSON"),
        ({"option__speed": "3"}, "expected options of 'lbfgs', got 'option.speed'"),
    ],
)
def test_what_is_wrong_in_a_file_is_said(changes, message, tmp_path):
    refuses(message, resume, damaged(tmp_path, **changes), error=FileFormatError)


def test_older_files_without_an_option_keep_its_default(tmp_path):
    assert resume(damaged(tmp_path, option__memory=None)).optimizer == Lbfgs()


@pytest.mark.long
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_damaged_files_are_refused(data, tmp_path_factory):
    path = damaged(tmp_path_factory.mktemp("damage"))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        content = content[: data.draw(st.integers(0, len(content) - 1))]
    for _ in range(data.draw(st.integers(0, 4))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with contextlib.suppress(FileFormatError):
        assert isinstance(resume(path).state, LbfgsState)  # the damage was done where nobody looks


def test_what_is_no_checkpoint_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([{}], object))
    refuses(r"a whole \.npz archive of plain arrays", resume, path, error=FileFormatError)
    path.write_text("not a zip file")
    refuses(r"a\.npz: expected a whole \.npz archive", resume, path, error=FileFormatError)
    with pytest.raises(FileNotFoundError):
        resume(tmp_path / "nowhere")
    refuses("dtype object", save_checkpoint, path, Lbfgs(), run(made("lbfgs", 1)).state, {"x": np.array([{}], object)})
    run(made("owlqn", 2)).state.save(tmp_path / "a")
    refuses("expected a checkpoint with options, got a state alone", resume, tmp_path / "a", error=FileFormatError)
    refuses("every: expected a whole number of at least 1", Journal, tmp_path / "a", Lbfgs(), every=0)
    refuses(r"optimizer: expected an optimizer such as .*, got str", Journal, tmp_path / "a", "lbfgs")
    refuses("path", Journal, "", Lbfgs())
