"""The Ising model on the pairs of a graph.

    log p(s) = sum_ij J_ij s_i s_j + sum_i h_i s_i - log Z,        s_i in {-1, +1}

State 0 is spin -1. (Ising 1925.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.graph.factor_graph import FactorGraph
from isinglass.models.spins.couplings import CouplingModel, PatternTerm, numbers
from isinglass.models.terms import Term
from isinglass.potentials import Potentials
from isinglass.typing import IntArray

SPINS = np.array([-1.0, 1.0])


class Ising(CouplingModel):
    """The Ising model on a graph of binary variables: fields on its factors of one variable, couplings on its pairs.

    `ig.MRF` learns its parameters "field" and "coupling" from samples.

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
    >>> mrf = ig.MRF(Ising(ig.grid_graph(3, 3, 2)), tied=True).fit(ig.sample(p, 3000, random_state=0))
    >>> bool(abs(mrf.parameters_["coupling"] - 0.4) < 0.05)
    True
    """

    def __init__(self, graph: FactorGraph) -> None:
        super().__init__(graph, 2)
        self.pattern = np.outer(SPINS, SPINS)

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
        n = self.graph.n_variables
        values = np.broadcast_to(numbers(field, n, "field", "variables"), n)
        return self._potentials(coupling, self._fields(values[:, None] * SPINS))

    def field_term(self, n: int | None, table_ids: IntArray) -> Term:
        """Return one parameter for a variable: h times its spin."""
        return PatternTerm("field", SPINS, n, table_ids)
