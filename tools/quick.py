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


def git(*words: str) -> list[Path]:
    """Return the files that a command of git lists."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return [Path(line) for line in done.stdout.splitlines()]


def tests_of_change() -> list[str]:
    """Return the test files that differ from the last commit, and those named after a module or folder that does."""
    changed = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    stems = {f"test_{name}" for p in changed if "src" in p.parts for name in (p.stem, p.parent.name)}
    tests = {p for p in changed + git("ls-files") if p.name.startswith("test_") and p.suffix == ".py"}
    return [str(p) for p in sorted(tests) if (p in changed or p.stem in stems) and (ROOT / p).exists()]


def main() -> int:
    """Run the commands one after the other, and stop at the first that fails."""
    environment = {"ISINGLASS_EXAMPLES": "10", **os.environ}
    pytest = [sys.executable, "-m", "pytest", "-q", *sys.argv[1:]]
    named = tests_of_change()
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
