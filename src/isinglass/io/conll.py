"""Columns of text, one token a line, as the shared tasks of CoNLL have them; a blank line ends a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isinglass.errors import FileFormatError, InputError
from isinglass.io.files import PathLike, read_text, shown_path, write_text_atomically

Sentence = list[tuple[str, ...]]


def read_conll(path: PathLike, *, separator: str | None = None, columns: int | None = None) -> list[Sentence]:
    """Read sentences from a file of columns, plain or gzip, in UTF-8.

    Parameters
    ----------
    path : str or os.PathLike
    separator : str, optional
        Between columns; without it any blanks or tabs.
    columns : int, optional
        How many there must be; without it as many as in the first line.

    Returns
    -------
    list of sentences
        A sentence is a list of tokens, a token a tuple of its columns. Lines that begin with ``-DOCSTART-`` are left
        out.

    Raises
    ------
    FileFormatError
        If a line has another number of columns.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_conll(f"{folder}/a.txt.gz", [[("the", "DT"), ("dog", "NN")], [("Yes", "UH")]])
    ...     read_conll(f"{folder}/a.txt.gz")
    [[('the', 'DT'), ('dog', 'NN')], [('Yes', 'UH')]]
    """
    if separator is not None and (not isinstance(separator, str) or not separator or "\n" in separator):
        raise InputError("separator", "text between columns, such as a tab", repr(separator), "leave it out for blanks")
    found: list[Sentence] = []
    sentence: Sentence = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not line.strip():
            if sentence:
                found.append(sentence)
            sentence = []
            continue
        if line.startswith("-DOCSTART-"):
            continue
        cells = tuple(line.split(separator))
        columns = len(cells) if columns is None else columns
        if len(cells) != columns or not all(cells):
            got = f"{sum(map(bool, cells))}"
            raise FileFormatError(shown_path(path), number, f"{columns} columns", got, "is the separator right?")
        sentence.append(cells)
    return [*found, sentence] if sentence else found


def write_conll(path: PathLike, sentences: Iterable[Sequence[Sequence[str]]], *, separator: str = " ") -> None:
    """Write sentences as columns, all or nothing; a name that ends in .gz is compressed.

    Parameters
    ----------
    path : str or os.PathLike
    sentences : iterable of sequences of tokens
        A token is a sequence of cells, none of them empty or with blanks, tabs or line ends.
    separator : str
    """
    lines: list[str] = []
    for sentence in sentences:
        for token in sentence:
            bad = [cell for cell in token if not isinstance(cell, str) or cell.split() != [cell]]
            if bad or not token:
                got = f"{bad[0]!r:.60}" if bad else "none"
                raise InputError("sentences", "cells of text without blanks", got)
            lines.append(separator.join(token))
        lines.append("")
    write_text_atomically(path, "\n".join(lines) + "\n" if lines else "")
