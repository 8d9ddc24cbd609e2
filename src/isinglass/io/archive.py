"""Zip archives in memory: checked before anything is unpacked, and never unpacked to disk.

A member is refused for its name (a path, a duplicate, odd characters), its kind (encrypted, compressed by anything but
deflate) and its claim: deflate never expands a byte to more than 1032, so a larger claim is false, and the sum of the
claims is what the reader would have to hold. A member is then read up to its claim, and not beyond.
"""

from __future__ import annotations

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping

from isinglass.errors import FileFormatError
from isinglass.io.files import PathLike, read_bytes, shown_path
from isinglass.validation import bytes_text

NAME = re.compile(r"[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
NAME_LIMIT = 200
MEMBER_LIMIT = 10_000
_DEFLATE_RATIO = 1032
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that zip knows: equal contents give equal bytes
_DAMAGE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,  # also NotImplementedError
    ValueError,
    LookupError,
    OverflowError,
)


def pack(members: Mapping[str, bytes], level: int = 6) -> bytes:
    """Return a zip archive of the members, in their order; with level 0 they are stored as they are.

    Examples
    --------
    >>> pack({"a.txt": b"hello"})[:2]
    b'PK'
    """
    file = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if level else zipfile.ZIP_STORED
    archive = zipfile.ZipFile(file, "w", kind, compresslevel=level)
    try:
        for name, data in members.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.create_system, entry.external_attr = kind, 3, 0o644 << 16
            archive.writestr(entry, data, compresslevel=level)
        archive.close()
    except BaseException:  # such as Ctrl-C inside a member, which cannot be closed: the archive is given up
        archive.fp = None
        raise
    return file.getvalue()


def unpack(path: PathLike, limit: int) -> dict[str, bytes]:
    """Read the members of a zip archive.

    Parameters
    ----------
    path : str or os.PathLike
    limit : int
        The largest number of bytes that is read, packed and unpacked.

    Raises
    ------
    FileFormatError
        If the file is too large, damaged, or has a member that is refused.
    OSError
        If the operating system cannot open or read the file.
    """
    data, name = read_bytes(path, limit), shown_path(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            problem = _problem(entries, len(data), limit)
            members = {} if problem else {entry.filename: _member(archive, entry) for entry in entries}
    except _DAMAGE as error:
        raise FileFormatError(name, None, "a whole zip archive", f"damaged data ({_reason(error)})") from None
    if problem:
        raise FileFormatError(name, None, *problem)
    return members


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Unpack what the member claims and no more; the byte beyond lets the checksum of an empty one be looked at."""
    with archive.open(entry) as stream:
        return stream.read(entry.file_size + 1)


def _problem(entries: list[zipfile.ZipInfo], size: int, limit: int) -> tuple[str, str] | None:
    """Return what was expected and what came, if anything is wrong."""
    if len(entries) > MEMBER_LIMIT:
        return f"at most {MEMBER_LIMIT} members", f"{len(entries)}"
    if len({entry.filename for entry in entries}) < len(entries):
        return "members with different names", "a name twice"
    total = 0
    for entry in entries:
        total += entry.file_size
        problem = _entry_problem(entry, size)
        if problem:
            return problem
    if total > limit:
        return f"at most {bytes_text(limit)} of data", bytes_text(total)
    return None


def _entry_problem(entry: zipfile.ZipInfo, size: int) -> tuple[str, str] | None:
    name = entry.filename
    if entry.orig_filename != name or len(name) > NAME_LIMIT or not NAME.fullmatch(name):
        return "members with plain names", ascii(entry.orig_filename)[:60]
    if entry.flag_bits & 0x1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "members that are stored or deflated", f"{name}, which is encrypted or packed otherwise"
    if entry.compress_size > size or entry.file_size > _DEFLATE_RATIO * entry.compress_size + 1:
        return "members as large as they say", f"{name} of {bytes_text(entry.file_size)} in {bytes_text(size)}"
    return None


def _reason(error: BaseException) -> str:
    """Return one short printable line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return (text if text.isprintable() else ascii(text))[:80]
