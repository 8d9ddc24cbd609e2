"""What every inference algorithm is: a frozen bag of options, declared facts, and pure methods on potentials.

An algorithm registers its class under a public name. It implements `run` (beliefs and log Z) and, where
its facts say so, `maximise` and `sample`. The facts are promises: the conformance suite of
`isinglass.testing` checks each of them for every registered algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.result import Assignment, Bound, Result
from isinglass.models.inference import InferenceModel
from isinglass.models.model import Model
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose
from isinglass.typing import Array, FloatArray, IntArray

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
    threads : bool
        Whether it has an option `threads`, which changes nothing but the time.
    blockwise : bool
        Whether predictions are made for a few examples at a time, as it needs much memory for each.
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
    threads: bool = False
    blockwise: bool = False


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
    """Base class of inference algorithms; subclasses are frozen dataclasses of their options.

    Attributes
    ----------
    iterations : int or None
        Exactly how many iterations are run, where that is an option and was given.
    max_iter : int or None
        The most iterations, where that is an option.
    reuse : bool
        Whether training starts an inference from its result in the evaluation before.
    """

    name: ClassVar[str]
    facts: ClassVar[Facts]

    iterations: int | None = None
    max_iter: int | None = None
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

    @property
    def splits(self) -> bool:
        """Whether examples can be run apart: no option is an array for the variables or factors of a whole batch."""
        return not any(isinstance(option, np.ndarray | list | tuple) for option in vars(self).values())

    @property
    def takes_stages(self) -> bool:
        """Whether each iteration can have potentials of its own (`run_stages`)."""
        return False

    def resumed(self, iterations: int) -> Algorithm:
        """Return the algorithm for so many further iterations from an earlier result, on complex potentials."""
        return replace(self, tol=0.0, max_iter=iterations)  # type: ignore[type-var]

    def tape_bytes(self, graph: FactorGraph, item: int = 8) -> FloatArray:
        """Return the most bytes that a full tape of iterations takes for each component; `item`: of one number."""
        return np.zeros(graph.n_components)

    def check(self, graph: FactorGraph) -> None:  # noqa: B027
        """Refuse options that do not fit a graph, before any work; `run` need not rely on it."""

    def parameters(self, graph: FactorGraph) -> Mapping[str, ArrayLike]:
        """Return the options that are learned together with a model, by name, with their values; none, by default.

        An algorithm with such options implements `with_parameters`, and `Result.backward` returns `Gradients` whose
        `parameters` are the derivatives by them.
        """
        return {}

    def learned(self, model: Model) -> Model:
        """Return a model joined with the parameters that are learned with it: the same model, where there are none."""
        values = self.parameters(model.graph)
        return InferenceModel(model, values) if values else model

    def fitted_values(self, named: Mapping[str, Array], n_states: int) -> dict[str, FloatArray] | None:
        """Return tables to show to users, given named parameters that were learned; None: there is nothing to show."""
        return None

    def with_parameters(self, values: Mapping[str, Array]) -> Algorithm:
        """Return the algorithm with other values of its parameters, by name."""
        able = [name for name, cls in ALGORITHMS.items() if cls.with_parameters is not Algorithm.with_parameters]
        expected = f"{' or '.join(map(repr, able))}, where {next(iter(values))!r} is learned"
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
