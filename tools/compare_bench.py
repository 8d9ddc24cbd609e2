"""Run the benchmarks on two source trees of the library: ``python tools/compare_bench.py OLD NEW [WORD ...]``.

Every row runs RUNS times on each tree, in processes that take turns. All times in the row's cells are compared, and the
inverse of all rates; the table shows the median of their ratios, new to old, with a 95 % confidence interval by the
bootstrap. Rows that run
other processes or install peers (groups peers, tagging's peer, startup) are left out, unless a word names them.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
RUNS = int(os.environ.get("RUNS", "10"))
JOBS = int(os.environ.get("JOBS", "1"))  # rows that run side by side
LEFT_OUT = ("peers", "startup", "sampling", "scaling")
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
TIME = re.compile(r"^(\d[\d.e+-]*) (us|ms|s)$")
RATE = re.compile(r"^([\d.,]+)(?: M/s)?$")  # of so many a second: where the cell, or its column's title, says so


def work() -> None:
    """Run the rows whose group and name come in, one a line; print their times as JSON."""
    import importlib
    import warnings

    warnings.simplefilter("ignore")
    for line in sys.stdin:
        group, name = json.loads(line)
        module = importlib.import_module(f"benchmarks.{group}")
        for kept in vars(module).values():
            if getattr(kept, "__module__", "") == module.__name__:  # a fit that a row of this process made before
                getattr(kept, "cache_clear", int)()
        row = module.rows()[name]()
        found = {k: _cost(cell, title) for k, (cell, title) in enumerate(zip(row, module.COLUMNS, strict=True))}
        print(json.dumps({k: cost for k, cost in found.items() if cost is not None}), flush=True)


def _cost(cell: str, title: str) -> float | None:
    """Return the seconds, or the inverse of the rate, that a cell shows."""
    if (time := TIME.match(cell)) is not None:
        return float(time[1]) * UNITS[time[2]]
    rate = RATE.match(cell) if "/s" in cell + title else None
    return None if rate is None else 1 / float(rate[1].replace(",", ""))


def main(old: str, new: str, *words: str) -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / new)]
    from benchmarks.__main__ import GROUPS, chosen

    rows = [(group, row) for group, module in GROUPS.items() for row in chosen(group, module.rows(), list(words))]
    rows = [(group, row) for group, row in rows if words or group not in LEFT_OUT]
    print(f"{'row':60s} {'old':>9s} {'new':>9s} {'ratio':>7s}  95 %", flush=True)
    with ThreadPoolExecutor(JOBS) as pool:
        for lines in pool.map(lambda row: _compared(old, new, *row), rows):
            print("\n".join(lines), flush=True)


def _compared(old: str, new: str, group: str, row: str) -> list[str]:
    workers = [_worker(tree) for tree in (old, new)]
    try:
        for worker in workers:  # compiles
            _times(worker, group, row)
        found = [_turn(workers, group, row, k) for k in range(RUNS)]
    except (BrokenPipeError, json.JSONDecodeError):
        return [f"{group}: {row:50s} failed"]
    for worker in workers:
        worker.communicate()
    cells = [cell for cell in found[0][0] if all(cell in times for pair in found for times in pair)]
    return [_line(f"{group}: {row} [{cell}]", [(a[cell], b[cell]) for a, b in found]) for cell in cells]


def _line(name: str, times: list[tuple[float, float]]) -> str:
    pairs = np.array(times)
    ratios = pairs[:, 1] / pairs[:, 0]
    draws = np.random.default_rng(0).choice(ratios, (2000, len(ratios)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    before, after = 1e3 * np.median(pairs, axis=0)
    flag = "  SLOWER" if low > 1.05 else ""
    return f"{name:60s} {before:9.2f} {after:9.2f} {np.median(ratios):7.3f}  {low:.3f}-{high:.3f}{flag}"


def _worker(tree: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    if "NUMBA_CACHE_DIR" in os.environ:
        environment["NUMBA_CACHE_DIR"] += f"/{Path(tree).parent.name or 'new'}"
    command = [sys.executable, __file__, "--work"]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    )


def _times(worker: subprocess.Popen[str], group: str, row: str) -> dict[str, float]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps([group, row]) + "\n")
    worker.stdin.flush()
    times: dict[str, float] = json.loads(worker.stdout.readline())
    return times


def _turn(workers: list[subprocess.Popen[str]], group: str, row: str, turn: int) -> list[dict[str, float]]:
    """Run a row on both trees, in turns which is first."""
    found: list[dict[str, float]] = [{}, {}]
    for j in (0, 1) if turn % 2 == 0 else (1, 0):
        found[j] = _times(workers[j], group, row)
    return found


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        main(*sys.argv[1:])
