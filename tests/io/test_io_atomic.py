"""Files replaced in one step: by killed writers, by many at once, and what they leave behind."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from isinglass.io import atomic
from isinglass.io.files import write_bytes_atomically, write_text_atomically

pytestmark = pytest.mark.skipif(atomic.fcntl is None, reason="no locks")

WRITER = """
import os, sys
from isinglass.io.files import write_text_atomically
def fsync(descriptor):
    print("written", flush=True)
    sys.stdin.readline()
os.fsync = fsync
write_text_atomically(sys.argv[1], "of another process")
"""


@pytest.fixture
def writer(tmp_path):
    """Start a process that has written its temporary file and waits before it takes the place of the target."""
    started = []

    def start():
        argv = [sys.executable, "-c", WRITER, str(tmp_path / "a")]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(process)
        assert process.stdout.readline() == "written\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()


def temporaries(folder):
    return [name for name in os.listdir(folder) if name.endswith(atomic.ENDING)]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path, writer):
    write_text_atomically(tmp_path / "a", "old")
    process = writer()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(temporaries(tmp_path)) == 1
    assert (tmp_path / "a").read_text() == "old"
    write_text_atomically(tmp_path / "b", "another file")
    assert len(temporaries(tmp_path)) == 1
    write_text_atomically(tmp_path / "a", "new")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]
    assert (tmp_path / "a").read_text() == "new"


def test_living_writers_are_left_alone(tmp_path, writer):
    one, two = writer(), writer()
    write_text_atomically(tmp_path / "a", "between")
    assert len(temporaries(tmp_path)) == 2
    one.kill()
    one.wait()
    write_text_atomically(tmp_path / "a", "between")
    assert len(temporaries(tmp_path)) == 1
    two.communicate("go on\n", timeout=60)
    assert two.returncode == 0
    assert (tmp_path / "a").read_text() == "of another process"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("when", ["before the lock", "after a cleaner's lock"])
def test_a_new_file_may_be_taken_for_one_that_was_left(tmp_path, monkeypatch, when):
    """The moment between making a temporary file and locking it: its writer begins again."""
    genuine, cleaners = atomic._lock, []

    def lock(file):
        if file.name.endswith(atomic.ENDING) and not cleaners:
            cleaners.append(open(file.name, "rb"))  # noqa: SIM115
            if when == "before the lock":
                os.remove(file.name)
            else:
                assert genuine(cleaners[0])
        return genuine(file)

    monkeypatch.setattr(atomic, "_lock", lock)
    write_text_atomically(tmp_path / "a", "x")
    assert (tmp_path / "a").read_text() == "x"
    assert len(temporaries(tmp_path)) == (when != "before the lock")
    cleaners[0].close()
    write_text_atomically(tmp_path / "a", "y")
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.long
def test_many_writers_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    texts = [str(i) * 1000 for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text_atomically(tmp_path / "a", text), texts))
    assert (tmp_path / "a").read_text() in texts
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("locks", [False, True])
def test_without_locks_nothing_is_removed(tmp_path, monkeypatch, locks):
    name = f".a.{'0' * 16}{atomic.ENDING}"
    (tmp_path / name).write_bytes(b"")

    def refused(descriptor, how):
        raise OSError(37, "No locks available")

    if locks:  # but not on this file system
        monkeypatch.setattr(atomic.fcntl, "flock", refused)
    else:
        monkeypatch.setattr(atomic, "fcntl", None)
    write_text_atomically(tmp_path / "a", "x")
    assert sorted(os.listdir(tmp_path)) == [name, "a"]
    monkeypatch.undo()
    write_text_atomically(tmp_path / "a", "x")
    assert os.listdir(tmp_path) == ["a"]


def test_other_things_with_such_names_stay(tmp_path):
    (tmp_path / f".a.{'0' * 16}{atomic.ENDING}").mkdir()
    (tmp_path / f".a.{'1' * 16}{atomic.ENDING}").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / f".a.{'2' * 16}{atomic.ENDING}")
    (tmp_path / f".a.b.{'3' * 16}{atomic.ENDING}").touch()
    (tmp_path / ".a.mine.isg-tmp").touch()
    before = sorted(os.listdir(tmp_path))
    write_text_atomically(tmp_path / "a", "x")
    assert sorted(os.listdir(tmp_path)) == [*before, "a"]


@pytest.mark.parametrize("name", ["é" * 120, "x" * 255, "a[b]*", "two\nlines"])
def test_long_and_strange_names(tmp_path, name):
    for data in (b"x", memoryview(b"y")):
        write_bytes_atomically(tmp_path / name, data)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"y"
