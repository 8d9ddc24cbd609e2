"""One line about compilation, for people who asked for none and wait."""

import io

import pytest

from isinglass.runtime.compilation import progress
from isinglass.runtime.compilation.progress import LINE, PATIENCE, Waiting, printing, tell, telling


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def compile_for(monkeypatch):
    """Return a function that takes so many seconds of compilation, in a process that has compiled nothing yet."""
    for name, value in (("seconds", 0.0), ("since", 0.0), ("told", False)):
        monkeypatch.setattr(Waiting, name, value)
    monkeypatch.setattr(progress, "_listeners", [])
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def run(seconds):
        tell("compiling")
        now[0] += seconds
        tell("")
        now[0] += 1000.0  # other work

    return run


def put_stderr(monkeypatch, stream):
    """Replace stderr: in the test itself, as pytest has its own after each fixture."""
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.delitem(progress.sys.modules, "ipykernel", raising=False)
    return stream


def test_after_some_seconds_once(compile_for, monkeypatch):
    terminal = put_stderr(monkeypatch, Terminal())
    for seconds in (0.6 * PATIENCE, 0.3 * PATIENCE):
        compile_for(seconds)
        assert terminal.getvalue() == ""
    compile_for(0.2 * PATIENCE)
    compile_for(5 * PATIENCE)
    assert terminal.getvalue() == f"{LINE}\n"


def test_not_where_somebody_is_told(compile_for, monkeypatch):
    terminal, said = put_stderr(monkeypatch, Terminal()), []
    with telling(said.append):
        compile_for(5 * PATIENCE)
    assert said == ["compiling", ""]
    assert terminal.getvalue() == ""
    with printing(False):
        compile_for(5 * PATIENCE)
    assert terminal.getvalue() == f"{LINE}\n"


@pytest.mark.parametrize("stderr", [io.StringIO(), None])
def test_not_where_nobody_looks(compile_for, stderr, monkeypatch):
    put_stderr(monkeypatch, stderr)
    compile_for(5 * PATIENCE)
    assert stderr is None or stderr.getvalue() == ""


def test_in_a_notebook(compile_for, monkeypatch):
    shown = put_stderr(monkeypatch, io.StringIO())
    monkeypatch.setitem(progress.sys.modules, "ipykernel", progress)
    compile_for(5 * PATIENCE)
    assert LINE in shown.getvalue()
