"""The conditional likelihood by sampling: contrastive divergence and persistent chains.

With s(x) = sum_a phi_a(x_a) of an example, and y its labels,

    d(-log p(y)) / dphi  =  E[ ds(x) / dphi ]  -  E[ ds(x) / dphi | y ]

The first mean is over free chains of Gibbs sampling, the second one over chains that are clamped to the labels y; it is
ds(y) / dphi where all labels are observed. Each example has chains of its own, as it has its own distribution.

    "cd"     free chains make k sweeps from the labels, hidden ones drawn by the clamped chains (Hinton 2002)
    "pcd"    free chains go on from where they were when the example was last seen (Tieleman 2008)
    "sml"    the same, for a mean of iterates (Younes 1989; algorithm 19.1 of Murphy 2012)

Clamped chains always go on (section 19.5.2). What is reported as the value is the mean of s over free chains less that
over clamped ones, whose derivative this is for given states; it is no likelihood. An example of which no label is
observed counts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.losses.likelihood import Likelihood
from isinglass.losses.loss import Differentiate, Evaluation, Loss, LossFacts, LossProblem, register
from isinglass.losses.observed import checked_labels, component_weights, known_states, table_strides
from isinglass.losses.sampled.memory import chains_of, split
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number


@dataclass(frozen=True)
class SampledLoss(Loss):
    """Base class of the losses that sample.

    Parameters
    ----------
    sweeps : int, default=1
        Of the chains in each evaluation: k of CD-k.
    chains : int, default=4
        Of each example, of either kind.
    random_state : int, default=0
    """

    sweeps: int = 1
    chains: int = 4
    random_state: int = 0

    restarts: ClassVar[bool] = False  # whether free chains start at the labels in each evaluation

    def checked(self) -> None:
        """Check the options."""
        whole_number(self.sweeps, "loss.sweeps", 1)
        whole_number(self.chains, "loss.chains", 1)
        whole_number(self.random_state, "loss.random_state")

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Advance the chains of all examples; compare what the free and the clamped ones found."""
        self.checked()
        potentials = problem.shared(self.name)
        graph, real = potentials.graph, _real(potentials)
        labels, y = checked_labels(problem.labels, graph), known_states(problem.labels, potentials)
        seen = np.bincount(graph.variable_component, labels >= 0, graph.n_components) > 0
        weights = np.where(seen, component_weights(problem.weights, graph), 0.0)
        clamped = self._clamped(real, y, problem)
        free = chains_of(real, self.chains, self.random_state, problem.memory, "free")
        if self.restarts:
            free.states[:] = _states(clamped, y, self.chains)
        GibbsSampler(real).advance(free, self.sweeps)
        above, by_model = counted(potentials, free.states, weights)
        below, by_labels = counted(potentials, _states(clamped, y, 1), weights)
        if not np.isfinite(below.real).all():
            raise InputError("labels", "labels that the model allows", "some that a hard zero (-inf) forbids")
        groups = tuple(a - b for a, b in zip(by_model, by_labels, strict=True))
        kept = [split(graph, free, "free")] + ([] if clamped is None else [split(graph, clamped, "clamped")])
        memory = tuple({name: a for part in parts for name, a in part.items()} for parts in zip(*kept, strict=True))
        return Evaluation(above - below, groups, memory=memory)

    def _clamped(self, potentials: Potentials, y: IntArray, problem: LossProblem) -> Chains | None:
        """Advance chains that are clamped to the labels; None where nothing is hidden."""
        if (y >= 0).all():
            return None
        held = Likelihood().clamp(potentials, problem.labels)
        chains = chains_of(held, self.chains, self.random_state, problem.memory, "clamped")
        known = y >= 0
        chains.states[known] = y[known, None]
        GibbsSampler(held).advance(chains, self.sweeps)
        return chains


def counted(potentials: Potentials, states: Array, weights: FloatArray) -> tuple[Array, tuple[Array, ...]]:
    """Return the weighted mean score of chains (variables, chains) in each component, and its derivatives.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[3.0, 0.0], [0.0, 1.0]]])
    >>> value, groups = counted(p, np.array([[0, 1], [0, 1]]), np.ones(1))
    >>> value.tolist(), groups[0].tolist()
    ([2.0], [[[0.5, 0.0], [0.0, 0.5]]])
    """
    graph, n = potentials.graph, states.shape[1]
    value, slopes = np.zeros(graph.n_components, potentials.dtype), []
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        entries = np.zeros((len(group), n), np.int64) + ids[:, None] * group.table_size
        for members, stride in zip(group.scopes.T, table_strides(group), strict=True):
            entries += states[members].astype(np.int64) * stride
        component = graph.factor_component[group.factors]
        scores = tables.reshape(-1)[entries].mean(axis=1)
        value += weights_times(weights, sum_at(component, scores, graph.n_components))
        share = np.repeat(weights[component] / n, n)
        slopes.append(sum_at(entries.ravel(), share, tables.size).reshape(tables.shape))
    return value, tuple(slopes)


def weights_times(weights: FloatArray, values: Array) -> Array:
    """Multiply values by weights, where a weight of zero makes a hard zero count nothing."""
    return np.where(weights > 0, weights * np.where(weights > 0, values, 0.0), 0.0)


def _states(clamped: Chains | None, y: IntArray, n: int) -> Array:
    """Return the states of clamped chains; those of the labels, `n` times, where all are observed."""
    return np.repeat(y[:, None], n, axis=1) if clamped is None else clamped.states


def _real(potentials: Potentials) -> Potentials:
    """Return the real parts, by which chains move."""
    groups = [tables.real for tables in potentials.groups]
    return Potentials._build(potentials.graph, groups, potentials.table_ids, potentials.evidence)


CHAINS = LossFacts(
    "E[s(x)] - E[s(x) | y], by chains that go on from step to step",
    convex=False,
    consistent=True,
    uses="potentials",
    note="derivatives are estimates, and values are no likelihoods; for optimizers of minibatches",
    sampled=True,
)


@register
@dataclass(frozen=True)
class ContrastiveDivergence(SampledLoss):
    """Contrastive divergence: ``"cd"``. Free chains start at the labels each time.

    Parameters
    ----------
    sweeps, chains, random_state
        As in `SampledLoss`.
    """

    restarts: ClassVar[bool] = True
    name: ClassVar[str] = "cd"
    facts: ClassVar[LossFacts] = replace(
        CHAINS, formula="E_k[s(x)] - E[s(x) | y], after k sweeps from the labels", consistent=False
    )


@register
@dataclass(frozen=True)
class PersistentDivergence(SampledLoss):
    """Persistent contrastive divergence: ``"pcd"``. The chains of an example go on when it is seen again.

    Parameters
    ----------
    sweeps, chains, random_state
        As in `SampledLoss`.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.2)
    >>> y = ig.sample(p, 1, random_state=0)[0]
    >>> problem = ig.losses.LossProblem(p, y)
    >>> found = PersistentDivergence(sweeps=50, chains=2000).evaluate(problem, None)
    >>> exact = ig.gradients.rule("envelope").differentiate(ig.Exact())
    >>> truth = ig.losses.Likelihood().evaluate(problem, exact)
    >>> bool(abs(found.groups[1] - truth.groups[1]).max() < 0.3)
    True
    """

    name: ClassVar[str] = "pcd"
    facts: ClassVar[LossFacts] = CHAINS


@register
@dataclass(frozen=True)
class StochasticLikelihood(PersistentDivergence):
    """Stochastic maximum likelihood: ``"sml"``. As "pcd", and the mean of iterates after the first quarter.

    Parameters
    ----------
    sweeps, chains, random_state
        As in `SampledLoss`.
    """

    name: ClassVar[str] = "sml"
    facts: ClassVar[LossFacts] = replace(CHAINS, averaged=True)
