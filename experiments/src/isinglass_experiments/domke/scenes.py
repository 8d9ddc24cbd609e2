"""Street scenes, and horses: J. Domke (2009), section 6.5 and table 6.3.

Pixels of photographs are labelled by a grid with linear features (`isinglass.features.ImageFeatures`, whitened, so that
training takes tens of iterations, not hundreds); some are unlabelled. The thesis has StreetScenes, 100 images to train
on and 100 to test, of 60 x 80 pixels and five labels; here CamVid, which is similar. Methods:

    baseline       each pixel by itself, trained for uquad
    pseudo         pseudolikelihood over labelled pixels; tested with belief propagation
    uquad, ucl     losses of the beliefs that minimise a convex energy with entropy A, implicit gradient
    + entropy      the same, then with the entropy weights fitted, too
    LOSS-K         losses of the beliefs after K sweeps of belief propagation

Training begins with what is cheaper to find: the baseline, whose parameters give the same beliefs to belief propagation
without edges, and, times the weights of entropy around an inner pixel, to the convex energy; `+ entropy` begins with
the fit that has fixed weights. `uquad` is first trained on a fifth of the images (`ucl` is not: after that some
labels of the others have beliefs too small for a logarithm). The thesis begins with zero.
"""

from __future__ import annotations

import copy
import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from isinglass import BeliefPropagation, ConvexFreeEnergy, GridCRF
from isinglass.errors import no_convergence_warnings
from isinglass.learning.optimizers import Lbfgs, make_optimizer
from isinglass.typing import Array, FloatArray, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, chosen_rows, register, tell
from isinglass_experiments.common.methods import relative_gradient
from isinglass_experiments.common.statistics import p_value
from isinglass_experiments.data import ImageFeatures, Photographs, load_horses, load_street_scenes

ROWS = ("pseudo", "baseline", "uquad", "uquad + entropy", "uquad-1", "uquad-2", "ucl", "ucl-1", "ucl-2")
QUICK_ROWS = ("pseudo", "baseline", "uquad-1", "ucl-1")
PUBLISHED = {"pseudo": 0.847, "baseline": 0.333, "uquad": 0.287, "uquad + entropy": 0.239, "uquad-1": 0.252}
PUBLISHED["uquad-2"] = 0.264
L2 = 1e-2
MOST = {"pseudo": 150, "baseline": 150, "uquad": 12, "ucl": 20, "uquad + entropy": 10}  # iterations; of others 100
FIRST, EVERY = 30, 5  # iterations of uquad on every fifth image, before those on all
INNER = 4.01  # the weights of entropy A at a pixel with four neighbours, together
CONVEX = ConvexFreeEnergy(tol=3e-2, rtol=np.inf, reuse=True)  # a further step makes beliefs right to 1e-3 or better
TOL = 1e-4  # of the gradient, relative to the objective


@dataclass(frozen=True)
class _Scenes(DataExperiment):
    """What both experiments do."""

    rows: Sequence[str] | None = None
    checkpoints: str | None = None

    name: ClassVar[str]
    summary: ClassVar[str]
    published: ClassVar[dict[str, float]] = {}

    def run(self, progress: Progress | None = None) -> Report:
        """Make features, train every method, test it."""
        rows = chosen_rows(self.rows, ROWS, QUICK_ROWS if self.quick else ROWS)
        photographs = self._load()
        if self.quick:
            X_train, Y_train, X_test, Y_test = photographs
            small = (slice(8), slice(None, None, 2), slice(None, None, 2))
            photographs = Photographs(X_train[small], Y_train[small], X_test[small], Y_test[small])
        if self.checkpoints is not None:
            os.makedirs(self.checkpoints, exist_ok=True)
        training = Training(self.quick, self.n_jobs, self.checkpoints)
        tell(progress, "features", 0.0)
        features = ImageFeatures(clusters=10 if self.quick else 50, whiten=True)
        X, X_test = features.fit_transform(photographs.X_train), features.transform(photographs.X_test)
        fitted: dict[str, Fitted] = {}
        for i, row in enumerate(rows):
            tell(progress, f"training {row}", (i + 1) / (len(rows) + 1))
            training.fit(row, X, photographs.Y_train, fitted)
        found = [_tested(row, fitted[row], X_test, photographs.Y_test) for row in rows]
        return self._report(found, photographs)

    @abstractmethod
    def _load(self) -> Photographs:
        """Read the photographs."""

    def _report(self, found: list[JsonObject], data: Photographs) -> Report:
        base = next((one for one in found if one["row"] == "baseline"), None)
        table = []
        for one in found:
            one["p"] = (
                None if base is None or one is base else p_value(np.array(one["by_image"]), np.array(base["by_image"]))
            )
            published = self.published.get(one["row"])
            star = "" if one["converged"] else "*"
            table.append([
                one["row"], f"{one['error']:.4f}{star}", "-" if published is None else f"{published:.3f}",
                f"{one['uquad']:.4f}", "-" if one["p"] is None else f"{one['p']:.1e}", one["iterations"],
                f"{one['gradient']:.1e}", f"{one['seconds']:.0f}",
            ])  # fmt: skip
        notes = [
            f"l2 {L2:g} on the sum over pixels; L-BFGS; p: paired t-test over test images, against the baseline",
            f"* training did not reach a gradient of {TOL:g} of the objective",
        ]
        columns = ["method", "error", "published", "uquad", "p", "iterations", "gradient", "seconds"]
        title = f"{self.name}: {len(data.X_train)} images to train on, {len(data.X_test)} to test"
        measured = [{key: value for key, value in one.items() if key != "labels"} for one in found]
        shown = slice(0, None, max(1, len(data.X_test) // 8))
        pictures = {self.name: [("truth", data.Y_test[shown]), *((one["row"], one["labels"][shown]) for one in found)]}
        return Report(title, columns, table, notes, {"experiment": self.name, "rows": measured}, pictures)


@register
@dataclass(frozen=True)
class Scenes(_Scenes):
    """Label street scenes.

    Parameters
    ----------
    quick : bool
        Eight images at half the size, 10 clusters, few iterations, and by default not the convex energies.
    rows : sequence of str, optional
        Methods; by default all of `ROWS`.
    data : str, optional
        The folder of camvid_60x80.npz; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Threads.
    checkpoints : str, optional
        A folder for the state of training, from which a further run goes on.
    """

    name: ClassVar[str] = "scenes"
    summary: ClassVar[str] = "labels of street scenes (Domke 2009, section 6.5, table 6.3)"
    published: ClassVar[dict[str, float]] = PUBLISHED

    def _load(self) -> Photographs:
        return load_street_scenes(self.data)


@register
@dataclass(frozen=True)
class Horses(_Scenes):
    """Tell horses from what is behind them; options as for `Scenes`, with weizmann_horses_60x80.npz."""

    name: ClassVar[str] = "horses"
    summary: ClassVar[str] = "horses and what is behind them: the methods of scenes"

    def _load(self) -> Photographs:
        return load_horses(self.data)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained method: an estimator, the seconds it took, and its last gradient relative to the objective."""

    crf: GridCRF
    seconds: float
    gradient: float


@dataclass(frozen=True)
class Training:
    """How methods are trained."""

    quick: bool
    n_jobs: int
    checkpoints: str | None

    def fit(self, row: str, X: FloatArray, Y: Array, fitted: dict[str, Fitted]) -> Fitted:
        """Train a method, and first what it starts from."""
        if row in fitted:
            return fitted[row]
        crf = self.estimator(row, Y)
        first, scale = _first(row)
        if first is not None:
            start = self.fit(first, X, Y, fitted).crf
            crf = copy.copy(start).set_params(**{**crf.get_params(deep=False), "warm_start": True})
            crf.theta_ = scale * start.theta_
        began = time.perf_counter()
        with no_convergence_warnings():
            if row == "uquad" and not self.quick:
                self._fit_few(crf, X, Y)
            crf.fit(X, Y)
        fitted[row] = Fitted(crf, time.perf_counter() - began, relative_gradient(crf))
        return fitted[row]

    def _fit_few(self, crf: GridCRF, X: FloatArray, Y: Array) -> None:
        """Train on some of the images."""
        whole = crf.get_params(deep=False)
        file = None if crf.checkpoint is None else os.fspath(crf.checkpoint).replace(".npz", ".few.npz")
        crf.set_params(optimizer=make_optimizer(crf.optimizer, max_iter=FIRST), checkpoint=file)
        crf.fit(X[::EVERY], Y[::EVERY])
        crf.set_params(**whole)

    def estimator(self, row: str, Y: Array) -> GridCRF:
        """Return the untrained estimator of a method; its objective is a sum over pixels, and so is its gradient."""
        most = 20 if self.quick else MOST.get(row, 100)
        optimizer = Lbfgs(max_iter=most, tol=1e-6 * Y.size, ftol=1e-8, memory=20)
        file = None if self.checkpoints is None else os.path.join(self.checkpoints, f"{row.replace(' ', '')}.npz")
        make = partial(
            GridCRF,
            optimizer=optimizer,
            l2=L2,
            bias=False,
            n_states=int(Y.max()) + 1,
            n_jobs=self.n_jobs,
            checkpoint=file,
        )
        loss, _, sweeps = row.partition("-")
        if row == "baseline":
            return make(iterations=1, loss="uquad", edges="none")
        if row == "pseudo":
            return make(BeliefPropagation(max_iter=100, tol=1e-4), loss="pseudo")
        if sweeps:
            return make(iterations=int(sweeps), loss=loss)
        loss, _, fitted = row.partition(" + ")
        entropy = "fit" if fitted else "A"
        return make(CONVEX, loss=loss, gradient="implicit", entropy=entropy)


def _first(row: str) -> tuple[str | None, float]:
    """Return the method that another one starts from, and the factor of its parameters."""
    if row in ("baseline", "pseudo"):
        return None, 1.0
    if " + " in row:
        return row.partition(" + ")[0], 1.0
    return "baseline", 1.0 if "-" in row else INNER


def _tested(row: str, fitted: Fitted, X: FloatArray, Y: Array) -> JsonObject:
    """Return what is measured on test images, over labelled pixels, and the predicted labels."""
    beliefs = fitted.crf.predict_marginals(X)
    labels, seen = beliefs.argmax(axis=-1), Y >= 0
    wrong = (labels != Y) & seen
    chosen = np.take_along_axis(beliefs, np.maximum(Y, 0)[..., None], axis=-1)[..., 0]
    quadratic = (beliefs**2).sum(axis=-1) - 2 * chosen
    return {
        "row": row,
        "error": float(wrong.sum() / seen.sum()),
        "uquad": float((quadratic * seen).sum() / seen.sum()),
        "by_image": (wrong.sum(axis=(1, 2)) / np.maximum(seen.sum(axis=(1, 2)), 1)).tolist(),
        "iterations": fitted.crf.n_iter_,
        "gradient": fitted.gradient,
        "converged": fitted.gradient <= TOL,
        "seconds": fitted.seconds,
        "labels": labels,
    }
