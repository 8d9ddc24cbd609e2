"""Most probable assignments, and how the search for them went."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import StateLike, labelled
from isinglass.potentials import Potentials
from isinglass.typing import IntArray

COARSEST = 1e-6  # nats: the largest difference that may count as rounding
EPSILON = float(np.finfo(float).eps)
LARGE = 1e3  # nats: entries up to this are moderate
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


def is_wide(potentials: Potentials) -> bool:
    """Tell whether a finite entry is beyond `LARGE`."""
    return any(
        bool(((np.abs(tables) > LARGE) & np.isfinite(tables)).any())
        for tables in potentials.groups
        if tables.max(initial=0.0) > LARGE or tables.min(initial=0.0) < -LARGE
    )


def centred(potentials: Potentials) -> Potentials:
    """Return tables without their largest entries: what a score lacks is small where constants are large.

    Examples
    --------
    >>> import isinglass as ig
    >>> centred(ig.Potentials(ig.FactorGraph([2], [(0,)]), [[1e10, 1e10 + 0.5]])).log_tables[0].tolist()
    [-0.5, 0.0]
    """
    p = potentials
    tops = [tables.max(axis=tuple(range(1, tables.ndim)), initial=-np.inf, keepdims=True) for tables in p.groups]
    tables = [t - np.where(np.isfinite(top), top, 0.0) for t, top in zip(p.groups, tops, strict=True)]
    return Potentials._build(p.graph, tables, list(p.table_ids), p.evidence)


def ranked(potentials: Potentials, states: IntArray, judged: Potentials) -> list[Assignment]:
    """Sort assignments, one of which is optimal, by falling score; `optimal` are those that equal it up to rounding.

    They are compared by `judged`, tables that differ by constants (`centred`). None is optimal where the rounding of
    scores may be more than `COARSEST`: with t_a the largest entry of phi_a, the numbers of assignments that score at
    least s add up to no more than  sum_a |t_a| + (sum_a t_a - s).
    """
    values = judged.log_score(states)
    scores = values if judged is potentials else potentials.log_score(states)
    order = np.argsort(-values, kind="stable")
    top, best = float(values[order[0]]), float(scores[order].max())
    total, size = tops_of(judged)
    slack = TERMS * EPSILON * (1.0 + size + max(total - top, 0.0))
    bound = best if judged is potentials else best + slack + EPSILON * tops_of(potentials)[1]
    found = []
    for i in order:
        optimal = slack <= COARSEST and bool(values[i] >= top - slack)
        found.append(Assignment(states[i], float(scores[i]), bound, optimal, optimal))
    return found
