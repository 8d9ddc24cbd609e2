"""``--report DIR``: one page that needs nothing else, with the command and the versions that made it."""

import builtins
import json
import os
import re
from html import unescape

import numpy as np
import pytest

import isinglass as ig
from browser import WIDTH, visited
from isinglass.cli.main import main
from isinglass.pages import MARK

pytestmark = pytest.mark.filterwarnings("ignore:training stopped after")

WORDS, LABELS = ("the", "dog", "<b>barks</b>"), ("B-NP", "I-NP", "O")


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "data"
    path.mkdir()
    X, Y, X_test, Y_test = ig.datasets.noisy_digits(0.3, 1, 1)
    three = np.where(Y_test == 1, 1, np.where(np.arange(28) < 9, 2, 0))
    three[0, 0] = -1
    np.savez(path / "grid.npz", X=X[:, ::2, ::2], Y=Y[:, ::2, ::2])
    np.savez(path / "labels.npz", X=X_test[:, ::2, ::2], Y=three[:, ::2, ::2])
    (path / "grid.toml").write_text('estimator = "grid"\n[options]\niterations = 2\nmax_iter = 4\n')
    rng = np.random.default_rng(0)
    shape = {"node_counts": [4] * 5, "edges": np.tile([[0, 1], [1, 2], [2, 3]], (5, 1)), "edge_counts": [3] * 5}
    np.savez(path / "graph.npz", nodes=rng.normal(size=(20, 2)), Y=rng.integers(0, 2, 20), **shape)
    (path / "graph.toml").write_text('estimator = "graph"\n[options]\nmax_iter = 2\n')
    for name in ("train", "test"):
        pairs = [[(k, k if rng.random() < 0.8 else 2) for k in rng.integers(0, 3, 5)] for _ in range(12)]
        text = "\n\n".join("\n".join(f"{WORDS[i]} {LABELS[j]}" for i, j in one) for one in pairs)
        (path / f"{name}.txt").write_text(text + "\n")
    (path / "chain.toml").write_text('estimator = "chain" # <i>\n[options]\nmax_iter = 5\n')
    return path


def pages_in(folder, capsys):
    """Return the page of each kind of command, by its name."""
    at = lambda name: str(folder / name)  # noqa: E731
    commands = {
        "grid": ["fit", at("grid.toml"), at("grid.npz"), "--model", at("grid.isg"), "--validation", at("grid.npz")],
        "labels": ["fit", at("grid.toml"), at("labels.npz"), "--model", at("labels.isg")],
        "graph": ["fit", at("graph.toml"), at("graph.npz"), "--model", at("graph.isg")],
        "graph scores": ["evaluate", at("graph.isg"), at("graph.npz")],
        "chain": ["fit", at("chain.toml"), at("train.txt"), "--model", at("chain.isg")],
        "grid scores": ["evaluate", at("grid.isg"), at("grid.npz")],
        "label scores": ["evaluate", at("labels.isg"), at("labels.npz")],
        "chain scores": ["evaluate", at("chain.isg"), at("test.txt"), "--json"],
    }
    found = {}
    for name, argv in commands.items():
        where = folder / "pages" / name
        assert main([*argv, "--report", str(where)]) == 0
        out, err = capsys.readouterr()
        (err if "--json" in argv else out).index(f"wrote {where / 'index.html'}")
        assert "--json" not in argv or json.loads(out)["labels"] == 60
        assert os.listdir(where) == ["index.html"]
        found[name] = (where / "index.html").read_text()
    return found


def count(page, text):
    return page.split("<body>")[1].split("<script>")[0].count(text)


@pytest.mark.long
def test_pages(folder, tmp_path, capsys):
    """One test, as the pages take some seconds to make."""
    pages = pages_in(folder, capsys)
    the_exact_command_and_versions_are_below(pages, folder)
    everything_is_there(pages)
    they_work_in_a_browser(pages, tmp_path)


def the_exact_command_and_versions_are_below(pages, folder):
    for name, page in pages.items():
        (command,) = re.findall(r"<footer>\s*<pre><code>(.*)</code></pre>", page)
        assert unescape(command).startswith("isinglass ")
        assert unescape(command).endswith(f"--report '{folder / 'pages' / name}'" if " " in name else name)
        assert f"isinglass {ig.__version__}, Python 3." in page
        assert f"numpy {np.__version__}" in page
        assert "http" not in page.replace("http-equiv", "")


def everything_is_there(pages):
    grid, chain, scores = pages["grid"], pages["chain"], pages["chain scores"]
    assert count(grid, 'class="pixels"') == 4
    assert count(grid, "<img") == 4 + 3  # how training went, weights of two kinds of neighbours
    assert count(pages["labels"], "not observed") == 1
    assert count(chain, "=&lt;b&gt;barks&lt;/b&gt;") > 0
    assert "# &lt;i&gt;" in chain  # the recipe
    assert {heading for heading in ("Spans", "Labels", "At a glance") if f"<h2>{heading}</h2>" in scores} == {
        "Spans", "Labels", "At a glance"
    }  # fmt: skip
    assert 0 < scores.split("The first mistakes")[1].split("</section>")[0].count("<tr>") <= 31
    for page in pages.values():
        assert "<b>" not in page
        assert "<i>" not in page


def they_work_in_a_browser(pages, tmp_path):
    """All of them at once: no complaint, nothing wider than a telephone."""
    visits = [(page, width, WIDTH) for width in (360, 1100) for page in pages.values()]
    assert visited(visits, tmp_path) == [360] * len(pages) + [1100] * len(pages)


@pytest.mark.long
def test_without_matplotlib_numbers_are_in_tables(folder, capsys, monkeypatch):
    genuine = builtins.__import__

    def missing(name, *rest, **more):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return genuine(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", missing)
    pages = pages_in(folder, capsys)
    for name, page in pages.items():
        assert count(page, "<img") == count(page, 'class="pixels"')
        assert count(page, ">gradient</th>") == ("scores" not in name)
        assert count(page, "True labels (rows), and what is predicted") == ("scores" in name)
    assert count(pages["grid scores"], "Can its confidence be believed?") == 1
    assert count(pages["chain"], "Weights of neighbours: transition") == 1


def test_a_page_of_someone_else_is_kept(command, folder, tmp_path):
    page = tmp_path / "index.html"
    page.write_text("<html>mine</html>")
    fit = ("fit", folder / "grid.toml", folder / "grid.npz", "--model", tmp_path / "m.isg", "--report")
    for argv in (fit, ("evaluate", folder / "any.isg", folder / "grid.npz", "--report"), ("demo", "--out")):
        code, out, err = command(*argv, tmp_path)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert "--report: expected a place for a page" in err
        assert "index.html" in err
    assert page.read_text() == "<html>mine</html>"
    assert not (tmp_path / "m.isg").exists()  # refused before any work


def test_a_page_takes_the_place_of_no_file_of_the_command_and_of_no_link(command, folder, tmp_path):
    page, elsewhere = tmp_path / "rep" / "index.html", tmp_path / "elsewhere"
    page.parent.mkdir()
    fit = ("fit", folder / "grid.toml", folder / "grid.npz", "--report", page.parent, "--model")
    assert "--report: expected another file" in command(*fit, page).err
    assert "--report: expected another file" in command(*fit, tmp_path / "m.isg", "--checkpoint", page).err
    for target in (MARK, "", None):  # one of the files that are read is a page of ours, an empty file, no file
        page.unlink(missing_ok=True)
        page.symlink_to(elsewhere)
        if target is not None:
            elsewhere.write_text(target)
            assert (
                "--report: expected another file" in command("evaluate", elsewhere, folder / "grid.npz", *fit[3:5]).err
            )
            assert "--report: expected another file" in command("evaluate", folder / "any.isg", page, *fit[3:5]).err
            assert elsewhere.read_text() == target
        if target != MARK:
            assert "--report: expected a place for a page" in command(*fit, tmp_path / "m.isg").err
        elsewhere.unlink(missing_ok=True)
    assert not (tmp_path / "m.isg").exists()  # refused before any work


def test_folders_that_cannot_be(command, folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "index.html").mkdir(parents=True)
    evaluate = ("evaluate", folder / "any.isg", folder / "grid.npz", "--report")
    fit = ("fit", folder / "grid.toml", folder / "grid.npz", "--model", tmp_path / "m.isg", "--report")
    for argv in (evaluate, fit, ("demo", "--out", tmp_path / "new", "--report")):
        code, out, err = command(*argv, tmp_path / "file")
        assert (code, out) == (2, "")
        assert "--report: expected a folder" in err
        assert "which is a file" in err
    assert command(*fit, tmp_path / "file" / "below").code == 2
    assert "Is a directory" in command(*fit, tmp_path / "taken").err
    assert "--report" in command(*fit, "").err
    assert not (tmp_path / "m.isg").exists()  # refused before any work
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(command, folder, tmp_path):
    folder.chmod(0o500)
    code, out, err = command("evaluate", folder / "any.isg", folder / "grid.npz", "--report", folder / "new")
    assert (code, out) == (2, "")
    assert "Permission denied" in err
