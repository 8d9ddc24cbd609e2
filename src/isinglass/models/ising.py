"""The Ising model on the pairs of a graph.

    log p(s) = sum_ij J_ij s_i s_j + sum_i h_i s_i - log Z,        s_i in {-1, +1}

State 0 is spin -1. (Ising 1925.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, describe
from isinglass.models.checks import NUMBERS
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import array_of, instance

SPINS = np.array([-1.0, 1.0])


class Ising:
    """The Ising model on a graph of binary variables: fields on its factors of one variable, couplings on its pairs.

    Parameters
    ----------
    graph : FactorGraph
        Binary, with factors of one and two variables, such as `grid_graph(height, width, 2)`.

    Examples
    --------
    >>> import isinglass as ig
    >>> Ising(ig.grid_graph(3, 3, 2))
    Ising: 9 variables (2 states), 21 factors (arity 1-2)
    >>> p = Ising(ig.grid_graph(3, 3, 2)).potentials(coupling=0.4, field=0.1)
    >>> p.log_score(np.ones(9, int)).round(6)
    np.float64(5.7)
    """

    def __init__(self, graph: FactorGraph) -> None:
        instance(graph, FactorGraph, "graph")
        other = [group.shape for group in graph.groups if group.shape not in ((2,), (2, 2))]
        if other:
            raise InputError("graph", "binary variables and factors of one or two", f"a table of shape {other[0]}")
        self.graph = graph

    def potentials(self, coupling: ArrayLike = 0.0, field: ArrayLike = 0.0) -> Potentials:
        """Return log-potentials.

        Parameters
        ----------
        coupling : float or array (pairs,)
            J, one for all, or one for each factor of two variables, in factor order.
        field : float or array (variables,)
            h, one for all, or one for each variable (shape (height, width) will do for a grid). Of several factors
            of one variable the first has it.
        """
        pairs = np.concatenate([np.zeros(0, np.int64), *(g.factors for g in self.graph.groups if g.arity == 2)])
        strengths = _numbers(coupling, len(pairs), "coupling", "pairs")
        fields = self._fields(field)
        order = np.sort(pairs)
        groups, ids = [], []
        for group in self.graph.groups:
            if group.arity == 2:
                values = strengths if strengths.ndim == 0 else strengths[np.searchsorted(order, group.factors)]
                tables = np.multiply.outer(values, np.outer(SPINS, SPINS)).reshape(-1, 2, 2)
            else:
                tables = fields[group.factors][:, None] * SPINS
            groups.append(tables)
            ids.append(_table_ids(len(tables), len(group)))
        return Potentials._build(self.graph, groups, ids, {})

    def __repr__(self) -> str:
        return f"Ising: {describe(self.graph)}"

    def _fields(self, field: ArrayLike) -> FloatArray:
        """Return the field of each factor: that of its variable, for the first factor of one variable."""
        graph = self.graph
        values = np.broadcast_to(_numbers(field, graph.n_variables, "field", "variables"), graph.n_variables)
        factors = np.concatenate([np.zeros(0, np.int64), *(g.factors for g in graph.groups if g.arity == 1)])
        variables = np.concatenate([np.zeros(0, np.int64), *(g.scopes[:, 0] for g in graph.groups if g.arity == 1)])
        by_number = np.argsort(factors)
        have, first = np.unique(variables[by_number], return_index=True)
        missing = np.setdiff1d(np.flatnonzero(values), have)
        if len(missing):
            got = f"one at variable {missing[0]}, which has none"
            raise InputError("field", "fields only at variables that have a factor of their own", got)
        out = np.zeros(graph.n_factors)
        out[factors[by_number][first]] = values[have]
        return out


def _numbers(values: ArrayLike, count: int, argument: str, what: str) -> FloatArray:
    """Check one number, or `count` numbers."""
    array = array_of(values, argument, NUMBERS)
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise InputError(argument, NUMBERS, f"{values!r:.60}")
    if array.ndim and array.size != count:
        raise InputError(argument, f"one number, or one for each of {count} {what}", f"shape {array.shape}")
    return (array.ravel() if array.ndim else array).astype(np.float64)


def _table_ids(n_tables: int, n_factors: int) -> IntArray:
    return np.zeros(n_factors, np.int64) if n_tables == 1 else np.arange(n_factors)
