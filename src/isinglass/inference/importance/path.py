"""The geometric path from a reference distribution q to a model f: f_b(x) = q(x)^(1 - b) f(x)^b, 0 <= b <= 1.

Both ends are on one graph, which has the factors of the model and those of the reference. The tables of the former are
multiplied by b, those of the latter by 1 - b. Hard zeros of the model are hard zeros of every f_b but q itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.inference.importance.reference import Reference
from isinglass.inference.sampling.chains import States
from isinglass.inference.sampling.scores import Scores
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Path:
    """The distributions between a reference and a model.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 2.0], [1.0, 0.0]]])
    >>> path = Path.of(p, Reference.of(p, "uniform"))
    >>> path.at(0.5).log_score([[0, 1], [1, 0]]).tolist()
    [1.0, 0.5]
    """

    model: Potentials
    reference: Reference
    graph: FactorGraph

    @classmethod
    def of(cls, model: Potentials, reference: Reference) -> Path:
        """Join the graphs of the two ends; the factors of the model keep their numbers."""
        one, two = model.graph, reference.potentials.graph
        moved = [FactorGroup(g.scopes, g.shape, g.factors + one.n_factors) for g in two.groups]
        component = np.concatenate([one.factor_component, two.factor_component])
        groups = [*one.groups, *moved]
        graph = FactorGraph._build(one.cards, groups, one.variable_component, component, one.n_components)
        return cls(model, reference, graph)

    def at(self, b: float) -> Potentials:
        """Return the potentials of f_b, 0 < b < 1, on the joint graph."""
        ends = (self.model, self.reference.potentials)
        groups = [share * tables for end, share in zip(ends, (b, 1.0 - b), strict=True) for tables in end.groups]
        ids = [which for end in ends for which in end.table_ids]
        return Potentials._build(self.graph, groups, ids, self.model.evidence)

    def log_ratio(self, states: States) -> FloatArray:
        """Return log f(x) - log q(x), with q as it is in the path (not normalised), shape (components, chains)."""
        model, reference = self._scores
        return model(states) - reference(states)

    @cached_property
    def _scores(self) -> tuple[Scores, Scores]:
        return Scores(self.model), Scores(self.reference.potentials)
