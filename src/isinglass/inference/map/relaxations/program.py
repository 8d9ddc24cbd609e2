"""The local relaxation as a linear program, and the same with integers, by HiGHS (through SciPy).

    max  sum_i <mu_i, phi_i> + sum_a <mu_a, phi_a>
    s.t. sum_x mu_i(x) = 1,   sum_{x_a with x_i} mu_a(x_a) = mu_i(x_i),   mu >= 0

over pseudo-marginals of variables and links (Wainwright, Jaakkola and Willsky 2005; Koller and Friedman 2009, section
13.5). Entries that a hard zero forbids have no column: no large number stands for -inf. If the mu_i are integers, the
optimum is a most probable assignment.

The multipliers of the second kind of constraint are messages. The bound of the relaxation is computed from them by
reparameterisation, with the model's own tables, so that it is true whatever the tolerances of the linear program are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array


class Program(NamedTuple):
    """The linear program of a reduced model.

    Attributes
    ----------
    scores : array (columns,)
        The objective; first all states of the variables, then the possible entries of the links' tables.
    matrix : sparse array (rows, columns)
        First one row for each variable, then one for each entry of a message.
    right : array (rows,)
        The right-hand side: matrix mu = right.
    """

    scores: FloatArray
    matrix: csr_array
    right: FloatArray

    def states(self, graph: FactorGraph, solution: FloatArray) -> IntArray:
        """Return the state of each variable with the largest mu_i."""
        first = first_states(graph)
        return np.array([np.argmax(solution[a:b]) for a, b in pairwise(first)], np.int64)


def program_of(potentials: Potentials) -> Program:
    """Return the linear program of a model without evidence.

    Examples
    --------
    >>> import isinglass as ig
    >>> program_of(ig.Potentials(ig.FactorGraph([2, 3], [(0, 1)]), [np.zeros((2, 3))])).matrix.shape
    (7, 11)
    """
    from scipy.sparse import coo_array

    graph, edges = potentials.graph, edges_of(potentials.graph)
    first, n = first_states(graph), graph.n_variables
    link_of = np.full(graph.n_factors, -1)
    link_of[edges.link_factor] = np.arange(len(edges.link_factor))
    scores = [np.zeros(int(first[-1]))]
    rows = [np.repeat(np.arange(n), graph.cards), n + np.arange(int(edges.start[-1]))]
    columns = [np.arange(int(first[-1])), _state_columns(graph)]
    values = [np.ones(int(first[-1])), -np.ones(int(edges.start[-1]))]
    width = int(first[-1])
    for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
        if group.arity == 1:
            at = first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])
            scores[0] += np.bincount(at.ravel(), tables[ids].ravel(), len(scores[0]))
        if group.arity < 2 or not len(group):
            continue
        flat = tables[ids].reshape(len(group), -1)
        factor, entry = np.nonzero(flat > -np.inf)
        place = width + np.arange(len(factor))
        width += len(factor)
        scores.append(flat[factor, entry])
        digits = np.unravel_index(entry, group.shape)
        slots = edges.first_slot[link_of[group.factors]][factor]
        for s, digit in enumerate(digits):
            rows.append(n + edges.start[edges.slot_edge[slots + s]] + digit)
            columns.append(place)
            values.append(np.ones(len(place)))
    size = (n + int(edges.start[-1]), width)
    matrix = coo_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), size).tocsr()
    right = np.concatenate([np.ones(n), np.zeros(int(edges.start[-1]))])
    return Program(np.concatenate(scores), matrix, right)


def _state_columns(graph: FactorGraph) -> IntArray:
    """Return, for each entry of a message, the column of the state of its variable."""
    edges = edges_of(graph)
    variable = np.repeat(np.arange(graph.n_variables), np.diff(edges.first_edge))
    sizes = np.diff(edges.start)
    state = np.arange(int(edges.start[-1])) - np.repeat(edges.start[:-1], sizes)
    columns: IntArray = np.repeat(edges.first_state[variable], sizes) + state
    return columns
