"""What learning minimises: the loss of a model's inference over examples, plus penalties.

    f(theta)  =  sum_c loss_c(inference(phi_c(theta)), y_c)  +  sum_j l2_j theta_j²

The gradient goes the way back: the gradient rule carries the loss to phi, the model's transpose to theta. The loss
evaluates itself; all it gets from here is the inference and its gradient rule, as one function. Theta may hold
parameters of inference, too (`Model.inference_parameters`). Sums over examples are made in their order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from isinglass.errors import InputError
from isinglass.gradients import RULES, GradientRule, forward
from isinglass.inference import Algorithm, Info, Result
from isinglass.inference.linear_response import STEP
from isinglass.losses import Evaluation, HingeLoss, Loss, LossProblem, LossValue
from isinglass.losses.loss import Memory, ResultLoss, Stages
from isinglass.models import Model
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

DIFFERENCE = 1e-3  # the largest change of a parameter in a difference of gradients


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
    recall : callable, optional
        Returns what the loss kept of each component, for losses that keep something.
    completion : int array (variables,), optional
        What stands for labels that were not observed, for losses that complete them (`LossProblem.completion`).

    Attributes
    ----------
    infos : list of Info
        How inference went in the last evaluation.
    before : list of Result
        What inference found in it, where the algorithm is to begin there the next time (its option `reuse`).
    kept : sequence of Memory
        What the loss wants to keep of each component after the last evaluation; empty: nothing.
    """

    model: Model
    labels: IntArray
    loss: Loss
    algorithm: Algorithm
    rule: GradientRule
    l2: float | FloatArray = 0.0
    weights: FloatArray | None = None
    stages: int = 1
    recall: Callable[[], Sequence[Memory]] | None = None
    completion: IntArray | None = None
    infos: list[Info] = field(default_factory=list, init=False)
    before: list[Result] = field(default_factory=list, init=False, repr=False)
    kept: Sequence[Memory] = field(default=(), init=False, repr=False)

    def __post_init__(self) -> None:
        whole_number(self.stages, "stages", 1)
        if self.stages > 1 and self.loss.facts.uses != "beliefs":
            got = f"{self.stages} with loss {self.loss.name!r}"
            raise InputError("stages", "1, unless the loss is a loss of beliefs", got, "use a loss such as 'ucl'")

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
        problem, algorithm = self._problem(theta)
        found = self._evaluate(problem, algorithm)
        if self.stages == 1:
            return found.value, self.model.transpose(found.groups) + self._by_inference(theta, found)
        by_stage = [self.model.transpose([group[t] for group in found.groups]) for t in range(self.stages)]
        return found.value, np.concatenate(by_stage)

    def planes(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the values at zero and the slopes of planes whose maximum is the loss, where these are few."""
        zero = np.zeros(self.size)
        if not isinstance(self.loss, HingeLoss) or self.model.inference_parameters(zero):
            return None
        if (found := self.loss.of_each_labelling(self._problem(zero)[0])) is None:
            return None
        values = np.concatenate([one.value for one in found])
        return values, np.array([self.model.transpose(one.groups) for one in found])

    def hessian_product(self, theta: FloatArray, v: FloatArray) -> FloatArray:
        """Return the Hessian of the sum of all losses, without penalties, times a vector.

        It is exact, by a complex step of the gradient, where that is analytic: through a given number of iterations,
        and for log Z of exact inference by its beliefs. Else it is a central difference of gradients, of order four.
        """
        size = float(np.abs(v).max(initial=0.0))
        if size == 0:
            return np.zeros(self.size)
        algorithm, exact = self.algorithm, self.algorithm.facts.exact == "always"
        if algorithm.iterations is not None or (
            exact and self.loss.facts.uses == "log_z" and not self.rule.of_iterations
        ):
            return np.asarray(self.parts(theta + (1j * STEP / size) * v)[1].imag * (size / STEP), np.float64)
        points = [(8.0, 1.0), (-8.0, -1.0), (-1.0, 2.0), (1.0, -2.0)]
        slopes = [weight * self.parts(theta + (DIFFERENCE * point / size) * v)[1] for weight, point in points]
        return np.asarray(sum(slopes) * (size / (12 * DIFFERENCE)), np.float64)

    def losses(self, theta: FloatArray) -> Array:
        """Return the loss of each component alone: inference without the way back."""
        problem, algorithm = self._problem(theta)
        return self.loss.evaluate(problem, forward(algorithm)).value

    @property
    def least(self) -> float:
        """What it is never below, if all maxima in it are exact."""
        return 0.0 if self.loss.facts.nonnegative else -math.inf

    @property
    def proved(self) -> bool:
        """Whether all inferences of the last evaluation were exact, or proved an upper bound."""
        return all(info.converged and info.bound in ("exact", "upper") for info in self.infos)

    def best_completion(self, theta: FloatArray) -> IntArray:
        """Return the labels, with the best states at theta where they were not observed."""
        if not isinstance(self.loss, HingeLoss):
            raise InputError("loss", "a hinge, which completes labels by their best states", repr(self.loss.name))
        return self.loss.completed(self.model.potentials(theta), self.labels)[0]

    def _problem(self, theta: FloatArray) -> tuple[LossProblem, Algorithm]:
        """Return what the loss is evaluated on, and the inference with its parameters."""
        vectors = np.reshape(theta, (self.stages, self.model.size))
        stages = [self.model.potentials(vector) for vector in vectors]
        kept = None if self.recall is None else self.recall()
        given = stages if self.stages > 1 else stages[0]
        problem = LossProblem(given, self.labels, self.weights, kept, self.completion)
        return problem, adapted(self.algorithm, self.model, vectors[-1])

    def _evaluate(self, problem: LossProblem, algorithm: Algorithm) -> Evaluation:
        if algorithm.reuse:
            warm = _WarmStarts(self.rule, algorithm, self.before)
            found, self.before = self.loss.evaluate(problem, warm), warm.found
        else:
            found = self.loss.evaluate(problem, self.rule.differentiate(algorithm))
        self.infos, self.kept = list(found.infos), found.memory
        return found

    def _by_inference(self, theta: FloatArray, found: Evaluation) -> FloatArray | float:
        """Return the derivatives by parameters of inference; a loss that infers nothing does not depend on them."""
        missing = set(self.model.inference_parameters(theta)) - set(found.parameters)
        if missing and found.infos:
            minimum = self.algorithm.facts.implicit == "backward"  # its equations know them, too
            rules = [
                rule
                for rule in RULES.values()
                if rule.of_parameters and (rule.of_iterations or minimum) and not rule.objection(self.algorithm, True)
            ]
            able = " or ".join(repr(rule.name) for rule in rules)
            raise InputError("gradient", f"{able}, where {min(missing)!r} is learned", repr(self.rule.name))
        return self.model.inference_transpose(theta, found.parameters) if found.parameters else 0.0


def adapted(algorithm: Algorithm, model: Model, theta: FloatArray) -> Algorithm:
    """Return an inference with those of its parameters that are part of a model's."""
    named = model.inference_parameters(theta)
    return algorithm.with_parameters(named) if named else algorithm


class _WarmStarts:
    """A gradient rule whose inferences begin with the results that they had before, in the order of the calls."""

    def __init__(self, rule: GradientRule, algorithm: Algorithm, before: list[Result]) -> None:
        self.rule, self.algorithm, self.before = rule, algorithm, before
        self.found: list[Result] = []

    def __call__(self, potentials: Stages, loss: ResultLoss) -> Evaluation:
        """Evaluate by the rule, and keep the result, without what it would need to go back."""

        def kept(result: Result) -> LossValue:
            self.found.append(result.without_tape())
            return loss(result)

        turn = len(self.found)
        init = self.before[turn] if turn < len(self.before) else None
        return self.rule.evaluate(potentials, self.algorithm, kept, init)
