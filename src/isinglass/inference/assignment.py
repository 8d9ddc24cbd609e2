"""Most probable assignments, and how the search for them went."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import StateLike, labelled
from isinglass.potentials import Potentials
from isinglass.typing import Array, IntArray

COARSEST = 1e-4  # nats: the largest difference that may count as rounding
EPSILON = float(np.finfo(float).eps)
TERMS = 32  # roundings of a term in a pairwise sum: that of any number of terms in memory


@dataclass(frozen=True)
class MapInfo:
    """How a search for a most probable assignment went.

    Attributes
    ----------
    algorithm : str
    iterations : int
        Iterations, sweeps or moves.
    seconds : float
    stopped : {"optimal", "converged", "iterations", "seconds", "interrupted"}
        Why it stopped: optimality was proved, it converged, it reached its limit of iterations or of time, or Ctrl-C.
    did : str
        A description of what it did, for the user; usually empty.
    bounds : tuple of float
        The upper bounds that it found, in order.
    """

    algorithm: str
    iterations: int
    seconds: float
    stopped: str
    did: str = ""
    bounds: tuple[float, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Assignment:
    """A most probable assignment, or the best that was found.

    Attributes
    ----------
    states : int array (variables,)
        The state of each variable. -1 means undecided; only "qpbo" returns it, and only on request.
    score : float
        The log-score, sum_a phi_a(x_a); nan if a variable is undecided.
    bound : float
        An upper bound on the score of every assignment; inf if the algorithm proves none.
    optimal : bool
        Whether the algorithm proved that no assignment scores higher.
    locally_optimal : bool
        Whether the algorithm proved that no assignment that differs from it only on trees and single loops scores
        higher (Weiss and Freeman 2001). Implied by `optimal`.
    info : MapInfo or None
        How the search went, if a MAP solver was used (`map_solvers`).
    graph : FactorGraph or None
        The graph, which has the names.
    """

    states: IntArray
    score: float
    bound: float
    optimal: bool
    locally_optimal: bool = False
    info: MapInfo | None = field(default=None, repr=False)
    graph: FactorGraph | None = field(default=None, repr=False)

    @property
    def labels(self) -> dict[str | tuple[str, int] | int, StateLike]:
        """The assignment by names: each variable and the name of its state; numbers if there are no names.

        Examples
        --------
        >>> import isinglass as ig
        >>> g = ig.FactorGraph({"rain": ["no", "yes"], "wet": 2}, [("rain", "wet")])
        >>> ig.map_assignment(ig.Potentials(g, [[[0, 1], [2, 4]]])).labels
        {'rain': 'yes', 'wet': 1}
        """
        return dict(enumerate(self.states.tolist())) if self.graph is None else labelled(self.graph, self.states)


def require_decided(found: Assignment) -> None:
    """Refuse an assignment that leaves variables undecided (-1), where all of them are needed."""
    if (found.states < 0).any():
        got = f"{int((found.states < 0).sum())} undecided variables"
        raise InputError("algorithm", "one that decides every variable", got, 'use "qpbo" with complete="trws"')


def tops_of(potentials: Potentials) -> tuple[float, float]:
    """Return the sum of the largest entries of all factors, and that of their absolute values.

    Examples
    --------
    >>> import isinglass as ig
    >>> tops_of(ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[-2.0, -1.0], [[0.0, -np.inf], [3.0, 0.0]]]))
    (2.0, 4.0)
    """
    total = size = 0.0
    for tables, ids in zip(potentials.groups, potentials.table_ids, strict=True):
        tops = tables.real.max(axis=tuple(range(1, tables.ndim)), initial=-np.inf)[ids]
        total += float(tops.sum())
        size += float(np.abs(tops).sum())
    return total, size


def ranked(potentials: Potentials, states: IntArray, scores: Array) -> list[Assignment]:
    """Sort assignments, one of which is optimal, by falling score; `optimal` are those that equal it up to rounding.

    None is, where the rounding of scores may be more than `COARSEST`: with t_a the largest entry of phi_a, the numbers
    of assignments that score at least s add up to no more than  sum_a |t_a| + (sum_a t_a - s).
    """
    order = np.argsort(-scores, kind="stable")
    top = float(scores[order[0]])
    slack = 1e-12 * max(1.0, abs(top))
    total, size = tops_of(potentials)
    resolved = TERMS * EPSILON * (size + total - top) <= COARSEST
    found = []
    for i in order:
        optimal = resolved and bool(scores[i] >= top - slack)
        found.append(Assignment(states[i], float(scores[i]), top, optimal, optimal))
    return found
