"""A hook of mkdocs: run the code blocks of a page, and add the pictures that they save to the site.

A page that is listed here saves its pictures into the current folder, ``figure.savefig("tutorial-fish.png")``, and
shows them by the same name, ``![A fish](tutorial-fish.png)``. So a picture is always what the code beside it draws.
"""

import contextlib
import io
import os
import re
import tempfile
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

PAGES = ("tutorial.md", "choosing.md", "growth.md")
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pictures of all pages."""
    for page in PAGES:
        text = Path(config.docs_dir, page).read_text(encoding="utf-8")
        for name, content in pictures(text, page).items():
            files.append(File.generated(config, name, content=content))
    return files


def pictures(text: str, page: str) -> dict[str, bytes]:
    """Run the blocks of a page in an empty folder; return the pictures that they leave there."""
    names: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), _quiet():
        for block in _BLOCK.findall(text):
            exec(compile(block, page, "exec"), names)
        return {path.name: path.read_bytes() for path in sorted(Path().glob("*.png"))}


@contextlib.contextmanager
def _quiet():
    """Print nothing, and draw without a screen."""
    before = os.environ.setdefault("MPLBACKEND", "Agg")
    with contextlib.redirect_stdout(io.StringIO()):
        yield
    os.environ["MPLBACKEND"] = before
