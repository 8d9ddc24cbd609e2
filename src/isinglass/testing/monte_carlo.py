"""Statistical checks of stochastic algorithms, with fixed seeds and a stated error probability.

A model is inferred R times, with the seeds 0, ..., R - 1. Let b_r be the R estimates of a number whose true value t is
known by enumeration, and s_r the standard errors that the algorithm reports. Then the mean of the b_r must be within

    z (sum_r s_r²)^(1/2) / R

of t, where z is a quantile of the normal distribution. Where no standard errors are reported, the variance of the b_r
takes their place, and z is a quantile of Student's t with R - 1 degrees of freedom. Reported standard errors are
compared with the variance of the b_r as well, by a chi-square test, which leaves them a factor of `SLACK`.

The quantiles are two-sided and corrected for the number of comparisons (Bonferroni): if the estimates are normal, a
correct algorithm fails a check with a probability of at most `ERROR_PROBABILITY`. As the seeds are fixed, a check gives
the same verdict each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.testing.strategies import random_potentials
from isinglass.typing import FloatArray, IntArray

ERROR_PROBABILITY = 1e-6
REPLICATES = 24
SLACK = 1.25
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Estimates:
    """Independent estimates of the same numbers.

    Attributes
    ----------
    values : array (replicates, numbers)
    errors : array (replicates, numbers) or None
        Their standard errors, if the algorithm reports them.
    truth : array (numbers,)
    drawn : array (replicates, numbers) or None
        The part of `errors` that the draws alone show, where they have another one, for what was not drawn.
    """

    values: FloatArray
    errors: FloatArray | None
    truth: FloatArray
    drawn: FloatArray | None = None

    def check(self, what: str) -> None:
        """Check the mean and the reported standard errors."""
        if self.errors is not None:
            self._check_errors(what)
        limit, error = self._limit(), self._error()
        distance = np.abs(self.values.mean(axis=0) - self.truth)
        worst = int(np.argmax(distance - limit * error))
        assert distance[worst] <= limit * error[worst] + ROUNDING, (
            f"{what}, number {worst}: the mean estimate {self.values[:, worst].mean():.6g} is "
            f"{distance[worst] / max(error[worst], ROUNDING):.3g} standard errors from {self.truth[worst]:.6g}; a "
            f"correct algorithm stays within {limit:.3g} with probability 1 - {ERROR_PROBABILITY:g}"
        )

    def _limit(self) -> float:
        """Return the two-sided quantile, corrected for the number of comparisons."""
        from scipy.stats import norm, t

        tail = ERROR_PROBABILITY / (2 * max(1, len(self.truth)))
        return float(norm.isf(tail) if self.errors is not None else t.isf(tail, len(self.values) - 1))

    def _error(self) -> FloatArray:
        """Return the standard error of the mean."""
        squares = self.values.var(axis=0, ddof=1) if self.errors is None else (self.errors**2).mean(axis=0)
        return np.asarray(np.sqrt(squares / len(self.values)))

    def _check_errors(self, what: str) -> None:
        """Compare reported standard errors with the variance of the estimates: each number, and all together."""
        from scipy.stats import chi2

        assert self.errors is not None
        freedom = len(self.values) - 1
        found, reported = self.values.var(axis=0, ddof=1), (self.errors**2).mean(axis=0)
        drawn = reported if self.drawn is None else (self.drawn**2).mean(axis=0)
        most = SLACK**2 * chi2.isf(ERROR_PROBABILITY / max(1, len(found)), freedom) / freedom
        least = chi2.ppf(ERROR_PROBABILITY, freedom) / freedom / SLACK**2
        assert (found <= most * reported + ROUNDING).all(), f"{what}: reported standard errors are too small"
        assert found.sum() >= least * drawn.sum() - ROUNDING, f"{what}: reported standard errors are too large"


def models() -> list[Potentials]:
    """Return small models for statistical checks: strictly positive, with loops, triples, evidence, mixed states."""
    rng = np.random.default_rng(0)
    graphs = [
        FactorGraph([2], [(0,)]),
        FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2,)]),
        FactorGraph([2, 2, 3, 2], [(0, 1), (1, 2), (2, 3), (3, 0), (1,)]),
        FactorGraph([3, 2, 2, 2], [(0, 1, 2), (1, 2, 3), (0, 3), (3,), (3,)]),
    ]
    found = [random_potentials(graph, rng, 0.7) for graph in graphs]
    pairs = random_potentials(FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0), (1,)]), rng, 0.7)
    return [*found, found[3].with_evidence({1: 0}), pairs, pairs.with_evidence({0: 1})]


def belief_estimates(results: list[Result], truth: Result) -> list[Estimates]:
    """Collect the beliefs of each component's variables and factors in several runs, with their standard errors."""
    values, known = np.array([flat_beliefs(result) for result in results]), [result.info.details for result in results]
    errors, right, owner = None, flat_beliefs(truth), _owners(truth.potentials.graph)
    if all({"stderr_variables", "stderr_factors"} <= set(details) for details in known):
        parts = [(np.ravel(details["stderr_variables"]), np.ravel(details["stderr_factors"])) for details in known]
        errors = np.array([np.concatenate(both) for both in parts], float)
    found = []
    for k in range(truth.potentials.graph.n_components):
        mine = owner == k
        found.append(Estimates(values[:, mine], None if errors is None else errors[:, mine], right[mine]))
    return found


def _owners(graph: FactorGraph) -> IntArray:
    """Return the component of each of the `flat_beliefs`."""
    of_factors = [np.repeat(graph.factor_component[group.factors], group.table_size) for group in graph.groups]
    return np.concatenate([np.repeat(graph.variable_component, graph.cards), *of_factors])


def log_z_estimates(results: list[Result], truth: Result) -> list[Estimates]:
    """Collect the log Z of several runs, with their standard errors."""
    errors = [result.info.stderr for result in results]
    given = None if None in errors else np.array(errors, float)[:, None]
    own = [result.info.details.get("stderr_of_weights") for result in results]
    drawn = None if own[0] is None else np.array(own, float).reshape(len(own), 1)
    return [Estimates(np.array([[result.log_z] for result in results]), given, np.array([truth.log_z]), drawn)]


def frequencies(potentials: Potentials, draws: IntArray) -> FloatArray:
    """Return how often each state of a variable and each configuration of a factor occurs in samples."""
    graph = potentials.graph
    sets = [np.array([[i] for i in range(graph.n_variables)]), *(group.scopes for group in graph.groups)]
    parts = []
    for scope in (row for scopes in sets for row in scopes):
        cards = tuple(graph.cards[scope].tolist())
        entries = np.ravel_multi_index(tuple(draws[:, scope].T), cards)
        parts.append(np.bincount(entries, minlength=int(np.prod(cards))) / len(draws))
    return np.concatenate(parts)


def flat_beliefs(result: Result) -> FloatArray:
    """Return the beliefs of all variables, then of all factors group by group, as one array."""
    return np.concatenate([result.variables.flat, *(group.ravel() for group in result.factors.groups)])
