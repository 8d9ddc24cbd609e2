"""Boltzmann machines: an exponential family of binary units, some of which are never seen.

    log p(x) = sum_ij W_ij x_i x_j + sum_i b_i x_i - log Z,        x = (v, h),   x_i in {0, 1}

The units v are visible, the units h hidden. (Ackley, Hinton and Sejnowski 1985; Murphy 2012, section 27.7.) It is an
Ising model in other coordinates, s_i = 2 x_i - 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.builders import pairwise_graph
from isinglass.models.checks import edge_list
from isinglass.models.spins.couplings import CouplingModel, PatternTerm, numbers
from isinglass.models.terms import Term
from isinglass.potentials import Potentials
from isinglass.typing import Array, IntArray
from isinglass.validation import array_of, whole_number

UNITS = np.array([0.0, 1.0])


class BoltzmannMachine(CouplingModel):
    """A Boltzmann machine with visible and hidden units; `ig.MRF` learns its biases ("field") and weights ("coupling").

    Parameters
    ----------
    n_visible : int
        The first variables.
    n_hidden : int
        The variables after them.
    edges : "all", "restricted" or int array (edges, 2)
        Which pairs have a weight: all of them, those of a visible and a hidden unit, or those that are listed.

    Examples
    --------
    >>> machine = BoltzmannMachine(3, 2, "restricted")
    >>> machine
    BoltzmannMachine: 5 variables (2 states), 11 factors (arity 1-2)
    >>> p = machine.potentials(coupling=0.5, field=-0.1)
    >>> p.log_score([1, 0, 1, 1, 0]).round(6)
    np.float64(0.7)
    >>> machine.with_hidden([[1, 0, 1]]).tolist()  # what MRF takes: hidden units are missing values
    [[1, 0, 1, -1, -1]]
    """

    def __init__(self, n_visible: int, n_hidden: int = 0, edges: Any = "all") -> None:
        self.n_visible = whole_number(n_visible, "n_visible", 1)
        self.n_hidden = whole_number(n_hidden, "n_hidden")
        n = self.n_visible + self.n_hidden
        super().__init__(pairwise_graph(n, _pairs(self.n_visible, self.n_hidden, edges), 2), 2)
        self.pattern = np.outer(UNITS, UNITS)

    def potentials(self, coupling: ArrayLike = 0.0, field: ArrayLike = 0.0) -> Potentials:
        """Return log-potentials.

        Parameters
        ----------
        coupling : float or array (pairs,)
            W, one for all, or one for each pair in the order of the graph.
        field : float or array (variables,)
            b, one for all, or one for each unit.
        """
        n = self.graph.n_variables
        values = np.broadcast_to(numbers(field, n, "field", "variables"), n)
        return self._potentials(coupling, self._fields(values[:, None] * UNITS))

    def field_term(self, n: int | None, table_ids: IntArray) -> Term:
        """Return one parameter for a unit: its bias."""
        return PatternTerm("field", UNITS, n, table_ids)

    def with_hidden(self, X: ArrayLike) -> Array:
        """Return samples (samples, visible) with columns of missing values (-1) for the hidden units."""
        states = array_of(X, "X", "an array (samples, visible units)")
        if states.ndim != 2 or states.shape[1] != self.n_visible:
            raise InputError("X", f"an array (samples, {self.n_visible})", f"shape {states.shape}")
        return np.concatenate([states, np.full((len(states), self.n_hidden), -1, states.dtype)], axis=1)


def _pairs(visible: int, hidden: int, edges: Any) -> IntArray:
    """Return the pairs of units that have a weight."""
    n = visible + hidden
    if not isinstance(edges, str):
        return edge_list(edges, n, "edges")
    if edges == "all":
        return np.stack(np.triu_indices(n, 1), axis=1)
    if edges == "restricted":
        one, two = np.divmod(np.arange(visible * hidden), max(hidden, 1))
        return np.stack([one, two + visible], axis=1)
    raise InputError("edges", "'all', 'restricted' or pairs of units", f"{edges!r:.40}")
