"""Sentences with labels, and the usual attributes of their tokens.

Chunking: phrases of English sentences (Tjong Kim Sang and Buchholz, CoNLL 2000), files ``text/conll2000_train.txt.gz``
and ``text/conll2000_test.txt.gz`` with the columns word, part of speech, chunk label (IOB2). Named entities: persons,
places, products and others in tweets and comments (Derczynski et al., WNUT 2017), files ``text/wnut17_train.txt.gz``
and ``text/wnut17_test.txt.gz`` with the columns token and label (IOB2, six types).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from isinglass.features import window_attributes
from isinglass_experiments.data.files import text_columns

WORDS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))
TAGS = ((-2,), (-1,), (0,), (1,), (2,), (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2))


class Chunking(NamedTuple):
    """Attributes and labels of sentences, to train on and to test."""

    X_train: list[list[list[str]]]
    Y_train: list[list[str]]
    X_test: list[list[list[str]]]
    Y_test: list[list[str]]


def load_conll2000(data_dir: str | os.PathLike[str] | None = None) -> Chunking:
    """Read the chunking data: 8936 sentences to train on and 2012 to test, with the attributes of `chunk_attributes`.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder; else the one that the environment variable ISINGLASS_DATA names.
    """
    (words, tags, Y), (others, other_tags, Y_test) = (read_chunking(part, data_dir) for part in ("train", "test"))
    X, X_test = ([*map(chunk_attributes, *both)] for both in ((words, tags), (others, other_tags)))
    return Chunking(X, Y, X_test, Y_test)


def read_chunking(part: str, data_dir: str | os.PathLike[str] | None = None) -> list[list[list[str]]]:
    """Return the words, the parts of speech and the chunk labels of the sentences of "train" or "test"."""
    return text_columns(f"conll2000_{part}", 3, data_dir)


def chunk_attributes(words: Sequence[str], tags: Sequence[str]) -> list[list[str]]:
    """Return the attributes of each token: words and tags up to two tokens away, and sequences of them.

    Words: each of five, and the pairs with the one before and the one after. Tags (parts of speech): each of five, the
    four pairs and the three triples within the window. 19 attributes in all (Kudo and Matsumoto 2001; Sha and Pereira
    2003).

    Parameters
    ----------
    words, tags : sequences of str

    Examples
    --------
    >>> attributes = chunk_attributes(["The", "dog"], ["DT", "NN"])
    >>> len(attributes[0]), attributes[1][:7]
    (19, ['w-2=<s>', 'w-1=The', 'w0=dog', 'w1=</s>', 'w2=</s>', 'w-1|0=The|dog', 'w0|1=dog|</s>'])
    """
    return window_attributes({"w": words, "t": tags}, {"w": WORDS, "t": TAGS})


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
