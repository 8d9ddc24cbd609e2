"""The interface of an inference algorithm: a frozen dataclass of options, declared facts, pure methods on potentials.

An algorithm registers its class under a public name. It implements `cost` and `run` (beliefs and log Z) and, if
its facts say so, `maximise` and `sample`. The facts are guarantees: the conformance suite of
`isinglass.testing` checks each of them for every registered algorithm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.assignment import Assignment
from isinglass.inference.result import Bound, Info, Result
from isinglass.models.inference import InferenceModel
from isinglass.models.model import Model
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose, require_declared
from isinglass.removed import RemovedOptions
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, generator, jobs_of

Progress = Callable[[str, float], None]
"""Called with the name of a stage and the fraction of it that is done."""

_ALONE: ContextVar[bool] = ContextVar("isinglass_beliefs_alone", default=False)

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
        from `streams`, and reports standard errors in its `Info`.
    log_z : bool
        Whether it estimates log Z; without it `Result.component_log_z` is nan.
    threads : bool
        Whether it has an option `n_jobs`, the number of threads, which changes nothing but the time.
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
    stochastic: bool = False
    log_z: bool = True
    threads: bool = False
    blockwise: bool = False


@dataclass(frozen=True)
class Cost:
    """What an algorithm would need: memory in bytes, elementary steps (of one iteration), and both as text."""

    bytes: float
    steps: float
    text: str


BeliefsOfCopies = Callable[[FloatArray], FloatArray | None]
"""From log tables (copies * variables, states), which it may overwrite, to beliefs, or None if it has not found them.

They are those of `run`, to the last bit."""

Groups = tuple[Array, ...]
"""Derivatives with respect to the log tables, shaped like `Potentials.groups`."""


class FixedPoint(Protocol):
    """Vector-Jacobian products of a fixed point s = F(s, phi), and of beliefs and log Z as functions of (s, phi)."""

    def read_out_back(self, z_bar: Array, variables_bar: Array, factors_bar: Array) -> tuple[Array, Groups]:
        """Map derivatives by log Z and the (flat) beliefs to derivatives by s and, with s held fixed, by phi."""

    def back(self, state_bar: Array) -> tuple[Array, Groups]:
        """Map derivatives by F to derivatives by s and phi."""


class Algorithm(RemovedOptions, ABC):
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

    def check(self, graph: FactorGraph) -> None:
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

    def linearised(self, result: Result) -> FixedPoint:
        """Return the fixed-point equations that a converged result solves, for derivatives."""
        raise InputError("algorithm", "one with fixed-point equations", repr(self.name), with_fact("implicit"))

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Find the `n` most probable assignments, best first; `n` is 1 where the facts say "one"."""
        remedy = f"{with_fact('maximises')}, or a MAP solver, such as 'auto' (`isinglass.map_solvers` lists them)"
        raise InputError("algorithm", "one that maximises", repr(self.name), remedy)

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw `n` assignments, shape (n, variables)."""
        raise InputError("algorithm", "one that samples", repr(self.name), with_fact("samples"))

    def copies(self, potentials: Potentials) -> BeliefsOfCopies | None:
        """Return how to infer many copies of a graph that differ in their factors of arity one alone.

        None where there is no quicker way than to infer them as one batch.
        """
        return None

    def shortage(self, potentials: Potentials) -> str:
        """Explain why `run` does not fit into its memory limit, with a remedy; empty if it fits or has no limit."""
        return ""

    def complaint(self, info: Info) -> str:
        """Return the text of the warning about a run, with a remedy; empty if there is nothing to warn about."""
        exactly = self.iterations is not None  # iterations=T asks for T of them, converged or not
        if info.note or info.converged or exactly:
            return f"{info.algorithm}: {info.note}" if info.note and not self.facts.stochastic else ""
        error = "standard errors of beliefs up to" if self.facts.stochastic else "residual"
        ended = f"{info.algorithm} stopped after {info.iterations} iterations with {error} {info.residual:.2g}"
        return f"{ended}; {self.remedy(info)}"

    def remedy(self, info: Info) -> str:
        """Say what helps a run that did not converge."""
        return "raise max_iter"


ALGORITHMS: Registry[type[Algorithm]] = Registry("algorithm")


def register(cls: type[Algorithm]) -> type[Algorithm]:
    """Register an algorithm under its name (a class decorator)."""
    require_declared(cls, name=str, facts=Facts)
    if cls.facts.stochastic and "random_state" not in {f.name for f in fields(cls)}:  # type: ignore[arg-type]
        raise InputError("facts", "an option random_state of a stochastic algorithm", f"{cls.__name__} without one")
    return ALGORITHMS.register(cls.name)(cls)


def make(algorithm: str | Algorithm, options: dict[str, Any]) -> Algorithm:
    """Return the algorithm given by a name or an object, with further options set."""
    return choose(ALGORITHMS, Algorithm, algorithm, options, "exact")  # type: ignore[type-abstract]


def streams(potentials: Potentials, random_state: RandomState) -> list[np.random.Generator]:
    """Return a stream of random numbers for each component (example): it is seeded by the seed and by its number.

    So an example draws other numbers than those beside it, whatever they are. A generator is advanced by one draw.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]])
    >>> bool(streams(p, 0)[0].random() == streams(p.repeat(5), 0)[0].random())
    True
    """
    words = generator(random_state).integers(0, 2**32, 4, np.uint32).tolist()
    return [np.random.default_rng((*words, number)) for number in range(potentials.graph.n_components)]


def threaded(algorithm: Algorithm, n_jobs: int | None) -> Algorithm:
    """Return the algorithm with so many threads, where it can have some; None leaves it as it is.

    Examples
    --------
    >>> from isinglass.inference import BeliefPropagation
    >>> threaded(BeliefPropagation(), 2).n_jobs
    2
    """
    jobs = jobs_of(n_jobs)
    if n_jobs is None or not algorithm.facts.threads:
        return algorithm
    return replace(algorithm, n_jobs=jobs)  # type: ignore[type-var]


def threaded_in_parts(algorithm: Algorithm, jobs: int, parts: int) -> Algorithm:
    """Return the algorithm with the threads that are left for each of several parts that are worked on in parallel.

    A number of threads that it was given stays, unless there are several jobs.
    """
    given = jobs == 1 and getattr(algorithm, "n_jobs", None) is not None
    return algorithm if given else threaded(algorithm, max(1, jobs // parts))


@contextmanager
def beliefs_alone() -> Iterator[None]:
    """Let no inference of given iterations, here and in threads that work for this one, find out whether it converged.

    That is for who reads the beliefs and does not look at `info`.

    Examples
    --------
    >>> with beliefs_alone():
    ...     judges_convergence()
    False
    >>> judges_convergence()
    True
    """
    before = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(before)


def judges_convergence() -> bool:
    """Tell whether somebody may want to know whether given iterations converged."""
    return not _ALONE.get()


def with_fact(fact: str, *values: object) -> str:
    """Name the algorithms for which a fact holds, or has one of the values, as a remedy in an error."""
    facts = {name: getattr(cls.facts, fact) for name, cls in ALGORITHMS.items()}
    names = [repr(name) for name, value in facts.items() if (value in values if values else value)]
    return f"use {' or '.join(names)}" if names else ""
