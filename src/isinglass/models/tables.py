"""The saturated log-linear model of a graph: every entry of every table is a parameter."""

from __future__ import annotations

from collections import Counter

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.models.model import Model
from isinglass.models.terms import SharedTerm
from isinglass.validation import instance


def table_model(graph: FactorGraph, tied: bool = False) -> Model:
    """Return the model whose parameters are the tables.

    Parameters
    ----------
    graph : FactorGraph
    tied : bool
        Whether all factors of one group (of one shape) share a table.

    Returns
    -------
    Model
        With parameters "node" (factors, k), "edge" (factors, k, l), "clique/3" and so on; where factors of one arity
        have different shapes, "edge/2x3" and so on. Tied ones have no first axis.

    Examples
    --------
    >>> import isinglass as ig
    >>> table_model(ig.grid_graph(2, 2, 2)).parameters
    {'node': (4, 2), 'edge': (4, 2, 2)}
    >>> table_model(ig.FactorGraph([2, 2, 3], [(0, 1), (1, 2)])).parameters
    {'edge/2x2': (1, 2, 2), 'edge/2x3': (1, 2, 3)}
    """
    instance(graph, FactorGraph, "graph")
    arities = Counter(group.arity for group in graph.groups)
    terms = []
    for group in graph.groups:
        name = _name(group, alone=arities[group.arity] == 1)
        terms.append([SharedTerm(name, group.shape, None if tied else len(group))] if group.arity else [])
    return Model(graph, terms)


def _name(group: FactorGroup, alone: bool) -> str:
    name = {1: "node", 2: "edge"}.get(group.arity, f"clique/{group.arity}")
    return name if alone else f"{name}/{'x'.join(map(str, group.shape))}"
