"""What ``isinglass demo`` does: it trains four methods on few noisy digits, each with an l2 chosen on held-out images.

pixels  each pixel by itself: p(y_i | x_i) is a table of counts, edge parameters are zero
pseudo  pseudolikelihood; tested with belief propagation run to a tolerance
trw     surrogate likelihood of tree-reweighted belief propagation
ucl-4   likelihood of the beliefs after four sweeps of belief propagation, from the parameters of trw
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from isinglass.datasets import noisy_digits
from isinglass.errors import no_convergence_warnings
from isinglass.estimators import GridCRF
from isinglass.inference import Algorithm, BeliefPropagation, Result, TreeReweighted, infer
from isinglass.learning.optimizers import Lbfgs
from isinglass.models import grid_model
from isinglass.runtime.interrupts import ending_all
from isinglass.typing import Array, FloatArray, JsonObject
from isinglass.validation import jobs_of, whole_number

NOISE = 0.5
TEST_IMAGES = 5  # of each digit
THREADS = 2  # the images are few
HELD = 3  # one training image of so many is held out to choose l2
GRID = (10.0, 0.1, 0.001)  # of l2: few, to be quick
NAMES = {
    "pixels": "independent pixels",
    "pseudo": "pseudolikelihood",
    "trw": "surrogate likelihood (trw)",
    "ucl-4": "ucl-4",
}
OBJECTIVES: dict[str, JsonObject] = {
    "pseudo": {"loss": "pseudo", "gradient": "unrolled"},
    "trw": {"loss": "cl", "gradient": "envelope"},
    "ucl-4": {"loss": "ucl", "gradient": "unrolled"},
}
_TO_A_TOLERANCE: JsonObject = {"schedule": "flooding", "tol": 1e-4, "max_iter": 40, "damping": 0.0}
INFERENCE: dict[str, Algorithm] = {
    "pixels": BeliefPropagation(**_TO_A_TOLERANCE),
    "pseudo": BeliefPropagation(**_TO_A_TOLERANCE),
    "trw": TreeReweighted(**_TO_A_TOLERANCE, reuse=True),
    "ucl-4": BeliefPropagation(schedule="grid", iterations=4),
}


class DemoRow(NamedTuple):
    """A method, its share of wrong test pixels, the l2 that was chosen, and the seconds that all of that took."""

    method: str
    error: float
    l2: float | None
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """What a demonstration shows.

    Attributes
    ----------
    title, note : str
    rows : list of DemoRow
    columns : list of (title, array (9, height, width))
        Truth, input, and the marginals of each method, for one test image of each digit.
    """

    title: str
    note: str
    rows: list[DemoRow]
    columns: list[tuple[str, Array]] = field(repr=False)


class _Selected(NamedTuple):
    """The l2 of a method, and its parameters: trained on the images that were not held out, and on all."""

    l2: float | None
    part: FloatArray
    whole: FloatArray


@ending_all()
def train_demo(images: int = 3, iterations: int = 20, progress: Callable[[str, float], None] | None = None) -> Demo:
    """Train four methods on few noisy digits, and test them on others.

    Parameters
    ----------
    images : int
        For training, of each digit from 1 to 9.
    iterations : int
        Of L-BFGS, at most.
    progress : callable, optional
        Told the method that was trained, and the fraction that is done.
    """
    count = whole_number(images, "images", 1)
    most = whole_number(iterations, "iterations", 1)
    data, threads = noisy_digits(NOISE, count, TEST_IMAGES), min(THREADS, jobs_of(-1))
    columns: list[tuple[str, Array]] = [("truth", data.Y_test[:9]), ("input", data.X_test[:9, :, :, 1])]
    rows = [DemoRow("noisy input", float((data.X_test[..., 1] != data.Y_test).mean()), None, 0.0)]
    found: dict[str, _Selected] = {}
    for i, name in enumerate(NAMES):
        began = time.perf_counter()
        found[name] = _select(name, data.X, data.Y, most, found["trw"] if name == "ucl-4" else None, threads)
        seconds = time.perf_counter() - began
        ink = _pixel_beliefs(_predict(name, found[name].whole, data.X_test), data.Y_test)
        rows.append(DemoRow(NAMES[name], _error(ink, data.Y_test), found[name].l2, seconds))
        columns.append((name, ink[:9]))
        if progress is not None:
            progress(f"trained {NAMES[name]}", (i + 1) / len(NAMES))
    title = f"Denoising binary digits, {NOISE:.0%} of whose pixels got a random value"
    note = (
        f"{len(data.Y)} training and {len(data.Y_test)} test images, at most {most} iterations of "
        f"training; l2 is the one with the least error on a third of the training images after training on the others. "
        f"Few images and iterations, to be quick; 'isinglass reproduce digits' takes 90 of each and trains to the end"
    )
    return Demo(title, note, rows, columns)


def _select(name: str, X: FloatArray, Y: Array, most: int, start: _Selected | None, n_jobs: int) -> _Selected:
    """Choose the l2 of a method on the last third of the images, and train with it on all of them.

    The objective is a sum over images: where fewer are summed, l2 is less in proportion.
    """
    if name == "pixels":
        return _Selected(None, _pixel_table(X, Y), _pixel_table(X, Y))
    n = len(X) - max(1, len(X) // HELD)
    parts: dict[float, FloatArray] = {}
    theta = None if start is None else start.part
    for l2 in GRID:
        parts[l2] = _train(name, X[:n], Y[:n], l2 * n / len(X), most, theta, n_jobs)
        if start is None:
            theta = parts[l2]  # the objective is convex: the way does not matter
    errors = {l2: _error(_pixel_beliefs(_predict(name, part, X[n:]), Y[n:]), Y[n:]) for l2, part in parts.items()}
    best = min(errors, key=lambda l2: errors[l2])
    whole = _train(name, X, Y, best, most, None if start is None else start.whole, n_jobs)
    return _Selected(best, parts[best], whole)


def _train(
    name: str, X: FloatArray, Y: Array, l2: float, most: int, start: FloatArray | None = None, n_jobs: int | None = None
) -> FloatArray:
    """Return the parameters that a method finds."""
    if name == "pixels":
        return _pixel_table(X, Y)
    ftol = 1e-8 if name == "trw" else 1e-10  # a surrogate likelihood is as smooth as the tolerance of its inference
    optimizer = Lbfgs(max_iter=most, tol=1e-7 * Y.size, ftol=ftol)
    options = OBJECTIVES[name]
    crf = GridCRF(
        INFERENCE[name], **options, optimizer=optimizer, l2=l2, bias=False, n_states=2, warm_start=True, n_jobs=n_jobs
    )
    if start is not None:
        crf.theta_, crf.parameters_ = start, grid_model(X[:1], 2).split(start)
    with no_convergence_warnings():
        crf.fit(X, Y)
    return np.asarray(crf.theta_)


def _pixel_table(X: FloatArray, Y: Array) -> FloatArray:
    """Return the parameters of the model without edges: log p(y_i | x_i), from counts with one added to each."""
    counts = 1 + np.stack([X[label == Y].sum(axis=0) for label in (0, 1)], axis=1)
    model = grid_model(X[:1], 2)
    theta = np.zeros(model.size)
    theta[model.mask("node")] = np.log(counts / counts.sum(axis=1, keepdims=True)).ravel()
    return theta


def _predict(name: str, theta: FloatArray, X: FloatArray) -> Result:
    """Run the inference of a method on images, all in one result."""
    with no_convergence_warnings():
        return infer(grid_model(X, 2).potentials(theta), INFERENCE[name])


def _pixel_beliefs(result: Result, Y: Array) -> FloatArray:
    """Return the belief of state 1 at each pixel."""
    return np.asarray(result.variables)[:, 1].reshape(Y.shape)


def _error(ink: FloatArray, Y: Array) -> float:
    """Return the share of pixels whose most probable label is wrong."""
    return float(((ink > 0.5) != (Y == 1)).mean())
