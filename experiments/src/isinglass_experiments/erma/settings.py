"""Settings: what is decided, and what it costs, in training and in tests (Stoyanov, Ropson and Eisner 2011, table 2).

    frac-MSE     mean squared error of the beliefs
    int-F        1 - F of an even split of the outputs
    int-L1       share of wrong outputs, each decided by its belief
    APPR-LOGL    minus the conditional log-likelihood, by the Bethe approximation

A training setting is one of them, after "-in" by three iterations of APPR-LOGL, with "-hyb" by mixtures with the mean
squared error, of weights 0, 1/2 and 1 (section 7). Losses of decisions have a Gaussian prior (section 10): 1,000
examples do not determine all parameters. Its weight and the gain of mixtures were chosen on models of another seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass import infer
from isinglass.decoding import F1, MPM, Identity
from isinglass.errors import no_convergence_warnings, require
from isinglass.gradients import forward
from isinglass.inference import Algorithm
from isinglass.learning.total import blocks
from isinglass.losses import L1, MSE, FMeasure, Hybrid, Loss, LossProblem
from isinglass.losses.conditioned import ConditionedLikelihood
from isinglass.models import ConditionedModel, Model
from isinglass.typing import FloatArray, IntArray

MSE_, F_, L1_, LOGL = TESTS = ("frac-MSE", "int-F", "int-L1", "APPR-LOGL")
TEMPERATURE = 0.25
BASELINE = 25  # iterations of APPR-LOGL
START = 3  # and before "-in"
TRAININGS = (
    LOGL, MSE_, "frac-MSE-in", "int-F-hyb", "int-F-in", "int-F-hyb-in", "int-L1-hyb", "int-L1-in", "int-L1-hyb-in",
)  # fmt: skip
CONVERGED = "APPR-LOGL-lbfgs"  # not of the publication: by L-BFGS, until it converges or for CONVERGENCE iterations
CONVERGENCE = 100
WEIGHTS = (0.0, 0.5, 1.0)  # of the loss of a setting, in mixtures
SHORT = 4  # iterations of mixtures with the loss itself
GAIN, GENTLE = 0.3, 0.1  # of meta-descent: of APPR-LOGL, and of mixtures
PENALTY = 1e-5  # of squared parameters, against the mean loss of an example
TRUE_PRIOR = 5e-4  # the same for APPR-LOGL-lbfgs: the prior that parameters were drawn from, and 1,000 examples
MATCHED = {MSE_: "frac-MSE-in", F_: "int-F-hyb-in", L1_: "int-L1-hyb-in", LOGL: LOGL}


class Step(NamedTuple):
    """A loss, and how it is minimised.

    Attributes
    ----------
    loss : Loss
    iterations : int
        At most so many.
    gain : float or None
        The first gain of meta-descent; None for L-BFGS.
    penalty : float
        Of the squared parameters.
    """

    loss: Loss
    iterations: int
    gain: float | None = None
    penalty: float = 0.0


def loss_of(test: str) -> Loss:
    """Return the loss of a setting, as it is trained for."""
    losses: dict[str, Loss] = {
        MSE_: MSE(Identity()),
        F_: FMeasure(F1("even-split"), TEMPERATURE),
        L1_: L1(MPM(), TEMPERATURE),
        LOGL: ConditionedLikelihood(),
    }
    return losses[test]


def steps_of(training: str, iterations: int) -> list[Step]:
    """Return the losses that a training setting minimises, one after the other.

    Examples
    --------
    >>> [(step.loss.name, step.iterations) for step in steps_of("int-F-hyb-in", 25)]
    [('cl', 3), ('mse', 25), ('hybrid', 4), ('hybrid', 4)]
    """
    require(training in (*TRAININGS, CONVERGED), "rows", f"some of {', '.join(TRAININGS)}", repr(training))
    test = next(test for test in TESTS if training.startswith(test))
    if training == CONVERGED:
        return [Step(loss_of(LOGL), CONVERGENCE, None, TRUE_PRIOR)]
    if test == LOGL:
        return [Step(loss_of(LOGL), BASELINE, GAIN)]
    found = [Step(loss_of(LOGL), START, GAIN)] if training.endswith("-in") else []
    if "-hyb" not in training:
        return [*found, Step(loss_of(test), iterations, None, PENALTY)]
    mixtures = [Hybrid(loss_of(test), loss_of(MSE_), weight) for weight in WEIGHTS[1:]]
    mixed = [Step(mixture, SHORT, GENTLE, PENALTY) for mixture in mixtures]
    return [*found, Step(loss_of(MSE_), iterations, None, PENALTY), *mixed]


def first_of(training: str) -> str | None:
    """Return the setting that a mixture begins with, all of it.

    Examples
    --------
    >>> first_of("int-F-hyb"), first_of("int-L1-hyb-in"), first_of("int-F-in")
    ('frac-MSE', 'frac-MSE-in', None)
    """
    return MSE_ + training.partition("-hyb")[2] if "-hyb" in training else None


def losses_by_setting(
    plain: Model,
    theta: FloatArray,
    inputs: IntArray,
    labels: IntArray,
    algorithm: Algorithm,
    likelihoods: int | None = None,
) -> dict[str, FloatArray]:
    """Return the loss of each example in all settings, of the decisions themselves.

    The likelihood, which takes more than half of the time, is that of the first examples alone: of `likelihoods` of
    them, or of all.
    """
    sizes = (inputs < 0).sum(axis=1)
    ends = np.concatenate([[0], np.cumsum(sizes)])
    found: dict[str, list[FloatArray]] = {test: [] for test in TESTS}
    for block in blocks(sizes):
        mine = labels[ends[block.start] : ends[block.stop]]
        model = ConditionedModel(plain, inputs[block])
        wanted = likelihoods is None or block.start < likelihoods
        for test, values in _losses(model, theta, mine, algorithm, wanted).items():
            found[test].append(values)
    joined = {test: np.concatenate(values) for test, values in found.items()}
    return {**joined, LOGL: joined[LOGL][:likelihoods]}


def _losses(
    model: ConditionedModel, theta: FloatArray, y: IntArray, algorithm: Algorithm, likelihood: bool
) -> dict[str, FloatArray]:
    potentials, n = model.potentials(theta), model.graph.n_components
    with no_convergence_warnings():
        result = infer(potentials, algorithm)
        found: dict[str, FloatArray] = {}
        if likelihood:
            value = ConditionedLikelihood().evaluate(LossProblem(potentials, y), forward(algorithm)).value
            found = {LOGL: np.asarray(value, np.float64)}
    outputs = y >= 0
    truth = y[outputs].reshape(n, -1)
    means, states, split = (decoder(result, outputs)[outputs] for decoder in (Identity(), MPM(), F1("even-split")))
    chosen, total = split.reshape(n, -1), (split.reshape(n, -1) + truth).sum(axis=1)
    f = np.where(total > 0, 2 * (chosen * truth).sum(axis=1) / np.maximum(total, 1), 1.0)
    return {
        **found,
        MSE_: ((means.reshape(n, -1) - truth) ** 2).mean(axis=1),
        F_: 1 - f,
        L1_: (states.reshape(n, -1) != truth).mean(axis=1),
    }
