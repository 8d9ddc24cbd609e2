"""What learning minimises: the loss of a model's inference over examples, plus penalties.

    f(theta)  =  sum_c loss_c(inference(phi_c(theta)), y_c)  +  sum_j l2_j theta_j²

The gradient goes the way back: the gradient rule carries the loss to phi, the model's transpose to theta. Sums over
examples are made in their order, whatever the batch is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from isinglass.errors import InputError
from isinglass.gradients import Evaluation, GradientRule, log_z_loss
from isinglass.inference import Algorithm, ConvexFreeEnergy, EntropyWeights, Info, Result, infer
from isinglass.inference.free_energy.weights import WeightGradients
from isinglass.losses import BeliefLoss, Likelihood, Loss, LossValue, Pseudolikelihood
from isinglass.losses.observed import component_weights
from isinglass.models import EntropyModel, Model
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number


@dataclass(eq=False)
class Objective:
    """A function of the parameters: ``objective(theta)`` returns its value and gradient.

    Parameters
    ----------
    model : Model
    labels : int array (variables,)
        -1 where a variable was not observed.
    loss : Loss
    algorithm : Algorithm
        The inference that will be run.
    rule : GradientRule
    l2 : float or array (size,)
    weights : array (variables,), optional
        Of the variables' terms; for losses of log Z, equal within a component.
    stages : int
        With more than one, each of so many iterations has parameters of its own (Domke 2009, section 5.4), and theta
        is that many vectors after each other.

    Attributes
    ----------
    infos : list of Info
        How inference went in the last evaluation.
    before : list of Result
        What inference found in it, where the algorithm is to begin there the next time (its option `reuse`).
    """

    model: Model
    labels: IntArray
    loss: Loss
    algorithm: Algorithm
    rule: GradientRule
    l2: float | FloatArray = 0.0
    weights: FloatArray | None = None
    stages: int = 1
    infos: list[Info] = field(default_factory=list, init=False)
    before: list[Result] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        whole_number(self.stages, "stages", 1)
        if self.stages > 1 and not isinstance(self.loss, BeliefLoss):
            got = f"{self.stages} with loss {self.loss.name!r}"
            raise InputError("stages", "1 for losses that are none of beliefs", got, "use a loss such as 'ucl'")

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.model.size * self.stages

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        values, gradient = self.parts(theta)
        penalty = np.broadcast_to(self.l2, self.size) if np.ndim(self.l2) == 0 else np.tile(self.l2, self.stages)
        return float(values.sum() + (penalty * theta**2).sum()), gradient + 2 * penalty * theta

    def parts(self, theta: FloatArray) -> tuple[Array, FloatArray]:
        """Return the loss of each component, and the gradient of their sum, without penalties."""
        vectors = np.reshape(theta, (self.stages, self.model.size))
        stages = [self.model.potentials(vector) for vector in vectors]
        found = self._evaluate(stages, with_entropy(self.algorithm, self.model, vectors[-1]))
        if self.stages == 1:
            return found.value, self.model.transpose(found.groups) + self._by_entropy(vectors[-1], found)
        by_stage = [self.model.transpose([group[t] for group in found.groups]) for t in range(self.stages)]
        return found.value, np.concatenate(by_stage)

    def losses(self, theta: FloatArray) -> Array:
        """Return the loss of each component alone: inference without the way back."""
        vectors = np.reshape(theta, (self.stages, self.model.size))
        stages = [self.model.potentials(vector) for vector in vectors]
        algorithm = with_entropy(self.algorithm, self.model, vectors[-1])
        return evaluate(self.loss, stages, algorithm, FORWARD, self.labels, self.weights)[0].value

    def _evaluate(self, stages: list[Potentials], algorithm: Algorithm) -> Evaluation:
        rule = _Remembering(self.rule, self.before) if getattr(algorithm, "reuse", False) else self.rule
        found, self.infos = evaluate(self.loss, stages, algorithm, rule, self.labels, self.weights)
        if isinstance(rule, _Remembering):
            self.before = rule.found
        return found

    def _by_entropy(self, theta: FloatArray, found: Evaluation) -> FloatArray | float:
        """Return the derivatives by entropy weights that are parameters."""
        if not isinstance(self.model, EntropyModel):
            return 0.0
        if found.weights is None:
            raise InputError("gradient", "'implicit', where entropy weights are fitted", repr(self.rule.name))
        return self.model.weights_transpose(theta, *found.weights)


def with_entropy(algorithm: Algorithm, model: Model, theta: FloatArray) -> Algorithm:
    """Return an inference with the entropy weights of a model that has some."""
    if not isinstance(model, EntropyModel):
        return algorithm
    if not isinstance(algorithm, ConvexFreeEnergy):
        raise InputError("inference", "'convex', where entropy weights are fitted", repr(algorithm.name))
    return replace(algorithm, weights=EntropyWeights(*model.weights(theta)))


def evaluate(
    loss: Loss,
    stages: Sequence[Potentials],
    algorithm: Algorithm,
    rule: GradientRule,
    labels: IntArray,
    weights: FloatArray | None = None,
) -> tuple[Evaluation, list[Info]]:
    """Return a loss of any family with its derivatives by the log tables, and how each inference went.

    Parameters
    ----------
    loss : Loss
    stages : sequence of Potentials
        One, or one for each iteration (losses of beliefs only).
    algorithm : Algorithm
    rule : GradientRule
    labels : int array (variables,)
    weights : array (variables,), optional
    """
    last = stages[-1]
    if isinstance(loss, Pseudolikelihood):
        value, groups = loss.value_and_grad(last, labels, weights)
        return Evaluation(value, groups, Info("none", True, 0, 0.0, "exact", 0.0)), []
    if isinstance(loss, Likelihood):
        return _likelihood(loss, last, algorithm, rule, labels, weights)
    if not isinstance(loss, BeliefLoss):
        raise InputError("loss", "a BeliefLoss, Likelihood or Pseudolikelihood", type(loss).__name__)
    found = rule.evaluate(stages if len(stages) > 1 else last, algorithm, lambda result: loss(result, labels, weights))
    return found, [found.info]


def _likelihood(
    loss: Likelihood,
    potentials: Potentials,
    algorithm: Algorithm,
    rule: GradientRule,
    labels: IntArray,
    weights: FloatArray | None,
) -> tuple[Evaluation, list[Info]]:
    """Return log Z - log Z(y), the latter a score where everything is observed."""
    log_z = log_z_loss(component_weights(weights, potentials.graph))
    free = rule.evaluate(potentials, algorithm, log_z)
    infos, by_weights = [free.info], free.weights
    if loss.fully_observed(potentials, labels):
        value, groups = loss.score(potentials, labels, weights)
    else:
        clamped = rule.evaluate(loss.clamp(potentials, labels), algorithm, log_z)
        infos.append(clamped.info)
        value, groups = clamped.value, clamped.groups
        by_weights = _minus(by_weights, clamped.weights)
    slopes = tuple(a - b for a, b in zip(free.groups, groups, strict=bool(free.groups)))  # none without derivatives
    return Evaluation(free.value - value, slopes, free.info, by_weights), infos


def _minus(one: WeightGradients | None, two: WeightGradients | None) -> WeightGradients | None:
    if one is None or two is None:
        return None
    groups = tuple(a - b for a, b in zip(one.groups, two.groups, strict=True))
    return WeightGradients(one.variables - two.variables, groups)


class _Remembering(GradientRule):
    """Another rule, whose inferences begin with the results that they had before, in the order of the calls."""

    name = "remembering"
    summary = "another rule, from where it was before"

    def __init__(self, rule: GradientRule, before: list[Result]) -> None:
        self.rule, self.before = rule, before
        self.found: list[Result] = []

    def evaluate(
        self,
        potentials: Potentials | Sequence[Potentials],
        algorithm: Algorithm,
        loss: Callable[[Result], LossValue],
        init: Result | None = None,
    ) -> Evaluation:
        """Evaluate by the other rule, and keep the result, without what it would need to go back."""

        def kept(result: Result) -> LossValue:
            self.found.append(replace(result, reverse=None))
            return loss(result)

        turn = len(self.found)
        return self.rule.evaluate(potentials, algorithm, kept, self.before[turn] if turn < len(self.before) else init)

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Object to what the other objects to."""
        return self.rule.objection(algorithm, uses_beliefs)


class _Forward(GradientRule):
    """Infer, and do not go back: for values alone."""

    name = "none"
    summary = "no derivative"

    def evaluate(
        self,
        potentials: Potentials | Sequence[Potentials],
        algorithm: Algorithm,
        loss: Callable[[Result], LossValue],
        init: Result | None = None,
    ) -> Evaluation:
        """Return the loss without derivatives."""
        result = infer(potentials, algorithm, init=init)
        return Evaluation(loss(result).value, (), result.info)

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Serve all."""
        return None


FORWARD = _Forward()
