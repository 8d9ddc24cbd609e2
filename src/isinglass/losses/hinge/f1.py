"""One less the F1 score of labels 1 among 0 and 1, as a cost, and counters that make it a table of a larger model.

With tp the labels 1 that are right, fp those that are wrong, and P = tp + fn the labels 1 there should be:

    Delta(x, y)  =  1 - 2 tp / (tp + fp + P),          0 where P = fp = 0

It is no sum over variables, but a function of two counts. The maximum of Delta(x, y) + s(x) (Murphy 2012, eq. 19.107;
Altun, Johnson and Hofmann 2003) is a most probable assignment of a model with counters as further variables,

    c_j  =  c_{j-1} + x_j         a hard zero elsewhere

one chain of them over the variables whose label is 1, for tp, and one over those whose label is 0, for fp. The last two
counters of an example have the table Delta. On chains and trees that is tractable: tables grow with the square of the
number of variables. Variables without a label are not counted.
"""

from __future__ import annotations

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.potentials import Potentials
from isinglass.segments import sum_at
from isinglass.typing import FloatArray, IntArray


def f1_table(positive: int, negative: int) -> FloatArray:
    """Return Delta (positive + 1, negative + 1) for all counts tp and fp.

    Examples
    --------
    >>> f1_table(1, 1).round(4).tolist()
    [[1.0, 1.0], [0.0, 0.3333]]
    """
    tp, fp = np.arange(positive + 1.0)[:, None], np.arange(negative + 1.0)
    total = tp + fp + positive
    table: FloatArray = 1.0 - 2 * tp / np.where(total > 0, total, 1.0)
    table[total == 0] = 0.0
    return table


def f1_costs(graph: FactorGraph, labels: IntArray, states: IntArray) -> FloatArray:
    """Return Delta of each component.

    Examples
    --------
    >>> f1_costs(FactorGraph([2, 2, 2], []), np.array([1, 0, 1]), np.array([1, 1, 0])).tolist()
    [0.5]
    """
    require_binary(graph, labels)
    tp, fp, positive = (
        sum_at(graph.variable_component[rows], np.ones(int(rows.sum())), graph.n_components).real
        for rows in ((labels == 1) & (states == 1), (labels == 0) & (states == 1), labels == 1)
    )
    total = tp + fp + positive
    return np.where(total > 0, 1.0 - 2 * tp / np.where(total > 0, total, 1.0), 0.0)


def with_counters(potentials: Potentials, labels: IntArray) -> Potentials:
    """Return the model with counters after its variables, and Delta as a table of the last ones.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.zeros((2, 2))])
    >>> ig.map_assignment(with_counters(p, np.array([1, 0])), "brute").score
    1.0
    """
    graph = potentials.graph
    require_binary(graph, labels)
    larger, tables = graph.cached(("f1 counters", labels.tobytes()), lambda: _counting(graph, labels))
    return Potentials(larger, [*potentials.log_tables, *tables], potentials.evidence)


def require_binary(graph: FactorGraph, labels: IntArray) -> None:
    """Refuse labels of variables that do not have two states."""
    many = np.flatnonzero((labels >= 0) & (graph.cards != 2))
    if len(many):
        got = f"variable {many[0]} with {graph.cards[many[0]]}"
        raise InputError("cost", "labels of two states, where it is 'f1'", got, "use 'hamming' or a table")


def _counting(graph: FactorGraph, labels: IntArray) -> tuple[FactorGraph, list[FloatArray]]:
    cards: list[int] = graph.cards.tolist()
    scopes: list[tuple[int, ...]] = [tuple(scope) for scope in graph.scopes]
    tables: list[FloatArray] = []
    for c in range(graph.n_components):
        ends, counts = [], []
        for label in (1, 0):
            counted = np.flatnonzero((graph.variable_component == c) & (labels == label)).tolist()
            counts.append(len(counted))
            for j, i in enumerate(counted):
                scopes.append((i, len(cards)) if j == 0 else (len(cards) - 1, i, len(cards)))
                tables.append(np.where(np.eye(2) > 0, 0.0, -np.inf) if j == 0 else _step(j + 1))
                cards.append(j + 2)
            ends += [len(cards) - 1] * bool(counted)
        table = f1_table(*counts)
        scopes.append(tuple(ends))
        tables.append(table.reshape([n + 1 for n in counts if n]))
    return FactorGraph(cards, scopes), tables


def _step(states: int) -> FloatArray:
    """Return the table of a counter before (states of them), a variable, and the counter after."""
    before, x, after = np.ogrid[:states, :2, : states + 1]
    return np.where(before + x == after, 0.0, -np.inf)
