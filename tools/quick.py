"""Style, layers, the tests of what changed since the last commit, then all other quick tests: ``make quick``.

Tests with the markers `long` and `slow` are left out, but for the `long` ones in files that belong to a change. Options
go to pytest: ``python tools/quick.py -x``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def changed_files() -> list[Path]:
    """Return the files that differ from the last commit, and those that git does not know."""
    commands = (["git", "diff", "--name-only", "HEAD"], ["git", "ls-files", "--others", "--exclude-standard"])
    listed = [subprocess.run(c, cwd=ROOT, capture_output=True, text=True, check=False).stdout for c in commands]
    return [Path(line) for line in "".join(listed).splitlines()]


def tests_of(changed: list[Path]) -> list[str]:
    """Return the test files that changed, and those named after a module or a folder of modules that changed."""
    tests = [p.relative_to(ROOT) for p in sorted(ROOT.glob("**/tests/**/test_*.py")) if ".venv" not in p.parts]
    found = {p for p in changed if p in tests}
    for path in changed:
        if path.suffix == ".py" and "src" in path.parts:
            found |= {t for t in tests if t.stem in (f"test_{path.stem}", f"test_{path.parent.name}")}
    return [str(p) for p in sorted(found) if (ROOT / p).exists()]


def main() -> int:
    """Run the commands one after the other, and stop at the first that fails."""
    environment = {"ISINGLASS_EXAMPLES": "10", **os.environ}
    pytest = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:]]
    named = tests_of(changed_files())
    others = [f"--deselect={name}" for name in named]
    steps = [[BIN / "ruff", "check", "."], [BIN / "ruff", "format", "--check", "."], [BIN / "lint-imports"]]
    if named:
        steps.append([*pytest, "-m", "not slow", *named])
    steps.append([*pytest, "-n", "2", "--dist", "loadfile", "-m", "not slow and not long", *others])
    for step in steps:
        if code := subprocess.run(list(map(str, step)), cwd=ROOT, env=environment, check=False).returncode:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
