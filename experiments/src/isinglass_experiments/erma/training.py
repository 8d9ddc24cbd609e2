"""Training through a fixed number of iterations of belief propagation; the objective is the mean loss of an example.

The approximate likelihood, which is the baseline and the start of "-in", is minimised by stochastic meta-descent: an
iteration is one pass over the training examples in `BATCHES` batches, always the same ones, in random order. The
publication trains all settings so. Here the mean squared error, which is smooth, is minimised by L-BFGS, by default
for 60 iterations: a little fewer gradients than 25 passes of meta-descent take, where a product of the Hessian costs
two. Mixtures with F or L1 follow by four passes of meta-descent each, with a third of the gain of APPR-LOGL. More of
them, or L-BFGS, lower the training loss further and raise the test loss: with 1,000 examples these losses overfit.

All settings start from random parameters. These must not be small: at zero, hidden variables are independent of all
others, and the gradient of all that joins them to others is zero, a saddle that training leaves slowly, or, from zero
itself, never. Start and gain were chosen by the training objective of APPR-LOGL on models of another seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isinglass import BeliefPropagation, InputError, Result, infer
from isinglass.errors import no_convergence_warnings
from isinglass.gradients import GradientRule, rule
from isinglass.gradients.rule import belief_sums, one_stage
from isinglass.inference import Algorithm
from isinglass.learning import Objective
from isinglass.learning.optimizers import Lbfgs, Smd
from isinglass.losses import Evaluation, Hybrid, Loss
from isinglass.losses.loss import ResultLoss, Stages
from isinglass.models import ConditionedModel, Model, table_model
from isinglass.typing import Array, FloatArray, IntArray
from isinglass_experiments.erma.data import Task
from isinglass_experiments.erma.settings import CONVERGED, Step, steps_of

BATCHES = 10
MU, LAM = 0.02, 0.9  # of meta-descent
NOISE = 0.5  # the standard deviation of the parameters at the start


class Moments(GradientRule):
    """The beliefs as the derivative of log Z, converged or not, as usual in training by the Bethe free energy.

    At a fixed point this is the derivative; before it, it is not that of what is computed (Vishwanathan et al. 2006;
    Stoyanov, Ropson and Eisner 2011, section 3.1).
    """

    name = "moments"
    summary = "the beliefs in place of the derivative of log Z, converged or not"

    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer, and weigh the beliefs of factors."""
        result = infer(one_stage(potentials, self.name), algorithm, init=init)
        bars = loss(result)
        return Evaluation(bars.value, belief_sums(result, bars.log_z), (result.info,))

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Serve losses of log Z."""
        return "it differentiates losses of log Z alone" if uses_beliefs else None


class _Objective(Objective):
    """The loss of a batch. Where its derivative at a fixed point does not converge, all iterations are reversed."""

    def parts(self, theta: FloatArray) -> tuple[Array, FloatArray]:
        """Return the loss of each example, and the gradient of their sum."""
        try:
            return super().parts(theta)
        except InputError:  # if it is about something else, it comes again
            if self.algorithm.iterations is not None:
                raise
            return replace(self, algorithm=BeliefPropagation(iterations=self.algorithm.max_iter)).parts(theta)


@dataclass(eq=False)
class Batches:
    """The mean loss of an example and the penalty, batch by batch, with gradients and products of its Hessian."""

    models: Sequence[ConditionedModel]
    labels: Sequence[IntArray]
    loss: Loss
    algorithm: BeliefPropagation
    penalty: float = 0.0
    objectives: list[Objective] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        back = Moments() if self.loss.facts.uses == "log_z" else rule("unrolled")
        for model, y in zip(self.models, self.labels, strict=True):
            self.objectives.append(_Objective(model, y, self.loss, self.algorithm, back))

    def __call__(self, rows: IntArray, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of the mean losses of some batches, each with the penalty."""
        value, gradient = 0.0, np.zeros_like(theta)
        if self.penalty:  # without one, parameters may diverge, and their squares overflow
            value, gradient = self.penalty * len(rows) * float(theta @ theta), 2 * self.penalty * len(rows) * theta
        for one in (self.objectives[i] for i in rows):
            losses, slope = one.parts(theta)
            value, gradient = value + float(losses.mean()), gradient + slope / len(losses)
        return value, gradient

    def hessian_product(self, rows: IntArray, theta: FloatArray, v: FloatArray) -> FloatArray:
        """Return the Hessian of that sum, times a vector."""
        chosen = [self.objectives[i] for i in rows]
        products = [one.hessian_product(theta, v) / one.model.graph.n_components for one in chosen]
        return np.asarray(np.sum(products, axis=0), np.float64) + 2 * self.penalty * len(rows) * v

    def mean(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss of an example, of all batches."""
        value, gradient = self(np.arange(len(self.objectives)), theta)
        return value / len(self.objectives), gradient / len(self.objectives)


def batches_of(plain: Model, task: Task) -> tuple[list[ConditionedModel], list[IntArray]]:
    """Cut the training examples into batches."""
    models, labels = [], []
    for rows in np.array_split(np.arange(len(task.train)), BATCHES):
        models.append(ConditionedModel(plain, task.inputs(task.train[rows])))
        labels.append(task.labels(task.train[rows]))
    return models, labels


def train(
    task: Task,
    training: str,
    algorithm: BeliefPropagation,
    iterations: int,
    restarts: int,
    seed: int,
    begun: FloatArray | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Return the parameters that a training setting finds, and those that it finds from each start.

    The former are, of several starts, those of least training objective. Settings that begin with a few iterations of
    APPR-LOGL have one start, and so has L-BFGS on it. Mixtures do first what frac-MSE or frac-MSE-in does; what that
    found from each start can be given to them, as `begun`.
    """
    plain = table_model(task.graph)
    models, labels = batches_of(plain, task)
    starts = 1 if training.endswith("-in") or training == CONVERGED else restarts
    steps, found, values = list(enumerate(steps_of(training, iterations))), list[FloatArray](), list[float]()
    left = steps if begun is None else [(k, step) for k, step in steps if isinstance(step.loss, Hybrid)]
    for start in range(starts):
        theta = _start(plain.size, seed, start) if begun is None else begun[start]
        for k, step in left:
            parts = Batches(models, labels, step.loss, algorithm, step.penalty)
            theta = _descend(parts, step, theta, 1000 * seed + 10 * start + k)
        found.append(theta)
        values.append(_value(parts, theta) if starts > 1 else 0.0)
    return found[int(np.argmin(values))], np.array(found)


def _value(parts: Batches, theta: FloatArray) -> float:
    """Return the training objective; infinity where it is not finite."""
    with no_convergence_warnings():
        value = parts.mean(theta)[0]
    return value if np.isfinite(value) else np.inf


def _start(size: int, seed: int, start: int) -> FloatArray:
    return NOISE * np.random.default_rng([seed, start]).standard_normal(size)


def _descend(parts: Batches, step: Step, theta: FloatArray, seed: int) -> FloatArray:
    with no_convergence_warnings():
        if step.gain is None:
            return Lbfgs(max_iter=step.iterations, tol=1e-6).minimise(parts.mean, theta).x
        smd = Smd(step.gain, step.iterations, batch_size=1, mu=MU, lam=LAM, random_state=seed)
        return smd.minimise_batches(parts, len(parts.objectives), theta).x
