"""The command `isinglass bench`."""

import pytest

from isinglass.cli import bench
from isinglass.cli.main import main
from isinglass.experiments import speed
from isinglass.runtime.profiling import PARTS


def test_speed(monkeypatch, capsys):
    asked = []

    def make():
        return asked.append

    monkeypatch.setattr(speed, "SHORTEST", 0.0)
    monkeypatch.setattr(speed, "PROBLEMS", {"a small one": (make, 4, 0.5), "another": (make, 1, 2.0)})
    assert main(["bench", "--n-jobs", "3", "--quiet"]) == 0
    out = capsys.readouterr().out
    for text in ("3 threads", "a small one", "another", "500 ms", "2 s"):
        assert text in out
    assert set(asked) == {1, 3}
    assert asked.count(1) == asked.count(3) == 2 * (2 + speed.RUNS)


def test_seconds_are_those_of_a_part(monkeypatch):
    clock = iter(range(10**6))
    monkeypatch.setattr(speed.time, "perf_counter", lambda: next(clock))  # each measurement takes one second
    monkeypatch.setattr(speed, "PROBLEMS", {"four parts": (lambda: lambda _: None, 4, 1.0)})
    assert speed.measure(2) == [("four parts", 0.25, 0.25, 1.0)]


def test_profile(capsys):
    assert main(["bench", "profile", "graphs"]) == 0
    out = capsys.readouterr().out
    for text in (*PARTS, "share", "losses/pseudo.py"):
        assert text in out


QUICK = [name for name in speed.PROBLEMS if "exact" in name or "gradient" in name]


@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in speed.PROBLEMS]
)
def test_every_problem_runs(name):
    make, parts, recorded = speed.PROBLEMS[name]
    make()(1)
    assert parts >= 1
    assert recorded > 0


def test_fits_are_those_of_the_library():
    assert tuple(speed.FITS) == bench.FITS


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["profile", "dogs"], "argument FIT: invalid choice: 'dogs'"),
        (["fast"], "invalid choice: 'fast'"),
        (["speed", "graphs"], "FIT: expected none, but with profile, got graphs"),
        (["--n-jobs", "0"], "expected a whole number of at least 1, got 0"),
    ],
)
def test_wrong_input(arguments, text, capsys):
    assert main(["bench", *arguments]) == 2
    assert text in capsys.readouterr().err
