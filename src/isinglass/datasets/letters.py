"""Handwritten words: each letter a picture of 16 x 8 pixels (Kassel 1995; Taskar, Guestrin and Koller 2003).

The pictures are not part of the library: they are read from ``letters_folds0-7.npz`` in a data folder. The first letter
of a word, a capital, is left out of the data.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import numpy as np

from isinglass.datasets.folder import data_arrays
from isinglass.errors import FileFormatError
from isinglass.typing import FloatArray, IntArray

HEIGHT, WIDTH = 16, 8


@dataclass(frozen=True, eq=False)
class Letters:
    """Words as sequences of letters.

    Attributes
    ----------
    X : list of float arrays (letters, 128)
        Pixels, 0 or 1, row by row.
    Y : list of int arrays (letters,)
        0 is a, 25 is z.
    fold : int array (words,)
        For cross-validation, from 0 on.
    """

    X: list[FloatArray] = field(repr=False)
    Y: list[IntArray] = field(repr=False)
    fold: IntArray = field(repr=False)

    def part(self, *folds: int) -> tuple[list[FloatArray], list[IntArray]]:
        """Return the words of some folds."""
        rows = np.flatnonzero(np.isin(self.fold, folds)).tolist()
        return [self.X[i] for i in rows], [self.Y[i] for i in rows]


def load_letters(data_dir: str | os.PathLike[str] | None = None) -> Letters:
    """Read the letters: 5512 words in eight folds.

    Parameters
    ----------
    data_dir : str or os.PathLike, optional
        The folder of the file; else the one that the environment variable ISINGLASS_DATA names.
    """
    name = "letters_folds0-7.npz"
    arrays = data_arrays(name, data_dir)
    if missing := {"X_bits", "y", "lengths", "fold"} - set(arrays):
        raise FileFormatError(name, None, "the arrays X_bits, y, lengths, fold", f"none called {min(missing)}")
    bits, y, lengths, fold = (arrays[name] for name in ("X_bits", "y", "lengths", "fold"))
    fits = bits.dtype == np.uint8 and bits.ndim == 2 and bits.shape[1] == HEIGHT * WIDTH // 8
    whole = all(a.dtype.kind in "iu" and a.ndim == 1 for a in (y, lengths, fold))
    if not (fits and whole and len(y) == len(bits) == lengths.sum() and len(fold) == len(lengths)):
        raise FileFormatError(name, None, "pixels, labels, lengths and folds that fit together", "others")
    if not ((y >= 0) & (y < 26)).all() or not (lengths > 0).all():
        raise FileFormatError(name, None, "letters from 0 to 25 in words that have some", "others")
    cuts = np.cumsum(lengths)[:-1].astype(np.int64)
    pixels = np.unpackbits(bits, axis=1).astype(np.float64)
    return Letters(np.split(pixels, cuts), np.split(y.astype(np.int64), cuts), fold.astype(np.int64))
