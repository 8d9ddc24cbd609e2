"""Whether single-variable moves can reach every possible assignment from every other (irreducibility).

Without hard zeros they can. With hard zeros they can if every combination of the remaining states is possible, because
the variables can be set one by one. In small components the graph of possible assignments is searched: two are joined
if they differ in one variable. Otherwise nothing is claimed.
"""

from __future__ import annotations

import numpy as np

from isinglass.inference.sampling.starts import component_of, product_components
from isinglass.inference.support import support_of
from isinglass.potentials import Potentials
from isinglass.typing import IntArray, Mask

SEARCHED = 2**14  # assignments of a component


def ergodic_components(potentials: Potentials) -> Mask:
    """Tell in which components single-variable moves are proved to reach every possible assignment.

    Examples
    --------
    >>> import isinglass as ig
    >>> equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    >>> ergodic_components(ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [equal])).tolist()
    [False]
    """
    graph = potentials.graph
    found = product_components(potentials, support_of(potentials))
    for k in np.flatnonzero(~found):
        size = np.log(graph.cards[graph.variable_component == k].astype(float)).sum()
        found[k] = size <= np.log(SEARCHED) + 1e-9 and _is_connected(component_of(potentials, int(k)))
    return found


def _is_connected(potentials: Potentials) -> bool:
    """Tell whether the possible assignments are connected by changes of one variable."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    cards = potentials.graph.cards
    states: IntArray = np.indices(tuple(cards)).reshape(len(cards), -1).T
    number = np.arange(len(states)).reshape(tuple(cards))
    possible = (potentials.log_score(states) > -np.inf).reshape(tuple(cards))
    rows, columns = [], []
    for axis in range(len(cards)):
        for step in range(1, cards[axis]):
            ahead = [slice(None)] * len(cards)
            behind = ahead.copy()
            ahead[axis], behind[axis] = slice(step, None), slice(None, -step)
            both = possible[tuple(ahead)] & possible[tuple(behind)]
            rows.append(number[tuple(ahead)][both])
            columns.append(number[tuple(behind)][both])
    one, two = np.concatenate(rows), np.concatenate(columns)
    links = coo_array((np.ones(len(one), np.int8), (one, two)), (len(states), len(states)))
    labels = connected_components(links, directed=False)[1]
    return len(np.unique(labels[possible.ravel()])) == 1
