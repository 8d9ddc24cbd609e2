"""Where time goes: whose functions count for which part."""

import time

import numpy as np
import pytest

import isinglass as ig
from isinglass.runtime.profiling import PACKAGE, PARTS, part_of, seconds_by_part


def ours(path, name="f"):
    return (str(PACKAGE / path), 1, name)


SUM = ("~", 0, "<built-in method sum>")
ELSEWHERE = ("/usr/lib/python3/site-packages/numpy/core.py", 7, "add")


def called(own, **by):
    """Return the times of a function, and of its calls by others."""
    return (1, 1, own, own, by)


@pytest.mark.parametrize(
    ("path", "part"),
    [
        ("kernels/numba/grids/sweeps.py", "loops"),
        ("runtime/compilation/calls.py", "loops"),
        ("runtime/compilation/jit.py", "compilation"),
        ("runtime/threads.py", "set-up"),
        ("inference/message_passing/engine.py", "set-up"),
        ("inference/message_passing/outcome.py", "read-out"),
        ("models/model.py", "model"),
        ("decoding/f1.py", "loss"),
        ("learning/chain.py", "loss"),
        ("learning/optimizers/lbfgs.py", "optimizer"),
        ("estimators/crf.py", "estimator"),
        ("viz/panel.py", "other"),
    ],
)
def test_files_belong_to_parts(path, part):
    assert part_of(ours(path)) == part


def test_named_modules_exist():
    """A module that was renamed would count for another part."""
    for words in PARTS.values():
        for word in words:
            if "/" in word or word in ("potentials", "segments", "validation"):
                assert (PACKAGE / word).is_dir() or list((PACKAGE / word).parent.glob(f"{(PACKAGE / word).name}*.py"))


def test_what_is_not_ours_counts_for_its_callers():
    model, loss = ours("models/model.py"), ours("losses/loss.py")
    known = {
        model: (1, 1, 1.0, 4.0, {}),
        loss: (1, 1, 2.0, 9.0, {}),
        ELSEWHERE: (2, 2, 3.0, 10.0, {loss: (1, 1, 3.0, 10.0)}),
        SUM: (3, 3, 7.0, 7.0, {model: (1, 1, 3.0, 3.0), ELSEWHERE: (2, 2, 4.0, 4.0)}),
    }
    found = seconds_by_part(known)
    assert found["model"] == 1 + 3
    assert found["loss"] == 2 + 3 + 4
    assert sum(found.values()) == 13


def test_code_that_is_called_directly_counts_as_loops():
    calls, engine = ours("runtime/compilation/calls.py", "__call__"), ours("inference/message_passing/engine.py")
    known = {engine: (1, 1, 0.5, 3.0, {}), calls: (1, 1, 0.25, 2.5, {engine: (1, 1, 0.25, 2.5)})}
    known[("~", 0, "<built-in method flood>")] = (9, 9, 2.25, 2.25, {calls: (9, 9, 2.25, 2.25)})
    assert seconds_by_part(known)["loops"] == 2.5


def test_seconds_are_those_of_the_block():
    p = ig.models.Ising(ig.grid_graph(150, 150, 2)).potentials(coupling=0.2, field=0.1)
    run = lambda: ig.infer(p, "bp", iterations=100, schedule="flooding")  # noqa: E731
    run()
    start = time.process_time()
    with ig.Profile(time.process_time) as spent:
        run()
    assert 0 < sum(spent.seconds.values()) <= time.process_time() - start
    assert set(spent.seconds) == set(PARTS)
    assert max(spent.seconds, key=spent.seconds.get) == "loops"
    assert spent.slowest(3)[0].seconds >= spent.slowest(3)[2].seconds
    assert "kernels" in "".join(one.function for one in spent.slowest(5))


def test_one_inside_another_is_refused():
    with ig.Profile() as outer:
        with pytest.raises(ig.InputError, match="no other profiler"), ig.Profile():
            pass
        sum(range(100_000))
    assert sum(outer.seconds.values()) > 0


def test_an_error_passes_through():
    spent = ig.Profile()
    with pytest.raises(ValueError, match="cannot reshape"), spent:
        np.zeros(3).reshape(2)
    assert sum(spent.seconds.values()) > 0
    assert "0.000     0%" in str(ig.Profile())
