r"""One array as the bytes of NumPy's .npy format, with nothing in them that could run.

    magic "\x93NUMPY", version, length of the header, header, data

The header is a line of Python, ``{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }``. NumPy evaluates
it as a literal, and for a dtype of objects it unpickles the data; here one regular expression reads it, and only
plain numbers, Booleans and text of fixed width pass. The format: numpy.lib.format in NumPy's manual.
"""

from __future__ import annotations

import io
import math
import re

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.typing import Array, DType

_MAGIC = b"\x93NUMPY"
_DTYPE = r"[<>|](?:b1|[iu][1248]|f[248]|c8|c16|U[1-9][0-9]{0,8})"
_HEADER = re.compile(
    rf"\{{'descr': '({_DTYPE})', 'fortran_order': (True|False), "
    r"'shape': \(((?:[0-9]{1,18}, ?)*[0-9]{0,18})\), \} *\n"
)
_HEADER_LIMIT = 10_000
_MAX_AXES = 32
_COUNTABLE = 2**62
_LAST_CODE_POINT = 0x10FFFF
KINDS = "Booleans, integers, floats (16 to 64 bits), complex numbers or text of fixed width"


class NpyError(ValueError):
    """These bytes are not an array that may be read; the caller adds the name of the file."""


def plain_array(values: ArrayLike, argument: str) -> Array:
    """Return the values as an array in C order and little-endian; what the format cannot hold is refused.

    Examples
    --------
    >>> plain_array([1.5, 2], "weights").dtype.str
    '<f8'
    """
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise InputError(argument, KINDS, "values that do not form an array") from None
    if not re.fullmatch(_DTYPE, array.dtype.str) or isinstance(values, np.ma.MaskedArray):
        got = "a masked array" if isinstance(values, np.ma.MaskedArray) else f"dtype {array.dtype}"
        raise InputError(argument, KINDS, got, "convert it, e.g. with .astype(float) or .astype(str)")
    require(array.ndim <= _MAX_AXES, argument, f"at most {_MAX_AXES} axes", f"{array.ndim}")
    return array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)


def encode(array: Array) -> bytes:
    """Return the .npy bytes of an array that `plain_array` has passed."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=(1, 0), allow_pickle=False)
    return file.getvalue()


def decode(data: bytes) -> Array:
    """Read an array from .npy bytes; it is new, writeable and in native byte order.

    Raises
    ------
    NpyError
        If the bytes are anything but one whole array of a plain dtype.

    Examples
    --------
    >>> decode(encode(plain_array([[1, 2], [3, 4]], "a"))).tolist()
    [[1, 2], [3, 4]]
    """
    dtype, fortran, shape, start = _header(data)
    count = math.prod(shape)
    if len(data) - start != count * dtype.itemsize:
        raise NpyError(f"{len(data) - start} bytes of data for shape {shape} of {dtype.str}")
    flat = np.frombuffer(data, dtype, count, start) if count else np.empty(0, dtype)
    _check_values(flat)
    return flat.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="), order="C", copy=True)


def _header(data: bytes) -> tuple[DType, bool, tuple[int, ...], int]:
    """Return dtype, order, shape and where the data begins."""
    version = data[6:8]
    if data[:6] != _MAGIC or version not in (b"\x01\x00", b"\x02\x00"):
        raise NpyError("no .npy data of version 1 or 2")
    start = 10 if version == b"\x01\x00" else 12
    end = start + int.from_bytes(data[8:start], "little")
    if len(data) < end or end > _HEADER_LIMIT:
        raise NpyError("a header that is cut off or too long")
    match = _HEADER.fullmatch(data[start:end].decode("latin-1"))
    if match is None:
        raise NpyError("a header of something else than " + KINDS)
    dtype, shape = np.dtype(match[1]), tuple(int(side) for side in match[3].replace(",", " ").split())
    _check_shape(shape, dtype)
    return dtype, match[2] == "True", shape, end


def _check_shape(shape: tuple[int, ...], dtype: DType) -> None:
    """An empty array may have long sides, but not such that NumPy cannot count them."""
    if len(shape) > _MAX_AXES or math.prod(max(side, 1) for side in shape) * dtype.itemsize > _COUNTABLE:
        raise NpyError(f"an impossible shape with {len(shape)} axes")


def _check_values(flat: Array) -> None:
    """A Boolean byte is 0 or 1 and a character is a code point; NumPy believes both without looking."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise NpyError("Booleans other than 0 and 1")
    if flat.dtype.kind == "U":
        codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        if codes.max(initial=0) > _LAST_CODE_POINT:
            raise NpyError("text with impossible characters")
