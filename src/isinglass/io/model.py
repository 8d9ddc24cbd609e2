"""Models in any known format, chosen by the ending of the name: .uai or .fg, with or without .gz."""

from __future__ import annotations

from isinglass.errors import InputError
from isinglass.io.evidence import EvidenceSource, observe
from isinglass.io.fg import read_fg, write_fg
from isinglass.io.files import PathLike, checked_path
from isinglass.io.uai import read_uai, write_uai
from isinglass.potentials import Potentials


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
    if _format(path) == "uai":
        return read_uai(path, evidence)
    return observe(read_fg(path), evidence)


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
    if _format(path) == "uai":
        write_uai(potentials, path)
    else:
        write_fg(potentials, path)


def _format(path: PathLike) -> str:
    name = checked_path(path).lower().removesuffix(".gz")
    for ending in ("uai", "fg"):
        if name.endswith(f".{ending}"):
            return ending
    raise InputError("path", "a name that ends in .uai, .uai.gz, .fg or .fg.gz", ascii(str(path)))
