"""The interface of an inference algorithm: a frozen dataclass of options, declared facts, pure methods on potentials.

An algorithm registers its class under a public name. It implements `cost` and `run` (beliefs and log Z) and, where
its facts say so, `maximise` and `sample`. The facts are promises: the conformance suite of
`isinglass.testing` checks each of them for every registered algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.result import Assignment, Bound, Info, Result
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose
from isinglass.typing import Array, IntArray

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the fraction of it that is done."""

Taping = bool | Literal["sqrt"]
"""Whether to record what `Result.backward` needs; "sqrt" stores every k-th iteration and recomputes the others."""


@dataclass(frozen=True)
class Facts:
    """What an algorithm promises.

    Attributes
    ----------
    summary : str
        One line of description.
    exact : {"always", "forests", "never"}
        On which graphs its beliefs and log Z are the true ones.
    bound : {"exact", "upper", "lower"} or None
        The best value of `Info.bound` on graphs where it is not exact.
    maximises : {"many", "one"} or None
        "many": it finds the n most probable assignments; "one": a single assignment; None: it does not maximise.
    samples, joints : bool
        Whether it draws samples; whether it gives joint beliefs of any set of variables.
    iterative : bool
        Whether it takes `tol` and `max_iter`.
    local : bool
        Whether it finds one of several local optima, so that the order of the variables matters.
    envelope : bool
        Whether, at convergence, the derivative of log Z with respect to a log table is the factor's belief. Gradients
        by `perturbation` need this.
    implicit : {"backward", "equations"} or None
        Whether, at convergence, gradients by the implicit function theorem are available: "backward" if
        `Result.backward` computes them, "equations" if `linearised` returns the fixed-point equations.
    semiring : {"sum", "max"}
        "sum": beliefs approximate marginals and log_z approximates log Z; "max": max-marginals and the best score.
    stochastic : bool
        Whether its beliefs are Monte Carlo estimates. It then has an option `random_state`, draws its random numbers
        from `isinglass.inference.streams`, and reports standard errors in its `Info`.
    log_z : bool
        Whether it estimates log Z; without it `Result.component_log_z` is nan.
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
    stochastic: bool = False
    log_z: bool = True


@dataclass(frozen=True)
class Cost:
    """What an algorithm would need: memory in bytes, elementary steps (of one iteration), and both as text."""

    bytes: float
    steps: float
    text: str


Groups = tuple[Array, ...]
"""Derivatives with respect to the log tables, shaped like `Potentials.groups`."""


class FixedPoint(Protocol):
    """Vector-Jacobian products of a fixed point s = F(s, phi), and of beliefs and log Z as functions of (s, phi)."""

    def read_out_back(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> tuple[Array, Groups]:
        """Map derivatives by log Z and the (flat) beliefs to derivatives by s and, with s held fixed, by phi."""

    def back(self, state_bar: Array) -> tuple[Array, Groups]:
        """Map derivatives by F to derivatives by s and phi."""


class Algorithm(ABC):
    """Base class of inference algorithms; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[Facts]

    @abstractmethod
    def cost(self, potentials: Potentials) -> Cost:
        """Estimate what `run` needs, without running."""

    @abstractmethod
    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Infer beliefs and log Z, given the evidence of the potentials.

        `tape` records what `Result.backward` needs; `init` is an earlier result to start from (a warm start).
        """

    def run_stages(
        self,
        stages: Sequence[Potentials],
        progress: Progress | None = None,
        tape: Taping = False,
        init: Result | None = None,
    ) -> Result:
        """Run with different potentials in each iteration."""
        if len(stages) == 1:
            return self.run(stages[0], progress, tape, init)
        raise InputError("potentials", f"one for all iterations of {self.name!r}", f"{len(stages)}", 'use "bp"')

    def fixed(self, potentials: Potentials) -> Algorithm:
        """Return a copy whose data-dependent options are fixed, so that derivatives treat them as constants."""
        return self

    def linearised(self, result: Result) -> FixedPoint:
        """Return the fixed-point equations that a converged result solves, for derivatives."""
        raise InputError("algorithm", "one with fixed-point equations", repr(self.name), with_fact("implicit"))

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Find the `n` most probable assignments, best first; `n` is 1 where the facts say "one"."""
        raise InputError("algorithm", "one that maximises", repr(self.name), with_fact("maximises"))

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` assignments, shape (n, variables)."""
        raise InputError("algorithm", "one that samples", repr(self.name), with_fact("samples"))

    def shortage(self, potentials: Potentials) -> str:
        """Explain why `run` does not fit into its memory limit, with a remedy; empty if it fits or has no limit."""
        return ""

    def complaint(self, info: Info) -> str:
        """Return the text of the warning about a run, with a remedy; empty if there is nothing to warn about."""
        exactly = getattr(self, "iterations", None) is not None  # iterations=T asks for T of them, converged or not
        if info.note or info.converged or exactly:
            return f"{info.algorithm}: {info.note}" if info.note else ""
        error = "a standard error of" if self.facts.stochastic else "residual"
        ended = f"{info.algorithm} stopped after {info.iterations} iterations with {error} {info.residual:.2g}"
        return f"{ended}; {self.remedy(info)}"

    def remedy(self, info: Info) -> str:
        """Say what helps a run that did not converge."""
        return "raise max_iter"


ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm")


def register(cls: type[Algorithm]) -> type[Algorithm]:
    """Register an algorithm under its name (a class decorator)."""
    if cls.facts.stochastic and "random_state" not in {f.name for f in fields(cls)}:  # type: ignore[arg-type]
        raise InputError("facts", "an option random_state of a stochastic algorithm", f"{cls.__name__} without one")
    return ALGORITHMS.register(cls.name)(cls)


def make(algorithm: str | Algorithm, options: dict[str, Any]) -> Algorithm:
    """Return the algorithm given by a name or an object, with further options set."""
    return choose(ALGORITHMS, Algorithm, algorithm, options, "exact")  # type: ignore[type-abstract]


def with_fact(fact: str, *values: object) -> str:
    """Name the algorithms for which a fact holds, or has one of the values, as a remedy in an error."""
    facts = {name: getattr(cls.facts, fact) for name, cls in ALGORITHMS.items()}
    names = [repr(name) for name, value in facts.items() if (value in values if values else value)]
    return f"use {' or '.join(names)}" if names else ""
