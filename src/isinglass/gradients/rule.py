"""Gradient rules: from a loss of the result of an inference to its derivative by the log tables φ.

With b the beliefs, log Z what the inference returns, and L(log Z, b) the loss:

    unrolled      back through the iterations that really ran, converged or not (Domke 2009, chapter 5; Stoyanov,
                  Ropson and Eisner 2011). The derivative of what is computed, for any loss.
    perturbation  dL/dφ = db/dφ dL/db, the derivative of the *fixed point*: db/dφ is symmetric there, so one more
                  inference along dL/db gives it (Domke 2010). No tape; converged runs and exact inference only.
    implicit      the same derivative through the fixed point's own equations, by a linear system (see `implicit`).
    envelope      d log Z / dφ = b, at a fixed point (or for exact inference): for losses of log Z alone, for free.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from isinglass.errors import InputError
from isinglass.gradients.perturbation import perturbation
from isinglass.gradients.taping import taping
from isinglass.inference import Algorithm, Result, infer
from isinglass.losses import Differentiate, Evaluation
from isinglass.losses.loss import ResultLoss, Stages
from isinglass.potentials import Potentials, sum_tables
from isinglass.registry import Registry
from isinglass.typing import Array


class GradientRule(ABC):
    """One way to differentiate a loss of an inference."""

    name: ClassVar[str]
    summary: ClassVar[str]
    of_iterations: ClassVar[bool] = False  # goes back through what ran, and needs no fixed point
    of_parameters: ClassVar[bool] = False  # gives derivatives by parameters of inference, where `Result.backward` does

    @abstractmethod
    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer, from an earlier result if one is given, and return the loss with its derivatives."""

    def differentiate(self, algorithm: Algorithm) -> Differentiate:
        """Return the rule for one inference, as losses call it."""
        return lambda potentials, loss: self.evaluate(potentials, algorithm, loss)

    @abstractmethod
    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Say why the rule cannot serve an algorithm and a loss, or None if it can."""


RULES: Registry[GradientRule] = Registry("gradient")


def rule(choice: str | GradientRule) -> GradientRule:
    """Return a rule by its name.

    Examples
    --------
    >>> rule("unrolled").name
    'unrolled'
    """
    return choice if isinstance(choice, GradientRule) else RULES[choice]


def register(cls: type[GradientRule]) -> type[GradientRule]:
    """File a rule under its name (a class decorator)."""
    RULES.register(cls.name)(cls())
    return cls


@register
@dataclass(frozen=True)
class Unrolled(GradientRule):
    """Back through what really ran."""

    name: ClassVar[str] = "unrolled"
    summary: ClassVar[str] = "the derivative of what was computed, converged or not; any loss"
    of_iterations: ClassVar[bool] = True
    of_parameters: ClassVar[bool] = True

    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer with a tape, and go back."""
        last = potentials if isinstance(potentials, Potentials) else potentials[-1]
        result = infer(potentials, algorithm, tape=taping(last, algorithm), init=init)
        bars = loss(result)
        gradients = result.backward(bars.log_z, bars.variables, bars.factors)
        return Evaluation(bars.value, gradients.groups, (result.info,), gradients.parameters)

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Serve all that remember their iterations."""
        if algorithm.facts.stochastic:
            return f"the beliefs of {algorithm.name!r} are estimates by sampling, which have no derivative"
        if algorithm.facts.implicit == "backward":
            return f"{algorithm.name!r} does not go back through its iterations, but through its minimum"
        return None


@register
@dataclass(frozen=True)
class Perturbation(GradientRule):
    """One more inference along the derivative by the beliefs."""

    name: ClassVar[str] = "perturbation"
    summary: ClassVar[str] = "the derivative of the fixed point, by one more inference; any loss, converged runs"

    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer, then infer along the derivative."""
        potentials = one_stage(potentials, self.name)
        result = infer(potentials, algorithm, init=init)
        bars = loss(result)
        iterative = algorithm.facts.iterative
        gradients = perturbation(
            potentials, algorithm, bars.log_z, bars.variables, bars.factors, init=result if iterative else None
        )
        return Evaluation(bars.value, gradients.groups, (result.info,), gradients.parameters)

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Need a fixed point."""
        return _no_fixed_point(algorithm)


@register
@dataclass(frozen=True)
class Envelope(GradientRule):
    """The beliefs themselves."""

    name: ClassVar[str] = "envelope"
    summary: ClassVar[str] = "the beliefs are the derivative of log Z; losses of log Z alone, converged runs"

    def evaluate(
        self, potentials: Stages, algorithm: Algorithm, loss: ResultLoss, init: Result | None = None
    ) -> Evaluation:
        """Infer, and weigh the beliefs of factors."""
        potentials = one_stage(potentials, self.name)
        result = infer(potentials, algorithm, init=init)
        bars = loss(result)
        if bars.variables is not None or bars.factors is not None:
            raise InputError("gradient", "a rule for losses of the beliefs", "'envelope'", "use 'unrolled'")
        return Evaluation(bars.value, belief_sums(result, bars.log_z), (result.info,))

    def objection(self, algorithm: Algorithm, uses_beliefs: bool) -> str | None:
        """Need a fixed point, and a loss of log Z alone."""
        if uses_beliefs:
            return "it differentiates losses of log Z alone"
        return _no_fixed_point(algorithm)


def one_stage(potentials: Stages, name: str) -> Potentials:
    """Refuse potentials of their own for each iteration, which no fixed point has."""
    if isinstance(potentials, Potentials):
        return potentials
    raise InputError("gradient", "'unrolled', with potentials for each iteration", repr(name))


def _no_fixed_point(algorithm: Algorithm) -> str | None:
    if not algorithm.facts.envelope:
        return f"{algorithm.name!r} has no fixed point whose log Z has the beliefs as its derivative"
    if algorithm.iterations is not None:
        return "a fixed number of iterations does not reach the fixed point: leave out iterations, or use 'unrolled'"
    return None


def belief_sums(result: Result, weights: Array) -> tuple[Array, ...]:
    """Sum the beliefs of factors, times their component's weight, over the factors that share a table."""
    graph = result.potentials.graph
    weighted = []
    for group, beliefs in zip(graph.groups, result.factors.groups, strict=True):
        weight = weights[graph.factor_component[group.factors]].reshape((-1,) + (1,) * group.arity)
        weighted.append(weight * beliefs)
    return sum_tables(result.potentials, weighted)


def forward(algorithm: Algorithm) -> Differentiate:
    """Return a function for values alone: it infers and does not go back."""

    def value(potentials: Stages, loss: ResultLoss) -> Evaluation:
        result = infer(potentials, algorithm)
        return Evaluation(loss(result).value, (), (result.info,))

    return value
