"""The lower bound of mean field, naive or on trees, as a function of the beliefs, and its reverse.

The equations stand in `isinglass.kernels.numba.mean_field`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isinglass.graph.layout import first_beliefs
from isinglass.graph.message_graph import edges_of
from isinglass.graph.neighbours import Neighbours
from isinglass.inference.message_passing.model.group_places import move_unary_bars, share_unary_beliefs
from isinglass.inference.message_passing.model.log_model import LinkModel
from isinglass.inference.result import Gradients
from isinglass.kernels.layout import Edges
from isinglass.potentials import LogTables, Potentials
from isinglass.typing import Array, IntArray, Mask


class Field(NamedTuple):
    """What the loops of mean field read, and their scratch memory."""

    near: Neighbours  # the links that expectations go over
    at: NDArray[np.uint64]  # where the table of each of them starts
    edges: Edges
    phi: Array
    psi: Array
    table: IntArray  # (links,) where its table starts
    chosen: Mask  # (links,) whether its belief is no product
    counting: Array  # (variables,) one minus the number of chosen links around it
    first_belief: IntArray  # (links,)
    t: Array  # of one variable
    digits: IntArray


@dataclass(eq=False)
class Bars:
    """Derivatives of a loss: by the beliefs of variables and factors, by the potentials and tables of a model."""

    model: LinkModel
    q: Array
    factors: Array
    phi: Array
    table: Array  # where the tables are
    targets: Array = field(default_factory=lambda: np.zeros(0))  # by the targets t of sweeps at a fixed point

    @classmethod
    def of(cls, model: LinkModel, q: Array, factors: Array) -> Bars:
        """Begin with derivatives by beliefs."""
        return cls(model, q, factors, np.zeros_like(model.phi), np.zeros_like(model.psi))

    def gradients(self, potentials: Potentials, z_bar: Array) -> Gradients:
        """Sum over the factors that share a table."""
        groups = self.model.gradients(potentials, self.phi, self.table, z_bar)
        of_factors = LogTables(potentials.graph, groups, potentials.table_ids)
        return Gradients(groups, of_factors, np.zeros(0), 0.0, lambda: np.zeros(potentials.graph.n_factors))


@dataclass(eq=False)
class MeanFieldBound:
    """The bound for potentials and a set of chosen links, whose beliefs are no products.

    `near` are the neighbours by those links over which expectations go.
    """

    potentials: Potentials
    chosen: Mask  # (links,)
    near: Neighbours

    def __post_init__(self) -> None:
        graph, edges = self.potentials.graph, edges_of(self.potentials.graph)
        self.model = model = LinkModel.of(self.potentials, np.ones(len(edges.size)))
        inside = np.repeat(self.chosen, np.diff(edges.first_slot))
        self.field = Field(
            self.near,
            model.table[self.near.link].astype(np.uint64),
            edges,
            model.phi,
            model.psi,
            model.table,
            self.chosen,
            counting=1.0 - np.bincount(edges.slot_variable[inside], minlength=graph.n_variables),
            first_belief=first_beliefs(graph)[edges.link_factor],
            t=np.zeros(int(graph.cards.max(initial=1)), self.potentials.dtype),
            digits=np.zeros(int(np.diff(edges.first_slot).max(initial=1)), np.int64),
        )

    def value(self, q: Array, factors: Array) -> Array:
        """Return the bound of each component; complete `factors`, which holds the beliefs of chosen links."""
        from isinglass.kernels.numba.mean_field import lower_bound

        log_z = self.model.constant.copy()
        lower_bound(self.field, q, log_z, factors)
        share_unary_beliefs(self.potentials.graph, q, factors)
        return log_z

    def backward(self, q: Array, factors: Array, z_bar: Array, variables_bar: Array, factors_bar: Array) -> Bars:
        """Carry derivatives by the bound and all beliefs back to the beliefs of variables and chosen links."""
        from isinglass.kernels.numba.mean_field import read_out_back

        bars = Bars.of(self.model, variables_bar.astype(q.dtype), factors_bar.astype(q.dtype))
        move_unary_bars(self.potentials.graph, factors_bar, bars.q)
        read_out_back(self.field, q, factors, z_bar, bars.factors, bars.q, bars.phi, bars.table)
        return bars
