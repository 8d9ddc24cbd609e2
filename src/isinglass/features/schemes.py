"""Schemes of labels for spans: BIO, BIOES, and between them.

    BIO (IOB2)  B begins a span, I goes on with it, O is outside
    BIOES       as BIO, but E ends a span of several tokens, and S is one of a single token (also called BILOU: L, U)

A finer scheme tells a model where spans end; predictions are turned back before they are counted.
"""

from __future__ import annotations

from collections.abc import Sequence

from isinglass.errors import InputError


def to_bioes(labels: Sequence[str]) -> list[str]:
    """Return the labels of one sequence in BIOES; from BIO, IOB or BIOES.

    Examples
    --------
    >>> to_bioes(["B-NP", "I-NP", "O", "B-VP", "I-NP"])
    ['B-NP', 'E-NP', 'O', 'S-VP', 'S-NP']
    """
    found = ["O"] * len(labels)
    for kind, start, end in _spans(labels):
        found[start:end] = [f"I{kind}"] * (end - start)
        found[start], found[end - 1] = f"B{kind}", f"E{kind}"
        if end - start == 1:
            found[start] = f"S{kind}"
    return found


def to_bio(labels: Sequence[str]) -> list[str]:
    """Return the labels of one sequence in BIO; from BIO, IOB, BIOES or BILOU, also where they do not fit together.

    Examples
    --------
    >>> to_bio(["B-NP", "E-NP", "O", "S-VP", "I-NP"])
    ['B-NP', 'I-NP', 'O', 'B-VP', 'B-NP']
    """
    found = ["O"] * len(labels)
    for kind, start, end in _spans(labels):
        found[start:end] = [f"I{kind}"] * (end - start)
        found[start] = f"B{kind}"
    return found


def _spans(labels: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the spans of a sequence: "-TYPE", first token, and the one after the last."""
    spans: list[tuple[str, int, int]] = []
    open_kind: str | None = None
    start = 0
    for t, label in enumerate([*labels, "O"]):
        prefix, kind = _parts(label)
        goes_on = open_kind == kind and prefix in "IE"
        if open_kind is not None and not goes_on:
            spans.append((open_kind, start, t))
            open_kind = None
        if prefix != "O" and not goes_on:
            open_kind, start = kind, t
        if prefix in "ES" and open_kind is not None:
            spans.append((open_kind, start, t + 1))
            open_kind = None
    return spans


def _parts(label: object) -> tuple[str, str]:
    if isinstance(label, str):
        prefix, dash, kind = label.partition("-")
        prefix = {"L": "E", "U": "S"}.get(prefix, prefix)
        if label == "O" or (prefix in ("B", "I", "E", "S") and (dash or not kind)):
            return prefix, dash + kind
    raise InputError("labels", "labels such as 'B-NP', 'I-NP', 'E-NP', 'S-NP' and 'O'", f"{label!r:.60}")
