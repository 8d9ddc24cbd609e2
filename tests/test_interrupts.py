"""Ctrl-C at any moment: KeyboardInterrupt, the documented best result so far or exit code 130, and nothing else.

A signal that comes while a compiled loop runs is heard when Python goes on; whatever Python code runs before that, such
as that which Numba calls to turn arrays into objects, would raise KeyboardInterrupt where nobody expects it.

ISINGLASS_INTERRUPTS says how often each task is interrupted (default 2; the slow test: 20), ISINGLASS_SEED at which
moments. ``ISINGLASS_INTERRUPTS=200 pytest -m slow tests/test_interrupts.py`` does it 200 times.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import interrupt_tasks
from isinglass.graph.builders import grid_graph
from isinglass.graph.elimination import greedy
from isinglass.graph.elimination.order import elimination_order
from isinglass.inference import ConvexFreeEnergy, infer
from isinglass.inference.message_passing.algorithms.belief_propagation import BeliefPropagation
from isinglass.inference.message_passing.moves import planes
from isinglass.io import write_uai
from isinglass.kernels.numba.free_energy import ldl
from isinglass.potentials import Potentials
from isinglass.runtime import interrupts, lapack
from isinglass.runtime.compilation.jit import kernels
from second_interpreter import context

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")

SEED = os.environ.get("ISINGLASS_SEED", "0")
ALLOWED = {"KeyboardInterrupt", "best so far", "done"}


def run_tasks(argv: list[str], *files: Path) -> None:
    """Interrupt tasks; what the process prints, also when it crashes, goes to two files."""
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
    interrupt_tasks.run(argv)


def interrupt(folder: Path, count: int, names: list[str]) -> None:
    """Interrupt tasks in a process of their own; all must end well, and give the same answer afterwards."""
    out, err = folder / "stdout", folder / "stderr"
    process = context.Process(target=run_tasks, args=([str(count), SEED, str(folder), *names], out, err))
    process.start()
    process.join()
    found = [json.loads(line) for line in out.read_text().splitlines() if line.startswith('{"task"')]
    assert process.exitcode == 0, f"after {[one['task'] for one in found]}: {process.exitcode}\n{err.read_text()}"
    for one in found:
        assert set(one["outcomes"]) <= ALLOWED, one
        assert sum(one["outcomes"].values()) == count, one
        assert one["same"], one
    assert [one["task"] for one in found] == names


NAMES = list(interrupt_tasks.tasks(Path()))
COMMANDS = [name for name in NAMES if name.startswith("isinglass")]
CALLS = [name for name in NAMES if name not in COMMANDS]


def test_calls_and_fits(tmp_path: Path) -> None:
    interrupt(tmp_path, int(os.environ.get("ISINGLASS_INTERRUPTS", "2")), CALLS)


def test_commands(tmp_path: Path) -> None:
    quick = [name for name in COMMANDS if name != "isinglass demo"]
    interrupt(tmp_path, int(os.environ.get("ISINGLASS_INTERRUPTS", "1")), quick)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_many_moments(name: str, tmp_path: Path) -> None:
    interrupt(tmp_path, int(os.environ.get("ISINGLASS_INTERRUPTS", "20")), [name])


@pytest.mark.slow
@pytest.mark.parametrize("moment", [2.0, 3.5, 5.0, 8.0])
def test_a_large_convex_energy(moment: float) -> None:
    code = (
        "import numpy as np, isinglass as ig; print('ready', flush=True)\n"
        "field = np.random.default_rng(0).normal(size=(160000, 2))\n"
        "p = ig.Potentials.from_groups(ig.grid_graph(400, 400, 2), [field, 0.4 * np.eye(2)[None]])\n"
        "try: [ig.infer(p, 'convex', tol=t) for t in (1e-6, 1e-7, 1e-8)]\n"
        "except KeyboardInterrupt: print('heard')"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(moment)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[0] == "heard\n"
    assert process.returncode == 0


@pytest.mark.long
def test_a_process_of_the_command_line(tmp_path: Path) -> None:
    model = tmp_path / "m.uai"
    write_uai(interrupt_tasks.ising(13), model)
    argv = [sys.executable, "-m", "isinglass", "infer", str(model), "--algorithm", "exact", "--restarts", "1000000"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    if process.returncode != -signal.SIGINT:  # which a shell shows as 130, too: Python was still being started
        assert process.returncode == 130
        assert err == "isinglass: interrupted\n"


def test_no_loop_that_python_calls_returns_what_python_code_must_make() -> None:
    """Arrays, and tuples with names, are unpickled types: Python code, in which a signal raises what nobody catches."""
    from numba import types

    plain = (types.Number, types.Boolean, types.NoneType)
    p = interrupt_tasks.ising(4)
    elimination_order(p.graph, restarts=1)
    for name in ("exact", "bp", "trw", "convex", "mf"):
        infer(p, name)
    called = [k for k in kernels() if not k.targetoptions.get("no_cpython_wrapper")]
    seen = 0
    for kernel in called:
        for signature in kernel.nopython_signatures:
            returned = signature.return_type
            parts = returned.types if isinstance(returned, types.BaseTuple) else [returned]
            assert not isinstance(returned, types.BaseNamedTuple), kernel
            assert all(isinstance(part, plain) for part in parts), (kernel, returned)
            assert not any(isinstance(a, types.NumPyRandomGeneratorType) for a in signature.args), kernel
            seen += 1
    assert seen > 20


def test_pieces_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the pieces are, and whatever arrays run out of room, results are the same bits."""
    rng = np.random.default_rng(0)
    grids = grid_graph(4, 5, 3).repeat(3)
    p = Potentials.from_groups(grids, [rng.normal(size=(60, 3)), rng.normal(size=(len(grids.groups[1]), 3, 3))])
    single = interrupt_tasks.ising(12)

    def answers() -> list[bytes]:
        found = [elimination_order(grid_graph(9, 9, 2), restarts=2).order]
        for schedule in ("flooding", "grid"):
            result = infer(p, BeliefPropagation(schedule=schedule, iterations=4), tape=True)
            bars = result.backward(log_z=1.0, variables=np.ones_like(result.variables.flat))
            found += [result.variables.flat, *bars.groups]
        for system in ("auto", "factorised"):
            model = Potentials.from_groups(grid_graph(12, 12, 2), single.groups, single.table_ids)
            found.append(infer(model, ConvexFreeEnergy(system=system)).variables.flat)
        band = np.concatenate([np.full((90, 1), 9.0), np.linspace(0, 1, 360).reshape(90, 4)], axis=1)
        assert lapack.factorise_band(band)
        found.append(band)
        return [np.ascontiguousarray(one).tobytes() for one in found]

    wanted = answers()
    for module, name, value in (
        (greedy, "PIECE", 10),
        (ldl, "PIECE", 10),
        (planes, "PIECE", 200),
        (lapack, "LONG", 0),
    ):
        monkeypatch.setattr(module, name, value)
    assert answers() == wanted
    monkeypatch.setattr(planes, "PIECE", 4 * 20 * 9)  # all iterations, one grid after the other
    assert answers() == wanted


def test_whoever_waits_for_a_thread_hears_ctrl_c() -> None:
    assert interrupts.interruptible(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        interrupts.interruptible(divmod, 7, 0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    with pytest.raises(KeyboardInterrupt):
        interrupts.interruptible(time.sleep, 5)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["flooding", "sequential", "residual"])
def test_threads_do_not_go_on_without_their_caller(schedule) -> None:
    p = interrupt_tasks.ising(4).repeat(4)
    infer(p, "bp", schedule=schedule, iterations=2, n_jobs=2)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    with pytest.raises(KeyboardInterrupt):
        infer(p, "bp", schedule=schedule, iterations=10**8, n_jobs=2)  # hours
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def usual_handler():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def _swallow_an_interrupt(then=None):
    with interrupts.not_lost():
        with contextlib.suppress(KeyboardInterrupt):  # as a call back from LLVM does
            signal.raise_signal(signal.SIGINT)
        if then is not None:
            raise then


def test_interrupts_that_a_library_swallowed(usual_handler):
    with pytest.raises(KeyboardInterrupt):
        _swallow_an_interrupt()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    error = RuntimeError("no compiled object yet")
    with pytest.raises(KeyboardInterrupt) as caught:
        _swallow_an_interrupt(error)
    assert caught.value.__cause__ is error
    with pytest.raises(RuntimeError, match="another"), interrupts.not_lost():
        raise RuntimeError("another")
    heard = []
    signal.signal(signal.SIGINT, lambda *_: heard.append("mine"))
    with interrupts.not_lost():
        signal.raise_signal(signal.SIGINT)
    assert heard == ["mine"]
