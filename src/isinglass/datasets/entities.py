"""Named entities: persons, places, products and others in tweets and comments (Derczynski et al., WNUT 2017).

The text is not part of the library: it is read from a data folder, files ``text/wnut17_train.txt.gz`` and
``text/wnut17_test.txt.gz`` with the columns token and label (IOB2, six types).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from isinglass.datasets.folder import text_columns

_RUNS = ((re.compile("[A-Z]+"), "A"), (re.compile("[a-z]+"), "a"), (re.compile("[0-9]+"), "0"))
_LONGEST = 8


class Entities(NamedTuple):
    """Words and labels of sentences, to train on and to test."""

    words_train: list[list[str]]
    Y_train: list[list[str]]
    words_test: list[list[str]]
    Y_test: list[list[str]]


def load_wnut17(data_dir: str | os.PathLike[str] | None = None) -> Entities:
    """Read the named entities of WNUT 2017: 3394 sentences to train on and 1287 to test.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder; else the one that the environment variable ISINGLASS_DATA names.
    """
    return Entities(*text_columns("wnut17_train", 2, data_dir), *text_columns("wnut17_test", 2, data_dir))


def entity_attributes(words: Sequence[str]) -> list[list[str]]:
    """Return the attributes of each token: words up to two tokens away, shapes up to one, beginnings and ends.

    Words are in lower case. A shape writes A, a and 0 for runs of capitals, other letters and digits.

    Parameters
    ----------
    words : sequence of str

    Examples
    --------
    >>> entity_attributes(["McDonald", "1998"])[0][:7]
    ['w-2=<s>', 'w-1=<s>', 'w0=mcdonald', 'w1=1998', 'w2=</s>', 's0=AaAa', 's1=0']
    """
    n, low = len(words), ["<s>", "<s>", *(word.lower() for word in words), "</s>", "</s>"]
    shapes = [_shape(word) for word in words]
    found = []
    for t in range(n):
        attributes = [f"w{d}={low[t + 2 + d]}" for d in range(-2, 3)]
        attributes += [f"s{d}={shapes[t + d]}" for d in (-1, 0, 1) if 0 <= t + d < n]
        own = low[t + 2]
        attributes += [f"{side}{k}={part}" for k in range(1, 5) for side, part in (("p", own[:k]), ("x", own[-k:]))]
        found.append(attributes)
    return found


def _shape(word: str) -> str:
    for runs, letter in _RUNS:
        word = runs.sub(letter, word)
    return word[:_LONGEST]
