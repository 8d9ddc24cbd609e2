"""The plain C loops (limit.c, gibbs.c, scaling.c), compiled when they are first asked for."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

_FOLDER = tempfile.TemporaryDirectory()


@cache
def compiled_program(name: str, *options: str) -> Path | None:
    """Compile a loop; None where there is no compiler."""
    source = Path(__file__).with_name(name)
    program = Path(_FOLDER.name) / source.stem
    command = ["cc", "-O3", "-march=native", "-ffast-math", *options, source, "-lm", "-o", program]
    try:
        subprocess.run(command, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return program


def limit(side: int, name: str = "limit") -> float | None:
    """Return the seconds of a sweep of a C loop on a binary grid, or None where there is no compiler.

    "limit": flooding belief propagation; "gibbs": Gibbs sampling.
    """
    program = compiled_program(f"{name}.c")
    if program is None:
        return None
    done = subprocess.run([program, str(side)], check=True, capture_output=True, text=True)
    return float(done.stdout) / 1e3
