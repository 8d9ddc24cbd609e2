"""The code blocks of some pages run as they stand, one after the other."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isinglass as ig
from isinglass.losses import LOSSES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [
    "names", "queries", "looking", "explain", "jobs", "diagnose", "semantics", "fields", "gaussian", "map", "maxmargin",
    "risk", "pages", "index", "exact", "models", "sequences", "files", "keeping", "defaults", "choosing", "growth",
]  # fmt: skip


def run_blocks(path):
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", path.read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, path.name, "exec"), names)
        check_comments(block, names)
    return names


def check_comments(block, names):
    """Check numbers in comments that end in an ellipsis against the value of the expression before them."""
    for expression, comment in re.findall(r"^(\S.*?)\s+# (.*\d\.\.\..*)$", block, re.MULTILINE):
        shown = [float(number) for number in re.findall(r"-?\d+\.\d+(?=\.\.\.)", comment)]
        values = eval(expression, names)
        found = np.concatenate([np.ravel(v) for v in (values if isinstance(values, tuple) else (values,))])
        np.testing.assert_allclose(found[: len(shown)], shown, atol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS / f"{page}.md")


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")  # runs that are short, or show the warning
def test_the_page_on_sampling(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = run_blocks(DOCS / "sampling.md")
    assert capsys.readouterr().out == "False\n"
    assert names["x"].shape == (100, 144)
    assert names["longer"].info.iterations == 2000


@pytest.mark.long
def test_the_page_on_learning_by_samples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS / "sampled-learning.md")
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")  # one example stops training early, to be short
def test_the_blocks_of_the_readme_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    run_blocks(DOCS.parent / "README.md")
    assert "slider" in (tmp_path / "trace.html").read_text()


@pytest.mark.long
def test_the_tutorial_prints_what_it_shows(tmp_path, monkeypatch, capsys):
    """Each text block is what the code block before it prints, numbers within a tolerance; pictures are written."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text()
    names: dict[str, object] = {}
    printed = []
    shown = 0
    for kind, block in re.findall(r"^```(python|text)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if kind == "python":
            exec(compile(block, "tutorial", "exec"), names)
            printed.append(capsys.readouterr().out)
        else:
            assert _words(block) == _words(printed[-1])
            np.testing.assert_allclose(_numbers(block), _numbers(printed[-1]), rtol=0.05, atol=0.012)
            shown += 1
    assert shown == sum(bool(one) for one in printed)
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (tmp_path / picture).stat().st_size > 1000


NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:e[+-]?\d+)?")


def _words(text):
    return NUMBER.sub("#", text).split()


def _numbers(text):
    return [float(number) for number in NUMBER.findall(text)]


@pytest.mark.parametrize("page", ["coming-from.md", "choosing.md", "glossary.md"])
def test_names_in_tables_exist(page):
    """What a table calls ig.something is there, and each algorithm, loss and solver in quotes is registered."""
    text = (DOCS / page).read_text().partition("## From an earlier Isinglass")[0]
    for name in set(re.findall(r"\big\.([A-Za-z_][\w.]*\w)", text)):
        found = ig
        for part in name.split("."):
            found = getattr(found, part)
    known = {*ig.algorithms(), *ig.map_solvers(), *LOSSES}
    for name in re.findall(r'(?:infer|map_assignment|sample)\(p, (?:n, |\d+, )?"([\w-]+)"', text):
        assert name in known
    for name in re.findall(r'loss="([\w-]+)"', text):
        assert name in LOSSES
