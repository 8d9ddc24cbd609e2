"""Print the benchmark table: ``python -m benchmarks`` (one core; medians; compilation is not counted).

Times of the peers are recorded ones, taken on one core of a Zen 4 machine with the same instances: libDAI
(-O3), pyAgrum 3.3.1. Each row of ours builds the structure anew, so the elimination order is counted too;
"again" is a second inference on the same structure.
"""

from __future__ import annotations

import gc
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

import isinglass as ig
from benchmarks.problems import ising, problem

REFERENCE = {
    "ising15": 276.7220690028,
    "ising18": 402.8726446561,
    "tree10000": 11582.3586196245,
    "chain10000_k5": 20843.2793985460,
}
TARGET = {"ising15": 0.2, "ising18": 2.5, "tree10000": 0.05, "chain10000_k5": 0.05}
PEERS = {
    "ising300": "PGMax 8.4 ms (float32), libDAI 183 ms",
    "ising100": "PGMax 0.84 ms (float32), libDAI 15.6 ms",
    "ising15": "libDAI 0.18, pyAgrum 8.3",
    "ising18": "libDAI 15.6, pyAgrum 17.8",
    "tree10000": "libDAI 7.8, pyAgrum NaN",
    "chain10000_k5": "libDAI 3.8, pyAgrum NaN",
}


def timed(call: Callable[[], object]) -> float:
    gc.collect()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def exact_row(name: str, repetitions: int = 5) -> list[str]:
    fresh, again = [], []
    for _ in range(repetitions):
        p = problem(name)
        fresh.append(timed(lambda p=p: ig.infer(p, "exact")))
        again.append(timed(lambda p=p: ig.infer(p, "exact")))
    error = abs(ig.infer(p, "exact").log_z - REFERENCE[name])
    cost = ig.Exact().cost(p)
    note = f"width {ig.elimination_order(p.graph).width}, {cost.bytes / 1e6:.0f} MB, log Z off by {error:.0e}"
    return [f"exact {name}", *map(seconds, (fresh, again)), f"{TARGET[name]:g} s", PEERS[name], note]


def build_row(repetitions: int = 5) -> list[str]:
    times = [timed(lambda: ising(ig.grid_graph(300, 300, 2), np.random.default_rng(3))) for _ in range(repetitions)]
    return ["build ising300 in bulk", seconds(times), "-", "0.3 s", "libDAI 0.36", ""]


def import_row(repetitions: int = 5) -> list[str]:
    def run(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    bare = statistics.median(timed(run("pass")) for _ in range(repetitions))
    times = [timed(run("import isinglass")) - bare for _ in range(repetitions)]
    return ["import isinglass", seconds(times), "-", "0.4 s", "", "beyond starting Python"]


def limit(side: int) -> float | None:
    """Milliseconds of a sweep of the plain C loop, or None where there is no compiler."""
    source = Path(__file__).with_name("limit.c")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "limit"
        try:
            subprocess.run(["cc", "-O3", "-march=native", "-ffast-math", source, "-o", program], check=True)
            done = subprocess.run([program, str(side)], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return float(done.stdout)


def sweep_row(name: str, side: int, repetitions: int = 5) -> list[str]:
    p = problem(name)
    few, many = ig.BeliefPropagation(iterations=5), ig.BeliefPropagation(iterations=25)
    ig.infer(p, few, tape=True).backward(log_z=1.0)
    sweeps = [timed(lambda: ig.infer(p, many)) - timed(lambda: ig.infer(p, few)) for _ in range(repetitions)]
    sweep = 1e3 * statistics.median(sweeps) / 20
    taped = [timed(lambda: ig.infer(p, few, tape=True)) for _ in range(repetitions)]
    r = ig.infer(p, few, tape=True)
    back = [timed(lambda: r.backward(log_z=1.0)) for _ in range(repetitions)]
    ratio = 1 + statistics.median(back) / statistics.median(taped)
    floor = limit(side)
    against = "no C compiler" if floor is None else f"{sweep / floor:.0f} x the C loop ({floor:.2f} ms)"
    return [f"bp sweep {name}", f"{sweep:.2f} ms", "-", "12 x C loop", PEERS.get(name, ""),
            f"{against}; forward + backward / forward {ratio:.1f}"]  # fmt: skip


def to_tolerance_row(what: str, p: ig.Potentials, algorithm: object, target: str, peer: str) -> list[str]:
    ig.infer(p, algorithm)
    times = [timed(lambda: ig.infer(p, algorithm)) for _ in range(3)]
    return [what, seconds(times), "-", target, peer, ""]


def seconds(times: list[float]) -> str:
    return f"{statistics.median(times):.3f} s"


def main() -> None:
    console = Console()
    table = Table(title="Isinglass benchmarks (one core, medians)")
    for column in ("what", "ours", "again", "at most", "peers, recorded (s)", ""):
        table.add_column(column)
    with console.status("compiling"):
        ig.infer(problem("ising15"), "exact")
    for name in REFERENCE:
        with console.status(name):
            table.add_row(*exact_row(name))
    for name, side in (("ising100", 100), ("ising300", 300)):
        with console.status(f"sweeps of {name}"):
            table.add_row(*sweep_row(name, side))
    with console.status("to a tolerance"):
        residual = ig.BeliefPropagation(schedule="residual", tol=1e-6)
        rows = (
            ("residual bp to 1e-6, ising300", problem("ising300"), residual, "3 s", "libDAI 39.9"),
            ("mean field to 1e-6, ising100", problem("ising100"), ig.MeanField(tol=1e-6), "0.15 s", "libDAI 11.7"),
        )
        for row in rows:
            table.add_row(*to_tolerance_row(*row))
    with console.status("building and importing"):
        table.add_row(*build_row())
        table.add_row(*import_row())
    console.print(table)


if __name__ == "__main__":
    main()
