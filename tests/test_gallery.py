"""The gallery of the documentation: scripts become pages and notebooks. The examples themselves run in `make docs`."""

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from checks import refuses

sys.path.insert(0, str(Path(__file__).parent.parent / "tools"))

from gallery.execution import run_script
from gallery.pages import first_sentence, page_of, read_groups, with_html
from gallery.script import read_script

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "gallery"
TINY = '''"""A tiny example

It adds. And more.
"""

x = 1

# %%
# # Heading
#
# Some *text*.
# %%
# A sum.

# a comment of the code
print("said")
x + 1

# %%
import matplotlib.pyplot as plt
fig, ax = plt.subplots()
ax.plot([0, 1])

# %%
class Html:
    def _repr_html_(self):
        return "<b>bold</b>"
Html()

# %%
import warnings
warnings.warn("look out", stacklevel=1)
'''


def written(folder, text, name="tiny"):
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


def test_a_script_has_text_and_code(tmp_path):
    script = read_script(written(tmp_path, TINY))
    assert (script.name, script.title, script.summary) == ("tiny", "A tiny example", "It adds. And more.")
    assert first_sentence(script.summary) == "It adds."
    assert [cell.text for cell in script.cells][:3] == ["", "# Heading\n\nSome *text*.", "A sum."]
    assert script.cells[1].code == ""
    assert script.cells[2].code == '# a comment of the code\nprint("said")\nx + 1'
    assert TINY.splitlines()[script.cells[2].line - 1] == "# a comment of the code"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("x = 1\n", "a docstring of a title line"),
        ('"""Only a title"""\n', "a docstring of a title line"),
        ('"""Title\n\nText."""\n\n# %% more\nx = 1\n', "line 5: expected '# %%' alone"),
    ],
)
def test_what_breaks_the_convention_is_named(tmp_path, text, problem):
    refuses(problem, read_script, written(tmp_path, text), error=ValueError)


def test_cells_show_what_they_make(tmp_path):
    script = read_script(written(tmp_path, TINY))
    run = run_script(script)
    assert not run.failed
    kinds = [[out.kind for out in shown] for shown in run.outputs]
    assert kinds == [[], [], ["text", "text"], ["svg"], ["html"], ["text"]]  # a line that was plotted is not printed
    assert [out.content for out in run.outputs[2]] == ["said", "2"]
    assert run.outputs[5][0].content == "UserWarning: look out"
    assert ET.fromstring(run.outputs[3][0].content).tag.endswith("svg")
    assert run.thumbnails[0].startswith(b"\x89PNG")
    again = run_script(script)
    assert again.outputs[3] == run.outputs[3]  # no dates, no random identifiers

    page = page_of(script, run)
    assert "![A tiny example, figure 1](images/tiny-1.svg)" in page.markdown
    assert set(page.files) == {"images/tiny-1.svg", "images/tiny-small.png"}
    assert '<div class="gallery-html"><b>bold</b></div>' in with_html(page.markdown, page.html)
    assert "not run" in page_of(script, None).markdown


def test_a_figure_of_the_library_is_shown_once_and_dataclasses_work(tmp_path):
    body = """
from dataclasses import dataclass
from typing import ClassVar
import isinglass as ig
@dataclass
class Point:
    name: ClassVar[str] = "p"
    x: int = 0
ig.viz.draw(ig.chain_graph(3, 2))
"""
    future = "from __future__ import annotations\n"  # annotations are then looked up in the module
    script = read_script(written(tmp_path, f'"""T\n\nS."""\n# %%\n{future}{body}'))
    run = run_script(script)
    assert [[out.kind for out in shown] for shown in run.outputs] == [["svg"]]


def test_a_failure_ends_a_script_with_its_line(tmp_path):
    script = read_script(written(tmp_path, '"""T\n\nS."""\n# %%\nprint(1)\nx = 1 / 0\n# %%\nprint(2)\n'))
    run = run_script(script)
    assert run.failed
    assert [out.kind for out in run.outputs[0]] == ["text", "error"]
    assert run.outputs[1] == []
    problem = run.outputs[0][1].content
    assert 'File "tiny.py", line 6' in problem
    assert "x = 1 / 0" in problem
    assert "execution.py" not in problem


def test_groups_name_each_example_once(tmp_path):
    path = tmp_path / "gallery.toml"
    path.write_text('[[group]]\ntitle = "T"\nsummary = "S"\n[group.examples]\na = 1\n')
    groups = read_groups(path, ["a", "b"])
    assert [(group.title, group.examples) for group in groups] == [("T", {"a": 1}), ("More", {"b": -1})]
    refuses(r"script a\.py", read_groups, path, ["b"], error=ValueError)


CONFIG = """site_name: T
theme: mkdocs
hooks: [{hook}]
plugins: []
markdown_extensions: [attr_list, md_in_html, pymdownx.superfences]
nav: [index.md, {{Gallery: gallery/index.md}}]
"""


@pytest.mark.long
def test_the_build_makes_pages_and_fails_with_an_example(tmp_path):
    """A strict build of one example that works and one that fails: pages of both, and an end with a warning."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install '.[docs]'")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    folder = tmp_path / "docs" / "gallery"
    folder.mkdir(parents=True)
    (tmp_path / "docs" / "index.md").write_text("# Home\n\n[Gallery](gallery/index.md), [example](gallery/tiny.md)\n")
    written(folder, TINY)
    written(folder, '"""Broken\n\nIt divides.\n"""\n1 / 0\n', "broken")
    (tmp_path / "mkdocs.yml").write_text(CONFIG.format(hook=ROOT / "tools" / "gallery_hook.py"))
    config = load_config(str(tmp_path / "mkdocs.yml"), strict=True)
    refuses("1 warning", build, config, error=Abort)
    site = Path(config.site_dir) / "gallery"
    page = (site / "tiny" / "index.html").read_text()
    for part in ("<b>bold</b>", "said", 'src="../images/tiny-1.svg"', 'href="../tiny.py"', 'href="../tiny.ipynb"'):
        assert part in page
    assert "ZeroDivisionError" in (site / "broken" / "index.html").read_text()
    assert 'src="images/tiny-small.png"' in (site / "index.html").read_text()
    assert (site / "images" / "tiny-1.svg").exists()
    assert (site / "tiny.py").read_text() == TINY
    assert json.loads((site / "tiny.ipynb").read_text())["nbformat"] == 4


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.py")), ids=lambda path: path.stem)
def test_examples_keep_to_the_convention(path):
    script = read_script(path)
    assert script.cells
    for word in ("__main__", "/home", "/work", "/tmp", "plt.show"):
        assert word not in script.source


@pytest.mark.long
def test_belief_propagation_is_a_notebook():
    """The notebook of the lesson runs in Jupyter, and shows the slider and the curves."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[dev]'")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install '.[dev]'")
    import nbformat

    from gallery.notebook import notebook_of

    script = read_script(GALLERY / "belief_propagation.py")
    notebook = nbformat.reads(notebook_of(script), as_version=4)
    nbclient.NotebookClient(notebook, timeout=120).execute()
    kinds = {kind for cell in notebook.cells for out in cell.get("outputs", []) for kind in out.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    shown = "".join(str(out) for cell in notebook.cells for out in cell.get("outputs", []))
    assert "srcdoc" in shown
    assert "error" not in {out["output_type"] for cell in notebook.cells for out in cell.get("outputs", [])}
