"""Solvers of a convex free energy: J. Domke (2009), sections 4.3 and 4.4 and figure 4.2.

The figure shows the univariate beliefs of a street scene (section 6.5: 60 x 80 pixels, five labels) on their way to the
minimum, by the primal algorithm, with a fixed entropy and with a fitted one; the text says that the primal algorithm is
more efficient than Newton's method or L-BFGS on the dual. Here all solvers start on the same scene, and

    error after T iterations  =  max_{i,x} | b_i^T(x) - b_i*(x) |,     b*: the beliefs with the least KKT residual.

The thesis says neither which scene nor how the model was trained. Ours is CamVid's first test image; the model is
trained for uquad on four images of half the size, by twelve iterations of L-BFGS with entropy A, and by twelve more
for the entropy weights of labels and of pairs of labels. An iteration is a linear system for newton, primal and dual
(for blocks one of each), a sweep for messages, and an evaluation of the dual or two for lbfgs. The beliefs after T
iterations are those of a run with ``max_iter=T``, so that nothing of the solvers is written twice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from isinglass import ConvexFreeEnergy, GridCRF, InputError, Potentials, infer
from isinglass.errors import no_convergence_warnings
from isinglass.inference.free_energy.algorithm import SOLVERS
from isinglass.learning.objective import adapted
from isinglass.learning.optimizers import Lbfgs
from isinglass.typing import Array, FloatArray, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Plot, Progress, Report, chosen_rows, register, tell
from isinglass_experiments.data import SCENE_LABELS, ImageFeatures, Photographs, load_street_scenes

COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128)
QUICK_MOST = 64
GOALS = (1e-2, 1e-4, 1e-6, 1e-8)
ENOUGH = 1e-13  # a KKT residual that ends a curve
SHOWN = (1, 2, 4, 8, 16, 64)  # iterations of the pictures
ENTROPIES = ("fixed", "fit")
CLUSTERS = 10
L2 = 1e-2


class Iterate(NamedTuple):
    """Where a solver is after some iterations: `seconds` are those of the processor, `beliefs` those of variables."""

    iterations: int
    residual: float
    energy: float
    seconds: float
    beliefs: FloatArray


class Curve(NamedTuple):
    """The progress of a solver: errors after some numbers of iterations, and what they are computed from."""

    entropy: str
    solver: str
    iterates: list[Iterate]
    errors: list[float]


@register
@dataclass(frozen=True)
class Convergence(DataExperiment):
    """Compare the solvers of a convex free energy, iteration by iteration.

    Parameters
    ----------
    quick : bool
        A scene of half the size, a model trained on images of a quarter of the size, and at most 64 iterations.
    rows : sequence of str, optional
        Solvers; by default all.
    data : str, optional
        The folder of camvid_60x80.npz; else the one that ISINGLASS_DATA names.
    n_jobs : int
        Threads of the training.
    """

    rows: Sequence[str] | None = None

    name: ClassVar[str] = "convergence"
    summary: ClassVar[str] = "solvers of a convex free energy, error by iteration (Domke 2009, figure 4.2)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train, and follow every solver on its way, with both entropies."""
        known = ("newton", *SOLVERS)
        solvers, photographs = chosen_rows(self.rows, known, known), load_street_scenes(self.data)
        tell(progress, "training", 0.0)
        problems = _problems(photographs, 2 if self.quick else 1, 6 if self.quick else 12, self.n_jobs)
        counts = [count for count in COUNTS if not self.quick or count <= QUICK_MOST]
        curves: list[Curve] = []
        for i, (entropy, (potentials, algorithm)) in enumerate(zip(ENTROPIES, problems, strict=True)):
            ways = {}
            for j, solver in enumerate(solvers):
                tell(progress, f"{entropy} entropy: {solver}", 0.3 + 0.7 * (i + j / len(solvers)) / 2)
                ways[solver] = followed(potentials, replace(algorithm, solver=solver), counts)
            found = distances(ways)
            curves += [Curve(entropy, solver, ways[solver], errors) for solver, errors in found.items()]
        side = 2 if self.quick else 1
        return _report(curves, photographs.X_test[0, ::side, ::side].shape[:2], counts[-1])


def followed(potentials: Potentials, algorithm: ConvexFreeEnergy, counts: Sequence[int]) -> list[Iterate]:
    """Return where a solver is after these numbers of iterations; nothing where it does not apply.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.datasets.denoising_model([[0, 1, 1], [0, 1, -1]])
    >>> [one.iterations for one in followed(p, ig.ConvexFreeEnergy(solver="primal"), [1, 2, 4])]
    [1, 2, 4]
    """
    found: list[Iterate] = []
    for count in counts:
        chosen = replace(algorithm, tol=0.0, max_iter=count)
        began = time.process_time()
        try:
            with no_convergence_warnings(), np.errstate(all="ignore"):
                result = infer(potentials, chosen)
        except InputError as refusal:
            if refusal.argument != "solver":
                raise
            break
        seconds, info = time.process_time() - began, result.info
        if found and info.iterations <= found[-1].iterations:
            break
        beliefs = np.array(result.variables.flat, np.float64)
        found.append(Iterate(info.iterations, info.residual, -float(np.sum(result.log_z)), seconds, beliefs))
        if info.residual <= ENOUGH:
            break
    return found


def distances(ways: Mapping[str, Sequence[Iterate]]) -> dict[str, list[float]]:
    """Return the largest difference of each iterate's beliefs from those of the least residual of all.

    Examples
    --------
    >>> way = [Iterate(1, 0.1, 0.0, 0.0, np.array([0.5, 0.5])), Iterate(2, 0.0, 0.0, 0.0, np.array([0.75, 0.25]))]
    >>> distances({"newton": way})
    {'newton': [0.25, 0.0]}
    """
    everything = [one for way in ways.values() for one in way if np.isfinite(one.residual)]
    best = min(everything, key=lambda one: one.residual).beliefs
    return {name: [_largest(one.beliefs - best) for one in way] for name, way in ways.items()}


def reached(curve: Curve, goal: float) -> Iterate | None:
    """Return the first iterate from which on the errors are below a goal."""
    below = None
    for one, error in zip(curve.iterates, curve.errors, strict=True):
        below = None if not error <= goal else below or one
    return below


def _largest(difference: FloatArray) -> float:
    return float(np.where(np.isfinite(difference), np.abs(difference), np.inf).max(initial=0.0))


def _problems(photographs: Photographs, side: int, most: int, jobs: int) -> list[tuple[Potentials, ConvexFreeEnergy]]:
    """Train with a fixed entropy, then for the weights, too; return the potentials and energies of a scene."""
    small = (slice(4), slice(None, None, 2 * side), slice(None, None, 2 * side))
    features = ImageFeatures(clusters=CLUSTERS)
    X, Y = features.fit_transform(photographs.X_train[small]), photographs.Y_train[small]
    scene = features.transform(photographs.X_test[:1, ::side, ::side])
    states = len(SCENE_LABELS)
    make = partial(
        GridCRF, "convex", loss="uquad", gradient="implicit", l2=L2, bias=False, n_states=states, n_jobs=jobs
    )
    fixed, fit = (make(entropy=e, optimizer=Lbfgs(max_iter=most, memory=20)) for e in ("A", "fit"))
    with no_convergence_warnings():
        fixed.fit(X, Y)
        fit.set_params(warm_start=True)
        fit.theta_ = np.zeros(fit._model(X[:1], len(SCENE_LABELS)).size)
        fit.theta_[: len(fixed.theta_)] = fixed.theta_
        fit.fit(X, Y)
    return [_problem(crf, scene) for crf in (fixed, fit)]


def _problem(crf: GridCRF, scene: FloatArray) -> tuple[Potentials, ConvexFreeEnergy]:
    model = crf._model(scene, len(SCENE_LABELS))
    algorithm = adapted(ConvexFreeEnergy(weights="A"), model, crf.theta_)
    assert isinstance(algorithm, ConvexFreeEnergy)
    return model.potentials(crf.theta_), algorithm


def _report(curves: list[Curve], size: tuple[int, int], most: int) -> Report:
    applicable = [curve for curve in curves if curve.iterates]
    labels = len(applicable[0].iterates[0].beliefs) // (size[0] * size[1])
    title = f"Iterations to an error: a scene of {size[0]} x {size[1]} pixels, {labels} labels"
    notes = [
        "error: largest difference of a univariate belief from the minimum; counts are of "
        f"{', '.join(str(count) for count in COUNTS if count <= most)}; -: not reached, or the solver does not apply",
        "seconds: of the processor, to an error of 1e-6; published: pictures of beliefs, which did not survive",
    ]
    columns = ["entropy", "solver", *(f"{goal:.0e}" for goal in GOALS), "last error", "ms/iteration", "seconds"]
    data = {"experiment": "convergence", "size": [*size, labels], "rows": [_measured(curve) for curve in curves]}
    plots = {
        f"convergence-{entropy}": Plot(
            "iterations", "largest error of a belief",
            {c.solver: _visible(c) for c in applicable if c.entropy == entropy}, log=True,
        )
        for entropy in ENTROPIES
    }  # fmt: skip
    return Report(title, columns, [_row(c) for c in curves], notes, data, _pictures(curves, size, labels), plots)


def _row(curve: Curve) -> list[str]:
    if not curve.iterates:
        return [curve.entropy, curve.solver, *("-" for _ in range(len(GOALS) + 3))]
    arrivals, last = [reached(curve, goal) for goal in GOALS], curve.iterates[-1]
    counts = ["-" if one is None else str(one.iterations) for one in arrivals]
    soon = reached(curve, 1e-6)
    each = 1e3 * last.seconds / last.iterations
    seconds = "-" if soon is None else f"{soon.seconds:.2f}"
    return [curve.entropy, curve.solver, *counts, f"{curve.errors[-1]:.1e}", f"{each:.1f}", seconds]


def _measured(curve: Curve) -> JsonObject:
    steps = [
        {"iterations": one.iterations, "error": error, "residual": one.residual, "energy": one.energy,
         "seconds": one.seconds}
        for one, error in zip(curve.iterates, curve.errors, strict=True)
    ]  # fmt: skip
    return {"entropy": curve.entropy, "solver": curve.solver, "iterates": steps}


def _visible(curve: Curve) -> tuple[list[float], list[float]]:
    """Return the points of a curve that logarithmic axes can show."""
    points = [
        (float(one.iterations), error)
        for one, error in zip(curve.iterates, curve.errors, strict=True)
        if 0 < error < np.inf
    ]
    return [x for x, _ in points], [y for _, y in points]


def _pictures(curves: list[Curve], size: tuple[int, int], labels: int) -> dict[str, list[tuple[str, Array]]]:
    """Return mean labels on the way of the primal algorithm, a row for each entropy: figure 4.2."""
    ways = [{one.iterations: one.beliefs for one in curve.iterates} for curve in curves if curve.solver == "primal"]
    shown = [count for count in SHOWN if ways and all(count in way for way in ways)]
    scale = np.arange(labels) / max(labels - 1, 1)
    columns = [
        (
            "1 iteration" if count == 1 else f"{count} iterations",
            np.stack([(way[count].reshape(-1, labels) @ scale).reshape(size) for way in ways]),
        )
        for count in shown
    ]
    return {"convergence-beliefs": columns} if columns else {}
