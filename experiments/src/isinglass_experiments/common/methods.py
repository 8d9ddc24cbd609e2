"""The methods that are compared on noisy digits: how each is trained, and the inference that it is tested with.

    pixels       each pixel by itself: p(y_i | x_i) is a table of counts, edge parameters are zero
    pseudo       pseudolikelihood; tested with belief propagation run to a tolerance
    + start      the same, with messages that start from the noisy picture in place of uniform ones: where neighbours
                 are strongly coupled, belief propagation has several fixed points, and one of them is without ink
    lbp          surrogate likelihood of belief propagation run to a tolerance
    trw          surrogate likelihood of tree-reweighted belief propagation; where lbp and LOSS-K start from
    convex       surrogate likelihood of the convex energy with entropy A
    LOSS         ucl, ccl, uquad or cquad of the beliefs that minimise the same energy, differentiated implicitly; from
                 convex
    + entropy    LOSS, then with the entropy weights fitted, too
    LOSS-K       the same losses of the beliefs after K sweeps of the grid schedule, differentiated unrolled

Abbreviations as in Domke (2009), table 6.1; there `convex` is what all others start from.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from isinglass import BeliefPropagation, ConvexFreeEnergy, GridCRF, InputError, Result, TreeReweighted, infer, losses
from isinglass.datasets import NoisyDigits, noisy_digits
from isinglass.errors import no_convergence_warnings, require
from isinglass.inference import Algorithm
from isinglass.learning.optimizers import Lbfgs
from isinglass.losses import BeliefLoss
from isinglass.models import grid_model
from isinglass.models.entropy import VARIABLES
from isinglass.typing import Array, FloatArray, JsonObject
from isinglass.validation import number, whole_number
from isinglass_experiments.common.experiment import Experiment

LOSSES = ("ucl", "ccl", "uquad", "cquad")
START = " + start"
BASELINES = ("pixels", "pseudo", f"pseudo{START}", "lbp", "trw", "convex")
_HOLD = 20.0  # nats that hold pixels to the noisy picture, while messages settle to start from
SWEEPS = (1, 2, 3, 4)
ENTROPY = " + entropy"
METHODS = (*BASELINES, *LOSSES, f"ucl{ENTROPY}", *(f"{loss}-{k}" for loss in LOSSES for k in SWEEPS))
CONVEX = ConvexFreeEnergy(tol=1e-5, rtol=np.inf, reuse=True)
RELATIVE = 1e-4  # a gradient norm below this, relative to the objective, counts as trained


@dataclass(frozen=True)
class Training:
    """How models are trained.

    Attributes
    ----------
    l2 : float
        Weight of the squared parameters against the sum of the losses of all images.
    grid : tuple of float
        What l2 is chosen from, largest first, where that is asked for (`isinglass_experiments.common.selection`).
    max_iter : int
        Of L-BFGS.
    tol : float
        Of inferences that run to convergence: the largest change of a message.
    most : int
        Iterations after which such an inference is given up.
    """

    l2: float = 1e-3
    max_iter: int = 100
    tol: float = 1e-7
    most: int = 300
    grid: tuple[float, ...] = (100.0, 10.0, 1.0, 0.1, 0.01, 0.001)


@dataclass(frozen=True)
class Plan:
    """What an experiment on digits runs."""

    rows: tuple[str, ...]
    noise: tuple[float, ...]
    draws: int
    images: int  # of each digit, for training and for testing
    training: Training

    def data(self, noise: float, draw: int) -> NoisyDigits:
        """Return one draw of images."""
        return noisy_digits(noise, self.images, self.images, random_state=draw)


@dataclass(frozen=True)
class DigitsExperiment(Experiment):
    """An experiment on noisy digits.

    Parameters
    ----------
    draws : int, optional
        Draws of images and noise, 0, 1, ...; by default one.
    noise : sequence of float, optional
    rows : sequence of str, optional
    """

    draws: int | None = None
    noise: Sequence[float] | None = None
    rows: Sequence[str] | None = None

    def plan(self, rows: Sequence[str], noise: Sequence[float], images: int, training: Training) -> Plan:
        """Check the options; return what is run, by default with these rows and noise levels."""
        draws = whole_number(1 if self.draws is None else self.draws, "draws", 1)
        levels = tuple(number(level, "noise", 0, 1) for level in (noise if self.noise is None else self.noise))
        chosen = tuple(dict.fromkeys(rows if self.rows is None else self.rows))
        for argument, given in (("rows", chosen), ("noise", levels)):
            require(given, argument, "at least one", "none")
        return Plan(chosen, levels, draws, images, training)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained method.

    Attributes
    ----------
    theta : array
        Parameters of nodes and edges.
    inference : Algorithm
        What the method is tested with; entropy weights that were fitted are part of it.
    seconds : float
    iterations : int
    gradient : float
        Last gradient norm, relative to the objective.
    converged : bool
        Whether the gradient is below `RELATIVE` and the last inference in training converged.
    entropy : dict of str to list, or None
        Entropy weights, where they were fitted.
    from_picture : bool
        Whether inference starts from the noisy picture.
    """

    theta: FloatArray
    inference: Algorithm
    seconds: float
    iterations: int
    gradient: float
    converged: bool
    entropy: JsonObject | None = None
    from_picture: bool = False


def checked_method(name: str) -> str:
    """Refuse what is no method."""
    forms = rf"({'|'.join(LOSSES)})({re.escape(ENTROPY)}|-[1-9]\d?)?"
    expected = f"some of {', '.join(BASELINES)}, LOSS such as ucl, LOSS{ENTROPY}, and LOSS-K such as ucl-4"
    require(name in BASELINES or re.fullmatch(forms, str(name)), "rows", expected, repr(name))
    return name


def start_of(name: str) -> str | None:
    """Return the method whose parameters another one starts from; None for those that start from zero."""
    if "-" in name or name == "lbp":
        return "trw"
    if name in LOSSES:
        return "convex"
    return name.removesuffix(ENTROPY) if name.endswith(ENTROPY) else None


def starts_of(name: str) -> list[str]:
    """Return all methods that must be trained before a method, in order.

    Examples
    --------
    >>> starts_of("ucl + entropy"), starts_of("pixels")
    (['convex', 'ucl'], [])
    """
    first = start_of(name)
    return [] if first is None else [*starts_of(first), first]


def is_convex(name: str) -> bool:
    """Say whether a method minimises a convex energy."""
    return name == "convex" or name.removesuffix(ENTROPY) in LOSSES


def train(
    name: str,
    X: FloatArray,
    Y: Array,
    training: Training,
    start: FloatArray | None = None,
    n_jobs: int | None = None,
) -> Fitted:
    """Train a method.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    X, Y : arrays (images, height, width, 2) and (images, height, width)
    training : Training
    start : array, optional
        Parameters of nodes and edges to start from; by default zeros.
    n_jobs : int, optional
        Threads; results have the same bits for any number.
    """
    began = time.perf_counter()
    inference = inference_of(name, training)
    if name == "pixels":
        return Fitted(pixel_table(X, Y), inference, time.perf_counter() - began, 0, 0.0, True)
    crf = _estimator(name, training, Y.size).set_params(n_jobs=n_jobs)
    if start is not None:
        crf.theta_, crf.parameters_ = start, grid_model(X[:1], 2).split(start)
    with no_convergence_warnings():  # told in the report
        crf.fit(X, Y)
    fitted = fitted_of(crf, inference, time.perf_counter() - began, name.startswith("pseudo") or "-" in name)
    return replace(fitted, from_picture=name.endswith(START))


def fitted_of(crf: GridCRF, inference: Algorithm, seconds: float, settled: bool = False) -> Fitted:
    """Return what an estimator has learned, for an inference; `settled` where that need not have converged."""
    gradient = relative_gradient(crf)
    converged = gradient <= RELATIVE and (settled or crf.history_[-1].converged)
    theta = np.concatenate([array.ravel() for name, array in crf.parameters_.items() if "entropy" not in name])
    entropy = None
    if isinstance(inference, ConvexFreeEnergy) and VARIABLES in crf.parameters_:
        assert crf.entropy_ is not None
        inference = replace(inference, weights=crf.entropy_)
        entropy = {key: array.tolist() for key, array in crf.entropy_.items()}
    return Fitted(theta, inference, seconds, crf.n_iter_, gradient, bool(converged), entropy)


def relative_gradient(crf: GridCRF) -> float:
    """Return the last gradient norm of training, relative to the objective; inf if there was no iteration."""
    last = crf.history_[-1] if crf.history_ else None
    return float("inf") if last is None else float(last.gradient_norm / max(1.0, abs(last.value)))


def pixel_table(X: FloatArray, Y: Array) -> FloatArray:
    """Return the parameters of the model without edges: log p(y_i | x_i), from counts with one added to each."""
    counts = 1 + np.stack([X[label == Y].sum(axis=0) for label in (0, 1)], axis=1)
    model = grid_model(X[:1], 2)
    theta = np.zeros(model.size)
    theta[model.mask("node")] = np.log(counts / counts.sum(axis=1, keepdims=True)).ravel()
    return theta


def inference_of(name: str, training: Training) -> Algorithm:
    """Return the inference that a method is tested with; for all but `pseudo` and `pixels` it is trained with it."""
    if is_convex(name):
        return CONVEX
    if "-" in name:
        options: JsonObject = {"schedule": "grid", "iterations": int(name.split("-")[1])}
    else:
        options = {"schedule": "flooding", "tol": training.tol, "max_iter": training.most, "damping": 0.0}
    if name == "trw":
        return TreeReweighted(**options, reuse=True)  # it has one fixed point
    return BeliefPropagation(**options)


def _estimator(name: str, training: Training, n_pixels: int) -> GridCRF:
    """Return an untrained estimator; its objective is a sum over pixels, and so is the gradient that must vanish."""
    likelihoods = ("lbp", "trw", "convex")
    loss = "cl" if name in likelihoods else name.removesuffix(ENTROPY).removesuffix(START).split("-")[0]
    gradient = "envelope" if loss == "cl" else "implicit" if is_convex(name) else "unrolled"
    ftol = 1e-8 if loss == "cl" else 1e-10  # a surrogate likelihood is as smooth as the tolerance of its inference
    return GridCRF(
        inference_of(name, training),
        loss=loss,
        gradient=gradient,
        entropy="fit" if name.endswith(ENTROPY) else None,
        optimizer=optimizer_of(training, n_pixels, ftol),
        l2=training.l2,
        bias=False,
        n_states=2,
        warm_start=True,
    )


def optimizer_of(training: Training, n_pixels: int, ftol: float) -> Lbfgs:
    """Return what minimises a sum over so many pixels."""
    return Lbfgs(max_iter=training.max_iter, tol=1e-7 * n_pixels, ftol=ftol)


def predict(fitted: Fitted, X: FloatArray) -> Result:
    """Run the inference of a method on images, all in one result."""
    model, init = grid_model(X, 2), None
    with no_convergence_warnings():
        if fitted.from_picture:
            named = model.split(fitted.theta)
            held = model.join({**named, "node": named["node"] + _HOLD * np.eye(2)})
            init = infer(model.potentials(held), fitted.inference)
        return infer(model.potentials(fitted.theta), fitted.inference, init=init)


def ink(result: Result, Y: Array) -> FloatArray:
    """Return the belief of state 1 at each pixel."""
    return np.asarray(result.variables)[:, 1].reshape(Y.shape)


def error(result: Result, Y: Array) -> float:
    """Return the univariate classification error: the share of pixels whose most probable label is wrong."""
    return float(((ink(result, Y) > 0.5) != (Y == 1)).mean())


def measured(fitted: Fitted, result: Result, Y: Array) -> JsonObject:
    """Return what training and a test of a method tell, ready for JSON."""
    return {
        "error": error(result, Y),
        "seconds": fitted.seconds,
        "iterations": fitted.iterations,
        "relative_gradient": fitted.gradient,
        "converged": fitted.converged,
        "test_converged": bool(result.info.converged),
        "entropy": fitted.entropy,
    }


def error_text(summary: JsonObject, more: str = "") -> str:
    """Write a mean error, its standard error if there is one, and a star if training did not converge."""
    standard_error = "" if summary["standard_error"] is None else f" ± {summary['standard_error']:.4f}"
    star = "" if all(draw["converged"] for draw in summary["draws"]) else "*"
    return f"{summary['error']:.4f}{standard_error}{more}{star}"


def mean_losses(result: Result, Y: Array) -> dict[str, float]:
    """Return each test loss per pixel, or per edge for losses of cliques; inf where a true label has belief zero."""
    found = {}
    for name in LOSSES:
        loss = losses.make(name)
        assert isinstance(loss, BeliefLoss)
        terms = Y.size if name.startswith("u") else result.potentials.graph.n_factors - Y.size
        try:
            found[name] = float(loss(result, Y.ravel()).value.sum()) / terms
        except InputError:
            found[name] = float("inf")
    return found
