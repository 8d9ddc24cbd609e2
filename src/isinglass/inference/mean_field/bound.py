"""The lower bound of mean field, naive or on trees, as a function of the beliefs, and its reverse.

The equations stand in `isinglass.kernels.numba.mean_field`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from isinglass.graph.layout import first_beliefs
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.log_model import LinkModel, move_unary_bars, share_unary_beliefs
from isinglass.inference.result import Gradients
from isinglass.kernels.layout import Edges
from isinglass.potentials import LogTables, Potentials
from isinglass.typing import Array, Mask


@dataclass(eq=False)
class Bars:
    """Derivatives of a loss: by the beliefs of variables and factors, by the potentials and tables of a model."""

    model: LinkModel
    q: Array
    factors: Array
    phi: Array
    table: Array  # where the tables are
    targets: Array = field(default_factory=lambda: np.zeros(0))  # by the targets t of sweeps at a fixed point

    def gradients(self, potentials: Potentials, z_bar: Array) -> Gradients:
        """Sum over the factors that share a table."""
        groups = self.model.gradients(potentials, self.phi, self.table, z_bar)
        of_factors = LogTables(potentials.graph, groups, potentials.table_ids)
        return Gradients(groups, of_factors, np.zeros(0), 0.0, lambda: np.zeros(potentials.graph.n_factors))


@dataclass(eq=False)
class MeanFieldBound:
    """The bound for potentials and a set of chosen links, whose beliefs are no products."""

    potentials: Potentials
    chosen: Mask  # (links,)

    def __post_init__(self) -> None:
        graph = self.potentials.graph
        self.edges: Edges = edges_of(graph)
        self.model = LinkModel.of(self.potentials, np.ones(len(self.edges.size)))
        self.first_belief = first_beliefs(graph)[self.edges.link_factor]
        inside = np.repeat(self.chosen, np.diff(self.edges.first_slot))
        self.counting = 1.0 - np.bincount(self.edges.slot_variable[inside], minlength=graph.n_variables)
        self.row = np.zeros(int(graph.cards.max(initial=1)), self.potentials.dtype)
        self.digits = np.zeros(int(np.diff(self.edges.first_slot).max(initial=1)), np.int64)

    def value(self, q: Array, factors: Array) -> Array:
        """Return the bound of each component; complete `factors`, which holds the beliefs of chosen links."""
        from isinglass.kernels.numba.mean_field import lower_bound

        model = self.model
        log_z = model.constant.copy()
        lower_bound(
            self.edges, self.counting, self.chosen, model.phi, model.psi, model.table, q, log_z, factors,
            self.first_belief, self.digits,
        )  # fmt: skip
        share_unary_beliefs(self.potentials.graph, q, factors)
        return log_z

    def backward(
        self,
        q: Array,
        factors: Array,
        z_bar: Array,
        variables_bar: Array,
        factors_bar: Array,
    ) -> Bars:
        """Carry derivatives by the bound and all beliefs back to the beliefs of variables and chosen links."""
        from isinglass.kernels.numba.mean_field import read_out_back

        model, edges = self.model, self.edges
        bars = Bars(
            model, variables_bar.astype(q.dtype), factors_bar.astype(q.dtype), np.zeros_like(model.phi),
            np.zeros_like(model.psi),
        )  # fmt: skip
        move_unary_bars(self.potentials.graph, factors_bar, bars.q)
        read_out_back(
            edges, self.counting, self.chosen, model.phi, model.psi, model.table, q, factors, z_bar, bars.factors,
            self.first_belief, bars.q, bars.phi, bars.table, self.row, self.digits,
        )  # fmt: skip
        return bars
