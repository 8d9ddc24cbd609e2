"""Files: reading text with a cap on the size, and writing all or nothing.

Reading text looks at the first two bytes, not at the name, to see whether a file is compressed. What the operating
system refuses (a missing file, a folder, no permission) comes through as OSError.
"""

from __future__ import annotations

import gzip
import os
import re
import secrets
import shutil
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO

from isinglass.errors import FileFormatError, InputError, require
from isinglass.validation import bytes_text

PathLike = str | os.PathLike[str]

SIZE_LIMIT = 2**30
_CHUNK = 2**20
_GZIP_MAGIC = b"\x1f\x8b"


def checked_path(path: PathLike) -> str:
    """Return the path as text; what cannot be a path at all is refused."""
    try:
        name = os.fsdecode(path)
    except TypeError:
        raise InputError("path", "a str or an os.PathLike", type(path).__name__) from None
    require("\0" not in name and name, "path", "the name of a file", ascii(name))
    return name


def shown_path(path: PathLike) -> str:
    r"""Return the path for a message of one line.

    Examples
    --------
    >>> shown_path("a b.uai"), shown_path("two\nlines")
    ('a b.uai', "'two\\nlines'")
    """
    name = os.fsdecode(path)
    return name if name.isprintable() else ascii(name)


def read_text(path: PathLike, limit: int = SIZE_LIMIT) -> str:
    """Read a text file, plain or gzip.

    Parameters
    ----------
    path : str or os.PathLike
    limit : int
        The largest number of bytes that is read, after decompression.

    Returns
    -------
    str
        Decoded strictly as UTF-8; a byte-order mark is dropped.

    Raises
    ------
    FileFormatError
        If the file is larger than `limit`, is damaged gzip, or is not UTF-8.
    OSError
        If the operating system cannot open or read the file.
    """
    name = checked_path(path)
    with open(name, "rb") as file:
        if file.peek(2)[:2] == _GZIP_MAGIC:
            data = _gunzipped(file, name, limit)
        else:
            data = _capped(file.read, name, limit)
    return _decoded(data, name)


def write_text_atomically(path: PathLike, text: str) -> None:
    """Write a text file in one step: after a failure the old file is still there, whole.

    The text goes to a temporary file in the same folder, `.NAME.0123456789abcdef.tmp`, which then takes the place of
    `path`. A name that ends in .gz is compressed; equal texts give equal bytes.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_text_atomically(f"{folder}/a.txt.gz", "hello")
    ...     read_text(f"{folder}/a.txt.gz")
    'hello'
    """
    data = text.encode()
    write_bytes_atomically(path, gzip.compress(data, 6, mtime=0) if checked_path(path).endswith(".gz") else data)


def write_bytes_atomically(path: PathLike, data: bytes | memoryview) -> None:
    """Write a file in one step, as `write_text_atomically` does, the bytes as they are.

    What cannot be replaced is written to as it is: pipes, devices, and the open files of this process (`/dev/stdout`,
    `/dev/fd/3`), which keep what they have.
    """
    name = checked_path(path)
    descriptor = _descriptor(name)
    if descriptor is not None:
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
    elif os.path.exists(name) and not os.path.isfile(name):
        with open(name, "wb") as file:
            file.write(data)
    else:
        _replace(os.path.realpath(name), data)


def _replace(target: str, data: bytes | memoryview) -> None:
    """Write a temporary file, and give it the name of the target, whose permissions stay."""
    folder, base = os.path.split(target)
    temporary = os.path.join(folder, f".{base[:40]}.{secrets.token_hex(8)}.tmp")  # the longest name has 255 bytes
    try:
        with open(temporary, "xb") as file:
            file.write(data)
        with suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(temporary)
        raise


def _descriptor(name: str) -> int | None:
    """Return the number of the open file that a name stands for, if it stands for one."""
    named = {"/dev/stdout": 1, "/dev/stderr": 2}
    numbered = re.fullmatch(r"(?:/dev|/proc/self)/fd/(\d{1,9})", name)
    return int(numbered[1]) if numbered else named.get(name)


def _gunzipped(file: BinaryIO, name: str, limit: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=file, mode="rb") as stream:
            return _capped(stream.read, name, limit)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = " ".join(str(error).split())
        raise FileFormatError(shown_path(name), None, "a whole gzip file", f"damaged data ({reason})") from None


def _capped(read: Callable[[int], bytes], name: str, limit: int) -> bytes:
    """Read to the end in pieces; stop as soon as there is too much."""
    pieces: list[bytes] = []
    size = 0
    while piece := read(_CHUNK):
        size += len(piece)
        if size > limit:
            raise FileFormatError(shown_path(name), None, f"at most {bytes_text(limit)} of text", "more")
        pieces.append(piece)
    return b"".join(pieces)


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        got = f"the byte 0x{error.object[error.start]:02x}"
        raise FileFormatError(shown_path(name), line, "text in UTF-8", got) from None
