"""Interrupt calls at random moments; run by `test_interrupts`, in a process that may well crash.

As a script, ``interrupt_tasks.py COUNT SEED FOLDER NAME...`` prints a JSON object for each task: its outcomes and how
many seconds after the signal they came, the slowest of them. A task is called once to compile and load what it needs,
once for the answer and the time that it takes, then COUNT times with a signal at a random moment of that time, and at
last without one: the answer must be as before.
"""

from __future__ import annotations

import contextlib
import faulthandler
import io
import json
import signal
import sys
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import isinglass as ig
from isinglass.cli.main import main
from isinglass.inference import ALGORITHMS
from isinglass.inference.sampling.algorithm import MonteCarlo

HANGS = 60  # seconds beyond those that a task takes after which the process ends, with a traceback
LATEST = 10  # seconds after the signal at which a task may still end by itself
Task = Callable[[], Any]


def ising(side: int) -> ig.Potentials:
    """Return a model on a graph of its own, whose caches are empty."""
    field = np.random.default_rng(0).normal(size=(side * side, 1)) * [-1.0, 1.0]
    coupling = 0.2 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    return ig.Potentials.from_groups(ig.grid_graph(side, side, 2), [field, coupling[None]])


SIDES = {"exact": 13, "brute": 4, "convex": 40, "smf": 25, "trw": 30}
OPTIONS: dict[str, dict[str, Any]] = {"fbp": {"counting_numbers": 0.8}}


def inferred(name: str) -> bytes:
    sweeps = {"sweeps": 200} if issubclass(ALGORITHMS[name], MonteCarlo) else {}
    seed = {"random_state": 0, **sweeps} if ALGORITHMS[name].facts.stochastic else {}
    result = ig.infer(ising(SIDES.get(name, 10 if seed else 40)), name, **OPTIONS.get(name, seed))
    return result.variables.flat.tobytes()


SOLVERS = {"ils": 30, "trws": 60, "expansion": 60, "ilp": 8, "toulbar2": 12, "auto": 60}


def installed(name: str) -> bool:
    """Tell whether the optional package of a solver is there."""
    return name != "toulbar2" or find_spec("pytoulbar2") is not None


def solved(name: str) -> Any:
    """Solve; an interrupted search returns the best assignment so far, with a true bound."""
    p = ising(SOLVERS[name])
    found = ig.map_assignment(p, name)
    assert found.info is not None
    assert found.bound >= found.score - 1e-6
    return "best so far" if found.info.stopped == "interrupted" else found.states.tobytes()


def grid_data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (6, 8, 8))
    return Y[..., None] + rng.normal(size=(6, 8, 8, 2)), Y


def fitted(crf: Any, *data: Any) -> Any:
    """Fit; an interrupted fit keeps the best parameters so far, and says so."""
    crf.fit(*data)
    if crf.message_ == "interrupted":
        assert not crf.converged_
        assert hasattr(crf, "theta_")
        return "best so far"
    return crf.theta_.tobytes()


def grid_crf(**options: Any) -> Any:
    return fitted(ig.GridCRF(iterations=3, loss="ucl", l2=0.1, max_iter=15, **options), *grid_data())


def graph_crf() -> Any:
    X, Y = grid_data()
    edges = np.asarray(ig.grid_graph(8, 8, 2).groups[1].scopes)
    graphs = [(x.reshape(64, -1), edges) for x in X]
    return fitted(ig.GraphCRF(iterations=3, loss="ucl", l2=0.1, max_iter=15), graphs, [y.ravel() for y in Y])


def chain_crf(jobs: int = 1) -> Any:
    rng = np.random.default_rng(0)
    Y = [rng.integers(0, 3, 12) for _ in range(60)]
    X = [[{f"w{s}": 1.0, f"v{s + int(rng.integers(2))}": 1.0} for s in y.tolist()] for y in Y]
    return fitted(ig.ChainCRF(l2=0.1, max_iter=40, n_jobs=jobs), X, [list(map(str, y.tolist())) for y in Y])


def mrf() -> Any:
    X = np.random.default_rng(0).integers(0, 2, (100, 9))
    return fitted(ig.MRF(ig.grid_graph(3, 3, 2), l2=0.1, max_iter=15), X)


def write_files(folder: Path) -> None:
    """Write what the commands read."""
    if (folder / "m.uai").exists():
        return
    ig.write_uai(ising(13), folder / "m.uai")
    X, Y = grid_data()
    np.savez(folder / "train.npz", X=X, Y=Y)
    options = 'estimator = "grid"\n[options]\niterations = 2\nloss = "ucl"\nmax_iter = 5\n'
    (folder / "grid.toml").write_text(options)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(["fit", str(folder / "grid.toml"), str(folder / "train.npz"), "--model", str(folder / "g.isg")])
    assert code == 0


def commands(folder: Path) -> dict[str, list[str]]:
    """Return a call of each command that takes long enough."""
    model, train, out = str(folder / "m.uai"), str(folder / "train.npz"), str(folder / "out")
    return {
        "infer": ["infer", model, "--task", "MAR", "--out", out],
        "infer-bp": ["infer", model, "--task", "MAR", "--algorithm", "bp", "--json", "--out", out],
        "infer-map": ["infer", model, "--task", "MAP", "--out", out],
        "info": ["info", model],
        "convert": ["convert", model, str(folder / "c.uai")],
        "fit": ["fit", str(folder / "grid.toml"), train, "--model", str(folder / "new.isg")],
        "predict": ["predict", str(folder / "g.isg"), train, "--out", str(folder / "p.npz")],
        "evaluate": ["evaluate", str(folder / "g.isg"), train],
        "algorithms": ["algorithms"],
        "demo": ["demo"],
    }


class RefusedError(Exception):
    """A command ended with a code that is not documented."""


def command(argv: list[str]) -> Any:
    """Run a command; 130 is what it returns when interrupted, and it says so in one line."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    if code == 130:
        assert "interrupted" in err.getvalue(), err.getvalue()
        raise KeyboardInterrupt
    if code:
        raise RefusedError(f"{code}: {err.getvalue()}")
    return "done"


def tasks(folder: Path) -> dict[str, Task]:
    """Return every task by name."""
    found: dict[str, Task] = {f"infer {name}": lambda name=name: inferred(name) for name in ig.algorithms()}  # type: ignore[misc]
    found |= {f"solve {name}": lambda name=name: solved(name) for name in SOLVERS if installed(name)}  # type: ignore[misc]
    found |= {
        "exact, two threads": lambda: ig.infer(ising(15), "exact", n_jobs=2).variables.flat.tobytes(),
        "log Z": lambda: ig.infer(ising(15), "exact", beliefs=False).component_log_z.tobytes(),
        "map": lambda: ig.map_assignment(ising(13)).states.tobytes(),
        "map max-product": lambda: ig.map_assignment(ising(30), "max-product").states.tobytes(),
        "n best": lambda: np.array([a.states for a in ig.n_best(ising(11), 20)]).tobytes(),
        "sample": lambda: ig.sample(ising(11), 500, random_state=0).tobytes(),
        "elimination order": lambda: ig.elimination_order(ig.grid_graph(15, 15, 2), restarts=25).order.tobytes(),
        "backward": lambda: ig.infer(ising(30), "bp", tape=True).backward(log_z=1.0).groups[0].tobytes(),
        "GridCRF": grid_crf,
        "GridCRF, two threads": lambda: grid_crf(n_jobs=2),
        "GraphCRF": graph_crf,
        "ChainCRF": chain_crf,
        "ChainCRF, two threads": lambda: chain_crf(2),
        "MRF": mrf,
    }
    named = commands(folder)
    return found | {f"isinglass {name}": lambda argv=argv: command(argv) for name, argv in named.items()}  # type: ignore[misc]


def interrupted(task: Task, moment: float) -> tuple[str, float]:
    """Call a task, with a signal after some seconds; return what came of it, and how long after the signal."""
    outcome, late, began = "", 0.0, time.perf_counter()
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, max(moment, 1e-6))
            outcome = "best so far" if task() == "best so far" else "done"
        finally:
            late = time.perf_counter() - began - moment
            signal.setitimer(signal.ITIMER_REAL, 0)
        if late > LATEST:
            outcome = f"{outcome}, {late:.1f} s after the signal"
    except KeyboardInterrupt:
        outcome = outcome or "KeyboardInterrupt"
    except BaseException as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome, max(late, 0.0)


def tried(task: Task, count: int, rng: np.random.Generator) -> dict[str, Any]:
    """Interrupt a task so many times."""
    task()
    began = time.perf_counter()
    wanted = task()
    seconds = time.perf_counter() - began
    outcomes: dict[str, int] = {}
    slowest = 0.0
    for _ in range(count):
        faulthandler.dump_traceback_later(HANGS + seconds, exit=True)
        outcome, late = interrupted(task, float(rng.uniform(0, seconds)))
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        slowest = max(slowest, late)
    faulthandler.cancel_dump_traceback_later()
    return {"outcomes": outcomes, "slowest": slowest, "seconds": seconds, "same": task() == wanted}


def run(argv: list[str]) -> None:
    """Interrupt the tasks that are named."""
    count, seed, folder = int(argv[0]), int(argv[1]), Path(argv[2])
    faulthandler.enable()
    warnings.simplefilter("ignore")
    write_files(folder)
    signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl-C does
    known = tasks(folder)
    for name in argv[3:]:
        try:
            found = tried(known[name], count, np.random.default_rng(seed))
        except BaseException as error:
            found = {"outcomes": {f"without a signal: {error!r}": 1}, "same": False}
        print(json.dumps({"task": name, **found}), flush=True)


if __name__ == "__main__":
    run(sys.argv[1:])
