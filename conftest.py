"""How tests are collected and run, those of the packages as well."""

import doctest
import gc
import os
import signal
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

from isinglass.errors import MissingDependencyError

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes that tests start would compile all modules, each time
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # before they are loaded; threads would wait
        os.environ.setdefault(name, "1")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in what shells start in the background; it is inherited
    signal.signal(signal.SIGINT, signal.default_int_handler)
gc.disable()  # until everything is collected
OPTIONAL = {"arviz", "matplotlib", "networkx", "pandas", "pyamg", "pytoulbar2"}  # packages of the extras


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path):
    """No doctests in tests: only the packages have some."""
    found = yield
    in_tests = "tests" in file_path.relative_to(Path(__file__).parent).parts
    return found if not in_tests else [one for one in found if not isinstance(one, DoctestModule)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip what needs an optional package that is not installed; name a test that takes long in a file (see below)."""
    try:
        return (yield from _timed(item))
    except (ImportError, doctest.UnexpectedException) as error:  # MissingDependencyError is an ImportError
        cause = error.exc_info[1] if isinstance(error, doctest.UnexpectedException) else error
        if isinstance(cause, MissingDependencyError) or getattr(cause, "name", None) in OPTIONAL:
            pytest.skip(str(cause))
        raise


def _timed(item):
    """Write a test that takes over 2 s, and has no marker `long`, into the file that ISINGLASS_LONG_TESTS names."""
    file = os.environ.get("ISINGLASS_LONG_TESTS")
    if file is None or item.get_closest_marker("long") or item.get_closest_marker("slow"):
        return (yield)
    from numba.core.event import install_timer  # not before the number of threads is set

    began, compiling = sum(os.times()[:4]), []
    with install_timer("numba:compile", compiling.append):
        result = yield
    seconds = sum(os.times()[:4]) - began - sum(compiling)
    if seconds > 2:
        with open(file, "a") as known:
            known.write(f"{seconds:5.1f} s  {item.nodeid.partition('[')[0]}\n")
    return result


def pytest_collection_finish():
    """Modules and tests live as long as the process: no collection of garbage goes through them again."""
    gc.freeze()
    gc.set_threshold(20_000, 20)  # hardly any object is found by more frequent collections
    gc.enable()
