"""isinglass infer: results against the library, every option, every refusal."""

import gzip
import json
import math
import sys
import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from cli_helpers import UAI, one_clean_line

import isinglass as ig
from isinglass.cli.report import ProgressBar, ProgressLines, Silence, progress_on_stderr
from isinglass.inference import ALGORITHMS, Brute, Cost, Facts
from isinglass.io import read_map, read_mar, read_pr
from isinglass.runtime.compilation.jit import Count

LOG_10 = math.log(10)


@pytest.mark.parametrize("algorithm", [None, "exact", "brute"])
@pytest.mark.parametrize("evidence", [False, True])
def test_results_are_those_of_the_library(command, model, tmp_path, algorithm, evidence):
    extra = ["--evidence", f"{model}.evid"] if evidence else []
    p = ig.read_uai(model, f"{model}.evid" if evidence else None)
    extra += ["--algorithm", algorithm] if algorithm else []
    r, best = ig.infer(p, algorithm), ig.map_assignment(p, algorithm or "exact")
    out = tmp_path / "result"

    def run(task):
        code, text, err = command("infer", model, "--task", task, "--out", out, *extra)
        assert (code, text) == (0, "")
        one_clean_line(err)
        assert err.startswith(f"isinglass: {algorithm or 'exact'}: ")

    run("PR")
    assert read_pr(out) == pytest.approx(r.log_z, abs=1e-12)
    run("MAR")
    for got, expected in zip(read_mar(out), r.variables, strict=True):
        np.testing.assert_array_equal(got, expected)
    run("MAP")
    np.testing.assert_array_equal(read_map(out), best.states)


def test_results_on_stdout(command, model):
    plain = command("infer", model)
    assert plain.out.startswith("MAR\n3 2 ")
    assert command("infer", model, "--task", "mar").out == plain.out
    p = ig.read_uai(model)
    _, value = command("infer", model, "--task", "PR").out.split()
    assert float(value) == pytest.approx(ig.infer(p).log_z / LOG_10, abs=1e-12)
    fg = model.with_suffix(".fg")
    p = ig.read_fg(fg)
    assert float(command("infer", fg, "--task", "PR").out.split()[1]) * LOG_10 == pytest.approx(ig.infer(p).log_z)
    packed = model.with_name("n.uai.gz")
    packed.write_bytes(gzip.compress(UAI.encode()))
    assert command("infer", packed).out == command("infer", model).out


def test_report(command, model):
    err = command("infer", model, "--task", "PR").err
    p = ig.read_uai(model)
    log_z = ig.infer(p).log_z
    assert f"log Z = {log_z:.9g} (log10 Z = {log_z / LOG_10:.9g}), exact; width 1, " in err
    assert err.endswith(" s\n")
    err = command("infer", model, "--task", "MAP").err
    assert f"score = {ig.map_assignment(p).score:.9g} " in err
    assert ", optimal; width 1, " in err


@pytest.mark.parametrize("task", ["PR", "MAR", "MAP"])
def test_quiet(command, model, task):
    assert command("infer", model, "--task", task, "--quiet").err == ""


def test_json_of_beliefs(command, model):
    p = ig.read_uai(model, f"{model}.evid")
    r = ig.infer(p)
    got = json.loads(command("infer", model, "--json", "--evidence", f"{model}.evid").out)
    assert got["log_z"] == r.log_z
    assert got["log10_z"] == pytest.approx(r.log_z / LOG_10)
    assert (got["task"], got["algorithm"], got["bound"], got["converged"]) == ("MAR", "exact", "exact", True)
    assert (got["n_observed"], got["iterations"], got["residual"]) == (1, 1, 0.0)
    assert got["seconds"] >= 0
    assert got["bytes"] > 0
    assert got["marginals"] == [b.tolist() for b in r.variables]
    assert got["marginals"][2] == [0.0, 1.0]
    got = json.loads(command("infer", model, "--json", "--task", "PR").out)
    assert "marginals" not in got
    assert got["log_z"] == ig.infer(ig.read_uai(model)).log_z


def test_json_of_an_assignment(command, model, tmp_path):
    best = ig.map_assignment(ig.read_uai(model))
    out = tmp_path / "map.json.gz"
    assert command("infer", model, "--json", "--task", "MAP", "--out", out).out == ""
    got = json.loads(gzip.decompress(out.read_bytes()))
    assert got["states"] == best.states.tolist()
    assert got["score"] == best.score
    assert got["log10_score"] == pytest.approx(best.score / LOG_10)
    assert got["optimal"] is True
    assert got["score_bound"] == best.bound


def test_older_evidence(command, model, tmp_path):
    (tmp_path / "old.evid").write_text("1\n1 2 1\n")
    new = command("infer", model, "--evidence", f"{model}.evid").out
    assert command("infer", model, "--evidence", tmp_path / "old.evid").out == new
    (tmp_path / "with.uai").write_text(UAI + "1 2 1\n")
    assert command("infer", tmp_path / "with.uai").out == new


def test_empty_model(command, tmp_path):
    (tmp_path / "e.uai").write_text("MARKOV\n0\n\n0\n")
    assert command("infer", tmp_path / "e.uai", "--task", "PR").out == "PR\n0.0\n"
    assert command("infer", tmp_path / "e.uai").out == "MAR\n0\n"
    assert command("infer", tmp_path / "e.uai", "--task", "MAP").out == "MAP\n0\n"


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--memory", "lots"], "--memory: expected a size such as 12GB, 500MiB or a number of bytes, got 'lots'"),
        (["--memory", "9" * 400], "--memory: expected a size"),
        (["--memory", "-1"], "--memory: expected"),
        (["--memory", "16B"], "the memory limit is 16 B"),
        (["--memory", "16B", "--task", "MAP"], "the memory limit is 16 B"),
        (["--memory", "16B", "--algorithm", "brute"], "the memory limit is 16 B"),
        (["--algorithm", "exakt"], "did you mean 'exact'?"),
        (["--evidence", "nowhere.evid"], "nowhere.evid: No such file or directory"),
        (["--out", "."], ".: Is a directory"),
        (["--out", "no/where"], "No such folder"),
        (["--out", ""], ""),
    ],
)
def test_refusals(command, model, monkeypatch, extra, words):
    monkeypatch.chdir(model.parent)
    before = sorted(model.parent.iterdir())
    code, out, err = command("infer", model, *extra)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(model.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("missing.uai", None, "missing.uai: No such file or directory"),
        ("model.txt", "", "a name that ends in .uai"),
        ("broken.uai", "MARKOV\n2\n2 2\n1\n2 0 1\n\n4\n1 2 x 4\n", "broken.uai, line 8: expected factor 0, entry 2"),
        ("folder.uai", "/", "folder.uai: Is a directory"),
        ("zero.uai", "MARKOV\n1\n2\n1\n1 0\n\n2\n0 0\n", ""),
        ("ugly\n\x1b[31m.uai", None, r"ugly \x1b[31m.uai: No such file"),
        ("nul\0.uai", None, "the name of a file"),
    ],
)
def test_bad_files(command, tmp_path, name, text, words):
    path = tmp_path / name
    if text == "/":
        path.mkdir()
    elif text is not None:
        path.write_text(text)
    for task in ("PR", "MAR", "MAP"):
        code, out, err = command("infer", path, "--task", task)
        assert (code, out) == (2, "")
        assert words in err


def test_impossible_and_contradicting_evidence(command, model, tmp_path):
    evid = tmp_path / "bad.evid"
    evid.write_text("2 1 1 2 0\n")  # factor 1 is zero there
    for task in ("PR", "MAR", "MAP"):
        assert command("infer", model, "--task", task, "--evidence", evid).code == 2
    evid.write_text("1 1 3\n")
    assert "from 0 to 2" in command("infer", model, "--evidence", evid).err
    (tmp_path / "with.uai").write_text(UAI + "1 2 1\n")
    evid.write_text("1 2 0\n")
    assert "the model file observes state 1" in command("infer", tmp_path / "with.uai", "--evidence", evid).err


def test_old_result_survives_a_refusal(command, model, tmp_path):
    (tmp_path / "r.MAR").write_text("precious")
    assert command("infer", model, "--memory", "8B", "--out", tmp_path / "r.MAR").code == 2
    assert (tmp_path / "r.MAR").read_text() == "precious"
    assert command("infer", model, "--out", tmp_path / "r.MAR").code == 0
    assert (tmp_path / "r.MAR").read_text().startswith("MAR\n")


def test_failed_write_names_the_file(command, model, monkeypatch):
    def full(path, text):
        raise OSError(28, "No space left on device", ".x.tmp")

    monkeypatch.setattr("isinglass.io.files.write_text_atomically", full)
    code, _, err = command("infer", model, "--out", model.with_name("r.MAR"))
    assert code == 2
    assert err == f"isinglass: {model.with_name('r.MAR')}: No space left on device\n"


@dataclass(frozen=True)
class Frugal(Brute):
    """An algorithm that takes no memory_limit of its own and does not maximise."""

    memory_limit: ClassVar[None] = None
    name: ClassVar[str] = "frugal"
    facts: ClassVar[Facts] = Facts("for a test", exact="never", bound=None)

    def cost(self, potentials):
        return Cost(1000.0, 1.0, "1 KB")


@pytest.fixture
def frugal():
    ALGORITHMS.register("frugal")(Frugal)
    yield
    del ALGORITHMS._entries["frugal"]


def test_memory_for_an_algorithm_without_the_option(command, model, frugal, monkeypatch):
    monkeypatch.setattr(Brute, "cost", lambda self, p: Cost(1000.0, 1.0, "1 KB"))
    code, _, err = command("infer", model, "--algorithm", "frugal", "--memory", "999")
    assert code == 2
    assert "frugal needs 1 KB, but the memory limit is 999 B; raise --memory" in err
    assert command("infer", model, "--algorithm", "frugal", "--memory", "2KB").code == 0
    code, _, err = command("infer", model, "--algorithm", "frugal", "--task", "MAP")
    assert code == 2
    assert "one that finds a most probable assignment" in err


def test_progress_bar_is_only_for_terminals(monkeypatch):
    assert type(progress_on_stderr(quiet=False)) is ProgressLines
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert type(progress_on_stderr(quiet=False)) is ProgressBar
    assert type(progress_on_stderr(quiet=True)) is Silence


def test_progress_bar(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with ProgressBar(delay=0.0) as progress:
        time.sleep(0.2)
        progress("summing out", 0.25)
        time.sleep(0.2)
    err = capsys.readouterr().err
    assert "summing out" in err
    assert "25%" in err
    with ProgressBar(bounded=False, delay=0.0) as progress:
        time.sleep(0.2)
        progress("iteration 3", 0.25)
        time.sleep(0.2)
    err = capsys.readouterr().err
    assert "iteration 3" in err
    assert "25%" not in err
    with ProgressBar(delay=60.0) as progress:
        progress("summing out", 0.25)
    assert capsys.readouterr().err == ""


def test_progress_lines(capsys):
    with ProgressLines(every=0.0) as progress:
        progress("iteration 1", 0.1)
    assert capsys.readouterr().err == "isinglass: iteration 1\n"
    with ProgressLines(every=60.0) as progress:
        progress("iteration 1", 0.1)
    assert capsys.readouterr().err == ""
    assert progress.last == "iteration 1"


def test_quiet_commands_do_not_say_that_they_compile(monkeypatch):
    monkeypatch.setattr(Count, "announced", False)
    progress_on_stderr(quiet=False)
    assert not Count.announced
    progress_on_stderr(quiet=True)
    assert Count.announced


def test_map_solvers(command, model):
    code, out, err = command("infer", model, "--task", "MAP", "--algorithm", "trws", "--seconds", "5", "--json")
    found, truth = json.loads(out), ig.map_assignment(ig.read_uai(model))
    assert (code, found["states"], found["optimal"], found["stopped"]) == (0, truth.states.tolist(), True, "optimal")
    assert err.startswith(f"isinglass: trws: score = {truth.score:.9g}")
    code, _, err = command("infer", model, "--task", "MAR", "--algorithm", "trws")
    assert code != 0
    assert "for --task MAR" in err
    code, _, err = command("infer", model, "--task", "MAP", "--algorithm", "trws", "--memory", "1GB")
    assert code != 0
    assert "--memory: expected an algorithm that takes a limit" in err
