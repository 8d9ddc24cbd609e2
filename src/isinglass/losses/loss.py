"""What a loss is: declared facts, options, and a value for each component with its derivatives.

A loss measures how well what a model says fits labels y; it is minimised. Labels are integers, -1 where a variable
was not observed. Values belong to components (examples of a batch), so that an objective may weigh or split them.

Three families, told apart by ``facts.uses``:

- "beliefs": a function of the beliefs that inference ended with, whatever inference that was (`BeliefLoss`);
- "log_z": of log Z, free and clamped to the labels (`Likelihood`);
- "potentials": of the log tables alone, without inference (`Pseudolikelihood`).

A loss registers its class under a public name (Domke, *Tractable Learning and Inference in High-Treewidth Graphical
Models*, 2009, table 3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from isinglass.inference.result import Result
from isinglass.registry import Registry, choose
from isinglass.typing import Array


@dataclass(frozen=True)
class LossFacts:
    """What is true of a loss.

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
    """

    formula: str
    convex: bool
    consistent: bool
    uses: Literal["beliefs", "log_z", "potentials"]
    note: str
    starts_from: str | None = None


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
    """

    value: Array
    log_z: Array
    variables: Array | None
    factors: Array | None


class Loss(ABC):
    """Base class of losses; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[LossFacts]


class BeliefLoss(Loss):
    """A loss that looks at nothing but the result of inference, and is analytic in it."""

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


LOSSES: Registry[type[Loss]] = Registry("loss")


def register(cls: type[Loss]) -> type[Loss]:
    """File a loss under its name (a class decorator)."""
    return LOSSES.register(cls.name)(cls)


def make(loss: str | Loss, **options: Any) -> Loss:
    """Return the loss that a name or an object, and further options, stand for.

    Examples
    --------
    >>> from isinglass import losses
    >>> losses.make("suclass", lam=15.0)
    SmoothedUnivariate(lam=15.0)
    """
    return choose(LOSSES, Loss, loss, options, "ucl")
