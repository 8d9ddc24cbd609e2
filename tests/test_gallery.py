"""The site: what Sphinx makes of examples, pictures and names. The examples themselves run in `make docs`."""

import ast
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*/*.py"))
TINY = '''"""
A tiny example
==============

It uses `ig.Independence`.
"""

import matplotlib.pyplot as plt

import isinglass as ig

print(ig.Independence)

# %%
# A picture, and *more*.
figure, axes = plt.subplots(1, 2)
axes[0].plot([0, 1], color="black")
axes[0].set_title("a line")

# %%
# %%
class Html:
    def _repr_html_(self):
        return "<b>bold</b>"


Html()
'''
GRAPHS = """Graphs
======

.. autosummary::
   :toctree: generated

   ~isinglass.Independence
   ~isinglass.BeliefPropagation

.. autoclass:: isinglass.inference.Algorithm
   :members:
"""


def build(folder, *options):
    command = [sys.executable, "-m", "sphinx", "-q", "-W", *options, str(folder / "docs"), str(folder / "html")]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.mark.long
def test_the_build_makes_pages_and_fails_with_an_example(tmp_path):
    """The site's settings on three pages and one example; a second example that fails ends the build with an error."""
    pytest.importorskip("sphinx_gallery", reason="Sphinx is not installed: pip install '.[docs]'")
    docs, learn = tmp_path / "docs", tmp_path / "examples" / "learn"
    for name in ("conf.py", "_ext", "_templates", "_static"):
        copy = shutil.copytree if (ROOT / "docs" / name).is_dir() else shutil.copy
        docs.mkdir(exist_ok=True)
        copy(ROOT / "docs" / name, docs / name)
    (docs / "reference").mkdir()
    (docs / "reference" / "graphs.rst").write_text(GRAPHS)
    picture = 'import matplotlib.pyplot as plt\nplt.figure().savefig("page.png")\n'
    contents = "```{toctree}\ngallery/index\nreference/graphs\n```\n"
    guide = f"# Home\n\n`ig.Independence`\n\n```python\n{picture}```\n\n![A picture](page.png)\n\n{contents}"
    (docs / "index.md").write_text(guide)
    learn.mkdir(parents=True)
    for folder in (learn.parent, learn):
        (folder / "GALLERY_HEADER.rst").write_text("Title\n=====\n")
    (learn / "tiny.py").write_text(TINY)
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "html" / "gallery" / "learn" / "tiny.html").read_text()
    for part in ("<b>bold</b>", 'alt="a line"', "tiny_001-dark.png", "isinglass.Independence.html"):
        assert part in page
    assert page.index("tiny.ipynb") < page.index("A picture, and")  # downloads come first
    assert "Axes" not in page  # what drawing returns is not printed
    card = "sphx_glr_tiny_thumb-dark.png"
    used = (tmp_path / "html" / "reference" / "generated" / "isinglass.Independence.html").read_text()
    for text in (used, (tmp_path / "html" / "gallery" / "index.html").read_text()):
        assert card in text
        assert '<img alt=""' not in text
    own = (tmp_path / "html" / "reference" / "generated" / "isinglass.BeliefPropagation.html").read_text()
    assert "takes_stages" not in own
    assert re.search(r"damping</strong>.{,300}default.{,80}0\.0", own, re.DOTALL)
    assert "takes_stages" in (tmp_path / "html" / "reference" / "graphs.html").read_text()
    home = (tmp_path / "html" / "index.html").read_text()
    assert "page-dark.png" in home
    assert "generated/isinglass.Independence.html" in home
    assert "learn/tiny.html" in (tmp_path / "html" / "gallery" / "tiny" / "index.html").read_text()  # was there before
    notebook = json.loads(next((tmp_path / "html" / "_downloads").glob("*/tiny.ipynb")).read_text())
    assert notebook["nbformat"] == 4

    (learn / "broken.py").write_text('"""\nBroken\n======\n\nIt divides.\n"""\n\n1 / 0\n')
    done = build(tmp_path)
    assert done.returncode != 0
    assert "ZeroDivisionError" in done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_keep_to_the_convention(path):
    source = path.read_text()
    title, line, *summary = ast.get_docstring(ast.parse(source)).splitlines()
    assert line == "=" * len(title)
    assert any(summary)
    assert "# %%" in source
    assert max(map(len, source.splitlines())) <= 88  # what fits beside the navigation
    assert re.findall(r"^# %% *\S.*", source, re.MULTILINE) == []
    for word in ("__main__", "/home", "/work", "/tmp", "plt.show"):
        assert word not in source


@pytest.mark.long
def test_belief_propagation_is_a_notebook():
    """The notebook of the lesson runs in Jupyter, and shows the slider and the curves."""
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed: pip install '.[dev]'")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: pip install '.[dev]'")
    gallery = pytest.importorskip("sphinx_gallery.notebook", reason="Sphinx is not installed: pip install '.[docs]'")
    import nbformat
    from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
    from sphinx_gallery.py_source_parser import split_code_and_text_blocks

    path = ROOT / "examples" / "learn" / "belief_propagation.py"
    _, blocks = split_code_and_text_blocks(str(path))
    cells = gallery.jupyter_notebook(blocks, DEFAULT_GALLERY_CONF, str(path.parent))
    notebook = nbformat.reads(json.dumps(cells), as_version=4)
    nbclient.NotebookClient(notebook, timeout=120).execute()
    kinds = {kind for cell in notebook.cells for out in cell.get("outputs", []) for kind in out.get("data", {})}
    assert {"text/html", "image/png"} <= kinds
    shown = "".join(str(out) for cell in notebook.cells for out in cell.get("outputs", []))
    assert "srcdoc" in shown
    assert "error" not in {out["output_type"] for cell in notebook.cells for out in cell.get("outputs", [])}
