"""Perturb-and-MAP: approximate samples from maxima of a model with random noise (Papandreou and Yuille 2011).

    x  =  argmax_x  s(x) + sum_i gamma_i(x_i)           gamma_i(x_i) independent, Gumbel, of mean zero

With independent noise for each assignment the maximum would be an exact sample. With noise for each state of each
variable it is exact only if no factor joins variables; otherwise it is an approximation of unknown quality. The mean of
the maxima is an upper bound on log Z (Hazan and Jaakkola 2012), up to its standard error, if each maximum is proved
optimal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isinglass.graph.layout import first_states
from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import map_assignment
from isinglass.inference.assignment import require_decided
from isinglass.inference.evidence import checked
from isinglass.inference.map.augmented import with_costs
from isinglass.inference.map.solver import Solver
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import RandomState, generator, whole_number


@dataclass(frozen=True, eq=False)
class PerturbedSamples:
    """Samples by perturb-and-MAP.

    Attributes
    ----------
    states : int array (n, variables)
    maxima : array (n,)
        The perturbed score of each sample, without the noise of observed variables.
    proved : bool array (n,)
        Whether each sample is a proved maximum.
    approximate : bool
        Whether the samples are only approximate: true if a factor joins variables, or a maximum was not proved.
    """

    states: IntArray
    maxima: FloatArray
    proved: Mask
    approximate: bool

    @property
    def log_z_bound(self) -> tuple[float, float]:
        """The mean of the maxima, which bounds log Z from above if all were proved, and its standard error."""
        n = len(self.maxima)
        error = float(np.std(self.maxima, ddof=1)) / np.sqrt(n) if n > 1 else np.inf
        return float(np.mean(self.maxima)) if n else np.nan, error

    def __repr__(self) -> str:
        kind = "approximate" if self.approximate else "exact"
        return f"PerturbedSamples: {len(self.states)} {kind} samples, {int(self.proved.sum())} of proved maxima"


def perturb_and_map(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm | Solver = "exact",
    *,
    evidence: EvidenceLike | None = None,
    random_state: RandomState = None,
    **options: Any,
) -> PerturbedSamples:
    """Draw `n` approximate samples, each by one maximisation.

    Parameters
    ----------
    potentials : Potentials
    n : int
    algorithm : str, Algorithm or Solver
        The algorithm that maximises: any of `map_assignment`, such as "graph-cut" for models that are too large to
        sample exactly.
    evidence : mapping of int to int, optional
    random_state : int, Generator or None
    **options
        Options of the algorithm.

    Returns
    -------
    PerturbedSamples
        It has `states`, and `approximate` says whether they are only approximate samples.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [[[0.5, 0.0]] * 3, 0.4 * np.eye(2)[None]])
    >>> ig.perturb_and_map(p, 100, random_state=0)
    PerturbedSamples: 100 approximate samples, 100 of proved maxima
    """
    count, rng = whole_number(n, "n"), generator(random_state)
    clamped = checked(potentials, evidence)
    graph = clamped.graph
    first = first_states(graph)
    free = np.ones(graph.n_variables, bool)
    free[list(clamped.evidence)] = False
    noisy = np.repeat(free, graph.cards)
    states, maxima = np.zeros((count, graph.n_variables), np.int64), np.zeros(count)
    proved = np.zeros(count, bool)
    for k in range(count):
        noise = np.where(noisy, rng.gumbel(size=int(first[-1])) - np.euler_gamma, 0.0)
        found = map_assignment(with_costs(clamped, noise), algorithm, **options)
        require_decided(found)
        states[k], maxima[k], proved[k] = found.states, found.score, found.optimal
    joined = any(group.arity > 1 and len(group) for group in graph.groups)
    return PerturbedSamples(states, maxima, proved, joined or not bool(proved.all()))
