"""The command line with iterative algorithms."""

import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import isinglass as ig
from isinglass.cli.main import main
from isinglass.testing import random_potentials


@pytest.fixture
def grid(tmp_path):
    p = random_potentials(ig.grid_graph(4, 4, 2), np.random.default_rng(0), 0.5)
    path = tmp_path / "m.uai"
    ig.write_uai(p, path)
    return str(path)


def test_options_reach_the_algorithm(grid, capsys):
    assert main(["infer", grid, "--algorithm", "bp", "--schedule", "sequential", "--damping", "0.1", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    expected = ig.infer(ig.read_uai(grid), ig.BeliefPropagation(schedule="sequential", damping=0.1))
    assert out["log_z"] == expected.log_z
    assert out["iterations"] == expected.info.iterations
    assert out["converged"] is True
    assert out["bound"] is None
    assert main(["infer", grid, "--algorithm", "trw", "--json", "--task", "PR"]) == 0
    assert json.loads(capsys.readouterr().out)["bound"] == "upper"


def said(err):
    """Lines but those of the progress that a slow run (one that compiles) reports now and then."""
    return [line for line in err.splitlines() if not line.startswith("isinglass: iteration")]


@pytest.mark.filterwarnings("default::isinglass.errors.ConvergenceWarning")
def test_not_converged_is_said(grid, capsys):
    assert main(["infer", grid, "--algorithm", "bp", "--max-iter", "1", "--task", "PR"]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("PR\n")
    assert "raise max_iter, add damping" in captured.err
    assert len(said(captured.err)) == 2  # the warning and the report
    assert "NOT converged after 1 iteration, residual" in captured.err
    assert main(["infer", grid, "--algorithm", "bp", "--iterations", "1", "--task", "PR"]) == 0
    err = capsys.readouterr().err
    assert len(said(err)) == 1  # asked for one iteration: no warning
    assert "NOT converged after 1 iteration, residual" in err


@pytest.mark.parametrize("algorithm", ["bp", "trw", "fbp", "mf"])
def test_the_report_says_that_it_converged(grid, algorithm, capsys):
    assert main(["infer", grid, "--algorithm", algorithm, "--task", "PR"]) == 0
    assert re.search(r"; converged after \d+ iterations, residual \S+; ", capsys.readouterr().err)
    assert main(["infer", grid, "--task", "PR"]) == 0
    assert "converged" not in capsys.readouterr().err  # exact inference does not iterate


def test_the_report_of_max_product_says_where_it_stopped(grid, capsys):
    assert main(["infer", grid, "--algorithm", "bp", "--task", "MAP", "--max-iter", "3"]) == 0
    err = capsys.readouterr().err
    assert "not proved optimal, no bound; stopped at iteration" in err
    assert "residual" in err


def run_on_terminal(*argv):
    """Run the program with a pseudo-terminal for its stderr; return its exit code and what the terminal got."""
    leader, follower = pty.openpty()
    env = os.environ | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-m", "isinglass", *argv], stdout=subprocess.DEVNULL, stderr=follower,
                               env=env)  # fmt: skip
    os.close(follower)
    shown = b""
    with contextlib.suppress(OSError):  # the terminal is gone when the program ends
        while chunk := os.read(leader, 65536):
            shown += chunk
    os.close(leader)
    return process.wait(timeout=60), shown.decode()


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals")
def test_a_terminal_sees_it_converge(tmp_path):
    p = random_potentials(ig.grid_graph(100, 100, 2), np.random.default_rng(0), 3.0)
    ig.write_uai(p, tmp_path / "m.uai")
    argv = ["infer", str(tmp_path / "m.uai"), "--algorithm", "bp", "--tol", "0", "--max-iter", "2000", "--task", "PR"]
    code, shown = run_on_terminal(*argv)
    assert code == 0
    seen = [int(n) for n in re.findall(r"iteration (\d+), residual", shown)]
    assert len(seen) > 1
    assert seen == sorted(seen)
    assert "NOT converged after 2000 iterations" in shown
    code, shown = run_on_terminal(*argv, "--quiet")
    assert (code, re.findall(r"iteration \d+, residual", shown)) == (0, [])


def test_map_by_max_product(grid, capsys):
    assert main(["infer", grid, "--algorithm", "bp", "--task", "MAP", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert len(out["states"]) == 16
    assert out["optimal"] is False


@pytest.mark.parametrize(
    "options",
    [
        ["--tol", "1e-3"],
        ["--algorithm", "exact", "--damping", "0.5"],
        ["--algorithm", "bp", "--damping", "1.5"],
        ["--algorithm", "bp", "--schedule", "tree"],
        ["--algorithm", "bp", "--iterations", "-2"],
        ["--algorithm", "bp", "--tol", "much"],
    ],
)
def test_mistakes_are_one_line(grid, options, capsys):
    try:
        code = main(["infer", grid, *options])
    except SystemExit as stop:
        code = stop.code
    err = capsys.readouterr().err
    assert code == 2
    assert err.count("\n") == 1
    assert err.startswith("isinglass: ")


def test_the_model_is_not_overwritten(grid, capsys):
    before = Path(grid).read_text()
    assert main(["infer", grid, "--task", "PR", "--out", grid]) == 2
    assert Path(grid).read_text() == before
    assert "--out: expected another file" in capsys.readouterr().err
