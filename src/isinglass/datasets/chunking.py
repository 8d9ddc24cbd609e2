"""Chunking: phrases of English sentences (Tjong Kim Sang and Buchholz, CoNLL 2000), and the usual attributes for it.

The text is not part of the library: it is read from a data folder, files ``text/conll2000_train.txt.gz`` and
``text/conll2000_test.txt.gz`` with the columns word, part of speech, chunk label (IOB2).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from isinglass.datasets.folder import text_columns
from isinglass.features.windows import window_attributes
from isinglass.runtime.collecting import no_collection

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
    with no_collection():
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
