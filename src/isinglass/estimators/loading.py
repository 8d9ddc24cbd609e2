"""Open a file of a fitted estimator without knowing which."""

from __future__ import annotations

from typing import Any

from isinglass.errors import FileFormatError
from isinglass.estimators.graph import GraphCRF
from isinglass.estimators.grid import GridCRF
from isinglass.estimators.sequence.crf import ChainCRF
from isinglass.estimators.sequence.hmm import HMM
from isinglass.estimators.sequence.memm import MEMM
from isinglass.io.arrays import read_arrays
from isinglass.io.files import PathLike, shown_path

KINDS: dict[str, Any] = {
    "chain-crf": ChainCRF,
    "graph-crf": GraphCRF,
    "grid-crf": GridCRF,
    "hmm": HMM,
    "memm": MEMM,
}


def load(path: PathLike) -> Any:
    """Read an estimator that `save` wrote, of whatever kind; safe for files of unknown origin.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    ChainCRF, GraphCRF, GridCRF, HMM or MEMM
    """
    schema = read_arrays(path).schema
    if schema not in KINDS:
        raise FileFormatError(shown_path(path), None, "a fitted estimator", f"{schema!a:.60}")
    return KINDS[schema].load(path)


def notes_of(path: PathLike) -> dict[str, Any]:
    """Return the notes that `save` put into a file; none, if there are none."""
    notes = read_arrays(path).metadata.get("notes", {})
    if not isinstance(notes, dict):
        raise FileFormatError(shown_path(path), None, "notes, a JSON object", type(notes).__name__)
    return notes
