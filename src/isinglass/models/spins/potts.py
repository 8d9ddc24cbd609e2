"""The Potts model on the pairs of a graph.

    log p(x) = sum_ij J_ij [x_i = x_j] + sum_i h_i(x_i) - log Z,        x_i in {0, ..., q - 1}

(Potts 1952; Murphy 2012, section 19.4.3.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.models.spins.couplings import CouplingModel, moderate
from isinglass.models.terms import SharedTerm, Term
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import instance


class Potts(CouplingModel):
    """The Potts model on a graph whose variables have equally many states.

    `ig.MRF` learns its parameters "field" and "coupling" from samples.

    Parameters
    ----------
    graph : FactorGraph
        With factors of one and two variables, such as `grid_graph(height, width, 3)`.

    Examples
    --------
    >>> import isinglass as ig
    >>> potts = Potts(ig.grid_graph(2, 2, 3))
    >>> p = potts.potentials(coupling=0.5, field=[0.0, 0.1, 0.2])
    >>> p.log_score([2, 2, 2, 0]).round(6)
    np.float64(1.6)
    >>> potts.model().parameters, potts.model(tied=True).parameters
    ({'field': (4, 3), 'coupling': (4,)}, {'field': (3,), 'coupling': ()})
    """

    def __init__(self, graph: FactorGraph) -> None:
        instance(graph, FactorGraph, "graph")
        super().__init__(graph, int(graph.cards[0]) if graph.n_variables else 2)
        self.n_states = int(graph.cards[0]) if graph.n_variables else 2
        if (graph.cards != self.n_states).any():
            raise InputError("graph", "equally many states of all variables", f"{np.unique(graph.cards).tolist()}")
        self.pattern = np.eye(self.n_states)

    def potentials(self, coupling: ArrayLike = 0.0, field: ArrayLike = 0.0) -> Potentials:
        """Return log-potentials.

        Parameters
        ----------
        coupling : float or array (pairs,)
            J, one for all, or one for each factor of two variables, in factor order.
        field : 0, or array (states,) or (variables, states)
            h, the same at all variables, or of each. Of several factors of one variable the first has it.
        """
        return self._potentials(coupling, self._fields(self._tables(field)))

    def field_term(self, n: int | None, table_ids: IntArray) -> Term:
        """Return one parameter for each state of a variable."""
        return SharedTerm("field", (self.n_states,), n, table_ids)

    def _tables(self, field: ArrayLike) -> FloatArray:
        shape = (self.graph.n_variables, self.n_states)
        array = moderate(field, "field")
        if array.shape not in ((), shape[1:], shape):
            raise InputError("field", f"one number, or shape {shape[1:]} or {shape}", f"shape {array.shape}")
        return np.broadcast_to(array, shape)
