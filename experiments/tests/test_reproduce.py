"""isinglass reproduce."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import isinglass as ig
from browser import WIDTH, visited
from isinglass_experiments.catalogue import EXPERIMENTS
from isinglass_experiments.common.methods import Training
from isinglass_experiments.domke.digits import Digits, Plan

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    genuine = Digits._plan

    def plan(self):
        whole = genuine(self)
        return Plan(whole.rows, whole.noise, whole.draws, 1, Training(max_iter=3, tol=1e-3, most=20))

    monkeypatch.setattr(Digits, "_plan", plan)


def test_table_json_and_pictures(command, tmp_path):
    file, folder = tmp_path / "digits.json", tmp_path / "new"
    options = ("--rows", "pixels,ucl-4", "--noise", "0.5", "--json", file, "--out", folder, "--quiet", "--n-jobs", 1)
    code, out, err = command("reproduce", "digits", *options)
    assert (code, err) == (0, "")
    assert "0.0599" in out
    assert out.splitlines()[-1] == f"wrote {folder / 'digits-50.png'}"
    assert (folder / "digits-50.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(file.read_text())
    assert (found["experiment"], found["images"], found["draws"]) == ("digits", 9, 1)
    assert [(row["row"], row["noise"], row["published"]) for row in found["rows"]] == [
        ("pixels", 0.5, None),
        ("ucl-4", 0.5, 0.0599),
    ]
    assert 0 < found["rows"][1]["error"] < 0.3


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "NAME"),
        (["digit"], "did you mean 'digits'"),
        (["digits", "--noise", "much"], "--noise"),
        (["digits", "--noise", "2"], "noise"),
        (["digits", "--rows", "magic"], "rows"),
        (["digits", "--draws", "0"], "draws"),
        (["digits", "--data", "folder"], "data"),
        (["digits", "--json", "no/such/folder.json"], "No such folder"),
    ],
)
def test_mistakes(command, argv, words):
    code, out, err = command("reproduce", *argv)
    assert (code, out) == (2, "")
    assert words in err


def test_report(command, tmp_path):
    options = ("--rows", "pixels", "--noise", "0.1,0.5", "--n-jobs", "1", "--quiet", "--report", tmp_path)
    assert command("reproduce", "digits", *options).code == 0
    page = (tmp_path / "index.html").read_text()
    assert page.split("<script>")[0].count("<img") == 2 * 3  # a strip of nine pictures each
    assert "noise (%)" in page
    assert re.findall(r'<div data-step="\d"><p>(\d+)</p>', page) == ["10", "50"]
    assert visited([(page, 360, WIDTH)], tmp_path) == [360]
    (tmp_path / "file").write_text("mine")
    assert "--report: expected a folder" in command("reproduce", "digits", "--report", tmp_path / "file").err


def test_help_names_every_experiment(command):
    listed = command("reproduce", "--help").out.partition("Experiments:")[2].partition("positional")[0]
    assert set(re.findall(r"^  (\w+) ", listed, re.MULTILINE)) == set(EXPERIMENTS)


def test_closed_standard_output(tmp_path):
    """What was to go to a closed stdout is not lost without a word."""
    line = f"'{sys.executable}' -m isinglass reproduce digits --quick >&-; echo $?"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "2\n"
    assert "standard output: closed" in done.stderr


def test_the_version_is_that_of_the_library():
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == ig.__version__


def test_help_imports_no_experiment():
    code = "import sys; from isinglass.cli.main import main; main(['--help']); "
    code += "print([m for m in ('numpy', 'isinglass_experiments.catalogue') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "reproduce" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
