"""What every inference algorithm is: a frozen bag of options, declared facts, and pure methods on potentials.

An algorithm registers its class under a public name. It implements `run` (beliefs and log Z) and, where
its facts say so, `maximise` and `sample`. The facts are promises: the conformance suite of
`isinglass.testing` checks each of them for every registered algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.result import Assignment, Bound, Result
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose
from isinglass.typing import Array, IntArray

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the fraction of it that is done."""

Taping = bool | Literal["sqrt"]
"""Whether to keep what `Result.backward` needs; "sqrt" keeps less and computes it again."""


@dataclass(frozen=True)
class Facts:
    """What an algorithm promises.

    Attributes
    ----------
    summary : str
        One line for people.
    exact : {"always", "forests", "never"}
        Where its beliefs and log Z are the true ones.
    bound : {"exact", "upper", "lower"} or None
        What `Info.bound` says at best, off the graphs where it is exact.
    maximises : {"many", "one"} or None
        Whether it finds the n most probable assignments, or one assignment only.
    samples, joints : bool
        Whether it draws samples, gives joint beliefs of any variables.
    iterative : bool
        Whether `tol` and `max_iter` mean something to it.
    local : bool
        Whether it climbs to one of several local optima, so that the order of the variables matters.
    envelope : bool
        Whether, once it has converged, the derivative of log Z by a log table is the factor's belief; then gradients
        by `perturbation` hold.
    implicit : {"backward", "equations"} or None
        Whether, once it has converged, gradients by the implicit function theorem hold: as what `Result.backward`
        gives, or by the equations that `linearised` returns.
    semiring : {"sum", "max"}
        Whether beliefs stand for marginals and log_z for log Z, or for max-marginals and the best score.
    """

    summary: str
    exact: Literal["always", "forests", "never"]
    bound: Bound
    maximises: Literal["many", "one"] | None = None
    samples: bool = False
    joints: bool = False
    iterative: bool = False
    local: bool = False
    envelope: bool = False
    implicit: Literal["backward", "equations"] | None = None
    semiring: Literal["sum", "max"] = "sum"


@dataclass(frozen=True)
class Cost:
    """What an algorithm would need: bytes, elementary steps (for one iteration), and a word on both."""

    bytes: float
    steps: float
    text: str


Groups = tuple[Array, ...]
"""Derivatives like `Potentials.groups`."""


class FixedPoint(Protocol):
    """The equations s = F(s, phi) of a fixed point, of which beliefs and log Z are functions, both in reverse."""

    def read_out_back(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> tuple[Array, Groups]:
        """Turn derivatives by log Z and the (flat) beliefs into those by s and, with s held fixed, by phi."""

    def back(self, state_bar: Array) -> tuple[Array, Groups]:
        """Turn derivatives by F into those by s and phi."""


class Algorithm(ABC):
    """Base class of inference algorithms; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[Facts]

    iterations: int | None = None
    reuse: bool = False

    @abstractmethod
    def cost(self, potentials: Potentials) -> Cost:
        """Say what `run` would need, without doing it."""

    @abstractmethod
    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Infer beliefs and log Z; evidence is that of the potentials.

        With `tape`, the result can be carried back (`Result.backward`); `init` is an earlier result to start from.
        """

    def run_stages(
        self,
        stages: Sequence[Potentials],
        progress: Progress | None = None,
        tape: Taping = False,
        init: Result | None = None,
    ) -> Result:
        """Do the same with potentials of their own for each iteration."""
        if len(stages) == 1:
            return self.run(stages[0], progress, tape, init)
        raise InputError("potentials", f"one for all iterations of {self.name!r}", f"{len(stages)}", 'use "bp"')

    def with_parameters(self, values: Mapping[str, Array]) -> Algorithm:
        """Return the algorithm with other values of its parameters, by name."""
        expected = f"one with the parameters {', '.join(map(repr, values))}"
        raise InputError("inference", expected, repr(self.name))

    def fixed(self, potentials: Potentials) -> Algorithm:
        """Return the algorithm with all that it chooses by the potentials, and takes for constant, chosen."""
        return self

    def linearised(self, result: Result) -> FixedPoint:
        """Return the equations that a converged result solves, as functions of derivatives."""
        raise InputError("algorithm", "one with fixed-point equations", repr(self.name), with_fact("implicit"))

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Find the `n` most probable assignments, best first."""
        raise InputError("algorithm", "one that maximises", repr(self.name), with_fact("maximises"))

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` assignments, shape (n, variables)."""
        raise InputError("algorithm", "one that samples", repr(self.name), with_fact("samples"))


ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm")


def register(cls: type[Algorithm]) -> type[Algorithm]:
    """File an algorithm under its name (a class decorator)."""
    return ALGORITHMS.register(cls.name)(cls)


def make(algorithm: str | Algorithm, options: dict[str, Any]) -> Algorithm:
    """Return the algorithm that a name or an object and further options stand for."""
    return choose(ALGORITHMS, Algorithm, algorithm, options, "exact")  # type: ignore[type-abstract]


def with_fact(fact: str) -> str:
    """Name the algorithms of which a fact is true."""
    names = [repr(name) for name, cls in ALGORITHMS.items() if getattr(cls.facts, fact)]
    return f"use {' or '.join(names)}" if names else ""
