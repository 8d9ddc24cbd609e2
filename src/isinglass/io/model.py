"""Models in a known format, chosen by the ending of the name: .uai or .fg, with or without .gz."""

from __future__ import annotations

from collections.abc import Callable

from isinglass.errors import InputError
from isinglass.io.files import PathLike, checked_path
from isinglass.io.formats.evidence import EvidenceSource, observe
from isinglass.io.formats.fg import read_fg
from isinglass.io.formats.uai import read_uai, write_uai
from isinglass.potentials import Potentials

READERS: dict[str, Callable[[PathLike], Potentials]] = {".uai": read_uai, ".fg": read_fg}


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
    return observe(READERS[_ending(path, *READERS)](path), evidence)


def write_model(potentials: Potentials, path: PathLike) -> None:
    """Write a model; see `write_uai`.

    Parameters
    ----------
    potentials : Potentials
    path : str or os.PathLike
        Its name ends in .uai or .uai.gz.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> write_model(Potentials(FactorGraph([2], [(0,)]), [[0.0, 0.0]]), "model.fg")
    Traceback (most recent call last):
    isinglass.errors.InputError: path: expected a name that ends in .uai or .uai.gz, got 'model.fg'; write .uai, .fg
    is only read
    """
    _ending(path, ".uai")
    write_uai(potentials, path)


def _ending(path: PathLike, *endings: str) -> str:
    """Return the ending of a name, without .gz."""
    name = checked_path(path).lower().removesuffix(".gz")
    for ending in endings:
        if name.endswith(ending):
            return ending
    *names, last = [f"{ending}{packed}" for ending in endings for packed in ("", ".gz")]
    remedy = "write .uai, .fg is only read" if name.endswith(".fg") else ""
    raise InputError("path", f"a name that ends in {', '.join(names)} or {last}", ascii(str(path)), remedy)
