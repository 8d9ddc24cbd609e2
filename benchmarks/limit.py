"""The plain C loop (limit.c), compiled when it is first asked for."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory()


@cache
def _program() -> Path | None:
    """Compile the loop; None where there is no compiler."""
    source, program = Path(__file__).with_name("limit.c"), Path(_FOLDER.name) / "limit"
    try:
        subprocess.run(["cc", "-O3", "-march=native", "-ffast-math", source, "-o", program], check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return program


def limit(side: int) -> float | None:
    """Return the seconds of a sweep of the C loop on a binary grid, or None where there is no compiler."""
    program = _program()
    if program is None:
        return None
    done = subprocess.run([program, str(side)], check=True, capture_output=True, text=True)
    return float(done.stdout) / 1e3
