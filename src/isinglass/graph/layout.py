"""Where beliefs lie in flat vectors: states variable by variable, configurations of factors group by group.

`state_blocks` groups variables by cardinality, so that no loop over variables is needed where cardinalities are mixed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.segments import starts
from isinglass.typing import Array, IntArray
from isinglass.validation import read_only


class StateBlock(NamedTuple):
    """All variables of one cardinality k.

    Attributes
    ----------
    variables : int array (variables of the block,)
    entries : int array (variables of the block, k)
        Where their states lie in a flat vector of all variables' states.
    """

    variables: IntArray
    entries: IntArray

    def rows(self, values: Array) -> Array:
        """Return the entries of a flat vector of all variables' states, (variables of the block, k); a view of all."""
        return values.reshape(self.entries.shape) if self.entries.size == values.size else values[self.entries]


def state_blocks(graph: FactorGraph) -> tuple[StateBlock, ...]:
    """Return the variables of a graph by cardinality, smallest first.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> [(b.variables.tolist(), b.entries.tolist()) for b in state_blocks(FactorGraph([2, 3, 2], []))]
    [([0, 2], [[0, 1], [5, 6]]), ([1], [[2, 3, 4]])]
    """
    return graph.cached("state_blocks", lambda: tuple(_block(graph, k) for k in np.unique(graph.cards).tolist()))


def _block(graph: FactorGraph, k: int) -> StateBlock:
    variables = np.flatnonzero(graph.cards == k)
    entries = first_states(graph)[variables][:, None] + np.arange(k)
    return StateBlock(read_only(variables), read_only(entries))


def first_states(graph: FactorGraph) -> IntArray:
    """Return the start of each variable in a flat vector of all variables' states, and its length."""
    return graph.cached("first_states", lambda: starts(graph.cards))


def belief_components(graph: FactorGraph) -> tuple[IntArray, IntArray]:
    """Return the component of each entry of the flat beliefs of variables, and of those of factors.

    Examples
    --------
    >>> from isinglass.graph import FactorGraph
    >>> [one.tolist() for one in belief_components(FactorGraph([2, 3], [(0,)]))]
    [[0, 0, 0, 0, 0], [0, 0]]
    """
    of_factors = [np.repeat(graph.factor_component[group.factors], group.table_size) for group in graph.groups]
    return np.repeat(graph.variable_component, graph.cards), np.concatenate([np.zeros(0, np.int64), *of_factors])


def first_beliefs(graph: FactorGraph) -> IntArray:
    """Return the start of each factor's belief in a flat vector that holds them group by group."""
    return graph.cached("first_beliefs", lambda: _first_beliefs(graph))


def _first_beliefs(graph: FactorGraph) -> IntArray:
    first = np.zeros(graph.n_factors, np.int64)
    for group, part in iter_groups(graph):
        first[group.factors] = part.start + np.arange(len(group)) * group.table_size
    return first


def belief_entries(graph: FactorGraph) -> int:
    """Return the length of a flat vector of all factors' beliefs."""
    return sum(len(group) * group.table_size for group in graph.groups)
