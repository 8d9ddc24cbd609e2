"""isinglass demo."""

import re
import sys

import numpy as np
import pytest

import isinglass as ig
from browser import WIDTH, visited
from isinglass.cli.denoising import train_demo
from isinglass.learning.optimizers import Lbfgs
from isinglass.runtime.interrupts import ending_all


@pytest.fixture(scope="module")
def trained():
    return train_demo(2, 12)


@pytest.mark.long
def test_demo(command, tmp_path, monkeypatch, trained):
    """The numbers, the picture and the page, also in a browser; training itself runs in the last test."""
    calls = []
    monkeypatch.setattr("isinglass.cli.denoising.train_demo", lambda *given: calls.append(given) or trained)
    code, out, err = command("demo", "--out", tmp_path / "new" / "folder", "--images", 2, "--iterations", 12, "--quiet")
    assert (code, err) == (0, "")
    assert [given[:2] for given in calls] == [(2, 12)]
    picture, page = (tmp_path / "new" / "folder" / name for name in ("panel.png", "index.html"))
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = "truth, input, pixels, pseudo, trw, ucl-4"
    assert out.splitlines()[-2:] == [f"wrote {page}", f"wrote {picture}, whose rows are {rows}"]
    names = ("noisy input", "independent pixels", "pseudolikelihood", "surrogate likelihood", "ucl-4")
    noisy, pixels, pseudo, surrogate, ucl = (float(re.search(rf"{name}.*?(\d+\.\d+)%", out)[1]) for name in names)
    assert ucl < 0.6 * pixels
    assert surrogate < 0.6 * pixels
    assert max(pixels, pseudo) <= noisy
    assert all(re.search(rf"{name}.*?%\s+(100|10|1|0\.1|0\.01|0\.001)\s", out) for name in names[2:])  # the l2 chosen
    text = page.read_text()
    assert "data:image/png;base64," in text
    assert all(name in text for name in names)
    assert "http://" not in text
    assert "https://" not in text
    assert "isinglass demo --out" in text
    assert visited([(text, 360, WIDTH), (text, 900, WIDTH)], tmp_path) == [360, 900]


def test_every_method_finds_ink(trained):
    """Without a penalty that fits, the pictures of the pseudolikelihood would be blank."""
    shares = {title: float((images > 0.5).mean()) for title, images in trained.columns}
    assert set(shares) == {"truth", "input", "pixels", "pseudo", "trw", "ucl-4"}
    assert min(shares["pseudo"], shares["trw"], shares["ucl-4"]) > 0.3 * shares["truth"]
    assert {row.method: row.l2 is None for row in trained.rows}["pseudolikelihood"] is False


def test_mistakes(command, tmp_path):
    (tmp_path / "file").write_text("")
    code, out, err = command("demo", "--out", tmp_path / "file")
    assert (code, out) == (2, "")
    assert "File exists" in err
    for option in ("--images", "--iterations"):
        code, out, err = command("demo", "--out", tmp_path, option, 0)
        assert (code, out) == (2, "")
        assert option[2:] in err


@pytest.mark.long
def test_without_matplotlib(command, tmp_path, monkeypatch, trained):
    monkeypatch.setattr("isinglass.cli.denoising.train_demo", lambda *given: trained)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, out, err = command("demo", "--out", tmp_path, "--quiet")
    assert (code, err) == (0, "")
    assert "ucl-4" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index.html", "panel.png"]


def interrupted(theta):
    raise KeyboardInterrupt


def test_ctrl_c_ends_the_demo_not_one_fit(monkeypatch):
    calls = []
    monkeypatch.setattr(Lbfgs, "step", lambda self, f, state: calls.append(1) or interrupted(None))
    with pytest.raises(KeyboardInterrupt):
        train_demo(images=1, iterations=2)
    assert len(calls) == 1


def test_a_fit_alone_keeps_its_best():
    assert Lbfgs().minimise(interrupted, np.zeros(2)).message == "interrupted"
    with ending_all(), pytest.raises(KeyboardInterrupt):
        Lbfgs().minimise(interrupted, np.zeros(2))
    assert Lbfgs().minimise(interrupted, np.zeros(2)).message == "interrupted"


def test_a_search_alone_keeps_its_best(monkeypatch):
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.3, field=0.1)
    solver = ig.inference.SOLVERS["icm"]
    solve = solver.solve
    monkeypatch.setattr(solver, "solve", lambda self, *given: (solve(self, *given), interrupted(None)))
    with pytest.warns(ig.ConvergenceWarning, match="interrupted"):
        assert ig.map_assignment(p, "icm").info.stopped == "interrupted"
    with ending_all(), pytest.raises(KeyboardInterrupt):
        ig.map_assignment(p, "icm")
