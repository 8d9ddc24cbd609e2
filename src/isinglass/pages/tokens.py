"""Sequences of tokens whose mistakes are marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from isinglass.pages.part import Part


@dataclass(frozen=True)
class Tokens(Part):
    """Sequences; each token with what was predicted and the truth, None where it is not observed.

    Examples
    --------
    >>> Tokens([[("dog", "N", "N"), ("barks", "N", "V")]]).html().count("<mark")
    1
    """

    sequences: Sequence[Sequence[tuple[str, str, str | None]]]

    def html(self) -> str:
        """Return a list of sequences."""
        lines = [" ".join(map(_token, sequence)) for sequence in self.sequences]
        return "\n".join(['<ol class="tokens">', *(f"<li>{line}</li>" for line in lines), "</ol>"])


def _token(token: tuple[str, str, str | None]) -> str:
    word, found, truth = token
    if truth is None or found == truth:
        return f'<span data-tip="{escape(found)}">{escape(word)}</span>'
    return f"<mark>{escape(word)}<small><s>{escape(found)}</s> {escape(truth)}</small></mark>"
