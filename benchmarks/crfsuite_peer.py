"""python-crfsuite in a virtual environment of its own, made on demand: ``.venv-crfsuite`` beside this folder."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from benchmarks.pgmax_peer import _reason
from benchmarks.timing import ROOT

FOLDER = ROOT / ".venv-crfsuite"
SECONDS = 200  # for installing


@cache
def crfsuite(iterations: int = 20) -> dict[str, float] | str:
    """Return seconds an iteration and tokens a second ("lists", "ready"), or a word on why there are none."""
    python = FOLDER / "bin" / "python"
    try:
        if not (FOLDER / "installed").exists():
            _install(python)
        script = Path(__file__).with_name("crfsuite_script.py")
        command = [python, script, str(iterations)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.SubprocessError) as error:
        return f"skipped: {_reason(error)}"
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def _install(python: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True, capture_output=True, text=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy>=2", "python-crfsuite"]
    subprocess.run(pip, check=True, capture_output=True, text=True, timeout=SECONDS)
    (FOLDER / "installed").touch()
