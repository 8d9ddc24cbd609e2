"""The code blocks of some pages run as they stand, one after the other."""

import re
from pathlib import Path

import pytest

import isinglass as ig
from isinglass.losses import LOSSES

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("names", "queries", "looking", "explain", "jobs", "diagnose", "semantics", "fields", "gaussian", "map")
PAGES += ("maxmargin", "risk", "defaults")


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", ["coming-from.md", "choosing.md", "glossary.md"])
def test_names_in_tables_exist(page):
    """What a table calls ig.something is there, and each algorithm, loss and solver in quotes is registered."""
    text = (DOCS / page).read_text()
    for name in set(re.findall(r"\big\.([A-Za-z_][\w.]*\w)", text)):
        found = ig
        for part in name.split("."):
            found = getattr(found, part)
    known = {*ig.algorithms(), *ig.map_solvers(), *LOSSES}
    for name in re.findall(r'(?:infer|map_assignment|sample)\(p, (?:n, |\d+, )?"([\w-]+)"', text):
        assert name in known
    for name in re.findall(r'loss="([\w-]+)"', text):
        assert name in LOSSES
