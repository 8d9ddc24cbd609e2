"""Bayesian iterative proportional fitting: posteriors of log-linear models on any graph (Piccioni 2000; Schafer 1997).

With a Dirichlet prior of `total` virtual samples, spread evenly over all cells of the joint table, the density of the
canonical parameters given counts n is  exp( theta . (n + total E_0[f]) - (N + total) log Z(theta) ). Split them, for a
maximal scope C of the model, into those of sets inside C and all others. Given the others,

    p(x_C) ~ Dirichlet( n(x_C) + total / |C| ),

whatever their values: the conditional p(x_rest | x_C) depends on them alone. So Gibbs sampling draws each p(x_C) in
turn, and a step is one of proportional fitting, towards a marginal that is drawn and not observed,

    psi_C(x_C)  <-  psi_C(x_C) p_drawn(x_C) / p(x_C; psi).

Posterior means of the marginals are known, ( n(x_C) + total / |C| ) / (N + total) (Diaconis and Ylvisaker 1979). On
chordal graphs the posterior is the hyper-Dirichlet one, which `hyper_dirichlet` draws from without a chain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from isinglass.errors import InputError, warn_of_convergence
from isinglass.inference.sampling.diagnostics import diagnose
from isinglass.learning.markov.likelihood.ipf import Sweeps
from isinglass.learning.markov.likelihood.tables import Margins
from isinglass.models import Model
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray
from isinglass.validation import RandomState, generator, number, whole_number

CHAINS = 4
LEAST = 0.05  # of a Dirichlet parameter: draws with smaller ones are too often zero in double precision
REFRESH = 100  # sweeps after which all marginals are computed anew, against rounding
R_HAT = 1.02  # largest of a chain that looks converged


class BayesianFitting:
    """The posterior of a model of tables, by Gibbs sampling.

    Parameters
    ----------
    model : Model
        One whose parameters are the tables.
    counts : mapping of int to array
        The counts of each maximal factor, in the shape of its table.
    total : float
        Virtual samples of the prior.
    """

    def __init__(self, model: Model, counts: Mapping[int, FloatArray], total: float) -> None:
        self.model, self.total = model, total
        self.strength = {a: np.asarray(table + total / table.size, np.float64) for a, table in counts.items()}
        weak = min(float(s.min()) for s in self.strength.values())
        if weak < LEAST:
            largest = max(s.size for s in self.strength.values())
            expected = f"at least {LEAST * largest:g} virtual samples for tables of {largest} entries"
            raise InputError("prior.total", expected, f"{total:g}", f"Dirichlet(total={LEAST * largest:g})")

    def draws(self, n: int, random_state: RandomState = None, burn_in: int = 100) -> Iterator[Potentials]:
        """Draw models from one chain, each of which depends on the one before: log-potentials.

        Parameters
        ----------
        n : int
        random_state : int or Generator, optional
        burn_in : int
            Sweeps before the first of them.
        """
        rng, left_out = generator(random_state), whole_number(burn_in, "burn_in")
        for k, (theta, _) in enumerate(self._chain(rng, whole_number(n, "n") + left_out)):
            if k >= left_out:
                yield self.model.potentials(theta)

    def intervals(
        self, level: float = 0.95, draws: int = 1000, random_state: RandomState = 0, burn_in: int = 100
    ) -> dict[tuple[int, ...], FloatArray]:
        """Return central credible intervals of the probabilities of each maximal factor's states.

        Parameters
        ----------
        level : float
            The probability that an interval holds the true value.
        draws : int
            Of each of four chains. A warning tells where they disagree.
        random_state : int or Generator, optional
        burn_in : int

        Returns
        -------
        dict of tuple of int to array (2, k_1, ..., k_r)
            For each maximal scope the lower and the upper ends.
        """
        tail = (1 - number(level, "level", 0, 1)) / 2
        traces = self.marginals(draws, random_state, burn_in)
        found = {}
        for scope, trace in traces.items():
            pooled = trace.reshape(-1, *trace.shape[2:])
            found[scope] = np.quantile(pooled, [tail, 1 - tail], axis=0)
        return found

    def marginals(
        self, draws: int = 1000, random_state: RandomState = 0, burn_in: int = 100
    ) -> dict[tuple[int, ...], FloatArray]:
        """Return draws (chains, draws, k_1, ..., k_r) of the probabilities of each maximal factor's states."""
        seeds = generator(random_state).spawn(CHAINS)
        n, skip = whole_number(draws, "draws", 4), whole_number(burn_in, "burn_in")
        factors = list(self.strength)
        traces = {a: np.empty((CHAINS, n, *self.strength[a].shape)) for a in factors}
        for c, rng in enumerate(seeds):
            for k, (_, sweeps) in enumerate(self._chain(rng, n + skip)):
                if k >= skip:
                    for a in factors:
                        traces[a][c, k - skip] = sweeps.tree.marginal(a).reshape(self.strength[a].shape)
        worst = max(self._disagreement(trace) for trace in traces.values())
        if worst > R_HAT:
            warn_of_convergence(f"the chains disagree, R-hat {worst:.3f}; raise draws", stacklevel=3)
        return {tuple(int(i) for i in self.model.graph.scopes[a]): trace for a, trace in traces.items()}

    def _chain(self, rng: np.random.Generator, n: int) -> Iterator[tuple[FloatArray, Sweeps]]:
        """Go from sweep to sweep, from the uniform distribution on."""
        graph, theta = self.model.graph, np.zeros(self.model.size)
        margins = Margins(graph, list(self.strength), self._targets(rng))
        sweeps = Sweeps(self.model, margins)
        for k in range(n):
            if k % REFRESH == 0:
                sweeps.last = None
            theta = sweeps(theta, self.model.potentials(theta), self._targets(rng))
            yield theta, sweeps

    def _targets(self, rng: np.random.Generator) -> dict[int, FloatArray]:
        """Draw the marginal of each maximal factor."""
        drawn = {a: rng.standard_gamma(strength) for a, strength in self.strength.items()}
        return {a: mass / mass.sum() for a, mass in drawn.items()}

    def _disagreement(self, trace: FloatArray) -> float:
        """Return the largest R-hat of the entries of a table."""
        flat = np.moveaxis(trace.reshape(*trace.shape[:2], -1), 2, 0)
        return float(diagnose(np.ascontiguousarray(flat)).r_hat.max())
