"""PGMax in a virtual environment of its own, made on demand: ``.venv-pgmax`` beside this folder.

Its declared requirements include TensorFlow and Jupyter, which a sweep does not need; what it imports is installed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.timing import ROOT

FOLDER = ROOT / ".venv-pgmax"
NEEDS = ("jax==0.10.2", "jaxlib==0.10.2", "numba>=0.60", "numpy>=2", "scipy>=1.12")
SECONDS = 300  # for installing


def sweeps(sides: Sequence[int]) -> dict[int, float] | str:
    """Return the seconds of a sweep for each side, or a word on why there are none."""
    python = FOLDER / "bin" / "python"
    try:
        if not (FOLDER / "installed").exists():
            _install(python)
        script = Path(__file__).with_name("pgmax_script.py")
        command = [python, script, *map(str, sides)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=200)
    except (OSError, subprocess.SubprocessError) as error:
        return f"skipped: {_reason(error)}"
    return {int(side): ms / 1e3 for side, ms in json.loads(done.stdout.splitlines()[-1]).items()}


def _install(python: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER], check=True, capture_output=True, text=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for packages in (["--no-deps", "pgmax==0.6.1"], list(NEEDS)):
        subprocess.run([*pip, *packages], check=True, capture_output=True, text=True, timeout=SECONDS)
    (FOLDER / "installed").touch()


def _reason(error: Exception) -> str:
    """Return the last line that the failed command wrote, or the error's name."""
    text = getattr(error, "stderr", None) or str(error)
    lines = (text if isinstance(text, str) else text.decode()).strip().splitlines()
    return (lines[-1] if lines else type(error).__name__)[:100]
