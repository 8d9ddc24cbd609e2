"""Models in any known format, chosen by the ending of the name: .uai or .fg, with or without .gz."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from isinglass.errors import InputError
from isinglass.io.files import PathLike, checked_path
from isinglass.io.formats.evidence import EvidenceSource, observe
from isinglass.io.formats.fg import read_fg, write_fg
from isinglass.io.formats.uai import read_uai, write_uai
from isinglass.potentials import Potentials


class Format(NamedTuple):
    """How models are read from files of a format, and written to them."""

    read: Callable[[PathLike], Potentials]
    write: Callable[[Potentials, PathLike], None]


FORMATS = {".uai": Format(read_uai, write_uai), ".fg": Format(read_fg, write_fg)}


def read_model(path: PathLike, evidence: EvidenceSource = None) -> Potentials:
    """Read a model; see `read_uai` and `read_fg`.

    Parameters
    ----------
    path : str or os.PathLike
        Its name ends in .uai, .uai.gz, .fg or .fg.gz.
    evidence : mapping of int to int, or path of a .evid file, optional

    Returns
    -------
    Potentials

    Examples
    --------
    >>> read_model("model.txt")
    Traceback (most recent call last):
    isinglass.errors.InputError: path: expected a name that ends in .uai, .uai.gz, .fg or .fg.gz, got
    'model.txt'
    """
    return observe(_format(path).read(path), evidence)


def write_model(potentials: Potentials, path: PathLike) -> None:
    """Write a model in the format that the ending of `path` names; see `write_uai` and `write_fg`.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> from tempfile import TemporaryDirectory
    >>> p = Potentials(FactorGraph([2], [(0,)]), [[0.0, 0.0]])
    >>> with TemporaryDirectory() as folder:
    ...     write_model(p, f"{folder}/a.fg.gz")
    ...     read_model(f"{folder}/a.fg.gz").log_tables[0].tolist()
    [0.0, 0.0]
    """
    _format(path).write(potentials, path)


def _format(path: PathLike) -> Format:
    name = checked_path(path).lower().removesuffix(".gz")
    for ending, found in FORMATS.items():
        if name.endswith(ending):
            return found
    *names, last = [f"{ending}{packed}" for ending in FORMATS for packed in ("", ".gz")]
    raise InputError("path", f"a name that ends in {', '.join(names)} or {last}", ascii(str(path)))
