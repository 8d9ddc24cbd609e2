"""The process that compiles ahead: when it starts and ends, how processes take turns, and what a rehearsal notes."""

import multiprocessing
import os
import subprocess
import sys
import time
from contextlib import nullcontext

import numpy as np
import pytest

import isinglass as ig
import new_processes
from isinglass.inference.rehearsal import rehearsing
from isinglass.runtime.compilation import helper as helpers
from isinglass.runtime.compilation.helper import SWITCH, Helper, call_for_help, helping
from isinglass.runtime.compilation.turns import is_taken, turn

HOLD = """
import sys
from isinglass.runtime.compilation.turns import turn
with turn(sys.argv[1], "loop"):
    print("held", flush=True)
    sys.stdin.read()
"""
LEAVE = """
import os
from isinglass.runtime.compilation.helper import Helper
helper = Helper("time:sleep", (60,))
helper.start()
print(helper.process.pid, flush=True)
os._exit(0)
"""
REHEARSE = """
import numpy as np
import isinglass as ig
from isinglass.runtime.compilation.jit import kernels, rehearsal
p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.ones((9, 2)), np.ones((12, 2, 2))])
bp = ig.BeliefPropagation(iterations=2)
with rehearsal() as noted, np.errstate(all="ignore"):
    bp.run_stages([p], None, True, None).backward(log_z=1.0)
print(*(kernel.__name__ for kernel, _ in noted))
print(sum(len(kernel.overloads) for kernel in kernels()))
print(abs(ig.infer(p, bp).variable(4) - ig.infer(p, "exact").variable(4)).max())
"""
MODEL = """
import numpy as np
import isinglass as ig
from isinglass.runtime.compilation.jit import kernels
p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.ones((2, 2, 2))])
bp = ig.BeliefPropagation(iterations=2, schedule="flooding")
"""
AHEAD = """
from isinglass.inference.rehearsal import compile_from_the_end
compile_from_the_end(bp, [p])
print(sum(sum(k.stats.cache_misses.values()) for k in kernels()))
"""
GRADIENT = """
ig.infer(p, bp, tape=True).backward(log_z=1.0)
print(*(k.__name__ for k in kernels() if k.stats.cache_misses))
"""
READY = """
for kernel in kernels():
    for types in kernel.overloads:
        print(kernel.__module__, kernel.__name__, types)
"""


@pytest.fixture
def allowed(monkeypatch):
    """Let helpers start, however many processors there are."""
    monkeypatch.setenv(SWITCH, "1")
    monkeypatch.setattr(helpers, "processors", lambda: 2)


def python(code, *arguments, **options):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, arguments)], **pipes, **options)


def printed(code, folder, **variables):
    """Return what a program prints that needs Numba, but is not to import it anew."""
    done = new_processes.run(code, folder, os.environ | variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def has_ended(pid, seconds=20):
    """Tell whether a process ends, which is no child of this one."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


def test_it_starts_only_when_something_is_compiled(allowed):
    with helping("time:sleep", 60):
        (helper,) = helpers._offered
        assert helper.process is None
        call_for_help()
        process = helper.process
        assert process.poll() is None
        call_for_help()
        assert helper.process is process  # one is enough
    assert process.poll() is not None  # ended with the block, and nothing of it remains
    assert helpers._offered == []


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        (helpers, "processors", lambda: 1),
        (sys, "executable", "/usr/bin/editor"),
        (sys, "frozen", True),
        (multiprocessing, "parent_process", object),
    ],
)
def test_it_does_not_start_where_that_would_not_help(allowed, monkeypatch, place, name, value):
    monkeypatch.setattr(place, name, value, raising=False)
    with helping("time:sleep", 60):
        call_for_help()
        assert helpers._offered[0].process is None


def test_a_variable_lets_none_start(allowed, monkeypatch):
    monkeypatch.setenv(SWITCH, "0")
    with helping("time:sleep", 60):
        call_for_help()
        assert helpers._offered[0].process is None


def test_inside_another_no_second_one_is_offered(allowed):
    with helping("time:sleep", 60), helping("time:sleep", 60):
        assert len(helpers._offered) == 1


@pytest.mark.parametrize("task", ["no_such_module:nothing", "time:nothing"])
def test_a_task_that_fails_does_no_harm(allowed, task, capfd):
    with helping(task):
        call_for_help()
        assert helpers._offered[0].process.wait(60) == 1  # an error, not an abort
    assert capfd.readouterr() == ("", "")


def test_arguments_that_cannot_be_sent_do_no_harm(allowed):
    with helping("time:sleep", lambda: None):
        call_for_help()
        assert helpers._offered[0].process is None


def test_it_may_work_on_after_the_block_and_is_ended_by_stop(allowed):
    with helping("time:sleep", 60, stays=True):
        call_for_help()
        (helper,) = helpers._offered
    process = helper.process
    assert process.poll() is None
    helper.stop()
    assert process.poll() is not None


def test_an_end_by_itself_leaves_nothing(allowed):
    helper = Helper("time:sleep", (0,))
    helper.start()
    process = helper.process
    assert has_ended(process.pid)  # a zombie would still be there
    assert process.wait(60) == 0


@pytest.mark.skipif(os.name != "posix", reason="asks for a process by its number")
def test_it_ends_when_its_caller_dies(allowed):
    caller = python(LEAVE)
    pid = int(caller.communicate()[0])
    assert has_ended(pid)


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_processes_take_turns(tmp_path):
    other = python(HOLD, tmp_path)
    assert other.stdout.readline() == "held\n"
    start = time.monotonic()
    with turn(tmp_path, "another loop"):
        free = time.monotonic() - start
    with turn(tmp_path, "loop", most=0.5):  # it may have been stopped for good
        waited = time.monotonic() - start - free
    other.communicate("")
    assert free < 0.4 < waited
    start = time.monotonic()
    with turn(tmp_path, "loop"):
        assert time.monotonic() - start < 5


def test_without_a_folder_nobody_waits(tmp_path):
    with turn(tmp_path / "none", "loop"):
        pass


def test_a_rehearsal_notes_the_loops_and_runs_none(tmp_path):
    """In a fresh process: loops that were called before run in a rehearsal, too."""
    names, compiled, error = printed(REHEARSE, tmp_path).splitlines()
    assert {"flood_grid", "read_out_links", "flood_grid_back"} <= set(names.split())
    assert names.index("flood_grid") < names.index("flood_grid_back")
    assert int(compiled) == 0
    assert float(error) < 0.1  # loops run again


def test_what_is_compiled_ahead_is_all_that_a_gradient_needs(tmp_path):
    where = {"NUMBA_CACHE_DIR": str(tmp_path)}
    assert int(printed(MODEL + AHEAD, tmp_path, **where)) > 5
    assert printed(MODEL + GRADIENT, tmp_path, **where) == "\n"  # all of it was found


def test_an_inference_without_a_tape_is_helped_by_loops_that_come_next(tmp_path):
    ahead = printed(MODEL + AHEAD.replace("compile_from_the_end", "compile_ahead") + READY, tmp_path).splitlines()
    needed = printed(MODEL + "ig.infer(p, bp)" + READY, tmp_path).splitlines()
    assert len(needed) >= 3
    assert set(needed) <= set(ahead)


@pytest.mark.skipif(os.name != "posix", reason="no locks")
def test_loops_that_another_process_compiles_are_left_to_it(tmp_path):
    assert not is_taken(tmp_path, "loop")
    other = python(HOLD, tmp_path)
    assert other.stdout.readline() == "held\n"
    assert is_taken(tmp_path, "loop")
    assert not is_taken(tmp_path, "another loop")
    other.communicate("")
    assert not is_taken(tmp_path, "loop")
    assert not is_taken(tmp_path / "none", "loop")


@pytest.mark.long
def test_help_is_offered_where_a_rehearsal_ends_and_little_is_sent():
    small = ig.Potentials.from_groups(ig.chain_graph(3, 2), [np.zeros((3, 2)), np.ones((2, 2, 2))])
    large = ig.Potentials.from_groups(ig.grid_graph(1200, 900, 2), [np.zeros((1080000, 2)), np.ones((1, 2, 2))])
    offers = [
        rehearsing(algorithm, [p], taped)
        for algorithm, p, taped in [
            (ig.BeliefPropagation(), small, False),
            (ig.MeanField(), small, False),
            (ig.ConvexFreeEnergy(), small, True),
            (ig.ConvexFreeEnergy(), small, False),
            (ig.BeliefPropagation(), large, True),
        ]
    ]
    assert [type(offer) is not nullcontext for offer in offers] == [True, True, True, False, False]
