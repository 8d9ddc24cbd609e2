"""Where the time of a block of code goes, by the part of the library that spends it.

The time of a function is its own, without that of the functions it calls. A function of another library (NumPy, SciPy)
counts for the function of ours that called it. What Numba does to compile and load loops is a part of its own, large in
the first process and small later.

Profiling slows down calls of Python functions, but no compiled loops, so that the share of the loops is a little too
small. With several threads, it is the time of the thread that runs the block.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from isinglass.errors import InputError

PACKAGE = Path(__file__).parents[1]
PARTS: dict[str, tuple[str, ...]] = {  # folders, modules and functions; the first part that fits has a function
    "read-out": ("read_out", "read_out_back", "inference/result", "inference/message_passing/outcome"),
    "loops": ("kernels/", "runtime/compilation/calls"),
    "compilation": ("runtime/compilation/",),
    "set-up": ("inference/", "graph/", "potentials", "segments", "runtime/"),
    "model": ("models/", "features/"),
    "loss": ("losses/", "gradients/", "decoding/", "learning/objective", "learning/total", "learning/chain"),
    "optimizer": ("learning/",),
    "estimator": ("estimators/", "validation"),
    "other": ("",),
}
ELSEWHERE = {"/numba/": "compilation", "/llvmlite/": "compilation", "/scipy/optimize/": "optimizer"}

Function = tuple[str, int, str]
"""File, line and name."""
Times = tuple[int, int, float, float]
"""Calls, calls that are not recursive, own seconds, seconds with those of the functions that it calls."""
Known = dict[Function, tuple[int, int, float, float, dict[Function, Times]]]
"""The times of each function, and those of its calls by each caller."""


class Spent(NamedTuple):
    """A function, its own seconds, and how often it was called."""

    function: str
    seconds: float
    calls: int


class Profile:
    """Measure where the time of a block goes: ``with ig.Profile() as spent: crf.fit(X, Y)``.

    Parameters
    ----------
    clock : callable
        Returns seconds; by default on the wall. `time.process_time` counts those of the processor, for all threads.

    Attributes
    ----------
    seconds : dict of str to float
        By part: "set-up" (laying out graphs and messages), "loops" (compiled), "read-out" (beliefs and log Z), "model"
        (features to potentials, and back), "loss", "optimizer", "estimator" (checks and conversions of data),
        "compilation", "other" (the rest of the library, and the block itself).

    Examples
    --------
    >>> import isinglass as ig
    >>> ising = ig.models.Ising(ig.grid_graph(5, 5, 2))
    >>> with ig.Profile() as spent:
    ...     r = ig.infer(ising.potentials(coupling=0.2, field=0.1), "exact")
    >>> spent.seconds["loops"] > 0
    True
    >>> print(spent)
    part         seconds  share
    ...
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._profiler = cProfile.Profile(clock)
        self._known: Known = {}

    def __enter__(self) -> Profile:
        try:
            if sys.getprofile() is not None:
                raise ValueError
            self._profiler.enable()  # later versions of Python look for others themselves
        except ValueError:
            raise InputError("Profile", "no other profiler that runs", "one", "leave the outer block out") from None
        return self

    def __exit__(self, *error: object) -> None:
        self._profiler.disable()
        self._known = pstats.Stats(self._profiler).stats  # type: ignore[attr-defined]
        self.seconds = seconds_by_part(self._known)

    def slowest(self, n: int = 10) -> list[Spent]:
        """Return the functions whose own time is longest, those of other libraries among them."""
        listed = sorted(self._known.items(), key=lambda item: -item[1][2])[:n]
        return [Spent(_text(function), times[2], times[0]) for function, times in listed]

    def __str__(self) -> str:
        total = sum(self.seconds.values())
        rows = sorted(self.seconds.items(), key=lambda item: -item[1])
        lines = [f"{part:<12} {seconds:>7.3f}  {seconds / total if total else 0:>5.0%}" for part, seconds in rows]
        return "\n".join(["part         seconds  share", *lines])


def seconds_by_part(known: Known) -> dict[str, float]:
    """Return the seconds of each part."""
    found = dict.fromkeys(PARTS, 0.0)
    for function, (_, _, own, _, callers) in known.items():
        part = part_of(function)
        if part is not None:
            found[part] += own
            continue
        for caller, times in callers.items():
            found[_nearest(caller, known)] += times[2]
        found["other"] += max(0.0, own - sum(times[2] for times in callers.values()))
    return found


@cache
def part_of(function: Function) -> str | None:
    """Return the part that a function belongs to; None for a function of another library.

    Examples
    --------
    >>> part_of((str(PACKAGE / "kernels" / "x.py"), 1, "f")), part_of((str(PACKAGE / "potentials.py"), 1, "f"))
    ('loops', 'set-up')
    >>> part_of(("/usr/lib/numba/core/x.py", 1, "f")), part_of(("~", 0, "<built-in method sum>"))
    ('compilation', None)
    """
    file, _, name = function
    path = Path(file)
    if not path.is_relative_to(PACKAGE):
        return next((part for word, part in ELSEWHERE.items() if word in path.as_posix()), None)
    inside = path.relative_to(PACKAGE).as_posix()
    return next(part for part, words in PARTS.items() if any(inside.startswith(w) or w == name for w in words))


def _nearest(function: Function, known: Known, depth: int = 6) -> str:
    """Return the part of the nearest of our functions among those that mostly called this one."""
    for _ in range(depth):
        part = part_of(function)
        if part is not None:
            return part
        callers = known[function][4]
        if not callers:
            break
        function = max(callers, key=lambda one: callers[one][3])
    return "other"


def _text(function: Function) -> str:
    """Write where a function is."""
    file, line, name = function
    path = Path(file)
    if path.is_relative_to(PACKAGE):
        file = path.relative_to(PACKAGE.parent).as_posix()
    return name if line == 0 else f"{file}:{line} {name}"
