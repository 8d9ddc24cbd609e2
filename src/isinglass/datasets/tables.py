"""Contingency tables, and the alignment of a protein family; read from a data folder."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

import numpy as np

from isinglass.datasets.folder import data_file
from isinglass.errors import FileFormatError, UnknownNameError
from isinglass.io import read_npz
from isinglass.typing import FloatArray, IntArray


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
            raise UnknownNameError("table", f"one of {', '.join(map(repr, described))}", repr(name))
        return [_table(one, arrays[one], described[one]) for one in names]
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        if isinstance(error, UnknownNameError):
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
