"""What a loss is: declared facts, options, and a value for each component with its derivatives.

A loss measures how well what a model says fits labels y; it is minimised. Labels are integers, -1 where a variable
was not observed. Values belong to components (examples of a batch), so that an objective may weigh or split them.

A loss evaluates itself: it gets potentials, labels and weights, and a function that runs inference and differentiates
(`Loss.evaluate`). It may call that function once, several times or not at all. ``facts.uses`` tells which:

- "beliefs": once; a function of the beliefs that inference ended with, whatever inference that was (`BeliefLoss`);
- "log_z": of log Z, free and clamped to the labels (`Likelihood`);
- "potentials": never; of the log tables alone (`Pseudolikelihood`), or by an inference that belongs to the loss.

A loss registers its class under a public name (Domke, *Tractable Learning and Inference in High-Treewidth Graphical
Models*, 2009, table 3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder
from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.result import Info, Result
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose, require_declared
from isinglass.typing import Array, FloatArray, IntArray, Mask

Uses = Literal["beliefs", "log_z", "potentials"]
"""What a loss is a function of."""

Memory = Mapping[str, Array]
"""What a loss keeps of an example from one evaluation to the next, by name; at first its number, "example"."""

Stages = Potentials | Sequence[Potentials]
"""Potentials, or those of each iteration, by which derivatives then come with an iteration axis first."""


@dataclass(frozen=True)
class LossFacts:
    """What is true of a loss; by default one of beliefs, for which nothing is proved.

    Attributes
    ----------
    formula : str
        The loss of one example.
    convex : bool
        Whether it is convex in the log tables when every variable is observed and inference is exact.
    consistent : bool
        Whether, for a model that contains the truth and under exact inference, the truth is its only minimum in the
        limit of infinite data.
    uses : {"beliefs", "log_z", "potentials"}
        What it is a function of.
    note : str
        What else to know.
    starts_from : str or None
        The name of the loss that training minimises first, where one from zero ends in a poor minimum. It must go with
        every inference, gradient rule and option that this loss goes with, and start from no other.
    given : {"neighbours", "before"} or None
        For a sum over labels of -log p(label | others): which others, all neighbours, or in a sequence the one before.
    sampled : bool
        Whether values and derivatives are estimates, for optimizers that take minibatches.
    averaged : bool
        Whether the mean of iterates is learned, where the optimizer is given by name.
    completes : bool
        Whether labels that were not observed count by their best states, so that the loss is convex once these are
        fixed (`LossProblem.completion`).
    nonnegative : bool
        Whether it is never below zero when its maxima are exact; `evaluate` may round.
    optimizer : str or None
        The name of the optimizer of training where none is chosen, and it can be used; None: L-BFGS, for smooth losses.
    """

    formula: str
    convex: bool = False
    consistent: bool = False
    uses: Uses = "beliefs"
    note: str = ""
    starts_from: str | None = None
    given: Literal["neighbours", "before"] | None = None
    sampled: bool = False
    averaged: bool = False
    completes: bool = False
    nonnegative: bool = False
    optimizer: str | None = None

    def __post_init__(self) -> None:
        if self.uses not in get_args(Uses):
            raise InputError("uses", " or ".join(map(repr, get_args(Uses))), repr(self.uses))


@dataclass(frozen=True, eq=False)
class LossValue:
    """A loss of beliefs and its derivatives, laid out as `Result.backward` takes them.

    Attributes
    ----------
    value : array (components,)
    log_z : array (components,)
        Derivative by log Z.
    variables, factors : flat array or None
        Derivatives by the beliefs of variables, and of factors, group after group; None stands for zeros.
    options : mapping of str to array (components,)
        Derivatives by options of the loss that are real numbers, such as a temperature, where it has some.
    """

    value: Array
    log_z: Array
    variables: Array | None
    factors: Array | None
    options: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class LossProblem:
    """What a loss is evaluated on.

    Attributes
    ----------
    potentials : Potentials or sequence of Potentials
        One, or one for each iteration (only for losses with ``facts.uses == "beliefs"``).
    labels : int array (variables,)
        -1 where a variable was not observed.
    weights : array (variables,) or None
        Not negative; None is one for each.
    memory : sequence of Memory, or None
        What was kept of each component after the evaluation before; None: nothing is kept.
    completion : int array (variables,) or None
        States that agree with the labels, none of them -1, for losses that complete labels by their best states
        (``facts.completes``); None: those that are best now.
    """

    potentials: Stages
    labels: IntArray
    weights: FloatArray | None = None
    memory: Sequence[Memory] | None = None
    completion: IntArray | None = None

    def shared(self, loss: str) -> Potentials:
        """Return the potentials that all iterations share; refuse others, in the name of a loss."""
        if isinstance(self.potentials, Potentials):
            return self.potentials
        expected, got = "1, unless the loss is a loss of beliefs", f"{len(self.potentials)} with loss {loss!r}"
        raise InputError("stages", expected, got, "use a loss such as 'ucl'")


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The value of a loss and its derivatives.

    Attributes
    ----------
    value : array (components,)
    groups : tuple of arrays (tables, k_1, ..., k_r)
        By the log tables, like `Potentials.groups`; empty where no derivatives were asked for.
    infos : tuple of Info
        How each inference went.
    parameters : mapping of str to array
        By the parameters of inference, where it has some (`Algorithm.parameters`).
    memory : sequence of Memory
        What to keep of each component for the next evaluation; empty: nothing.
    """

    value: Array
    groups: tuple[Array, ...]
    infos: tuple[Info, ...] = ()
    parameters: Mapping[str, Array] = field(default_factory=lambda: MappingProxyType({}))
    memory: Sequence[Memory] = ()

    def __sub__(self, other: Evaluation) -> Evaluation:
        """Return the difference of two losses; a loss without derivatives keeps none."""
        return self._plus(other, -1.0)

    def __add__(self, other: Evaluation) -> Evaluation:
        """Return the sum of two losses; a loss without derivatives keeps none."""
        return self._plus(other, 1.0)

    def _plus(self, other: Evaluation, sign: float) -> Evaluation:
        groups = tuple(a + sign * b for a, b in zip(self.groups, other.groups, strict=bool(self.groups)))
        named = {name: slope + sign * other.parameters.get(name, 0.0) for name, slope in self.parameters.items()}
        return Evaluation(self.value + sign * other.value, groups, self.infos + other.infos, named)


ResultLoss = Callable[[Result], LossValue]
"""A function of the result of one inference, with its derivatives."""

Differentiate = Callable[[Stages, ResultLoss], Evaluation]
"""Infer on potentials, and return a function of the result with its derivatives by the log tables."""


@dataclass(frozen=True, eq=False)
class CostTables:
    """What each decision costs: ``sum_i variables[i, x_i] + sum_a factors[a, x_a]`` for an assignment x.

    Attributes
    ----------
    variables, factors : flat array or None
        Laid out like the beliefs of variables, and of factors, group after group; None stands for zeros.
    """

    variables: FloatArray | None
    factors: FloatArray | None


class Loss(ABC):
    """Base class of losses; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[LossFacts]

    @abstractmethod
    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Return the loss of each component, and the derivative of their sum by the log tables.

        Parameters
        ----------
        problem : LossProblem
        differentiate : callable
            ``differentiate(potentials, of_result)`` infers and returns the `Evaluation` of a function of the result.
            It stands for an inference and a gradient rule. A loss that needs none leaves it alone.
        """

    def for_decoder(self, decoder: Decoder) -> Loss:
        """Return the loss of a system that decides by a decoder; most losses are of what the decoder gets."""
        return self

    @property
    def decides_by(self) -> Decoder | None:
        """The decoder of predictions where none is chosen, of losses that fit it alone and no beliefs; else None."""
        return None

    @property
    def jumps(self) -> bool:
        """Whether it is not continuous, by its decoder."""
        return False

    def used(self, labels: IntArray, scopes: Sequence[IntArray]) -> Mask:
        """Tell which observed labels (-1: not observed) have a term, given the scopes of several variables."""
        return np.asarray(labels >= 0)

    def remark(self, decoder: Decoder) -> str | None:
        """Return what `fit` should say about the loss in a system that decides by a decoder; None: nothing."""
        return None

    def cost_tables(self, graph: FactorGraph, labels: ArrayLike, weights: ArrayLike | None = None) -> CostTables:
        """Return the cost of each decision for a variable or factor, given its label; for loss-augmented decoding."""
        expected = "one that is a sum over variables or factors"
        raise InputError("loss", expected, repr(self.name), "use its cost by 'ucl' or 'ccl'")


class BeliefLoss(Loss):
    """A loss that looks at nothing but the result of inference, and is analytic in it."""

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Infer once, and go back."""
        return differentiate(problem.potentials, lambda result: self(result, problem.labels, problem.weights))

    @abstractmethod
    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Compare beliefs with labels.

        Parameters
        ----------
        result : Result
            Of any inference; complex beliefs give complex values and derivatives.
        labels : int array (variables,)
            -1 where a variable was not observed.
        weights : array (variables,), optional
            Not negative. A variable's term is multiplied by its weight, a factor's by the mean weight of its variables.

        Returns
        -------
        LossValue
        """


class ScoringLoss(BeliefLoss):
    """A sum over variables, or over factors, of a scoring rule of one belief.

    Its cost of decisions is one for each variable, or factor, whose decision is not its label, by weight: the number
    of errors, which scoring rules stand in for. What was not observed costs nothing.
    """

    over: ClassVar[Literal["variables", "factors"]]

    @abstractmethod
    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the terms (n,) of beliefs (n, states) at labels (n,), and their derivatives (n, states).

        The beliefs of factors are flat tables in C order, and their label is the entry of their variables' labels. A
        term that is inf says that the label is impossible.
        """


LOSSES: Registry[type[Loss]] = Registry("loss")


def register(cls: type[Loss]) -> type[Loss]:
    """File a loss under its name (a class decorator)."""
    require_declared(cls, name=str, facts=LossFacts)
    return LOSSES.register(cls.name)(cls)


def make(loss: str | Loss, **options: Any) -> Loss:
    """Return the loss that a name or an object, and further options, stand for.

    Examples
    --------
    >>> from isinglass import losses
    >>> losses.make("suclass", lam=15.0)
    SmoothedUnivariate(lam=15.0)
    """
    return choose(LOSSES, Loss, loss, options, "ucl")  # type: ignore[type-abstract]
