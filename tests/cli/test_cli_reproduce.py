"""isinglass reproduce."""

import json

import pytest

from isinglass.experiments.common.methods import Training
from isinglass.experiments.domke.digits import Digits, Plan


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
