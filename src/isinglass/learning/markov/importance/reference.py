"""log Z near a reference theta0, by samples of the model there (Srihari, *Learning with Approximate Inference*).

    log Z(theta) - log Z(theta0)  =  log E_0[ w(x) ]  ~  log (1/K) sum_k w_k,      w_k = exp( s_theta(x_k) - s_0(x_k) )

with the scores s(x) = sum_a phi_a(x_a). The derivative is the mean of counts by the normalised weights. The estimate
is good in a neighbourhood of theta0: the effective size (sum w)² / sum w² and the Pareto shape k of the weights say
how far that goes (`isinglass.inference.importance.weights`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.inference.importance.pareto import RELIABLE
from isinglass.inference.importance.weights import LogMean, log_mean, normalised
from isinglass.inference.sampling.chains import Chains
from isinglass.inference.sampling.gibbs import GibbsSampler
from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.objective import Groups
from isinglass.learning.markov.samples import Samples
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray

SHARE = 0.5  # of the samples, that the effective size must have


@dataclass(frozen=True, eq=False)
class ReferenceSamples:
    """Samples of a reference model.

    Attributes
    ----------
    states : int array (samples, variables)
    scores : array (samples,)
        Log-scores under the reference.
    log_z : float
        Of the reference, or an estimate of it.

    Examples
    --------
    >>> import isinglass as ig
    >>> p, q = (ig.models.Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=c) for c in (0.1, 0.15))
    >>> near = ReferenceSamples.of(p, ig.sample(p, 4000, random_state=0), ig.infer(p).log_z)
    >>> found, weights = near.weigh(q)
    >>> bool(abs(found.value - ig.infer(q).log_z) < 4 * found.stderr < 0.1), near.useful(found)
    (True, True)
    """

    states: IntArray
    scores: FloatArray
    log_z: float

    @classmethod
    def of(cls, potentials: Potentials, states: IntArray, log_z: float) -> ReferenceSamples:
        """Keep samples of a model whose log Z is known, or estimated."""
        return cls(states, np.asarray(potentials.log_score(states), np.float64), log_z)

    def weigh(self, potentials: Potentials) -> tuple[LogMean, FloatArray]:
        """Return the estimate of log Z of another model, with its diagnostics, and the normalised weights."""
        log_w = np.asarray(potentials.log_score(self.states), np.float64) - self.scores
        found = log_mean(log_w)
        return found._replace(value=found.value + self.log_z), normalised(log_w)

    def expected(self, potentials: Potentials, weights: FloatArray) -> Groups:
        """Return the expected counts of table entries."""
        return counted(potentials, Samples(self.states, weights))

    def useful(self, found: LogMean) -> bool:
        """Tell whether the weights can be trusted: an effective size of half the samples, and no heavy tail."""
        return found.ess >= SHARE * len(self.scores) and found.pareto_k <= RELIABLE


def advanced(chains: Chains, potentials: Potentials, sweeps: int, threads: int) -> Chains:
    """Return chains after some sweeps of Gibbs sampling; those that are given stay as they are."""
    moved = chains.copy()
    GibbsSampler(potentials).advance(moved, sweeps, threads)
    return moved
