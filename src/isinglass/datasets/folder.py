"""Where data files are that do not come with the library."""

from __future__ import annotations

import os
from pathlib import Path

from isinglass.errors import InputError, require
from isinglass.io.arrays import read_npz
from isinglass.io.formats.conll import read_conll
from isinglass.typing import Array


def data_file(name: str, data_dir: str | os.PathLike[str] | None) -> Path:
    """Return the path of a data file in a folder, or in the one that ISINGLASS_DATA names."""
    folder = os.environ.get("ISINGLASS_DATA", "") if data_dir is None else os.fspath(data_dir)
    remedy = "docs/data.md tells what it holds and where to get it"
    require(folder, "data_dir", f"the folder of {name}, here or in $ISINGLASS_DATA", "neither", remedy)
    path = Path(folder, name)
    if not path.is_file():
        raise InputError("data_dir", f"a folder with {name}", repr(os.fspath(folder)), remedy)
    return path


def data_arrays(name: str, data_dir: str | os.PathLike[str] | None) -> dict[str, Array]:
    """Return the arrays of a data file, at most 64 MiB."""
    return read_npz(data_file(name, data_dir), limit=2**26)


def text_columns(name: str, columns: int, data_dir: str | os.PathLike[str] | None) -> list[list[list[str]]]:
    """Return the columns of a text file of tokens, each a list of sentences."""
    sentences = read_conll(data_file(f"text/{name}.txt.gz", data_dir), columns=columns)
    return [[[token[column] for token in one] for one in sentences] for column in range(columns)]
