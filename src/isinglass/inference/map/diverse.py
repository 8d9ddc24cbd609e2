"""Diverse good assignments (Batra, Yadollahpour, Guzman-Rivera and Shakhnarovich 2012).

The m-th assignment maximises its score minus a penalty for each variable with the same state as in an earlier one:

    x^m  =  argmax_x  s(x) - strength sum_{l < m} sum_i [x_i = x^l_i]

Each is one maximisation with modified unary potentials, by any algorithm or solver.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isinglass.graph.layout import first_states
from isinglass.graph.names import EvidenceLike
from isinglass.inference.algorithm import Algorithm
from isinglass.inference.api import map_assignment
from isinglass.inference.assignment import Assignment, require_decided
from isinglass.inference.evidence import checked
from isinglass.inference.map.augmented import with_costs
from isinglass.inference.map.solver import Solver
from isinglass.potentials import Potentials
from isinglass.validation import number, whole_number


def diverse_best(
    potentials: Potentials,
    n: int,
    algorithm: str | Algorithm | Solver = "exact",
    *,
    strength: float = 1.0,
    evidence: EvidenceLike | None = None,
    **options: Any,
) -> list[Assignment]:
    """Find a most probable assignment, and other good ones that differ from the previous ones.

    Parameters
    ----------
    potentials : Potentials
    n : int
        The number of assignments.
    algorithm : str, Algorithm or Solver
        The algorithm that maximises: any of `map_assignment`.
    strength : float
        The penalty for each variable with the same state as in an earlier assignment, in nats.
    evidence : mapping of int to int, optional
    **options
        Options of the algorithm.

    Returns
    -------
    list of Assignment
        In the order in which they were found, each with its score without penalties. Only the first can be proved
        optimal; all have its bound.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(3, 2), [[[0.5, 0.0]] * 3, 0.4 * np.eye(2)[None]])
    >>> [m.states.tolist() for m in ig.diverse_best(p, 2, strength=2.0)]
    [[0, 0, 0], [1, 1, 1]]
    """
    count, cost = whole_number(n, "n", 1), number(strength, "strength", 0.0, np.inf)
    clamped = checked(potentials, evidence)
    first = first_states(clamped.graph)
    penalties = np.zeros(int(first[-1]))
    found: list[Assignment] = []
    for k in range(count):
        given = with_costs(clamped, penalties) if k else clamped
        best = map_assignment(given, algorithm, **options)
        require_decided(best)
        if k:
            score = float(clamped.log_score(best.states))
            best = replace(best, score=score, bound=found[0].bound, optimal=False, locally_optimal=False)
        found.append(best)
        penalties[first[:-1] + best.states] -= cost
    return found
