"""Max-margin learning beside likelihoods and losses of marginals, on handwritten words (Taskar, Guestrin, Koller 2003).

The same chain for every row: 128 pixels and a constant, all weights, first and last letters with parameters of their
own, the same l2 on the sum over words, and the same decoder (the most probable word, by Viterbi). Only what is
minimised, and how, differs. Standard errors are those of 500 bootstrap draws of the test words. Seconds are those of
the processor.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from isinglass.datasets import load_letters
from isinglass.estimators import ChainCRF
from isinglass.experiments.common.experiment import (
    DataExperiment,
    Progress,
    Report,
    chosen_rows,
    fit_quietly,
    register,
    tell,
)
from isinglass.learning.optimizers import AveragedPerceptron, BlockFrankWolfe
from isinglass.typing import Array, JsonObject

L2 = 0.5
DRAWS = 500
METHODS: dict[str, dict[str, Any]] = {
    "cl": {"loss": "cl"},
    "ucl": {"loss": "ucl"},
    "uquad": {"loss": "uquad"},
    "perceptron": {"loss": "perceptron", "optimizer": AveragedPerceptron(epochs=5, random_state=0), "l2": 0.0},
    "margin, gap 1e-1": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-1)},
    "margin, gap 1e-2": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-2)},
    "margin, gap 1e-3": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-3)},
}


@register
@dataclass(frozen=True)
class MaxMargin(DataExperiment):
    """Compare max-margin learning with likelihoods and losses of marginals.

    Parameters
    ----------
    quick : bool
        One fold of words to train on, and fewer iterations.
    data : str, optional
        The folder of letters_folds0-7.npz; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Threads.
    rows : sequence of str, optional
        Methods; by default all.
    """

    rows: Sequence[str] | None = None

    name: ClassVar[str] = "maxmargin"
    summary: ClassVar[str] = "handwritten words: max-margin learning beside likelihoods and losses of marginals"

    def run(self, progress: Progress | None = None) -> Report:
        """Train and test every method."""
        methods = chosen_rows(self.rows, tuple(METHODS), tuple(METHODS))
        letters = load_letters(self.data)
        X, Y = letters.part(*((1,) if self.quick else range(1, 8)))
        X_test, Y_test = letters.part(0)
        found: list[JsonObject] = []
        for i, row in enumerate(methods):
            tell(progress, row, i / len(methods))
            options = {"l2": L2, "max_iter": 30 if self.quick else 100, **METHODS[row]}
            crf = ChainCRF(state_features="all", bias=True, boundary=True, decoder="map", n_jobs=self.n_jobs, **options)
            began = time.process_time()
            fit_quietly(crf, X, Y)
            seconds = time.process_time() - began
            share, error = accuracy(crf.predict(X_test), Y_test)
            how = {"seconds": seconds, "iterations": crf.n_iter_, "message": crf.message_}
            found.append({"row": row, "letters": share, "error": error, **how})
        return _report(found, len(X), len(X_test))


def accuracy(predicted: Sequence[Any], truth: Sequence[Array]) -> tuple[float, float]:
    """Return the share of right letters, and its standard error over draws of words.

    Examples
    --------
    >>> accuracy([[0, 1], [2]], [np.array([0, 1]), np.array([1])])[0].__round__(4)
    0.6667
    """
    right = np.array([float((np.asarray(a) == np.asarray(b)).sum()) for a, b in zip(predicted, truth, strict=True)])
    sizes = np.array([float(len(word)) for word in truth])
    rng = np.random.default_rng(0)
    draws = [rng.integers(0, len(sizes), len(sizes)) for _ in range(DRAWS)]
    spread = np.std([right[rows].sum() / sizes[rows].sum() for rows in draws])
    return float(right.sum() / sizes.sum()), float(spread)


def _report(found: list[JsonObject], n_train: int, n_test: int) -> Report:
    rows = [
        [one["row"], f"{one['letters']:.4f}", f"{one['error']:.4f}", f"{one['seconds']:.1f}", str(one["iterations"])]
        for one in found
    ]
    notes = [f"l2 = {L2:g} on the sum over words (the perceptron: none); all decoded by Viterbi"]
    notes += [f"{one['row']}: {one['message']}" for one in found]
    title = f"Max-margin or marginals: letters right, {n_train} training and {n_test} test words"
    columns = ["loss", "letters", "standard error", "seconds", "iterations"]
    return Report(title, columns, rows, notes, {"experiment": "maxmargin", "l2": L2, "rows": found})
