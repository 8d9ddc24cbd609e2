"""A term without parameters: constant tables, such as configurations that are impossible by design."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.models.model import Model
from isinglass.models.terms import Term
from isinglass.typing import Array, IntArray
from isinglass.validation import log_values, read_only


class ConstantTerm(Term):
    """Constant log tables; -inf forbids.

    Parameters
    ----------
    name : str
    log_tables : array (tables, k_1, ..., k_r)
    table_ids : int array (factors,), optional

    Examples
    --------
    >>> term = ConstantTerm("impossible", [[[0.0, -np.inf], [0.0, 0.0]]])
    >>> term.shape, term.tables(np.zeros(0))[0, 0].tolist()
    ((0,), [0.0, -inf])
    """

    def __init__(self, name: str, log_tables: ArrayLike, table_ids: ArrayLike | None = None) -> None:
        constant = log_values(log_tables, "log_tables")
        self.constant = read_only(constant)
        super().__init__(name, (0,), constant.shape[1:], constant.shape[0], table_ids)

    def tables(self, weights: Array) -> Array:
        """Return the constant."""
        return self.constant.astype(np.result_type(self.constant, weights))

    def transpose(self, bars: Array) -> Array:
        """Return nothing: there are no parameters."""
        return np.zeros(0, bars.dtype)


def forbidding(model: Model, cells: IntArray) -> Model:
    """Return a model in which some complete assignments are impossible, by a constant factor over all variables.

    Parameters
    ----------
    model : Model
    cells : int array (cells, variables)

    Examples
    --------
    >>> import isinglass as ig
    >>> from isinglass.models import table_model
    >>> model = forbidding(table_model(ig.FactorGraph([2, 2], [(0,), (1,)])), np.array([[0, 0]]))
    >>> ig.infer(model.potentials(np.zeros(4))).joint([0, 1]).round(4).tolist()
    [[0.0, 0.3333], [0.3333, 0.3333]]
    """
    graph = model.graph
    table = np.zeros((1, *graph.cards.tolist()))
    table[(0, *cells.T)] = -np.inf
    everything = FactorGroup(np.arange(graph.n_variables)[None], table.shape[1:], np.array([graph.n_factors]))
    wider = FactorGraph._build(graph.cards, [*graph.groups, everything], names=graph.names)
    return Model(wider, [*model._terms, [ConstantTerm("impossible", table)]])
