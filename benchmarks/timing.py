"""Clocks: seconds of a call, paired repetitions, medians as text.

Calls in this process have one thread and are timed by the processor's clock, which other programs on the machine
disturb least; what is compared with other processes is timed by the clock on the wall.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Clock = Callable[[], float]
Row = list[str]
Rows = dict[str, Callable[[], Row]]
"""The name of each row, and the function that measures it."""

ROOT = Path(__file__).parent.parent


def timed(call: Callable[[], object], clock: Clock = time.process_time) -> float:
    """Return the seconds that a call takes."""
    gc.collect()
    start = clock()
    call()
    return clock() - start


def paired(
    calls: Mapping[str, Callable[[], object]],
    repetitions: int = 7,
    budget: float = 5.0,
    clock: Clock = time.process_time,
) -> dict[str, NDArray[np.float64]]:
    """Time the calls in turns, so that what slows the machine for a while slows all of them; first once for nothing.

    When the `budget` of seconds is spent, three repetitions are enough.
    """
    for call in calls.values():
        call()
    start, times = time.perf_counter(), []
    while len(times) < repetitions and (len(times) < 3 or time.perf_counter() < start + budget):
        times.append([timed(call, clock) for call in calls.values()])
    return dict(zip(calls, np.array(times).T, strict=True))


def python(code: str, *, environment: Mapping[str, str] | None = None) -> str:
    """Run Python in a process of its own; return what it printed."""
    env = os.environ | (environment or {})
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT, env=env)
    return done.stdout


def seconds(times: object) -> str:
    """Write the median with a unit that suits it."""
    median = float(np.median(np.asarray(times)))
    return f"{1e3 * median:.3g} ms" if median < 0.1 else f"{median:.3g} s"


def ratio(above: object, below: object) -> str:
    """Write the median of the ratios of paired times."""
    return f"{statistics.median((np.asarray(above) / np.asarray(below)).tolist()):.2g} x"
