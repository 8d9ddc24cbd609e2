"""How many outputs are positive, together with each output: P(y_i = 1, S = s) of a joint model.

With y_i = 1 where output i has its positive state, and S the number of positive outputs of an example, the model is
extended by counters c_1, ..., c_n, one after the other in the sequence in which exact inference eliminates the outputs:

    c_k  =  c_{k-1} + y_k,        c_0 = 0,        S = c_n,

as factors that are 1 or 0. Exact inference on it gives P(S = s) = b_{c_n}(s), and with the evidence S = s

    P(y_i = 1, S = s)  =  P(S = s) b_i(positive given S = s),

so that n + 2 inferences give all of it. The counters make cliques larger by up to two variables of n + 1 states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.decoding.outputs import outputs_by_component
from isinglass.graph.elimination.order import partial_order
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.graph.layout import first_states
from isinglass.inference.api import infer
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray, Mask


def count_distributions(potentials: Potentials, mask: Mask, positive: int) -> list[tuple[FloatArray, float]]:
    """Return P(y_i = 1, S = s), an array (outputs, outputs) for s = 1, 2, ..., and P(S = 0), of each component.

    Parameters
    ----------
    potentials : Potentials
        Real ones, on which exact inference is feasible.
    mask : bool array (variables,)
        The outputs.
    positive : int
        The positive state.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[0.4, 0.1], [0.2, 0.3]])])
    >>> [(joint, none)] = count_distributions(p, np.array([True, True]), positive=1)
    >>> joint.round(4).tolist(), round(none, 4)
    ([[0.2, 0.3], [0.1, 0.3]], 0.4)
    """
    graph = potentials.graph
    outputs = outputs_by_component(mask, graph)
    if not mask.any():
        return [(np.zeros((0, 0)), 1.0) for _ in outputs]
    counted, last = _with_counters(potentials, outputs, positive)
    place = first_states(counted.graph)[:-1]
    free, states = infer(counted, "exact").variables, int(counted.graph.cards[last[last >= 0]].max())
    sums = np.array([free[c] if c >= 0 else np.eye(states)[0] for c in last.tolist()])  # (components, states)
    joint = np.zeros((graph.n_variables, states))
    for s in range(1, states):
        possible = np.flatnonzero((last >= 0) & (sums[:, s] > 0))
        given = {int(last[c]): s for c in possible}
        if given:
            found = infer(counted, "exact", evidence=given).variables.flat
            mine = mask & np.isin(graph.variable_component, possible)
            conditional = found[place[: graph.n_variables][mine] + positive]
            joint[mine, s] = conditional * sums[graph.variable_component[mine], s]
    return [(joint[mine, 1 : len(mine) + 1], float(sums[c, 0])) for c, mine in enumerate(outputs)]


class _Links(NamedTuple):
    """For each output: itself, its counter, the counter before (-1: none), and its component."""

    output: IntArray
    counter: IntArray
    before: IntArray
    component: IntArray


def _with_counters(potentials: Potentials, outputs: list[IntArray], positive: int) -> tuple[Potentials, IntArray]:
    """Return the model with counters, and the last counter of each component (-1: none)."""
    graph, links = potentials.graph, _links(potentials.graph, outputs)
    n, states = len(links.output), max(map(len, outputs)) + 1
    groups, tables = list(graph.groups), list(potentials.groups)
    ids, owner, count = list(potentials.table_ids), [graph.factor_component], graph.n_factors
    for card in np.unique(graph.cards[links.output]).tolist():
        for begins in (True, False):
            rows = np.flatnonzero((graph.cards[links.output] == card) & ((links.before < 0) == begins))
            if not len(rows):
                continue
            scopes = np.stack([links.output[rows], links.counter[rows], links.before[rows]], axis=1)
            table = _table(card, states, positive, begins)
            groups.append(FactorGroup(scopes[:, : table.ndim], table.shape, count + np.arange(len(rows))))
            tables.append(table[None])
            ids.append(np.zeros(len(rows), np.int64))
            owner.append(links.component[rows])
            count += len(rows)
    cards = np.concatenate([graph.cards, np.full(n, states)])
    components = np.concatenate([graph.variable_component, links.component])
    wider = FactorGraph._build(cards, groups, components, np.concatenate(owner), graph.n_components)
    last = np.full(graph.n_components, -1)
    last[links.component] = links.counter  # the latest one remains
    return Potentials._build(wider, tables, ids, potentials.evidence), last


def _links(graph: FactorGraph, outputs: list[IntArray]) -> _Links:
    """Chain the outputs of each component in their order of elimination."""
    order = partial_order(graph)
    rank = np.zeros(graph.n_variables, np.int64)
    rank[order] = np.arange(len(order))
    sorted_outputs = [mine[np.argsort(rank[mine], kind="stable")] for mine in outputs]
    output = np.concatenate(sorted_outputs)
    counter = graph.n_variables + np.arange(len(output))
    sizes = np.array([len(mine) for mine in outputs])
    before = counter - 1
    before[(np.cumsum(sizes) - sizes)[sizes > 0]] = -1
    return _Links(output, counter, before, np.repeat(np.arange(len(outputs)), sizes))


def _table(card: int, states: int, positive: int, begins: bool) -> FloatArray:
    """Return the log table over an output, its counter and, unless it is the first, the counter before."""
    y, c, b = np.ogrid[:card, :states, : 1 if begins else states]
    table = np.where(c == b + (y == positive), 0.0, -np.inf)
    return table[:, :, 0] if begins else table
