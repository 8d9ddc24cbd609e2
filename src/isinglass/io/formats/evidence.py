"""Evidence files (.evid): the observed variables and their states.

    file     = [pairs | samples pairs]        an empty file observes nothing
    pairs    = n (variable state){n}          so an odd count of numbers
    samples  = "0" | "1"                      the older form, so an even count of numbers; "0" only before "0"

A variable may stand twice if its states agree. More than one sample is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike as OsPathLike

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.names import EvidenceLike, evidence_numbers
from isinglass.io.files import PathLike, checked_path, write_text_atomically
from isinglass.io.formats.tables import MAX_CARD
from isinglass.io.formats.tokens import TokenReader
from isinglass.potentials import Potentials
from isinglass.typing import IntArray
from isinglass.validation import Evidence, integers, whole_number

EvidenceSource = EvidenceLike | PathLike | None


def read_evidence(path: PathLike, cards: Sequence[int] | IntArray | None = None) -> dict[int, int]:
    """Read an evidence file.

    Parameters
    ----------
    path : str or os.PathLike
        Plain or gzip.
    cards : sequence of int, optional
        The number of states of each variable; variables and states are checked against it.

    Returns
    -------
    dict of int to int
        The state of each observed variable.

    Raises
    ------
    FileFormatError
        If the file does not follow the format, or does not fit `cards`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_evidence({7: 1, 2: 0}, f"{folder}/a.evid")
    ...     read_evidence(f"{folder}/a.evid")
    {2: 0, 7: 1}
    """
    checked = None if cards is None else integers(cards, "cards", 1)
    return take_evidence(TokenReader.open(path), checked)


def write_evidence(evidence: Evidence, path: PathLike) -> None:
    """Write an evidence file, in the form without a number of samples, sorted by variable."""
    if not isinstance(evidence, Mapping):
        raise InputError("evidence", "a mapping from variable to state, such as {2: 0}", type(evidence).__name__)
    pairs = sorted((whole_number(v, "evidence (variable)"), whole_number(s, "evidence")) for v, s in evidence.items())
    numbers = [len(pairs), *(number for pair in pairs for number in pair)]
    write_text_atomically(path, " ".join(map(str, numbers)) + "\n")


def take_evidence(reader: TokenReader, cards: IntArray | None, instead: str = "") -> dict[int, int]:
    """Take evidence, to the end of the file; `instead` names what else a message should offer."""
    if reader.remaining == 0:
        return {}
    most = MAX_CARD
    if reader.remaining % 2 == 0:
        what = f"{instead}0 or 1 samples, because an even count of numbers is the older form"
        most *= reader.integer(what, 0, 1)
    pairs = (reader.remaining - 1) // 2
    position = reader.position
    n = reader.integer(f"{instead}the number of observed variables", 0, most)
    if n != pairs:
        reader.fail(f"{instead}{pairs} observed variables, by the count of numbers that follow", position)
    return _take_pairs(reader, n, cards)


def _take_pairs(reader: TokenReader, n: int, cards: IntArray | None) -> dict[int, int]:
    start = reader.skip(2 * n, "")
    positions = np.arange(start, start + 2 * n).reshape(n, 2)
    last = MAX_CARD if cards is None else len(cards) - 1
    variables = reader.integers_at(positions[:, 0], lambda i: f"observed variable {i + 1} of {n}", 0, last)
    top = MAX_CARD if cards is None else cards[variables] - 1
    states = reader.integers_at(positions[:, 1], lambda i: f"the state of variable {variables[i]}", 0, top)
    found: dict[int, int] = {}
    for i, (variable, state) in enumerate(zip(variables.tolist(), states.tolist(), strict=True)):
        if found.setdefault(variable, state) != state:
            reader.fail(f"one state of variable {variable}, which was {found[variable]}", int(positions[i, 1]))
    return dict(sorted(found.items()))


def observe(potentials: Potentials, evidence: EvidenceSource) -> Potentials:
    """Add evidence, a mapping or the path of an evidence file, to potentials that may have some.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> p = Potentials(FactorGraph([2, 2], [(0, 1)]), [np.eye(2)], {0: 1})
    >>> dict(observe(p, {1: 0}).evidence)
    {0: 1, 1: 0}
    """
    if evidence is None:
        return potentials
    if isinstance(evidence, Mapping):
        new = evidence_numbers(potentials.graph, evidence)
    elif isinstance(evidence, str | OsPathLike):
        new = read_evidence(checked_path(evidence), potentials.graph.cards)
    else:
        raise InputError("evidence", "a mapping or the path of a file", type(evidence).__name__)
    for variable in sorted(new.keys() & potentials.evidence.keys()):
        if new[variable] != potentials.evidence[variable]:
            got = f"state {new[variable]}, but the model file observes state {potentials.evidence[variable]}"
            raise InputError("evidence", f"one state of variable {variable}", got, "leave one of them out")
    return potentials.with_evidence(new)
