"""The training of a Markov random field: its choices, and its problem."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from isinglass.errors import InputError
from isinglass.gradients import GradientRule
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import Algorithm
from isinglass.learning.markov import MarkovObjective, Method, Samples, Task, TermCounts
from isinglass.learning.training.choices import Choices
from isinglass.learning.training.problem import TrainingProblem, fingerprint
from isinglass.models import Model
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class MarkovChoices(Choices):
    """What the parameters of a Markov random field stand for."""

    method: Method
    algorithm: Algorithm
    rule: GradientRule
    virtual: float = 0.0
    groups: float = 0.0
    extended: bool = False


@dataclass(frozen=True, eq=False)
class MarkovProblem(TrainingProblem):
    """The training of a Markov random field; equal samples are added up before it."""

    chosen: MarkovChoices
    model: Model
    samples: Samples

    @property
    def sampled(self) -> bool:
        """Whether the method samples."""
        return self.chosen.method.facts.sampled

    @property
    def size(self) -> int:
        """The number of parameters."""
        return self.model.size

    @property
    def n_examples(self) -> int:
        """How many different samples there are; where chains are sampled, a step sees all of them as one."""
        return 1 if self.chosen.method.facts.sampled else len(self.samples.weights)

    def objective(self) -> MarkovObjective:
        """Return what is minimised."""
        return self._objective

    def part_objective(self, rows: IntArray) -> MarkovObjective:
        """Return the objective whose gradients are sampled."""
        return self._objective

    def memory(self, evaluations: int) -> Mapping[str, Array]:
        """Return the chains after so many evaluations."""
        return self._objective.memory(evaluations)

    def restore(self, evaluations: int, memory: Mapping[str, Array]) -> None:
        """Go on with chains of a checkpoint."""
        self._objective.restore(evaluations, memory)

    def fingerprint(self, start: FloatArray) -> str:
        """Return a text that another problem, by data or choices, does not have; limits of the run may differ."""
        chosen, model, samples = self.chosen, self.model, self.samples
        made = chosen.method, chosen.algorithm, chosen.rule, chosen.optimizer, chosen.l2, chosen.virtual
        tables = model.potentials(np.linspace(-1.0, 1.0, model.size)).groups  # which tell one model from another
        graph = model.graph.cards, *(group.scopes for group in model.graph.groups), *model.table_ids
        return fingerprint(made, model.parameters, tables, graph, start, samples.states, samples.weights)

    def task(self) -> Task:
        """Return what is to be learned from what."""
        chosen = self.chosen
        penalties = chosen.l2, chosen.virtual
        return Task(self.model, self.samples, chosen.algorithm, chosen.rule, *penalties, chosen.jobs, chosen.extended)

    @cached_property
    def _objective(self) -> MarkovObjective:
        return self.chosen.method.objective(self.task())


def is_exact(algorithm: Algorithm, graph: FactorGraph) -> bool:
    """Tell whether an inference is exact on a graph."""
    exact = algorithm.facts.exact
    return exact == "always" or (exact == "forests" and graph.is_forest)


def used_terms(found: TermCounts) -> TermCounts:
    """Return the counts of terms of a pseudolikelihood; warn of values that have none."""
    reason = "a value that shares a factor with them is missing"
    if found.left_out == found.observed:
        got = f"{found.observed} observed values, none of which can be used: {reason}"
        raise InputError("X", "fewer missing values for method='pseudo'", got, "use method='ml'")
    if found.left_out:
        lost = f"; nothing is used of {found.samples_left_out} of {found.samples} samples"
        rows = lost if found.samples_left_out else ""
        text = f"the pseudolikelihood leaves out {found.left_out} of {found.observed} observed values: {reason}{rows}"
        warnings.warn(f"{text}; method='ml' uses all", UserWarning, stacklevel=6)  # where `fit` is called
    return found
