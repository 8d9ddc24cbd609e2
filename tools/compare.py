"""Run the benchmarks on two source trees of the library: ``python tools/compare.py OLD NEW [WORD ...]``.

A tree is a folder that has the package, such as ``src``. Every row runs RUNS times on each tree, in processes that take
turns, in both orders; after half of the runs the processes are new, as it matters where arrays happen to lie in memory.
All times in the row's cells are compared, and the inverse of all rates: the table shows the median of their ratios, new
to old, with a 95 % confidence interval by the bootstrap. Groups that run other processes or take long are left out,
unless a word names their rows.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
RUNS = int(os.environ.get("RUNS", "10"))
LEFT_OUT = ("peers", "startup", "sampling", "scaling", "growth", "defaults")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
TIME = re.compile(r"^(\d[\d.e+-]*) (us|ms|s)$")
RATE = re.compile(r"^([\d.,]+)(?: M/s)?$")  # of so many a second: where the cell, or its column's title, says so
Times = dict[str, float]


def main(old: str, new: str, *words: str) -> None:
    sys.path[:0] = [str(ROOT), new]
    from benchmarks.__main__ import GROUPS, chosen

    print(f"{'row':60s} {'old ms':>9s} {'new ms':>9s} {'ratio':>7s}  95 %", flush=True)
    for group, module in GROUPS.items():
        for row in chosen(group, module.rows(), list(words)) if words or group not in LEFT_OUT else ():
            for line in compared(old, new, group, row):
                print(line, flush=True)


def compared(old: str, new: str, group: str, row: str) -> list[str]:
    """Run a row on both trees; return a line for each of its cells that has a time."""
    found: list[tuple[Times, Times]] = []
    for runs in (RUNS - RUNS // 2, RUNS // 2):
        workers = [worker(tree) for tree in (old, new)]
        try:
            for one in workers:  # compiles
                times_of(one, group, row)
            for turn in range(runs):
                first = times_of(workers[turn % 2], group, row)
                second = times_of(workers[1 - turn % 2], group, row)
                found.append((second, first) if turn % 2 else (first, second))
        except (BrokenPipeError, json.JSONDecodeError):
            return [f"{group}: {row:50s} failed"]
        for one in workers:
            one.communicate()
    cells = [cell for cell in found[0][0] if all(cell in times for pair in found for times in pair)]
    return [line_of(f"{group}: {row} [{cell}]", [(a[cell], b[cell]) for a, b in found]) for cell in cells]


def line_of(name: str, times: list[tuple[float, float]]) -> str:
    pairs = np.array(times)
    ratios = pairs[:, 1] / pairs[:, 0]
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    before, after = 1e3 * np.median(pairs, axis=0)
    flag = "  SLOWER" if low > 1.05 else ""
    return f"{name:60s} {before:9.2f} {after:9.2f} {np.median(ratios):7.3f}  {low:.3f}-{high:.3f}{flag}"


def worker(tree: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    command = [sys.executable, __file__, "--work"]
    pipe, dropped = subprocess.PIPE, subprocess.DEVNULL
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=dropped, text=True, env=environment)


def times_of(one: subprocess.Popen[str], group: str, row: str) -> Times:
    assert one.stdin is not None
    assert one.stdout is not None
    one.stdin.write(json.dumps([group, row]) + "\n")
    one.stdin.flush()
    found: Times = json.loads(one.stdout.readline())
    return found


def work() -> None:
    """Run the rows whose group and name come in, one a line; print their times as JSON."""
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        group, name = json.loads(line)
        module = importlib.import_module(f"benchmarks.{group}")
        for kept in vars(module).values():
            if getattr(kept, "__module__", "") == module.__name__:  # a fit that a row of this process made before
                getattr(kept, "cache_clear", int)()
        row = module.rows()[name]()
        found = {k: cost(cell, title) for k, (cell, title) in enumerate(zip(row, module.COLUMNS, strict=True))}
        print(json.dumps({k: seconds for k, seconds in found.items() if seconds is not None}), flush=True)


def cost(cell: str, title: str) -> float | None:
    """Return the seconds, or the inverse of the rate, that a cell shows."""
    if (time := TIME.match(cell)) is not None:
        return float(time[1]) * UNITS[time[2]]
    rate = RATE.match(cell) if "/s" in cell + title else None
    return None if rate is None else 1 / float(rate[1].replace(",", ""))


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main(*sys.argv[1:])
