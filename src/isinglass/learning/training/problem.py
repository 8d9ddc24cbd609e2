"""Data and choices, made into functions of the parameters: of all examples, of a minibatch, of validation data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from isinglass.gradients.taping import FULL_BYTES
from isinglass.learning.objective import Objective
from isinglass.learning.optimizers import Optimizer
from isinglass.learning.total import Total, blocks
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.fingerprints import fingerprint
from isinglass.models import Model
from isinglass.typing import Array, FloatArray, IntArray


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
    """

    model: Model
    labels: IntArray
    weights: FloatArray | None
    part: Callable[[IntArray, Model | None], Model]
    arrays: Callable[[], Iterable[Array]]

    @cached_property
    def sizes(self) -> IntArray:
        """How many variables each example has."""
        return sizes_of(self.model)

    def rows(self, chosen: IntArray, like: Model | None = None) -> Data:
        """Return some examples."""
        sizes = self.sizes
        ends = np.cumsum(sizes)
        where = np.concatenate([np.arange(ends[i] - sizes[i], ends[i]) for i in chosen.tolist()])
        weights = None if self.weights is None else self.weights[where]
        return Data(
            self.part(chosen, like),
            self.labels[where],
            weights,
            part=lambda rows, like: self.part(chosen[rows], like),
            arrays=self.arrays,
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
class Problem:
    """All that training needs to know."""

    chosen: Choices
    data: Data
    validation: Data | None
    compiled: dict[int, Model] = field(default_factory=dict, init=False, repr=False)  # the last minibatch of each size

    @property
    def optimizer(self) -> Optimizer[Any, Any]:
        """What minimises."""
        return self.chosen.optimizer

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

    def tape(self) -> str | None:
        """Return the tape of an inference that training goes back through, "full" or "sqrt"; None: there is none."""
        algorithm, graph = self.chosen.algorithm, self.data.model.graph
        needs_none = self.chosen.loss.facts.uses == "potentials" or not algorithm.facts.iterative
        if needs_none or not self.chosen.rule.of_iterations:
            return None
        each = algorithm.tape_bytes(graph)
        parts = blocks(self.data.sizes) if algorithm.splits else [slice(None)]
        return "sqrt" if max(each[part].sum() for part in parts) > FULL_BYTES else "full"

    def with_choices(self, chosen: Choices) -> Problem:
        """Return other choices for the same data."""
        return Problem(chosen.for_model(self.data.model), self.data, self.validation)

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen, model = self.chosen, self.data.model
        made = chosen.algorithm, chosen.loss, chosen.rule, chosen.optimizer, chosen.l2, chosen.own
        terms = [repr(term) for term in model.terms]
        held = None if self.validation is None else list(self.validation.contents())
        return fingerprint(made, terms, model.parameters, start, list(self.data.contents()), held)

    def _total(self, data: Data, share: float) -> Total:
        chosen = self.chosen
        parts = data.split() if chosen.algorithm.splits else [data]
        penalty = share * np.tile(chosen.l2.of(data.model), chosen.own)
        return Total([self._objective(part) for part in parts], penalty, chosen.jobs)

    def _objective(self, data: Data) -> Objective:
        chosen = self.chosen
        choices = chosen.loss, chosen.algorithm, chosen.rule
        return Objective(data.model, data.labels, *choices, weights=data.weights, stages=chosen.own)


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
    own = shapes["node"][0] if len(shapes["node"]) == 3 else 1
    ends = np.cumsum([math.prod(shape) // own for shape in shapes.values()])[:-1]
    parts = zip(shapes.items(), np.split(theta.reshape(own, -1), ends, axis=1), strict=True)
    return {name: part.reshape(shape).copy() for (name, shape), part in parts}
