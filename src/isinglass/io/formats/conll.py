"""Columns of text, one token a line, as the shared tasks of CoNLL have them; a blank line ends a sentence.

Only line feeds and carriage returns end a line, and only spaces and tabs are blanks: other white space of Unicode, such
as the no-break space in a number or the line separator, is part of a token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from isinglass.errors import FileFormatError, InputError
from isinglass.io.files import PathLike, read_text, shown_path, write_text_atomically

Sentence = list[tuple[str, ...]]

_LINE_END = re.compile(r"\r\n|\n|\r")
_BLANKS = " \t"


def read_conll(path: PathLike, *, separator: str | None = None, columns: int | None = None) -> list[Sentence]:
    """Read sentences from a file of columns, plain or gzip, in UTF-8.

    Parameters
    ----------
    path : str or os.PathLike
    separator : str, optional
        Between columns; without it any spaces or tabs.
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
    for number, line in enumerate(_LINE_END.split(read_text(path)), 1):
        if not line.strip(_BLANKS):
            if sentence:
                found.append(sentence)
            sentence = []
            continue
        if line.startswith("-DOCSTART-"):
            continue
        cells = tuple(filter(None, line.replace("\t", " ").split(" ")) if separator is None else line.split(separator))
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
        A token is a sequence of cells, none of them blank or with line ends or the separator; with the default one
        none with spaces or tabs.
    separator : str
    """
    apart = re.compile(r"[ \t\r\n]" if separator == " " else rf"[\r\n]|{re.escape(separator)}")
    lines: list[str] = []
    for sentence in sentences:
        for token in sentence:
            bad = [c for c in token if not isinstance(c, str) or not c.strip(_BLANKS) or apart.search(c)]
            if bad or not token:
                got = f"{bad[0]!r:.60}" if bad else "none"
                raise InputError("sentences", "cells of text without blanks or separators", got)
            lines.append(separator.join(token))
        lines.append("")
    write_text_atomically(path, "\n".join(lines) + "\n" if lines else "")
