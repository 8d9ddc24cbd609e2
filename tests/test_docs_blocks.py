"""The code blocks of some pages run as they stand, one after the other."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("names", "queries", "looking", "explain", "semantics", "fields", "gaussian", "map", "maxmargin", "risk")


@pytest.mark.parametrize("page", PAGES)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / f"{page}.md").read_text(), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, page, "exec"), names)
