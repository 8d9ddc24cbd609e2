"""Digits completed from half images by an associative memory (Murphy 2012, section 19.4.2 and figure 19.7).

Twenty binary digits of 28 x 28 pixels, two of each class, are stored in a Hopfield network. Then half of each image is
shown and clamped, the other half starts at random, and iterated conditional modes set pixel after pixel until none
changes. A digit counts as recalled if every pixel is right.

Weights: Hebb's rule, which needs patterns that are nearly orthogonal (digits are not: most pixels are white in all of
them); the pseudo-inverse rule; and maximum pseudolikelihood, which stands for the maximum likelihood of the book's
footnote 4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from isinglass.datasets import binary_digits
from isinglass.models import Hopfield
from isinglass.typing import IntArray, Mask
from isinglass.validation import whole_number
from isinglass_experiments.common.experiment import Experiment, Progress, Report, register, tell

SIDE = 28
EACH = 2  # digits of a class
HALVES = ("top", "left")
STORAGES: tuple[Literal["hebb", "pseudo-inverse", "pseudolikelihood"], ...] = (
    "hebb",
    "pseudo-inverse",
    "pseudolikelihood",
)


@register
@dataclass(frozen=True)
class HopfieldDigits(Experiment):
    """Pattern completion by Hopfield networks.

    Parameters
    ----------
    quick : bool
        The upper half alone, without the pseudolikelihood.
    draws : int
        How often digits are drawn.
    n_jobs : int
        Not used: it takes seconds.
    """

    quick: bool = False
    draws: int = 1
    n_jobs: int = 1

    name: ClassVar[str] = "hopfield"
    summary: ClassVar[str] = "digits completed from half images by Hopfield networks (Murphy 2012, figure 19.7)"

    def run(self, progress: Progress | None = None) -> Report:
        """Store digits by each rule, and recall them from halves."""
        draws = whole_number(self.draws, "draws", 1)
        storages = STORAGES[:2] if self.quick else STORAGES
        halves = HALVES[:1] if self.quick else HALVES
        found: dict[tuple[str, str], list[IntArray]] = {(s, h): [] for s in storages for h in halves}
        pictures: list[tuple[str, IntArray]] = []
        for draw in range(draws):
            patterns = stored_digits(draw)
            for k, storage in enumerate(storages):
                tell(progress, storage, (draw * len(storages) + k) / (draws * len(storages)))
                memory = Hopfield.store(patterns, storage)
                for half in halves:
                    states, shown = recalled(memory, patterns, half, draw)
                    found[storage, half].append((states != patterns).sum(axis=1))
                    if draw == 0 and half == halves[0]:
                        pictures += [] if pictures else [("stored", patterns), (f"{half} half shown", shown)]
                        pictures.append((storage, states))
        return _report(found, [(title, images.reshape(-1, SIDE, SIDE)) for title, images in pictures])


def stored_digits(draw: int) -> IntArray:
    """Return digits (20, 784), two of each class.

    Examples
    --------
    >>> stored_digits(0).shape
    (20, 784)
    """
    images, digits = binary_digits()
    rng = np.random.default_rng(draw)
    rows = np.concatenate([rng.choice(np.flatnonzero(digits == d), EACH, replace=False) for d in range(10)])
    return np.asarray(images[rows].reshape(len(rows), -1), np.int64)


def visible(half: str) -> Mask:
    """Return which pixels are shown, (784,)."""
    mask = np.zeros((SIDE, SIDE), bool)
    mask[(slice(SIDE // 2), slice(None)) if half == "top" else (slice(None), slice(SIDE // 2))] = True
    return mask.ravel()


def recalled(memory: Hopfield, patterns: IntArray, half: str, draw: int) -> tuple[IntArray, IntArray]:
    """Return what the memory makes of half patterns, and the starts."""
    mask, rng = visible(half), np.random.default_rng([draw, HALVES.index(half)])
    starts = np.where(mask, patterns, rng.integers(0, 2, patterns.shape))
    return np.array([memory.recall(start, mask).states for start in starts]), starts


def _report(found: dict[tuple[str, str], list[IntArray]], pictures: list[tuple[str, IntArray]]) -> Report:
    """Count digits that are right in every pixel, and wrong pixels."""
    rows, data = [], []
    for (storage, half), errors in found.items():
        wrong = np.array(errors)
        right, n = (wrong == 0).sum(axis=1), wrong.shape[1]
        rows.append([storage, half, f"{right.mean():.4g} of {n}", f"{wrong.mean():.4g}"])
        data.append({"storage": storage, "shown": half, "recalled": right.tolist(), "wrong pixels": wrong.tolist()})
    draws = len(next(iter(found.values())))
    notes = [
        f"mean over {draws} draw{'s' * (draws > 1)} of 20 digits of 28 x 28 pixels, two of each class",
        "the half that is shown is clamped, the other starts at random; recall by iterated conditional modes",
        "wrong pixels: of the 392 that are not shown, mean over all digits",
    ]
    columns = ["storage", "shown", "digits recalled", "wrong pixels"]
    results = {"experiment": HopfieldDigits.name, "rows": data}
    return Report("Hopfield networks: digits from half images", columns, rows, notes, results, {"hopfield": pictures})
