"""Pseudolikelihood of a Markov random field (Besag 1975; Murphy 2012, section 19.5.4).

    f(theta) = - sum_n w_n sum_i log p(x_ni | what else is observed of x_n)

Values with a missing neighbour have no term; they are left out, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.markov.local.pairwise import PairwiseScores, conditional_terms
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task, total
from isinglass.learning.markov.samples import Copies, TermCounts
from isinglass.losses import Evaluation, Loss, Pseudolikelihood
from isinglass.losses.pseudo import PseudoTerms
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property


class PseudoObjective(MarkovObjective):
    """Minus the pseudo-log-likelihood."""

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the sum over all terms; nothing is inferred."""
        if self.pairwise is not None:
            return self.pairwise.evaluate(potentials, conditional_terms)
        copies = self.copies
        return total(*self.terms.value_and_grad(copies.potentials(potentials), copies.variable_weights))

    def term_counts(self) -> TermCounts:
        """Count what the pseudolikelihood uses."""
        samples = self.samples
        counts = np.ones(len(samples.weights), np.int64) if samples.counts is None else samples.counts
        if self.pairwise is not None:
            all_rows = int(counts.sum())
            values = all_rows * self.model.graph.n_variables
            return TermCounts(values, 0, all_rows, 0)
        terms = self.terms
        shown, used = (mask.reshape(len(counts), -1) for mask in (terms.observed, terms.used))
        observed, kept = (int(mask.sum(axis=1) @ counts) for mask in (shown, used))
        seen, lost = shown.any(axis=1), shown.any(axis=1) & ~used.any(axis=1)
        return TermCounts(observed, observed - kept, int(counts[seen].sum()), int(counts[lost].sum()))

    @cached_property
    def pairwise(self) -> PairwiseScores | None:
        """Scores by products of matrices, where those are worth it."""
        return PairwiseScores.of(self.task)

    @cached_property
    def copies(self) -> Copies:
        """A copy of the graph for each sample."""
        return Copies(self.model, self.samples)

    @cached_property
    def terms(self) -> PseudoTerms:
        """The terms, laid out."""
        zeros = self.model.potentials(np.zeros(self.model.size))
        return Pseudolikelihood().terms(self.copies.potentials(zeros), self.copies.labels)


@register
@dataclass(frozen=True)
class MaximumPseudolikelihood(Method):
    """Maximum pseudolikelihood: ``"pseudo"``."""

    name: ClassVar[str] = "pseudo"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "- sum_n w_n sum_i log p(x_ni | x_n,rest)",
        consistent=True,
        convex=True,
        log_z=False,
        missing=True,
        virtual=False,
        note="needs no inference; values with a missing neighbour are left out, with a warning",
    )

    @property
    def loss(self) -> Loss:
        """The loss of one sample."""
        return Pseudolikelihood()

    def objective(self, task: Task) -> PseudoObjective:
        """Return minus the pseudo-log-likelihood."""
        return PseudoObjective(task)

    def terms(self, objective: MarkovObjective) -> TermCounts:
        """Count the terms."""
        assert isinstance(objective, PseudoObjective)
        return objective.term_counts()
