"""The hyper-Dirichlet posterior of a decomposable model (Dawid and Lauritzen 1993).

With a Dirichlet prior of `total` virtual samples, spread evenly over all cells of the joint table, and counts n, the
marginals of the cliques of a junction tree are Dirichlet too, and agree on separators:

    p(x_C) ~ Dirichlet( n(x_C) + total / |C| )                                   for the first clique of a tree
    p(x_(C less S) | x_S) ~ Dirichlet( n(x_C) + total / |C| )  for each x_S      for a further one, S its separator

|C| the number of entries of the clique's table. These are independent, so that exact draws of the whole model are easy.
"""

from __future__ import annotations

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.junction_tree import junction_tree
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray
from isinglass.validation import RandomState, generator, number


class HyperDirichlet:
    """A hyper-Dirichlet distribution over the models of a chordal graph.

    Parameters
    ----------
    graph : FactorGraph
        Chordal, with a factor for each maximal clique.
    counts : dict of tuple of int to array
        The counts of each maximal clique (sorted variables), in the shape of its table.
    total : float
        Virtual samples of the prior.
    """

    def __init__(self, graph: FactorGraph, counts: dict[tuple[int, ...], FloatArray], total: float) -> None:
        self.graph, self.tree, self.total = graph, junction_tree(graph), total
        self.counts = [counts[clique] for clique in self.tree.cliques]
        self.separators = {child: s for (_, child), s in zip(self.tree.edges, self.tree.separators, strict=True)}

    def draw(self, random_state: RandomState = None) -> Potentials:
        """Draw a model: log-potentials, one table for each maximal clique, whose log Z is zero."""
        from scipy.special import logsumexp

        rng, tables = generator(random_state), []
        for c, counts in enumerate(self.counts):
            mass = _log_gamma(counts + self.total / counts.size, rng)
            tables.append(mass - logsumexp(mass, axis=self._outside(c), keepdims=True))
        return Potentials(FactorGraph(self.graph.cards, list(self.tree.cliques)), tables)

    def intervals(self, level: float = 0.95) -> dict[tuple[int, ...], FloatArray]:
        """Return central credible intervals of the probabilities of each maximal clique's states.

        Parameters
        ----------
        level : float
            The probability that an interval holds the true value.

        Returns
        -------
        dict of tuple of int to array (2, k_1, ..., k_r)
            For each maximal clique the lower and the upper ends: quantiles of beta distributions.
        """
        from scipy.stats import beta

        tail = (1 - number(level, "level", 0, 1)) / 2
        found = {}
        for clique, counts in zip(self.tree.cliques, self.counts, strict=True):
            strength = counts + self.total / counts.size
            rest = strength.sum() - strength
            ends = np.stack([beta.ppf(q, strength, np.where(rest > 0, rest, 1.0)) for q in (tail, 1 - tail)])
            found[clique] = np.where(rest > 0, ends, 1.0)  # a table of one entry has all the mass
        return found

    def log_evidence(self) -> float:
        """Return the log-probability of the samples, averaged over the prior: to compare graphs by."""
        total = 0.0
        for c, counts in enumerate(self.counts):
            total += _evidence(counts, self.total)
            if c in self.separators:
                total -= _evidence(counts.sum(axis=self._outside(c)), self.total)
        return total

    def _outside(self, c: int) -> tuple[int, ...]:
        """Return the axes of a clique that its separator does not have; all of them for the first of a tree."""
        separator = self.separators.get(c, ())
        return tuple(k for k, i in enumerate(self.tree.cliques[c]) if i not in separator)


def _log_gamma(shape: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw logarithms of gamma variables: those of small shapes are often less than the least positive number.

    A gamma variable of shape a is one of shape a + 1, times a uniform one to the power 1 / a.
    """
    return np.log(rng.standard_gamma(shape + 1)) + np.log1p(-rng.random(shape.shape)) / shape


def _evidence(counts: FloatArray, total: float) -> float:
    """Return the log-probability of samples with these counts under a Dirichlet prior (in a given order)."""
    from scipy.special import gammaln

    prior = total / counts.size
    each = float((gammaln(counts + prior) - gammaln(prior)).sum())
    return each + float(gammaln(total) - gammaln(total + counts.sum()))
