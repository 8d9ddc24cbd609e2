import gzip
import io
import os
import re
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from checks import refuses
from isinglass.errors import FileFormatError
from isinglass.io import files, read_arrays, write_arrays
from isinglass.io.files import read_text, write_bytes_atomically, write_text_atomically
from second_interpreter import context


def test_text_in_any_form(tmp_path):
    (tmp_path / "plain.gz").write_bytes(b"hello")
    (tmp_path / "zipped.txt").write_bytes(gzip.compress(b"hello"))
    assert read_text(tmp_path / "plain.gz") == read_text(str(tmp_path / "zipped.txt")) == "hello"
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbf1")
    assert read_text(tmp_path / "a") == "1"
    (tmp_path / "a").write_bytes(b"ok\nok\n\xff")
    refuses(r"a, line 3: expected text in UTF-8, got the byte 0xff$", read_text, tmp_path / "a", error=FileFormatError)
    path = tmp_path / "two\nlines"
    path.write_bytes(b"\xff")
    with pytest.raises(FileFormatError) as info:
        read_text(path)
    assert str(info.value).isprintable()


@pytest.mark.parametrize("compress", [gzip.compress, bytes])
def test_limit(tmp_path, compress):
    (tmp_path / "a").write_bytes(compress(b"x" * 1000))
    assert len(read_text(tmp_path / "a", limit=1000)) == 1000
    refuses(r"expected at most 999 B of text, got more$", read_text, tmp_path / "a", error=FileFormatError, limit=999)


@pytest.mark.long
def test_bomb_takes_no_memory(tmp_path):
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(bytes(300_000_000), 9))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError):
            read_text(tmp_path / "bomb.gz", limit=5_000_000)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_damaged_gzip(tmp_path):
    whole = gzip.compress(os.urandom(1000).hex().encode())
    damaged = [whole[:n] for n in (2, 5, 12, 500, len(whole) - 1)]
    damaged += [whole[:-8] + bytes(8), whole[:40] + b"\xff" * 20 + whole[60:], whole + b"\x1f\x8b123"]
    for data in damaged:
        (tmp_path / "a").write_bytes(data)
        with pytest.raises(FileFormatError, match=r"expected a whole gzip file, got damaged data \(.+\)$"):
            read_text(tmp_path / "a")


def test_operating_system_errors_come_through(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_text(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        read_text(tmp_path)
    with pytest.raises(IsADirectoryError):
        write_text_atomically(tmp_path, "x")
    with pytest.raises(FileNotFoundError):
        write_text_atomically(tmp_path / "none" / "a", "x")


@pytest.mark.parametrize("path", ["", "a\0b", 3, None])
def test_what_is_no_path(path):
    refuses(r"^path: expected", read_text, path)


def test_write_is_deterministic_and_replaces(tmp_path):
    path = tmp_path / "a.gz"
    for text in ("old", "new ünïcode"):
        write_text_atomically(path, text)
        first = path.read_bytes()
        write_text_atomically(path, text)
        assert path.read_bytes() == first
        assert read_text(path) == text
    assert os.listdir(tmp_path) == ["a.gz"]


def test_write_honours_umask_old_mode_and_links(tmp_path):
    old = os.umask(0o027)
    try:
        write_text_atomically(tmp_path / "a", "x")
    finally:
        os.umask(old)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640
    (tmp_path / "a").chmod(0o604)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    write_text_atomically(tmp_path / "link", "y")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_text() == "y"
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o604


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["replace", "open"])
def test_failed_write_keeps_the_old_file(tmp_path, monkeypatch, step, error):
    write_text_atomically(tmp_path / "a", "old")

    class Full(io.FileIO):
        def write(self, data):
            super().write(data[:1])
            raise error("no space")

    def broken(*_):
        raise error("no space")

    if step == "open":
        monkeypatch.setattr(files, "open", Full, raising=False)
    else:
        monkeypatch.setattr(files.os, "replace", broken)
    refuses("no space", write_text_atomically, tmp_path / "a", "new", error=error)
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def save_for_ever(path):
    while True:
        for number in (1.0, 2.0):
            write_arrays(path, {"x": np.full(100_000, number)}, schema="toy", metadata={"number": number})


@pytest.mark.long
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path):
    rng, seen = np.random.default_rng(0), set()
    for _ in range(int(os.environ.get("ISINGLASS_KILLS", "5"))):
        process = context.Process(target=save_for_ever, args=(tmp_path / "a",))
        process.start()
        while not (tmp_path / "a").exists():
            time.sleep(0.001)
        time.sleep(0.2 * rng.random())
        process.kill()
        process.join()
        file = read_arrays(tmp_path / "a", schema="toy")
        assert (file.arrays["x"] == file.metadata["number"]).all()
        seen.add(file.metadata["number"])
    assert seen <= {1.0, 2.0}
    assert all(name == "a" or re.fullmatch(r"\.a\.[0-9a-f]{16}\.tmp", name) for name in os.listdir(tmp_path))


def test_many_writers_at_once(tmp_path):
    texts = [str(i) * 1000 for i in range(400)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda text: write_text_atomically(tmp_path / "a", text), texts))
    assert (tmp_path / "a").read_text() in texts
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["é" * 120, "x" * 255, "a[b]*", "two\nlines"])
def test_long_and_strange_names(tmp_path, name):
    for data in (b"x", memoryview(b"y")):
        write_bytes_atomically(tmp_path / name, data)
    assert os.listdir(tmp_path) == [name]
    assert (tmp_path / name).read_bytes() == b"y"


def test_pipe_is_written_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_text_atomically(tmp_path / "pipe", "x")
        assert os.read(reader, 10) == b"x"
        assert os.listdir(tmp_path) == ["pipe"]
    finally:
        os.close(reader)


@pytest.mark.skipif(not os.path.exists("/dev/fd/1"), reason="no /dev/fd")
@pytest.mark.parametrize("place", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_open_files_are_written_to_where_they_are(tmp_path, place):
    """A log that a shell opened keeps what it has: `--out /dev/stdout >> log`."""
    with open(tmp_path / "log", "ab") as log:
        log.write(b"before ")
        log.flush()
        write_text_atomically(place.format(log.fileno()), "x")
        log.write(b" after")
    assert (tmp_path / "log").read_bytes() == b"before x after"
    assert os.listdir(tmp_path) == ["log"]
    refuses("Bad file descriptor", write_text_atomically, place.format(99_999), "x", error=OSError)
