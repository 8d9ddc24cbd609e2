"""Maximum likelihood by sampling: gradients of a Markov random field from Markov chains.

The gradient of minus the mean log-likelihood is, with the counts phi(x) of table entries,

    g(theta) = E_model[ phi(x) ] - E_data[ phi(x) ]

and the first part is estimated by chains of Gibbs sampling:

    "cd"     contrastive divergence (Hinton 2002): k sweeps from each sample of the data. Its fixed point is near that
             of maximum likelihood, but another one.
    "pcd"    persistent contrastive divergence (Tieleman 2008): chains go on from where they were, k sweeps a step.
    "sml"    stochastic maximum likelihood (Younes 1989; algorithm 19.1 of Murphy 2012): the same chains, and the mean
             of the iterates after the first quarter (Polyak and Juditsky 1992).

The steps are theta - eta_t g with eta_t = eta / (1 + decay t): their sum is infinite and that of their squares is not
(Robbins and Monro 1951). (The book has the other sign of the step with this g, which would minimise the likelihood.)
The second derivative of the objective is the covariance of the counts under the model, near the optimum about that in
the data. So eta is one over the largest eigenvalue of the latter.

Missing values are drawn by further chains, which are clamped to what a sample shows and go on from where they were
(section 19.5.2). What is reported as the value is E_model[log f] - E_data[log f], whose derivative is g for given
states; it is no likelihood.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from isinglass.errors import InputError
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.learning.markov.likelihood.maximum import away_from_symmetry, counted
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Groups, MarkovObjective, Task
from isinglass.learning.markov.samples import Copies, Samples
from isinglass.learning.optimizers import Sgd
from isinglass.losses import Evaluation, Likelihood, Loss, Pseudolikelihood
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

DECAY = 0.01
LEAST_CURVATURE = 1.0
ROWS = 500  # samples, at most, for the covariance of counts
LEAST_CHAINS, MOST_CHAINS = 256, 10_000  # of "cd"; several or fewer start at each sample


class _Memory(NamedTuple):
    """The chains after some evaluations: free ones, and those that are clamped to samples with missing values."""

    evaluations: int
    free: Chains | None
    clamped: Chains | None

    def copy(self) -> _Memory:
        """Return chains that go on from here on their own."""
        free, clamped = (None if chains is None else chains.copy() for chains in (self.free, self.clamped))
        return _Memory(self.evaluations, free, clamped)


class SampledObjective(MarkovObjective):
    """A function of the parameters whose gradients are estimates: those of the mean sample, not of their sum.

    Every evaluation advances the chains. `memory` and `restore` take them to a checkpoint and back.

    Parameters
    ----------
    task : Task
    sweeps : int
        Of the chains in each evaluation.
    chains : int or None
        How many go on from one evaluation to the next. None: they start at the samples each time.
    random_state : int
    """

    def __init__(self, task: Task, sweeps: int, chains: int | None, random_state: int) -> None:
        super().__init__(task)
        self.sweeps, self.chains, self.random_state = sweeps, chains, random_state
        self.weight = float(self.samples.weights.sum())
        self.l2 = task.l2 / self.weight
        self._now: _Memory | None = None
        self._before: _Memory | None = None

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Advance the chains; return E_model - E_data of the log-score, and of the counts of table entries."""
        memory = self._copy(potentials)
        found = self._compared(potentials, memory)
        self._before, self._now = self._now, memory._replace(evaluations=memory.evaluations + 1)
        return found

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties; the chains stay where they are."""
        potentials = self.potentials(theta)
        return float(self._compared(potentials, self._copy(potentials)).value)

    @property
    def iterations(self) -> int:
        """Sweeps of an evaluation."""
        return self.sweeps

    @property
    def converged_share(self) -> float:
        """Of no chain is it known that it has converged."""
        return 0.0

    def memory(self, evaluations: int) -> dict[str, Array]:
        """Return the chains as they were after so many evaluations: the last one, or the one before it."""
        one = remembered(evaluations, self._now, self._before)
        listed = {} if one is None else {"free": one.free, "clamped": one.clamped}
        named = [(f"{name}.{key}", array) for name, c in listed.items() if c for key, array in vars(c).items()]
        return dict(named)

    def restore(self, evaluations: int, arrays: Mapping[str, Array]) -> None:
        """Go on with the chains of a checkpoint."""
        if not evaluations:
            return
        like = self._start(self.potentials(np.zeros(self.size)))
        free = restored_chains(arrays, "free", like.free, self.model.graph.cards)
        clamped = None if self._partial is None else self._partial.graph.cards
        self._now = _Memory(evaluations, free, restored_chains(arrays, "clamped", like.clamped, clamped))
        self._before = None

    def _copy(self, potentials: Potentials) -> _Memory:
        return (self._now or self._start(potentials)).copy()

    def _start(self, potentials: Potentials) -> _Memory:
        seed = self.random_state
        free = None if self.chains is None else Chains.start(potentials, self.chains, seed)
        clamped = None if self._partial is None else Chains.start(self._clamped(potentials), 1, seed)
        return _Memory(0, free, clamped)

    def _compared(self, potentials: Potentials, memory: _Memory) -> Evaluation:
        """Advance chains in place; compare the states of the model with the data."""
        rows, data = self._whole.states, self._seen
        if memory.clamped is not None:
            GibbsSampler(self._clamped(potentials)).advance(memory.clamped, self.sweeps, self.task.threads)
            drawn = memory.clamped.states[:, 0].astype(np.int64).reshape(-1, self.model.graph.n_variables)
            rows = np.concatenate([rows, drawn])
            hidden = counted(potentials, Samples(drawn, self._missing.weights))
            data = tuple(a + b for a, b in zip(data, hidden, strict=True))
        if memory.free is None:
            starts, weights = np.repeat(rows, self._repeats, axis=0), self._start_weights
            chains = Chains.at(potentials, starts, _fresh(self.random_state, memory.evaluations))
        else:
            chains, weights = memory.free, np.full(memory.free.n, self.weight / memory.free.n)
        GibbsSampler(potentials).advance(chains, self.sweeps, self.task.threads)
        of_model = counted(potentials, Samples(chains.assignments, weights))
        groups = tuple((a - b) / self.weight for a, b in zip(of_model, data, strict=True))
        scores = (np.where(g != 0, t, 0.0) * g for t, g in zip(potentials.groups, groups, strict=True))
        return Evaluation(np.asarray(sum(score.sum() for score in scores)), groups)

    def _clamped(self, potentials: Potentials) -> Potentials:
        """Return copies for the samples with missing values, with what they show as evidence."""
        assert self._partial is not None
        return Likelihood().clamp(self._partial.potentials(potentials), self._partial.labels)

    @cached_property
    def _repeats(self) -> IntArray:
        """How many chains start at each different sample, whole ones first: in proportion to its share."""
        whole, n = self.samples.whole, len(self.samples.weights)
        each = self.samples.weights if self.samples.counts is None else self.samples.counts
        each = np.concatenate([each[whole], each[~whole]]) / each.sum()
        total = n if self.samples.counts is None else int(self.samples.counts.sum())
        total = min(max(total, LEAST_CHAINS), MOST_CHAINS)
        return np.asarray(np.maximum(1, np.rint(each * total)), np.int64)

    @cached_property
    def _start_weights(self) -> FloatArray:
        """The weight of each chain that starts at a sample."""
        given = np.concatenate([self._whole.weights, self._missing.weights])
        return np.repeat(given / self._repeats, self._repeats)

    @cached_property
    def _whole(self) -> Samples:
        return self.samples.only(self.samples.whole)

    @cached_property
    def _missing(self) -> Samples:
        return self.samples.only(~self.samples.whole)

    @cached_property
    def _partial(self) -> Copies | None:
        """The samples that miss something, side by side."""
        return Copies(self.model, self._missing) if len(self._missing.weights) else None

    @cached_property
    def _seen(self) -> Groups:
        """How often each entry of each table was seen in the whole samples, by weight."""
        return counted(self.potentials(np.zeros(self.size)), self._whole)


class Remembered(Protocol):
    """What chains were after some evaluations."""

    @property
    def evaluations(self) -> int:
        """How many."""


M = TypeVar("M", bound=Remembered)


def remembered(evaluations: int, *kept: M | None) -> M | None:
    """Return what was kept after so many evaluations; nothing before the first."""
    for one in kept:
        if one is not None and one.evaluations == evaluations:
            return one
    if evaluations:
        raise RuntimeError(f"the chains after {evaluations} evaluations are no longer there")
    return None


def _fresh(random_state: int, evaluations: int) -> int:
    """Return the seed of chains that start anew in each evaluation: other draws each time, or their error would stay.

    Examples
    --------
    >>> _fresh(0, 0) == _fresh(0, 0), _fresh(0, 0) == _fresh(0, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([random_state, evaluations]).generate_state(1)[0])


def restored_chains(
    arrays: Mapping[str, Array], name: str, like: Chains | None, cards: IntArray | None
) -> Chains | None:
    """Return chains of a checkpoint, which must be such as this problem has."""
    if like is None or cards is None:
        return None
    found = {}
    for key, expected in vars(like).items():
        array = arrays.get(f"{name}.{key}")
        fits = array is not None and array.dtype == expected.dtype and array.shape == expected.shape
        if array is None or not fits or (key == "states" and (array >= cards[:, None]).any()):
            got = "none" if array is None else f"{array.dtype} {array.shape}"
            raise InputError("checkpoint", f"chains of this problem ({name}.{key})", got, "remove the file")
        found[key] = array.copy()
    return Chains(**found)


def curvature(model: Model, samples: Samples) -> float:
    """Return the largest eigenvalue of the covariance of counts in samples, at least `LEAST_CURVATURE`.

    Of more than `ROWS` different samples, as many are taken at equal distances; missing values are set to states at
    random.

    Examples
    --------
    >>> import isinglass as ig
    >>> X = np.array([[0, 0, 0, 0], [1, 1, 1, 1]])  # the sum of four spins is -4 or 4
    >>> found = curvature(ig.models.Ising(ig.chain_graph(4, 2)).model(tied=True), Samples.of(X, np.ones(2)))
    >>> round(found, 9)
    16.0
    """
    n = len(samples.weights)
    rows = np.unique(np.linspace(0, n - 1, min(n, ROWS)).astype(np.int64))
    states, weights = samples.states[rows], samples.weights[rows] / samples.weights[rows].sum()
    drawn = np.random.default_rng(0).integers(0, model.graph.cards, states.shape)
    states = np.where(states >= 0, states, drawn)
    tables = model.potentials(np.zeros(model.size))
    zeros = Potentials._build(model.graph, [np.zeros_like(t) for t in tables.groups], tables.table_ids, {})
    found = np.array([model.transpose(counted(zeros, Samples(row[None], np.ones(1)))) for row in states])
    centred = np.sqrt(weights)[:, None] * (found - weights @ found)
    gram = centred @ centred.T if len(rows) < model.size else centred.T @ centred
    return max(LEAST_CURVATURE, float(np.linalg.eigvalsh(gram)[-1]))


@dataclass(frozen=True)
class SampledLikelihood(Method):
    """Base class of the methods that sample: `ContrastiveDivergence`, `PersistentDivergence`, `StochasticLikelihood`.

    Parameters
    ----------
    sweeps : int, default=1
        Of the chains in each step: k of CD-k.
    random_state : int, default=0
    """

    sweeps: int = 1
    random_state: int = 0

    averaged: ClassVar[bool] = False  # whether the result is the mean of iterates

    @property
    def loss(self) -> Loss:
        """A loss that needs no inference either."""
        return Pseudolikelihood()

    @property
    def persistent(self) -> int | None:
        """How many chains go on from one step to the next; None: they start at the samples."""
        return None

    def check(self, task: Task) -> None:
        """Check the options."""
        super().check(task)
        if not task.model.size:
            raise InputError("graph", f"at least one parameter for method={self.name!r}", "none")
        self.check_options()

    def check_options(self) -> None:
        """Check the options alone."""
        whole_number(self.sweeps, "method.sweeps", 1)
        whole_number(self.random_state, "method.random_state")
        if self.persistent is not None:
            whole_number(self.persistent, "method.chains", 1)

    def objective(self, task: Task) -> SampledObjective:
        """Return the likelihood, of which only gradients are estimated."""
        return SampledObjective(task, self.sweeps, self.persistent, self.random_state)

    def start(self, objective: MarkovObjective, theta: FloatArray) -> FloatArray:
        """Leave the saddle point at zero, where variables are hidden."""
        return away_from_symmetry(objective, theta)

    def default_optimizer(self, max_iter: int, task: Task) -> Sgd:
        """Return the steps that are taken where no optimizer is named."""
        rate, burn_in = 1.0 / curvature(task.model, task.samples), max_iter // 4 if self.averaged else 0
        return Sgd(rate, max_iter, decay=DECAY, averaging=self.averaged, burn_in=burn_in, random_state=0)


CHAINS = MethodFacts(
    "E_model[phi] - E_data[phi] = 0, by chains that go on from step to step",
    consistent=True,
    convex=True,
    log_z=False,
    missing=True,
    virtual=False,
    sampled=True,
    note="gradients are estimates; there is no test of convergence; not convex where values are missing",
)


@register
@dataclass(frozen=True)
class ContrastiveDivergence(SampledLikelihood):
    """Contrastive divergence: ``"cd"``. The chains start at the samples in every step.

    Parameters
    ----------
    sweeps, random_state
        As in `SampledLikelihood`.
    """

    name: ClassVar[str] = "cd"
    facts: ClassVar[MethodFacts] = replace(
        CHAINS,
        formula="E_k[phi] - E_data[phi] = 0, after k sweeps from the data",
        consistent=False,
        convex=False,
        note="near maximum likelihood; gradients are estimates; there is no test of convergence",
    )


@register
@dataclass(frozen=True)
class PersistentDivergence(SampledLikelihood):
    """Persistent contrastive divergence: ``"pcd"``. The chains go on from where they were in the last step.

    Parameters
    ----------
    sweeps, random_state
        As in `SampledLikelihood`.
    chains : int, default=100

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.3)
    >>> X = ig.sample(p, 1000, random_state=0)
    >>> method = PersistentDivergence(sweeps=2, chains=50)
    >>> with ig.errors.no_convergence_warnings():
    ...     mrf = ig.MRF(ig.models.Ising(p.graph), method, tied=True, max_iter=200).fit(X)
    >>> exact = ig.MRF(ig.models.Ising(p.graph), tied=True).fit(X)
    >>> bool(abs(mrf.parameters_["coupling"] - exact.parameters_["coupling"]) < 0.05)
    True
    """

    chains: int = 100

    name: ClassVar[str] = "pcd"
    facts: ClassVar[MethodFacts] = CHAINS

    @property
    def persistent(self) -> int:
        """How many chains go on from one step to the next."""
        return self.chains


@register
@dataclass(frozen=True)
class StochasticLikelihood(PersistentDivergence):
    """Stochastic maximum likelihood: ``"sml"``. Persistent chains, and the mean of iterates after the first quarter.

    Parameters
    ----------
    sweeps, random_state, chains
        As in `PersistentDivergence`.
    """

    averaged: ClassVar[bool] = True
    name: ClassVar[str] = "sml"
