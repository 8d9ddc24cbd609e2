"""Safe model files: named arrays and a JSON header in one file, an .npz archive of NumPy that is not compressed.

The array ``header`` holds UTF-8 bytes, which say what the file is; ``np.load`` opens the file too::

    {"format": "isinglass arrays 1", "library": "0.1.0", "schema": "grid-crf", "schema_version": 1, "metadata": {...}}

Nothing in a file is ever run: no pickle, no evaluation beyond literals, nothing is unpacked to disk. Sizes are compared
with the file before memory is taken.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike

from isinglass.errors import FileFormatError, InputError, require
from isinglass.io.files import SIZE_LIMIT, PathLike, checked_path, shown_path, write_bytes_atomically
from isinglass.typing import Array, JsonObject
from isinglass.validation import bytes_text, whole_number

__all__ = ["ArrayFile", "read_arrays", "read_npz", "write_arrays"]

_FORMAT = "isinglass arrays 1"
_UPGRADE = "a newer isinglass reads it: pip install --upgrade isinglass"
_ENTRIES = {"library": str, "schema": str, "schema_version": int, "metadata": dict}
_NAME = re.compile(r"(?!.{200})[A-Za-z0-9_]+(?:[.-][A-Za-z0-9_]+)*")
_TAKEN = ("header", "file", "allow_pickle")  # the last two are arguments of np.savez
_KINDS = "Booleans, integers, floats (16 to 64 bits), complex numbers or text of fixed width"
_DTYPE = re.compile(r"[<>|](?:b1|[iu][1248]|f[248]|c8|c16|U[1-9][0-9]*)")
_READERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_LAST_CODE_POINT = 0x10FFFF
_NUMBERS: dict[str, float] = {}  # that JSON may spell as words: neither NaN nor Infinity


@dataclass(frozen=True, eq=False)
class ArrayFile:
    """What `read_arrays` found.

    Attributes
    ----------
    schema : str
        What the file describes.
    version : int
        Of the schema.
    library : str
        The version of Isinglass that wrote the file.
    metadata : dict
        JSON values.
    arrays : dict of str to array
        In the order in which they were written.
    """

    schema: str
    version: int
    library: str
    metadata: JsonObject = field(repr=False)
    arrays: dict[str, Array] = field(repr=False)


def write_arrays(
    path: PathLike,
    arrays: Mapping[str, ArrayLike],
    *,
    schema: str,
    version: int = 1,
    metadata: Mapping[str, object] | None = None,
) -> None:
    """Write named arrays and metadata to one file, all or nothing.

    Parameters
    ----------
    path : str or os.PathLike
    arrays : mapping of str to array
        Booleans, integers, floats, complex numbers or text of fixed width. A name consists of letters, digits and
        underscores, with single dots or dashes between them.
    schema : str
        What the file describes; `read_arrays` can insist on it. Spelt as a name of an array.
    version : int
        Of the schema, 1 or more: raise it when older readers would misunderstand the file.
    metadata : mapping, optional
        Whatever JSON can hold and gives back unchanged: no NaN, no tuples, only str as keys.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_arrays(f"{folder}/model.isg", {"weights": [0.5, 2.0]}, schema="toy", metadata={"l2": 1.0})
    ...     file = read_arrays(f"{folder}/model.isg", schema="toy")
    >>> file.arrays["weights"].tolist(), file.metadata
    ([0.5, 2.0], {'l2': 1.0})
    """
    from isinglass import __version__

    checked_path(path)
    require(isinstance(arrays, Mapping), "arrays", "a mapping from name to array", type(arrays).__name__)
    header = {
        "format": _FORMAT,
        "library": __version__,
        "schema": _checked_name(schema, "schema"),
        "schema_version": whole_number(version, "version", 1),
        "metadata": _checked_metadata(metadata),
    }
    members = {"header": np.frombuffer(json.dumps(header).encode(), np.uint8)}
    members |= {_checked_name(name, "arrays"): _checked_array(arrays[name], name) for name in arrays}
    data = BytesIO()
    try:
        np.savez(data, **members)  # type: ignore[arg-type]
    except ValueError as error:  # of an archive that cannot be closed, in the place of Ctrl-C
        raise error.__context__ or error from None
    write_bytes_atomically(path, data.getbuffer())


def read_arrays(path: PathLike, *, schema: str | None = None, version: int | None = None) -> ArrayFile:
    """Read what `write_arrays` wrote; safe for files of unknown origin.

    Parameters
    ----------
    path : str or os.PathLike
    schema : str, optional
        Insist on this schema.
    version : int, optional
        The newest version of the schema that the caller understands; a file with a newer one is refused.

    Returns
    -------
    ArrayFile

    Raises
    ------
    FileFormatError
        If the file is damaged, not of this format, or of another schema or a newer version.
    OSError
        If the operating system cannot open the file.
    """
    arrays, name = _members(path, None), shown_path(path)
    header = _header(arrays.pop("header", None), name)
    if schema is not None and header["schema"] != schema:
        raise FileFormatError(name, None, f"the schema {schema!r}", _quoted(header["schema"]))
    if version is not None and header["schema_version"] > version:
        expected = f"the schema {_quoted(header['schema'])} up to version {version}"
        written = f"version {_quoted(header['schema_version'])}, written by isinglass {_quoted(header['library'])}"
        raise FileFormatError(name, None, expected, written, _UPGRADE)
    return ArrayFile(header["schema"], header["schema_version"], header["library"], header["metadata"], arrays)


def read_npz(path: PathLike, limit: int = SIZE_LIMIT) -> dict[str, Array]:
    """Read the arrays of an .npz file of NumPy, compressed or not, as defensively as `read_arrays`.

    Parameters
    ----------
    path : str or os.PathLike
    limit : int
        The largest number of bytes of all arrays together.

    Raises
    ------
    FileFormatError
        If the file is damaged, too large, or has anything but plain arrays.
    OSError
        If the operating system cannot open the file.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", x=np.arange(3))
    ...     read_npz(f"{folder}/a.npz")["x"].tolist()
    [0, 1, 2]
    """
    return _members(path, whole_number(limit, "limit"))


def _members(path: PathLike, limit: int | None) -> dict[str, Array]:
    """Read all arrays of an archive, compressed ones only where a limit is given."""
    with open(checked_path(path), "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                _check_directory(archive.infolist(), os.fstat(file.fileno()).st_size, limit)
                return {entry.filename.removesuffix(".npy"): _array(archive, entry) for entry in archive.infolist()}
        except Exception as error:  # damaged files make zipfile, ast and NumPy raise almost anything
            got = ascii(" ".join(str(error).split()) or type(error).__name__)[1:-1][:100]
            raise FileFormatError(shown_path(path), None, "a whole .npz archive of plain arrays", got) from None


def _check_directory(entries: list[zipfile.ZipInfo], size: int, limit: int | None) -> None:
    """Compare what the archive says of its members with the size of the file."""
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("two members of one name")
    kinds = {zipfile.ZIP_STORED} if limit is None else {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
    for entry in entries:
        if not entry.filename.endswith(".npy") or entry.compress_type not in kinds:
            raise ValueError(f"the member {entry.filename[:60]!a}, no array or packed otherwise")
    if sum(entry.compress_size for entry in entries) > size:
        raise ValueError("members larger than the file")
    unpacked, limit = sum(entry.file_size for entry in entries), size if limit is None else limit
    if unpacked > limit:
        raise ValueError(f"{bytes_text(unpacked)} of data, more than {bytes_text(limit)}")


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """Read one array, in native byte order; its header must agree with its size."""
    with archive.open(entry) as member:
        data = BytesIO(member.read(entry.file_size))
    shape, _, dtype = _READERS[npy.read_magic(data)](data, max_header_size=10_000)
    fits = _DTYPE.fullmatch(dtype.str) and all(type(side) is int and side >= 0 for side in shape)
    if not fits or data.tell() + math.prod(shape) * dtype.itemsize != entry.file_size:
        raise ValueError(f"{entry.file_size} bytes for shape {shape} of {dtype.str} in {entry.filename}")
    data.seek(0)
    array = np.load(data, allow_pickle=False)
    if dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError("Booleans other than 0 and 1")
    native = np.asarray(array, dtype.newbyteorder("="), order="C")
    if dtype.kind == "U" and native.reshape(-1).view(np.uint32).max(initial=0) > _LAST_CODE_POINT:
        raise ValueError("text with impossible characters")
    return native


def _checked_name(name: object, argument: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        expected = "a name of letters, digits and underscores, with single dots or dashes between them"
        raise InputError(argument, f"{expected}, not {', '.join(_TAKEN)}", ascii(name)[:200])
    return name


def _checked_array(values: ArrayLike, name: str) -> Array:
    argument = f"arrays[{name!r}]"
    try:
        array = np.asarray(values, order="C")
    except (ValueError, TypeError, OverflowError):
        raise InputError(argument, _KINDS, "values that do not form an array") from None
    if not _DTYPE.fullmatch(array.dtype.str) or isinstance(values, np.ma.MaskedArray):
        got = "a masked array" if isinstance(values, np.ma.MaskedArray) else f"dtype {array.dtype}"
        raise InputError(argument, _KINDS, got, "convert it, e.g. with .astype(float) or .astype(str)")
    return array


def _checked_metadata(metadata: Mapping[str, object] | None) -> JsonObject:
    """Return what JSON gives back, which must be what went in."""
    expected = "a mapping that JSON gives back unchanged (no NaN, no tuples, only str as keys)"
    given = {} if metadata is None else metadata
    require(isinstance(given, Mapping), "metadata", expected, type(metadata).__name__)
    try:
        returned: JsonObject = json.loads(json.dumps(dict(given), allow_nan=False))
        same = returned == given
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("metadata", expected, f"what it refuses ({error})") from None
    require(same, "metadata", expected, "something that changes", "use lists and dicts with str keys")
    return returned


def _header(stored: Array | None, name: str) -> JsonObject:
    """Return the header, every entry of the right type."""
    try:
        header = json.loads(b"" if stored is None else stored.tobytes(), parse_constant=_NUMBERS.__getitem__)
    except (ValueError, KeyError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        got = _quoted(header.get("format")) if isinstance(header, dict) else "no header in JSON"
        raise FileFormatError(name, None, f"a file of format {_FORMAT!r}", got)
    for key, kind in _ENTRIES.items():
        if type(header.get(key)) is not kind:
            raise FileFormatError(name, None, f"a header with a proper {key!r}", _quoted(header.get(key)))
    return header


def _quoted(value: object) -> str:
    """Return a short text of one line; what is nested is only named."""
    return ascii(value)[:100] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
