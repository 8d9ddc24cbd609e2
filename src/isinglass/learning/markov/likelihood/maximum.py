"""Maximum likelihood of a Markov random field (Murphy 2012, sections 19.5.1 and 19.5.2).

    f(theta) = sum_n w_n ( log Z(theta) - log Z(theta; x_n) )

Z(theta; x) is the sum over what is missing in x. For whole samples it is one term, and only how often each table entry
was seen matters: one inference for all of them, whatever their number. Those with missing values are copies of the
graph side by side, each with its evidence.

A conjugate prior adds `virtual` samples of the model with theta = 0: uniform ones, where nothing is forbidden. It is a
Dirichlet prior on the joint table, restricted to the model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task, total
from isinglass.learning.markov.samples import Copies, Samples
from isinglass.losses import Evaluation, Likelihood
from isinglass.losses.likelihood import log_z_loss
from isinglass.losses.observed import table_strides
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, Mask

AT_ONCE = 1_000_000  # pairs of samples and factors that are counted together
HIDDEN_START = 0.1  # the standard deviation of parameters at the start, where variables are hidden


class LikelihoodObjective(MarkovObjective):
    """Minus the log-likelihood, with the log Z of an inference."""

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return log Z for all samples, less the scores of what they show."""
        found = self.complete(potentials, self.seen)
        if self.partial is None:
            return found
        return found - self.log_z(self.clamped(potentials), self.partial.component_weights)

    def unseen(self) -> tuple[Mask, ...] | None:
        """Return which entries of tables with parameters no sample shows; None where there are none, or no tables."""
        if not self.model.is_table_model:
            return None
        free = set(self.model.free_factors.tolist())
        pairs = zip(self.model.graph.groups, self.seen, strict=True)
        zeros = tuple(np.asarray(seen <= 0) & bool(free & set(group.factors.tolist())) for group, seen in pairs)
        return zeros if any(zero.any() for zero in zeros) else None

    def complete(self, potentials: Potentials, counts: Groups) -> Evaluation:
        """Return log Z for all samples, less the score of given counts of table entries."""
        every = np.full(self.model.graph.n_components, self.weight)
        pairs = zip(potentials.groups, counts, strict=True)
        score = sum((np.where(seen > 0, tables, 0.0) * seen).sum() for tables, seen in pairs)
        return self.log_z(potentials, every) - Evaluation(np.asarray(score), counts)

    def log_z(self, potentials: Potentials, weights: FloatArray) -> Evaluation:
        """Return log Z of all components, each times its weight, and its derivative: expected counts."""
        found = self.task.rule.evaluate(potentials, self.task.algorithm, log_z_loss(weights))
        return total(found.value, found.groups, found.infos)

    def clamped(self, potentials: Potentials) -> Potentials:
        """Return copies of the potentials for the samples with missing values, with what they show as evidence."""
        assert self.partial is not None
        return Likelihood().clamp(self.partial.potentials(potentials), self.partial.labels)

    @property
    def weight(self) -> float:
        """The weight of all samples, virtual ones included."""
        return float(self.samples.weights.sum()) + self.task.virtual

    @cached_property
    def partial(self) -> Copies | None:
        """The samples that miss something."""
        rest = self.samples.only(~self.samples.whole)
        return Copies(self.model, rest) if len(rest.weights) else None

    @cached_property
    def seen(self) -> Groups:
        """How often each entry of each table was seen in the whole samples, and in the virtual ones."""
        whole = self.samples.only(self.samples.whole)
        start = self.model.potentials(np.zeros(self.model.size))
        virtual = self.log_z(start, np.full(self.model.graph.n_components, self.task.virtual)).groups
        if not len(whole.weights):
            return virtual
        found = counted(start, whole)
        return tuple(a + b for a, b in zip(found, virtual, strict=True)) if self.task.virtual else found


def counted(potentials: Potentials, samples: Samples) -> Groups:
    """Return how often complete samples show each entry of each table; refuse those that a hard zero forbids.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    >>> counted(p, Samples(np.array([[0, 1], [1, 1]]), np.array([3.0, 2.0])))[0].tolist()
    [[[0.0, 3.0], [0.0, 2.0]]]
    """
    found = []
    for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
        counts = np.zeros(tables.size)
        step = max(1, AT_ONCE // max(len(samples.weights), 1))
        strides = table_strides(group)
        for k in range(0, len(group), step):
            scopes = group.scopes[k : k + step]
            entries = np.zeros((len(samples.weights), len(scopes)), np.int64) + ids[k : k + step] * group.table_size
            for members, stride in zip(scopes.T, strides, strict=True):
                entries += samples.states[:, members] * stride
            weights = np.repeat(samples.weights, entries.shape[1])
            counts += np.bincount(entries.ravel(), weights, tables.size)
        found.append(counts.reshape(tables.shape))
        forbidden = tables.real == -np.inf
        if forbidden.any() and (found[-1][forbidden] > 0).any():
            raise InputError("X", "samples that the model allows", "others", "a hard zero (-inf) forbids them")
    return tuple(found)


@register
@dataclass(frozen=True)
class MaximumLikelihood(Method):
    """Maximum likelihood by gradients: ``"ml"``."""

    name: ClassVar[str] = "ml"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "sum_n w_n (log Z - log Z(x_n))",
        consistent=True,
        convex=True,
        missing=True,
        likelihood=True,
        note="a surrogate where inference is approximate; not convex where values are missing",
    )

    def objective(self, task: Task) -> LikelihoodObjective:
        """Return minus the log-likelihood."""
        made = LikelihoodObjective(task)
        made.zeros = made.unseen() if task.extended else None
        return made

    def start(self, objective: MarkovObjective, theta: FloatArray) -> FloatArray:
        """Leave the saddle point at zero, where variables are hidden."""
        return away_from_symmetry(objective, theta)


def away_from_symmetry(objective: MarkovObjective, theta: FloatArray, random_state: int = 0) -> FloatArray:
    """Return small random parameters instead of zeros, where some variable is hidden.

    The states of a hidden variable are alike at theta = 0, so that this is a saddle point: no gradient, and no step of
    expectation maximisation, ever tells them apart. Samples that show nothing else do not change that, nor samples that
    show it in all of its states alike.
    """
    if theta.any():
        return theta
    alike = [_states_are_alike(objective.samples, i, int(k)) for i, k in enumerate(objective.model.graph.cards)]
    return random_start(theta, np.array(alike, np.bool_), objective.model, random_state)


def _states_are_alike(samples: Samples, i: int, card: int) -> bool:
    """Tell whether a variable is missing somewhere, and the rest is shown as often beside each of its states."""
    states = samples.states
    seen = states >= 0
    shown = seen[:, i] & (seen.sum(axis=1) > 1)
    if seen[:, i].all() or not shown.any():
        return not seen[:, i].all()
    rest, weights = states[shown], samples.weights[shown]
    counts = np.bincount(rest[:, i], weights, card)[None]
    if np.ptp(counts) <= 1e-9 * counts.max():  # else it is told by these alone
        column, rest[:, i] = rest[:, i].copy(), -1
        first, where = distinct_rows(rest)
        counts = np.bincount(where * card + column, weights, len(first) * card).reshape(-1, card)
    return bool((np.ptp(counts, axis=1) <= 1e-9 * counts.max()).all())


def random_start(theta: FloatArray, hidden: Mask, model: Model, random_state: int = 0) -> FloatArray:
    """Return small random parameters instead of zeros, if a variable of several states that others touch is hidden."""
    graph = model.graph
    joined = np.zeros(graph.n_variables, bool)
    for group in graph.groups:
        if group.arity > 1:
            joined[group.scopes] = True
    if theta.any() or not (hidden & joined & (graph.cards > 1)).any():
        return theta
    return np.random.default_rng(random_state).normal(0.0, HIDDEN_START, len(theta))
