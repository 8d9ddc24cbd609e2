"""What a Markov random field without inputs minimises, given samples x_n with weights w_n.

    ml        f(theta) = sum_n w_n ( log Z(theta) - log Z(theta; x_n) ) + sum_j l2_j theta_j²
    pseudo    f(theta) = - sum_n w_n sum_i log p(x_ni | what else is observed of x_n) + sum_j l2_j theta_j²

Z(theta; x) is the sum over what is missing in x. For whole samples it is one term, and only how often each table entry
was seen matters: one inference for all of them, whatever their number. Those with missing values are copies of the
graph side by side, each with its evidence (Murphy 2012, section 19.5.1 and 19.5.2). The terms of a pseudolikelihood sum
over the missing values that they hang on, where those have few joint states; others are left out, and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from isinglass.gradients import GradientRule
from isinglass.inference import Algorithm, Info
from isinglass.losses import Evaluation, Likelihood, Pseudolikelihood
from isinglass.losses.likelihood import log_z_loss
from isinglass.losses.pseudo import PseudoTerms
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray, Mask
from isinglass.validation import distinct_rows

Groups = tuple[Array, ...]
JOINT_STATES = 256  # the most that a term of a pseudolikelihood sums over


class TermCounts(NamedTuple):
    """What a pseudolikelihood uses of some samples.

    Attributes
    ----------
    observed : int
        Values that are not missing: each should have a term.
    given_neighbours : int
        Terms of values all of whose neighbours are observed.
    summed : int
        Terms with an exact sum over missing neighbours.
    left_out : int
        Values without a term, as it would be a sum over too many joint states.
    samples, samples_left_out : int
        Samples with observed values, and those of them without any term.
    """

    observed: int
    given_neighbours: int
    summed: int
    left_out: int
    samples: int
    samples_left_out: int


@dataclass(frozen=True, eq=False)
class Samples:
    """Distinct samples and their weights.

    Attributes
    ----------
    states : int array (samples, variables)
        -1 where a value is missing.
    weights : array (samples,)
    counts : int array (samples,), optional
        How many of the user's samples each stands for; by default one.
    """

    states: IntArray
    weights: FloatArray
    counts: IntArray | None = None

    @classmethod
    def of(cls, states: IntArray, weights: FloatArray) -> Samples:
        """Add up the weights of equal samples; those of weight zero go.

        Examples
        --------
        >>> s = Samples.of(np.array([[0, 1], [1, 1], [0, 1]]), np.ones(3))
        >>> s.states.tolist(), s.weights.tolist()
        ([[0, 1], [1, 1]], [2.0, 1.0])
        """
        distinct, where = distinct_rows(states)
        total = np.asarray(np.bincount(where, weights, len(distinct)), np.float64)
        counts = np.bincount(where[weights > 0], minlength=len(distinct))
        return cls(distinct[total > 0], total[total > 0], counts[total > 0])

    @property
    def whole(self) -> Mask:
        """Which samples miss nothing."""
        return np.asarray((self.states >= 0).all(axis=1))

    def only(self, chosen: Mask) -> Samples:
        """Return some of them."""
        return Samples(self.states[chosen], self.weights[chosen])


class Copies:
    """One copy of a graph for each sample, side by side."""

    def __init__(self, model: Model, samples: Samples) -> None:
        n = len(samples.weights)
        self.graph = model.graph.repeat(n)
        self.table_ids = [np.tile(ids, n) for ids in model.table_ids]
        self.labels = samples.states.ravel()
        self.variable_weights = np.repeat(samples.weights, model.graph.n_variables)
        self.component_weights = np.repeat(samples.weights, model.graph.n_components)

    def potentials(self, one: Potentials) -> Potentials:
        """Return the copies of potentials, which share their tables."""
        return Potentials._build(self.graph, one.groups, self.table_ids, {})


@dataclass(eq=False)
class MarkovObjective:
    """A function of the parameters: ``objective(theta)`` returns its value and gradient.

    Parameters
    ----------
    model : Model
        Of one sample.
    samples : Samples
    method : "ml" or "pseudo"
    algorithm : Algorithm
        For "ml": the inference that gives log Z.
    rule : GradientRule
    l2 : float or array (size,)
    """

    model: Model
    samples: Samples
    method: str
    algorithm: Algorithm
    rule: GradientRule
    l2: float | FloatArray = 0.0
    infos: list[Info] = field(default_factory=list, init=False)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient."""
        potentials = self.model.potentials(theta)
        found = self._pseudo(potentials) if self.method == "pseudo" else self._likelihood(potentials)
        value, groups, self.infos = float(found.value), found.groups, list(found.infos)
        slope = self.model.transpose(groups)
        return value + float((self.l2 * theta**2).sum()), slope + 2 * self.l2 * theta

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.model.size

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties."""
        return self(theta)[0] - float((self.l2 * theta**2).sum())

    @property
    def iterations(self) -> int:
        """The most iterations that an inference took in the last evaluation."""
        return max((info.iterations for info in self.infos), default=0)

    @property
    def converged_share(self) -> float:
        """The share of components of which it is known that every inference converged in the last evaluation."""
        return max(0.0, 1.0 - sum(1 - info.converged_share for info in self.infos))

    def _pseudo(self, potentials: Potentials) -> Evaluation:
        copies = self._all
        return _total(*self._terms.value_and_grad(copies.potentials(potentials), copies.variable_weights))

    def term_counts(self) -> TermCounts:
        """Count what the pseudolikelihood uses."""
        samples, terms = self.samples, self._terms
        counts = np.ones(len(samples.weights), np.int64) if samples.counts is None else samples.counts
        asked, used, plain = (mask.reshape(len(counts), -1) for mask in (terms.asked, terms.used, terms.plain))
        observed, kept, direct = (int(mask.sum(axis=1) @ counts) for mask in (asked, used, plain))
        seen, lost = asked.any(axis=1), asked.any(axis=1) & ~used.any(axis=1)
        return TermCounts(
            observed, direct, kept - direct, observed - kept, int(counts[seen].sum()), int(counts[lost].sum())
        )

    def _likelihood(self, potentials: Potentials) -> Evaluation:
        every = np.full(self.model.graph.n_components, self.samples.weights.sum())
        scores = [(tables * seen).sum() for tables, seen in zip(potentials.groups, self._seen, strict=True)]
        found = self._log_z(potentials, every) - Evaluation(np.asarray(sum(scores)), self._seen)
        if self._partial is None:
            return found
        copies = self._partial
        clamped = Likelihood().clamp(copies.potentials(potentials), copies.labels)
        return found - self._log_z(clamped, copies.component_weights)

    def _log_z(self, potentials: Potentials, weights: FloatArray) -> Evaluation:
        found = self.rule.evaluate(potentials, self.algorithm, log_z_loss(weights))
        return _total(found.value, found.groups, found.infos)

    @cached_property
    def _all(self) -> Copies:
        return Copies(self.model, self.samples)

    @cached_property
    def _terms(self) -> PseudoTerms:
        zeros = self.model.potentials(np.zeros(self.model.size))
        return Pseudolikelihood(JOINT_STATES).terms(self._all.potentials(zeros), self._all.labels)

    @cached_property
    def _partial(self) -> Copies | None:
        """The samples that miss something."""
        rest = self.samples.only(~self.samples.whole)
        return Copies(self.model, rest) if len(rest.weights) else None

    @cached_property
    def _seen(self) -> Groups:
        """How often each entry of each table was seen in the whole samples."""
        whole = self.samples.only(self.samples.whole)
        zeros = self.model.potentials(np.zeros(self.model.size))
        if not len(whole.weights):
            return tuple(np.zeros_like(tables) for tables in zeros.groups)
        copies = Copies(self.model, whole)
        return Likelihood().score(copies.potentials(zeros), copies.labels, copies.variable_weights)[1]


def _total(value: Array, groups: Groups, infos: tuple[Info, ...] = ()) -> Evaluation:
    """Return an evaluation whose value is the sum over all components."""
    return Evaluation(value.sum(), groups, infos)
