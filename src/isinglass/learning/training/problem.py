"""Data and choices, made into functions of the parameters: of all examples, of a minibatch, of validation data.

`TrainingProblem` is what training asks of every kind of model; `GraphProblem` is that of conditional random fields.
"""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, Protocol, Self

import numpy as np

from isinglass.gradients.taping import FULL_BYTES
from isinglass.inference.algorithm import Algorithm, threaded_in_parts
from isinglass.learning.objective import Objective
from isinglass.learning.optimizers import Optimizer
from isinglass.learning.total import Total, blocks
from isinglass.learning.training.choices import Choices, GraphChoices
from isinglass.learning.training.keeping import Keeping
from isinglass.models import Model
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import ranges, starts
from isinglass.typing import Array, FloatArray, IntArray

_LIMITS = ("max_iter", "epochs", "tol", "ftol")  # options of an optimizer that may change between two runs


class TrainingObjective(Protocol):
    """A function to minimise, and how its last evaluation went."""

    @property
    def size(self) -> int:
        """Length of theta."""

    @property
    def iterations(self) -> int:
        """The most iterations that an inference took."""

    @property
    def converged_share(self) -> float:
        """The share of examples of which it is known that inference converged."""

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties."""


@dataclass(frozen=True, eq=False)
class TrainingProblem(ABC):
    """What training asks of data and choices; subclasses are frozen dataclasses."""

    chosen: Choices

    @property
    def optimizer(self) -> Optimizer[Any]:
        """What minimises."""
        return self.chosen.optimizer

    @property
    def sampled(self) -> bool:
        """Whether gradients are estimates by chains, so that training has no test of convergence."""
        return False

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of parameters."""

    @property
    @abstractmethod
    def n_examples(self) -> int:
        """How many examples minibatches are made of."""

    @abstractmethod
    def objective(self) -> TrainingObjective:
        """Return what is minimised."""

    def part_objective(self, rows: IntArray) -> TrainingObjective:
        """Return the objective of some examples, with their share of the penalty; for minibatches alone."""
        raise NotImplementedError

    def memory(self, evaluations: int) -> Mapping[str, Array]:
        """Return what an objective keeps between evaluations, for a checkpoint; nothing, if it is a pure function."""
        return {}

    def restore(self, evaluations: int, memory: Mapping[str, Array]) -> None:  # noqa: B027
        """Go on with what `memory` returned after so many evaluations."""

    def validation_objective(self) -> TrainingObjective | None:
        """Return the loss of the validation data, without penalties; None where there are none."""
        return None

    @abstractmethod
    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""

    def with_choices(self, chosen: Choices) -> Self:
        """Return other choices for the same data."""
        return replace(self, chosen=chosen)


@dataclass(frozen=True, eq=False)
class Data:
    """Labelled examples.

    Attributes
    ----------
    model : Model
        Of all examples.
    labels : int array (variables,)
        -1 where a variable was not observed.
    weights : array (variables,) or None
    part : callable
        From the indices of some examples, and None or a model whose structure may be used again, to their model.
    arrays : callable
        Returns what the examples are made of, for the fingerprint.
    numbers : int array (examples,), optional
        Which of the examples of the whole data these are; by default all of them.
    """

    model: Model
    labels: IntArray
    weights: FloatArray | None
    part: Callable[[IntArray, Model | None], Model]
    arrays: Callable[[], Iterable[Array]]
    numbers: IntArray | None = None

    @cached_property
    def examples(self) -> IntArray:
        """Which of the examples of the whole data these are."""
        return np.arange(len(self.sizes)) if self.numbers is None else self.numbers

    @cached_property
    def sizes(self) -> IntArray:
        """How many variables each example has."""
        return sizes_of(self.model)

    def rows(self, chosen: IntArray, like: Model | None = None) -> Data:
        """Return some examples, in one block."""
        where = ranges(starts(self.sizes)[chosen], self.sizes[chosen])
        weights = None if self.weights is None else self.weights[where]
        return Data(
            self.part(chosen, like),
            self.labels[where],
            weights,
            part=lambda rows, like: self.part(chosen[rows], like),
            arrays=self.arrays,
            numbers=self.examples[chosen],
        )

    def split(self) -> list[Data]:
        """Cut the examples into blocks."""
        found = blocks(self.sizes)
        examples = np.arange(len(self.sizes))
        return [self] if len(found) == 1 else [self.rows(examples[block]) for block in found]

    def contents(self) -> Iterable[Array]:
        """Return arrays that tell these data from others."""
        yield self.labels
        yield np.zeros(0) if self.weights is None else self.weights
        yield from self.arrays()


@dataclass(frozen=True, eq=False)
class GraphProblem(TrainingProblem):
    """The training of a conditional random field."""

    chosen: GraphChoices
    data: Data
    validation: Data | None
    classes: tuple[Any, ...] = field(default=(), kw_only=True)  # the label of each state
    compiled: dict[int, Model] = field(default_factory=dict, init=False, repr=False)  # the last minibatch of each size
    keeping: Keeping = field(default_factory=Keeping, init=False, repr=False)  # of losses with a memory

    @property
    def sampled(self) -> bool:
        """Whether the loss samples."""
        return self.chosen.loss.facts.sampled

    @property
    def size(self) -> int:
        """The number of parameters, of all iterations that have their own."""
        return self.data.model.size * self.chosen.per_iteration

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return len(self.data.sizes)

    def objective(self) -> Total:
        """Return what is minimised."""
        return self._total(self.data, 1.0)

    def part_objective(self, rows: IntArray) -> Total:
        """Return the objective of some examples, with their share of the penalty."""
        data = self.data.rows(rows, self.compiled.get(len(rows)))
        found = self._total(data, len(rows) / self.n_examples)
        if len(found.parts) == 1:
            self.compiled[len(rows)] = found.parts[0].model
        return found

    def validation_objective(self) -> Total | None:
        """Return the loss of the validation data, without penalties."""
        return None if self.validation is None else self._total(self.validation, 0.0)

    def memory(self, evaluations: int) -> Mapping[str, Array]:
        """Return what the loss keeps of the examples after so many evaluations."""
        return self.keeping.arrays(evaluations) if self.chosen.loss.facts.sampled else {}

    def restore(self, evaluations: int, memory: Mapping[str, Array]) -> None:
        """Go on with what a checkpoint has of the examples."""
        if self.chosen.loss.facts.sampled:
            self.keeping.restore(evaluations, memory, self.n_examples)

    def tape(self) -> str | None:
        """Return the tape of an inference that training goes back through, "full" or "sqrt"; None: there is none."""
        algorithm, graph = self.chosen.algorithm, self.data.model.graph
        needs_none = self.chosen.loss.facts.uses == "potentials" or not algorithm.facts.iterative
        if needs_none or not self.chosen.rule.of_iterations:
            return None
        each = algorithm.tape_bytes(graph)
        parts = blocks(self.data.sizes) if algorithm.splits else [slice(None)]
        return "sqrt" if max(each[part].sum() for part in parts) > FULL_BYTES else "full"

    def with_choices(self, chosen: Choices) -> Self:
        """Return other choices for the same data."""
        assert isinstance(chosen, GraphChoices)
        return super().with_choices(chosen.for_model(self.data.model))

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen, model = self.chosen, self.data.model
        made = chosen.algorithm, chosen.loss, chosen.rule, chosen.optimizer, chosen.penalty, chosen.per_iteration
        terms = [repr(term) for term in model.terms]
        held = None if self.validation is None else list(self.validation.contents())
        return fingerprint(made, terms, model.parameters, start, list(self.data.contents()), held)

    def _total(self, data: Data, share: float) -> Total:
        chosen = self.chosen
        parts = data.split() if chosen.algorithm.splits else [data]
        penalty = share * np.tile(chosen.penalty.of(data.model), chosen.per_iteration)
        algorithm = threaded_in_parts(chosen.algorithm, chosen.jobs, len(parts))
        examples = partial(self._examples, data)
        found = [self._objective(part, algorithm) for part in parts]
        numbers = np.concatenate([part.examples for part in parts])
        keep = partial(self._keep, numbers) if chosen.loss.facts.sampled else None
        return Total(found, penalty, chosen.jobs, examples, keep)

    def _keep(self, numbers: IntArray, parts: Sequence[Objective]) -> None:
        """Keep what the loss wants to keep of each example, after a whole evaluation."""
        self.keeping.put(numbers, [one for part in parts for one in part.kept])

    def _examples(self, data: Data) -> list[Objective]:
        """Compile each example alone."""
        one = self.chosen.algorithm
        return [self._objective(data.rows(np.array([i])), one) for i in range(len(data.sizes))]

    def _objective(self, data: Data, algorithm: Algorithm) -> Objective:
        chosen = self.chosen
        recall = partial(self.keeping.of, data.examples) if chosen.loss.facts.sampled else None
        return Objective(
            data.model,
            data.labels,
            chosen.loss,
            algorithm,
            chosen.rule,
            weights=data.weights,
            stages=chosen.per_iteration,
            recall=recall,
        )


def fingerprint(*values: Any) -> str:
    """Return a text that tells numbers, texts, arrays, collections and objects with options from others.

    Functions and classes count by their names. Limits of an optimizer, the number of threads and the state of a
    generator are left out: a run may go on with others.

    Examples
    --------
    >>> fingerprint(1.0, np.zeros(3)) == fingerprint(1.0, np.zeros(3)), fingerprint(1.0) == fingerprint(2.0)
    (True, False)
    """
    return hashlib.sha256(repr(_plain_options(values)).encode()).hexdigest()


def _plain_options(value: Any) -> Any:
    """Return what `repr` prints in full, for `fingerprint`."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, str | bytes | int | float | complex | np.generic):
        return value
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, hashlib.sha256(value.tobytes()).digest()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain_options(item) for item in value]
    if isinstance(value, set | frozenset | Mapping):
        items = value.items() if isinstance(value, Mapping) else value
        return type(value).__name__, sorted(repr(_plain_options(item)) for item in items)
    if isinstance(value, partial):
        return "partial", _plain_options((value.func, value.args, value.keywords))
    named = value if callable(value) and hasattr(value, "__name__") else type(value)
    name = f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named.__name__)}"
    if named is value or isinstance(value, np.random.Generator):
        return "name", name
    if not hasattr(value, "__dict__"):
        return name, repr(value)
    options = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else vars(value)
    limits = ("n_jobs", *(_LIMITS if isinstance(value, Optimizer) else ()))
    return name, _plain_options({key: option for key, option in options.items() if key not in limits})


def sizes_of(model: Model) -> IntArray:
    """Return how many variables each example has."""
    return np.bincount(model.graph.variable_component, minlength=model.graph.n_components)


def cut(theta: FloatArray, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, FloatArray]:
    """Cut a vector into parameters of these shapes; where those of nodes have three axes, the first are iterations.

    Examples
    --------
    >>> found = cut(np.arange(6.0), {"node": (2, 1, 2), "edge": (2, 1)})
    >>> found["node"].tolist(), found["edge"].tolist()
    ([[[0.0, 1.0]], [[3.0, 4.0]]], [[2.0], [5.0]])
    """
    count = shapes["node"][0] if len(shapes["node"]) == 3 else 1
    ends = np.cumsum([math.prod(shape) // count for shape in shapes.values()])[:-1]
    parts = zip(shapes.items(), np.split(theta.reshape(count, -1), ends, axis=1), strict=True)
    return {name: part.reshape(shape).copy() for (name, shape), part in parts}
