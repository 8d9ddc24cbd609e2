"""Named arrays in one file: NumPy's .npz, without pickle, written all or nothing.

Nothing in such a file is run when it is read. Arrays are stored as they are, not compressed, so that a small file
cannot ask for much memory; equal arrays give equal bytes.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import FileFormatError
from isinglass.io.files import PathLike, checked_path, shown_path, write_bytes_atomically

_ENDING = ".npy"
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
)


def write_arrays(path: PathLike, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays in one step; `numpy.load` reads them, too.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_arrays(f"{folder}/a.npz", {"weights": np.arange(3.0), "name": np.asarray("node")})
    ...     read_arrays(f"{folder}/a.npz")
    {'weights': array([0., 1., 2.]), 'name': array('node', dtype='<U4')}
    """
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(zipfile.ZipInfo(name + _ENDING), "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, np.asarray(array), allow_pickle=False)
    write_bytes_atomically(path, buffer.getbuffer())


def read_arrays(path: PathLike) -> dict[str, NDArray[Any]]:
    """Read the arrays that `write_arrays` wrote.

    Raises
    ------
    FileFormatError
        If the file is damaged, compressed, or holds anything but arrays of numbers and text.
    OSError
        If the operating system cannot open or read the file.
    """
    name = checked_path(path)
    with open(name, "rb") as file:
        data = file.read()
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return {info.filename.removesuffix(_ENDING): _array(archive, info) for info in archive.infolist()}
    except _DAMAGE as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise FileFormatError(shown_path(name), None, "a whole .npz file of plain arrays", reason[:200]) from None


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> NDArray[Any]:
    if info.compress_type != zipfile.ZIP_STORED:
        raise ValueError("compressed data")
    with archive.open(info) as entry:
        array: NDArray[Any] = np.lib.format.read_array(entry, allow_pickle=False)
        if entry.read(1):  # reading to the end also checks the sum
            raise ValueError(f"more than one array in {info.filename!r}")
    return array
