"""How strongly each method on the digits is penalised: l2 is chosen by one rule for all of them.

The last third of the training images is held out. A method is trained on the others with each l2 of a grid, and tested
on the images held out with its own inference. The l2 of the least share of wrong pixels is chosen, the larger one of
two that tie. With it, the method is trained on all training images. The objective is a sum over images: where fewer are
summed, l2 is less in proportion. What a method starts from has been chosen and trained in the same way, on the same
part of the images.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import NamedTuple

from isinglass.typing import Array, FloatArray
from isinglass_experiments.common.methods import Fitted, Training, error, predict, train

HELD = 3  # one image of so many is held out
MOST = 50  # iterations of training on a part of the images


class Selected(NamedTuple):
    """A method with its l2.

    Attributes
    ----------
    l2 : float or None
        None where a method has no penalty.
    part, whole : Fitted
        Trained with it on the images that were not held out, and on all.
    errors : dict of float to float
        For each l2, the share of wrong pixels in the images held out.
    seconds : float
        All of it.
    """

    l2: float | None
    part: Fitted
    whole: Fitted
    errors: dict[float, float]
    seconds: float


def select(
    name: str,
    X: FloatArray,
    Y: Array,
    training: Training,
    start: Selected | None = None,
    n_jobs: int | None = None,
) -> Selected:
    """Choose the l2 of a method, and train it.

    Parameters
    ----------
    name : str
        One of `isinglass_experiments.common.methods.METHODS`.
    X, Y : arrays (images, height, width, 2) and (images, height, width)
    training : Training
        Its `l2` is one of its `grid`, in the end.
    start : Selected, optional
        What the method starts from.
    n_jobs : int, optional
        Threads; results have the same bits for any number.
    """
    began, n = time.perf_counter(), len(X) - max(1, len(X) // HELD)
    parts, errors = {}, {}
    theta = None if start is None else start.part.theta
    for l2 in training.grid[:1] if name == "pixels" else training.grid:
        less = replace(training, l2=l2 * n / len(X), max_iter=min(training.max_iter, MOST))
        parts[l2] = train(name, X[:n], Y[:n], less, theta, n_jobs)
        errors[l2] = error(predict(parts[l2], X[n:]), Y[n:])
        if start is None:
            theta = parts[l2].theta  # the objective is convex: the way does not matter
    best = min(errors, key=lambda l2: errors[l2])
    whole = train(name, X, Y, replace(training, l2=best), None if start is None else start.whole.theta, n_jobs)
    seconds = time.perf_counter() - began
    if name == "pixels":
        return Selected(None, parts[best], whole, {}, seconds)
    return Selected(best, parts[best], whole, errors, seconds)
