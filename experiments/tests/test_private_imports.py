"""The experiments use what the library documents; `private_imports.txt` lists what else they import."""

import ast
import importlib
import re
from collections import defaultdict
from pathlib import Path

import isinglass as ig

ROOT = Path(__file__).parents[1]
TOPICS = "".join(path.read_text() for path in (ROOT.parent / "docs" / "reference").glob("*.rst"))
DOCUMENTED = set(re.findall(r"^(?:   ~|\.\. auto\w+:: )(isinglass\.\S+)$", TOPICS, re.MULTILINE))


def is_public(module, name):
    """Say whether a name is in the reference, or one of a package that `isinglass` has as an attribute."""
    package = module == "isinglass" or module.removeprefix("isinglass.") in ig.__all__
    return f"{module}.{name}" in DOCUMENTED or (package and name in importlib.import_module(module).__all__)


def test_other_imports_are_listed():
    found = defaultdict(set)
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and re.match(r"isinglass(\.|$)", node.module):
                found[node.module] |= {one.name for one in node.names if not is_public(node.module, one.name)}
    lines = [f"{module}: {', '.join(sorted(names))}" for module, names in sorted(found.items()) if names]
    assert lines == (ROOT / "private_imports.txt").read_text().splitlines()
