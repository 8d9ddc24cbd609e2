"""What learning a Markov random field minimises, given samples x_n with weights w_n.

    f(theta) = loss(theta; x_1, w_1, ...) + sum_j l2_j theta_j²

Each method has a loss of its own; the parameters, the penalty and the hard zeros are the same for all.

A table entry that no sample shows may get probability zero (the maximum likelihood then lies at minus infinity). Such
entries are `zeros`: their log-potential is -inf, and their parameters stay at zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from isinglass.gradients import GradientRule
from isinglass.inference import Algorithm, Info
from isinglass.learning.markov.samples import Samples
from isinglass.losses import Evaluation
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, Mask

Groups = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned from what.

    Attributes
    ----------
    model : Model
        Of one sample.
    samples : Samples
    algorithm : Algorithm
        The inference that gives log Z, where a method needs it.
    rule : GradientRule
    l2 : float or array (size,)
    virtual : float
        How many virtual samples of the model with parameters zero count beside the samples: a conjugate prior.
    threads : int
        Of chains; they change no bit.
    extended : bool
        Whether entries of tables that no sample shows get probability zero, as at the maximum of the exact likelihood.
    """

    model: Model
    samples: Samples
    algorithm: Algorithm
    rule: GradientRule
    l2: float | FloatArray = 0.0
    virtual: float = 0.0
    threads: int = 1
    extended: bool = False


class MarkovObjective(ABC):
    """A function of the parameters: ``objective(theta)`` returns its value and gradient.

    Parameters
    ----------
    task : Task

    Attributes
    ----------
    zeros : tuple of bool arrays, or None
        For each group, which entries of its tables are hard zeros.
    infos : list of Info
        Of the inferences of the last evaluation.
    has_minimum : bool
        Whether it is known to have a minimum, so that no parameters grow without end.
    """

    has_minimum = False
    zeros: tuple[Mask, ...] | None = None

    def __init__(self, task: Task) -> None:
        self.task, self.model, self.samples, self.l2 = task, task.model, task.samples, task.l2
        self.infos: list[Info] = []

    @abstractmethod
    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the loss, one number, and its derivative by the log tables of each group."""

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        found = self.evaluate(self.potentials(theta))
        value, self.infos = float(found.value), list(found.infos)
        slope = self.model.transpose(found.groups)
        return value + self.penalty(theta), slope + 2 * self.l2 * theta

    def potentials(self, theta: FloatArray) -> Potentials:
        """Return the log-potentials, with their hard zeros."""
        return with_zeros(self.model.potentials(theta), self.zeros)

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.model.size

    def penalty(self, theta: FloatArray) -> float:
        """Return the penalty."""
        return float((self.l2 * theta**2).sum())

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties."""
        return self(theta)[0] - self.penalty(theta)

    @property
    def iterations(self) -> int:
        """The most iterations that an inference took in the last evaluation."""
        return max((info.iterations for info in self.infos), default=0)

    @property
    def converged_share(self) -> float:
        """The share of components of which it is known that every inference converged in the last evaluation."""
        return max(0.0, 1.0 - sum(1 - info.converged_share for info in self.infos))

    def memory(self, evaluations: int) -> Mapping[str, Array]:
        """Return what is kept between evaluations, as it was after so many; nothing, if this is a pure function."""
        return {}

    def restore(self, evaluations: int, arrays: Mapping[str, Array]) -> None:  # noqa: B027
        """Go on with what `memory` returned after so many evaluations."""

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Return what a method has to say of the parameters that were found, by the names of attributes."""
        return {}


def with_zeros(potentials: Potentials, zeros: Sequence[Mask] | None) -> Potentials:
    """Return potentials with -inf where a mask, one for each group, says so."""
    if zeros is None:
        return potentials
    groups = [np.where(zero, -np.inf, tables) for zero, tables in zip(zeros, potentials.groups, strict=True)]
    return Potentials._build(potentials.graph, groups, potentials.table_ids, potentials.evidence)


def total(value: Array, groups: Groups, infos: tuple[Info, ...] = ()) -> Evaluation:
    """Return an evaluation whose value is the sum over all components."""
    return Evaluation(value.sum(), groups, infos)
