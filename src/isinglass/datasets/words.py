"""A list of English words; read from a data folder."""

from __future__ import annotations

import gzip
import os

from isinglass.datasets.folder import data_file
from isinglass.errors import FileFormatError
from isinglass.validation import whole_number


def load_words(level: int = 60, data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """Read English words of lower-case letters (SCOWL), in the order of the file.

    Parameters
    ----------
    level : int
        10: the most common words only, up to 60: all of them.
    data_dir : path, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    """
    most, path = whole_number(level, "level", 1), data_file("text/words_scowl60_american.txt.gz", data_dir)
    found = []
    with gzip.open(path, "rt", encoding="ascii") as lines:
        for k, line in enumerate(lines, 1):
            word, _, rank = line.rstrip("\n").partition("\t")
            if not (word.isalpha() and word.islower() and rank.isdigit()):
                raise FileFormatError(str(path), k, "a word of lower-case letters, a tab and a level", f"{line!r:.40}")
            if int(rank) <= most:
                found.append(word)
    return found
