"""Log-scores of chains, for each component of a batch: S(x) = sum_a phi_a(x_a)."""

from __future__ import annotations

import numpy as np

from isinglass.inference.sampling.chains import States
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray


class Scores:
    """Computes log-scores of states (variables, chains) under one model.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [np.eye(2), [0.5, 0.0]])
    >>> Scores(p)(np.array([[0, 1], [0, 0]], np.uint8)).tolist()
    [[1.5, 0.0]]
    """

    def __init__(self, potentials: Potentials) -> None:
        graph = potentials.graph
        self.graph, at, filled = graph, np.zeros(graph.n_factors, np.int64), 0
        for group, tables, ids in zip(graph.groups, potentials.groups, potentials.table_ids, strict=True):
            at[group.factors] = filled + ids * group.table_size
            filled += tables.size
        self.at = at
        self.tables = np.concatenate([np.zeros(0), *(tables.ravel() for tables in potentials.groups)])

    def __call__(self, states: States) -> FloatArray:
        """Return the log-scores, (components, chains)."""
        from isinglass.kernels.numba.sampling.tempering import log_scores

        graph, flat = self.graph, self.graph.flat_scopes
        out = np.zeros((graph.n_components, states.shape[1]))
        log_scores(
            graph.factor_component, flat.first_slot, flat.variable, flat.stride, self.at, self.tables, states, out
        )
        return out
