"""Collected data: the folder of the files, tables of counts, the alignment of a protein family, a list of words."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from isinglass.errors import FileFormatError, InputError, require
from isinglass.io import read_conll, read_npz
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number


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


@dataclass(frozen=True, eq=False)
class Contingency:
    """A table of counts.

    Attributes
    ----------
    name : str
    counts : int array, one axis for each variable
    variables : tuple of str
    levels : tuple of tuples of str
        The states of each variable.
    """

    name: str
    counts: IntArray = field(repr=False)
    variables: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...] = field(repr=False)


@dataclass(frozen=True, eq=False)
class Alignment:
    """Aligned sequences of a protein family, and distances of residues in its structure.

    Attributes
    ----------
    sequences : int array (sequences, sites)
        0 is a gap, 1 to 20 are amino acids.
    pairs : int array (pairs, 2)
        Sites, counted from 0.
    distance : array (pairs,)
        In Angstrom.
    """

    sequences: IntArray = field(repr=False)
    pairs: IntArray = field(repr=False)
    distance: FloatArray = field(repr=False)


def load_contingency(name: str | None = None, data_dir: str | os.PathLike[str] | None = None) -> list[Contingency]:
    """Read contingency tables of the R world: one by its name, or all.

    Parameters
    ----------
    name : str, optional
    data_dir : str or os.PathLike, optional
        The folder that holds contingency/contingency.npz; else the one that ISINGLASS_DATA names.
    """
    path = data_file("contingency/contingency.npz", data_dir)
    arrays = read_npz(path)
    try:
        described = json.loads(str(arrays["meta_json"]))
        names = list(described) if name is None else [name]
        if name is not None and name not in described:
            raise InputError("table", f"one of {', '.join(map(repr, described))}", repr(name))
        return [_table(one, arrays[one], described[one]) for one in names]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise FileFormatError(os.fspath(path), None, "tables of counts and their description", f"{error}") from None


def _table(name: str, counts: IntArray, described: dict[str, object]) -> Contingency:
    variables = tuple(str(v) for v in described["variables"])  # type: ignore[attr-defined]
    levels = tuple(tuple(str(k) for k in described["levels"][v]) for v in variables)  # type: ignore[index]
    if counts.shape != tuple(len(k) for k in levels):
        raise ValueError(f"{name} of shape {counts.shape}")
    return Contingency(name, counts.astype(np.int64), variables, levels)


def load_alignment(name: str = "PF00014", data_dir: str | os.PathLike[str] | None = None) -> Alignment:
    """Read the alignment of a protein family.

    Parameters
    ----------
    name : str
    data_dir : str or os.PathLike, optional
        The folder that holds dca/PF00014.npz; else the one that ISINGLASS_DATA names.
    """
    path = data_file(f"dca/{name}.npz", data_dir)
    arrays = read_npz(path)
    if not {"msa", "tab_cont"} <= set(arrays) or arrays["tab_cont"].shape[1:] != (4,) or arrays["msa"].ndim != 2:
        raise FileFormatError(os.fspath(path), None, "arrays msa and tab_cont", ", ".join(arrays))
    table = arrays["tab_cont"]
    pairs = np.sort(table[:, :2].astype(np.int64) - 1, axis=1)
    return Alignment(arrays["msa"].astype(np.int64), pairs, table[:, 3].astype(np.float64))


def load_words(level: int = 60, data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Read English words of lower-case letters (SCOWL), in the order of the file.

    Parameters
    ----------
    level : int
        10: the most common words only, up to 60: all of them.
    data_dir : path, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    """
    most, path = whole_number(level, "level", 1), data_file("text/words_scowl60_american.txt.gz", data_dir)
    found = []
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for k, line in enumerate(lines, 1):
            word, _, rank = line.rstrip("\n").partition("\t")
            if not (word.isalpha() and word.islower() and rank.isdigit()):
                raise FileFormatError(str(path), k, "a word of lower-case letters, a tab and a level", f"{line!r:.40}")
            if int(rank) <= most:
                found.append(word)
    return found
