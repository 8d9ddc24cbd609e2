"""Safe model files: named arrays and a JSON header in one file.

A zip archive whose first member, ``header.json``, says what the file is, and in which every other member is an
array in NumPy's .npy format::

    {"format": "isinglass arrays", "format_version": 1, "library": "0.1.0",
     "schema": "grid-crf", "schema_version": 1, "metadata": {...}, "arrays": {"weights": ["<f8", [3, 2]]}}

``np.load`` opens it too. Nothing in a file is ever run: no pickle, no evaluation, nothing is unpacked to disk, and
sizes are checked before memory is taken. What the header says of the arrays must be what is there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike

from isinglass.errors import FileFormatError, InputError, require
from isinglass.io.archive import MEMBER_LIMIT, NAME, NAME_LIMIT, pack, unpack
from isinglass.io.files import SIZE_LIMIT, PathLike, checked_path, shown_path, write_bytes_atomically
from isinglass.io.npy import NpyError, decode, encode, plain_array
from isinglass.typing import Array, JsonObject
from isinglass.validation import bytes_text, whole_number

__all__ = ["ArrayFile", "read_arrays", "read_npz", "write_arrays"]

_FORMAT = "isinglass arrays"
_FORMAT_VERSION = 1
_HEADER = "header.json"
_HEADER_LIMIT = 2**24
_UPGRADE = "a newer isinglass reads it: pip install --upgrade isinglass"


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
    limit: int = SIZE_LIMIT,
    compress: bool = True,
) -> None:
    """Write named arrays and metadata to one file, atomically; equal contents give equal bytes.

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
    limit : int
        The largest number of bytes, unpacked; `read_arrays` has the same default.
    compress : bool
        Without, the file is larger and is written many times faster.

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
    plain = _checked_arrays(arrays)
    header = {
        "format": _FORMAT,
        "format_version": _FORMAT_VERSION,
        "library": __version__,
        "schema": _checked_name(schema, "schema"),
        "schema_version": whole_number(version, "version", 1),
        "metadata": _checked_metadata(metadata),
        "arrays": _described(plain),
    }
    members = {_HEADER: json.dumps(header, indent=1, allow_nan=False).encode()}
    members |= {f"{name}.npy": encode(array) for name, array in plain.items()}
    size = sum(len(data) for data in members.values())
    if size > limit or len(members[_HEADER]) > _HEADER_LIMIT:
        expected = f"at most {bytes_text(limit)} of data and {bytes_text(_HEADER_LIMIT)} of metadata"
        raise InputError("arrays", expected, bytes_text(size), "give a higher limit, here and to read_arrays")
    write_bytes_atomically(path, pack(members, 6 if compress else 0))


def read_arrays(
    path: PathLike, *, schema: str | None = None, version: int | None = None, limit: int = SIZE_LIMIT
) -> ArrayFile:
    """Read what `write_arrays` wrote; safe for files of unknown origin.

    Parameters
    ----------
    path : str or os.PathLike
    schema : str, optional
        Insist on this schema.
    version : int, optional
        The newest version of the schema that the caller understands; a file with a newer one is refused.
    limit : int
        The largest number of bytes that is read, packed or unpacked.

    Returns
    -------
    ArrayFile

    Raises
    ------
    FileFormatError
        If the file is damaged, too large, not of this format, or of another schema or a newer version.
    OSError
        If the operating system cannot open or read the file.
    """
    name = shown_path(checked_path(path))
    members = unpack(path, whole_number(limit, "limit"))
    header = _read_header(members.pop(_HEADER, None), name)
    if schema is not None and header["schema"] != schema:
        raise FileFormatError(name, None, f"the schema {schema!r}", _quoted(header["schema"]))
    if version is not None and header["schema_version"] > version:
        written = f"version {header['schema_version']}, written by isinglass {header['library']}"
        raise FileFormatError(name, None, f"the schema {header['schema']!r} up to version {version}", written, _UPGRADE)
    arrays = _decoded(members, name)
    if _described(arrays) != header["arrays"]:
        raise FileFormatError(name, None, "the arrays that its header lists", "others")
    return ArrayFile(header["schema"], header["schema_version"], header["library"], header["metadata"], arrays)


def read_npz(path: PathLike, limit: int = SIZE_LIMIT) -> dict[str, Array]:
    """Read the arrays of an .npz file of NumPy, as defensively as `read_arrays`.

    Parameters
    ----------
    path : str or os.PathLike
    limit : int
        The largest number of bytes that is read, packed or unpacked.

    Raises
    ------
    FileFormatError
        If the file is damaged, too large, or has anything but plain arrays.

    Examples
    --------
    >>> import numpy as np
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/a.npz", x=np.arange(3))
    ...     read_npz(f"{folder}/a.npz")["x"].tolist()
    [0, 1, 2]
    """
    name = shown_path(checked_path(path))
    return _decoded(unpack(path, whole_number(limit, "limit")), name)


def _described(arrays: Mapping[str, Array]) -> dict[str, list[object]]:
    return {name: [a.dtype.newbyteorder("<").str, list(a.shape)] for name, a in arrays.items()}


def _checked_name(name: object, argument: str) -> str:
    if not isinstance(name, str) or len(name) > NAME_LIMIT - len(".npy") or not NAME.fullmatch(name):
        expected = "a name of letters, digits and underscores, with single dots or dashes between them"
        raise InputError(argument, expected, ascii(name)[:NAME_LIMIT])
    return name


def _checked_arrays(arrays: Mapping[str, ArrayLike]) -> dict[str, Array]:
    require(isinstance(arrays, Mapping), "arrays", "a mapping from name to array", type(arrays).__name__)
    if len(arrays) >= MEMBER_LIMIT:
        raise InputError("arrays", f"fewer than {MEMBER_LIMIT} arrays", f"{len(arrays)}", "stack some of them")
    names = [_checked_name(name, "arrays") for name in arrays]
    return {name: plain_array(arrays[name], f"arrays[{name!r}]") for name in names}


def _checked_metadata(metadata: Mapping[str, object] | None) -> JsonObject:
    """Return what JSON gives back, which must be what went in."""
    if metadata is None:
        return {}
    expected = "a mapping that JSON gives back unchanged (no NaN, no tuples, only str as keys)"
    require(isinstance(metadata, Mapping), "metadata", expected, type(metadata).__name__)
    given = dict(metadata)
    try:
        returned = json.loads(json.dumps(given, allow_nan=False))
        same = returned == given
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("metadata", expected, f"what it refuses ({error})") from None
    require(same, "metadata", expected, "something that changes", "use lists and dicts with str keys")
    return dict(returned)


def _read_header(data: bytes | None, name: str) -> JsonObject:
    """Return the header, every entry of the right type; the arrays are compared later."""
    if data is None or len(data) > _HEADER_LIMIT:
        raise FileFormatError(name, None, f"a file of format {_FORMAT!r}", "an archive without a fitting header")
    header = _parsed(data, name)
    if header.get("format") != _FORMAT:
        raise FileFormatError(name, None, f"a file of format {_FORMAT!r}", _quoted(header.get("format")))
    if header.get("format_version") != _FORMAT_VERSION:
        got = _quoted(header.get("format_version"))
        raise FileFormatError(name, None, f"version {_FORMAT_VERSION} of the format", got, _UPGRADE)
    for key, fits in _ENTRIES.items():
        if not fits(header.get(key)):
            raise FileFormatError(name, None, f"a header with a proper {key!r}", _quoted(header.get(key)))
    return header


_ENTRIES: dict[str, Callable[[object], object]] = {
    "library": lambda value: isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z.+-]{1,50}", value),
    "schema": lambda value: isinstance(value, str) and len(value) <= NAME_LIMIT and NAME.fullmatch(value),
    "schema_version": lambda value: type(value) is int and 1 <= value < 2**31,
    "metadata": lambda value: isinstance(value, dict),
    "arrays": lambda value: isinstance(value, dict),
}


def _parsed(data: bytes, name: str) -> JsonObject:
    try:
        header = json.loads(data.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise FileFormatError(name, None, f"JSON in {_HEADER}", "something else") from None
    if not isinstance(header, dict):
        raise FileFormatError(name, None, f"a JSON object in {_HEADER}", type(header).__name__)
    return header


def _no_constant(word: str) -> None:
    raise ValueError(word)  # NaN and Infinity are not JSON


def _decoded(members: dict[str, bytes], name: str) -> dict[str, Array]:
    """Decode every member; its bytes are let go as soon as they are read."""
    arrays: dict[str, Array] = {}
    for member in list(members):
        if not member.endswith(".npy"):
            raise FileFormatError(name, None, "arrays only", f"the member {member}")
        try:
            arrays[member.removesuffix(".npy")] = decode(members.pop(member))
        except NpyError as error:
            raise FileFormatError(name, None, f"a plain array in {member}", str(error)) from None
    return arrays


def _quoted(value: object) -> str:
    """Return a short text of one line; what is nested is only named."""
    return ascii(value)[:100] if isinstance(value, str | int | float | None) else f"a {type(value).__name__}"
