"""What is paid once: building, importing, compiling; and the memory of a tape."""

from __future__ import annotations

import os
import tempfile
import time
from functools import partial

import numpy as np

import isinglass as ig
from benchmarks.problems import ising
from benchmarks.timing import Row, Rows, paired, python, ratio, seconds, timed

TITLE = "Once: building, importing, compiling, memory"
COLUMNS = ("what", "ours", "at most", "compared", "")

COMPILE = """
import time, numpy as np
start = time.perf_counter()
import isinglass as ig
rng = np.random.default_rng(0)
g = ig.grid_graph(3, 3, 2)
p = ig.Potentials.from_groups(g, [rng.normal(size=(len(a), *a.shape)) for a in g.groups])
{call}
print(time.perf_counter() - start)
"""
CALLS = {
    "exact": 'ig.infer(p, "exact")',
    "bp": "ig.infer(p, ig.BeliefPropagation(iterations=3))",
    "bp with gradient": "ig.infer(p, ig.BeliefPropagation(iterations=3), tape=True).backward(log_z=1.0)",
    "demo": "from isinglass.cli.denoising import train_demo; train_demo()",
}
MOST = {"exact": 6, "bp": 6, "bp with gradient": 10, "demo": 25}  # seconds
MEMORY = """
import re, isinglass as ig
from benchmarks.problems import grid_model
def run(side):
    p = grid_model(side, shared=False, general=True)
    r = ig.infer(p, ig.BeliefPropagation(iterations=10), tape={tape})
    if {tape}:
        r.backward(log_z=1.0)
    return int(re.search("VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1]) / 1024
small = run(4)
print(run(300) - small)
"""  # getrusage would give a child the peak of its parent


def rows() -> Rows:
    """Name the rows."""
    compiling = {f"compile {name}": partial(_compile_row, name) for name in CALLS}
    return {"build ising300": _build_row, "import isinglass": _import_row, "memory of a tape": _memory_row, **compiling}


def _build_row() -> Row:
    times = [timed(lambda: ising(ig.grid_graph(300, 300, 2), np.random.default_rng(3))) for _ in range(5)]
    return ["build ising300 in bulk", seconds(times), "0.3 s", "libDAI 0.36 s, recorded", ""]


def _import_row() -> Row:
    calls = {"bare": lambda: python("pass"), "ours": lambda: python("import isinglass")}
    times = paired(calls, clock=time.perf_counter)
    bare, ours = times["bare"], times["ours"]
    extra = np.median(ours - bare)
    compared = f"{ratio(ours, bare)} of bare Python"
    return ["import isinglass", seconds(extra), "0.4 s", compared, "beyond starting Python"]


def _memory_row() -> Row:
    what = "peak memory, 300 x 300, 10 sweeps and gradient"
    if not os.path.exists("/proc/self/status"):
        return [what, "-", "-", "-", "skipped: measured on Linux only"]
    for tape in (False, True):
        python(MEMORY.format(tape=tape))  # compiles
    plain, taped = (float(python(MEMORY.format(tape=tape))) for tape in (False, True))
    compared = f"{taped / plain:.2g} x of {plain:.0f} MB without a tape"
    note = "over a 4 x 4 grid; PGMax 1213 MB in all, recorded"
    return [what, f"{taped:.0f} MB", "-", compared, note]


def _compile_row(name: str) -> Row:
    code = COMPILE.format(call=CALLS[name])
    with tempfile.TemporaryDirectory() as folder:
        first, second = (float(python(code, environment={"NUMBA_CACHE_DIR": folder})) for _ in range(2))
    compared = f"{seconds(second)} in a second process"
    return [f"first {name}, nothing compiled", seconds(first), f"{MOST[name]} s", compared, "import included"]
