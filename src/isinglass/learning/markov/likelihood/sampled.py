"""Maximum likelihood by sampling: gradients of a Markov random field from Markov chains.

The gradient of minus the mean log-likelihood, g(theta), is estimated by chains (see `sampled_objective`):

    "cd"     contrastive divergence (Hinton 2002): k sweeps from each sample of the data. Its fixed point is near that
             of maximum likelihood, but another one.
    "pcd"    persistent contrastive divergence (Tieleman 2008): chains go on from where they were, k sweeps a step.
    "sml"    stochastic maximum likelihood (Younes 1989; algorithm 19.1 of Murphy 2012): the same chains, and the mean
             of the iterates after the first quarter (Polyak and Juditsky 1992).

The steps are theta - eta_t g with eta_t = eta / (1 + decay t): their sum is infinite and that of their squares is not
(Robbins and Monro 1951). (The book has the other sign of the step with this g, which would minimise the likelihood.)
The second derivative of the objective is the covariance of the counts under the model, near the optimum about that in
the data. So eta is one over the largest eigenvalue of the latter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.learning.markov.likelihood.maximum import away_from_symmetry, counted
from isinglass.learning.markov.likelihood.sampled_objective import SampledObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.learning.markov.samples import Samples
from isinglass.learning.optimizers import Sgd
from isinglass.losses import Loss, Pseudolikelihood
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray
from isinglass.validation import whole_number

DECAY = 0.01
LEAST_CURVATURE = 1.0
ROWS = 500  # samples, at most, for the covariance of counts


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
