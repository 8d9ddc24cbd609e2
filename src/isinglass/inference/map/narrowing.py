"""Models with very large numbers, such as penalties of -1e9 or constants of 1e12, made narrow before they are solved.

A score is a sum, and the rounding of a sum is relative to its largest terms. So numbers that decide nothing must not
take part in it. With t_a the largest entry of phi_a and d_a(x_a) = t_a - phi_a(x_a) >= 0,

    score(x)  =  sum_a t_a  -  sum_a d_a(x_a)

1. *Constants*: the tables become -d_a. The sum of the t_a is added at the end; it decides nothing. Float subtraction is
   exact up to a unit relative to d_a itself, so a constant added to a table costs no precision but that of its entries.
2. *Penalties*: if some assignment has the deficit D = sum_a d_a, no better one has an entry with d_a > D. Such entries
   become hard zeros, and states that are left without a configuration are removed (`reduction`).

Both are repeated, as tables without some of their states may have smaller maxima. Moderate models, with no entry beyond
`search.LARGE`, are left as they are.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.inference.assignment import EPSILON, TERMS
from isinglass.inference.map.reduction import Reduction, reduced
from isinglass.inference.map.relaxations.reparameterisation import Reparameterisation
from isinglass.inference.map.search import LARGE, Search, is_wide
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask

ROUNDS, SWEEPS = 4, 10
SURELY = 1.0 + 1e-6  # more than the rounding of a deficit


class Narrowed(NamedTuple):
    """A narrow model, and what its scores lack.

    Attributes
    ----------
    reduction : Reduction
        Its potentials are the narrow ones.
    offset : float
        What is to be added to their scores.
    error : float
        A bound on the rounding of scores of the whole model by its constants.
    witness : int array or None
        An assignment of the reduced model; no assignment that narrowing has removed scores higher.
    """

    reduction: Reduction
    offset: float = 0.0
    error: float = 0.0
    witness: IntArray | None = None


def narrowed(given: Reduction) -> Narrowed:
    """Move constants out of the tables, and forbid entries that no most probable assignment has.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([3, 2], [(0,), (0, 1)]), [[1e9, 1e9 + 2, 0], [[0, 1], [2, 0], [9, 9]]])
    >>> small = narrowed(reduced(p))
    >>> small.offset, [table.tolist() for table in small.reduction.potentials.groups]
    (1000000004.0, [[[-2.0, 0.0]], [[[-2.0, -1.0], [0.0, -2.0]]]])
    """
    if not is_wide(given.potentials):
        return Narrowed(given)
    current, tops, witness = given, [np.zeros(0)], None
    for _ in range(ROUNDS):
        centred, found = _centred(current.potentials)
        tops += found
        current = current._replace(potentials=centred)
        if not is_wide(centred):
            break
        witness = _witness(centred) if witness is None else witness
        if witness is None:
            break
        smaller = _without(centred, -SURELY * float(centred.log_score(witness)))
        if smaller is None:
            break
        inner = reduced(smaller)
        witness = inner.restrict(witness)
        current = _composed(current, inner)
    flat = np.concatenate(tops)
    return Narrowed(current, math.fsum(flat), TERMS * EPSILON * math.fsum(np.abs(flat)), witness)


def _centred(potentials: Potentials) -> tuple[Potentials, list[FloatArray]]:
    """Return tables whose largest entry is zero, and the largest entry of each factor's table."""
    tables, tops = [], []
    for group, ids in zip(potentials.groups, potentials.table_ids, strict=True):
        largest = group.max(axis=tuple(range(1, group.ndim)), initial=-np.inf)
        largest = np.where(np.isfinite(largest), largest, 0.0)  # of a table that no factor has
        tables.append(group - largest.reshape(-1, *[1] * (group.ndim - 1)))
        tops.append(largest[ids])
    return Potentials._build(potentials.graph, tables, list(potentials.table_ids), {}), tops


def _witness(centred: Potentials) -> IntArray | None:
    """Return an assignment without very large deficits: the smallest power of ten is tried first, as a limit of them.

    None if there is none that is easily found.
    """
    parts = [-tables[np.isfinite(tables)] for tables in centred.groups]
    deficits = np.concatenate([np.zeros(1), *parts])
    powers = np.unique(np.ceil(np.log10(np.maximum(deficits, 10.0))))
    for limit in (10.0**powers).tolist():
        tables = [np.where(group < -limit, -np.inf, group) for group in centred.groups]
        try:
            small = reduced(Potentials._build(centred.graph, tables, list(centred.table_ids), {}))
        except ImpossibleEvidenceError:
            continue
        search = Search(small.potentials)
        if len(small.kept):
            model = Reparameterisation(small.potentials)
            for _ in range(SWEEPS):
                model.sweep()
            model.offer(search)
        else:
            search.offer(np.zeros(0, np.int64))
        if search.states is not None and search.score > -np.inf:
            return small.lift(search.states)
    return None


def _without(centred: Potentials, deficit: float) -> Potentials | None:
    """Forbid large entries with a larger deficit; None if there are none."""
    limit = max(deficit, LARGE)
    tables = [_forbidden(group, limit) for group in centred.groups]
    if all(np.array_equal(one, two) for one, two in zip(tables, centred.groups, strict=True)):
        return None
    return Potentials._build(centred.graph, tables, list(centred.table_ids), {})


def _forbidden(tables: FloatArray, limit: float) -> FloatArray:
    """Replace entries below -limit by hard zeros; submodular binary tables stay submodular."""
    gone: Mask = tables < -limit
    if tables.shape[1:] == (2, 2):
        with np.errstate(invalid="ignore"):
            submodular = tables[:, 0, 0] + tables[:, 1, 1] >= tables[:, 0, 1] + tables[:, 1, 0]
        apart = gone[:, 0, 1] | gone[:, 1, 0]  # then a state goes with the diagonal entry
        for k in range(2):
            gone[:, k, k] &= ~submodular | apart
    forbidden: FloatArray = np.where(gone, -np.inf, tables)
    return forbidden


def _composed(outer: Reduction, inner: Reduction) -> Reduction:
    """Return the reduction of a model by one reduction after another."""
    cards = inner.whole.graph.cards
    first = np.concatenate([[0], np.cumsum(cards)])[inner.kept]
    places = np.repeat(first, inner.potentials.graph.cards) + inner.state_of
    return Reduction(
        outer.whole,
        inner.potentials,
        outer.lift(inner.base),
        outer.kept[inner.kept],
        outer.state_of[places],
        outer.factor_of[inner.factor_of],
    )
