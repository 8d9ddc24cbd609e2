"""The closed form of maximum likelihood on chordal graphs (Murphy 2012, section 19.5.7.4; Lauritzen 1996).

    p(x) = prod_cliques p_C(x_C) / prod_separators p_S(x_S),

with the empirical marginals on the right, over the cliques C and separators S of a junction tree. It needs a factor for
each maximal clique; the separator of a clique and its parent is divided out of the clique's own table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.semantics.chordal import fill_in
from isinglass.graph.semantics.junction_tree import junction_tree
from isinglass.learning.markov.likelihood.tables import TableObjective
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import Task
from isinglass.typing import FloatArray


def is_decomposable(graph: FactorGraph) -> bool:
    """Tell whether a graph is chordal and has a factor for each of its maximal cliques.

    Examples
    --------
    >>> is_decomposable(FactorGraph([2] * 3, [(0, 1), (1, 2)]))
    True
    >>> is_decomposable(FactorGraph([2] * 3, [(0, 1), (1, 2), (0, 2)]))  # no factor for the triangle
    False
    """
    return _objection(graph) is None


def _objection(graph: FactorGraph) -> str | None:
    if filled := fill_in(graph):
        return f"a cycle without a chord: {filled[0]} would be one"
    scopes = {frozenset(s) for s in graph.scopes}
    missing = [c for c in junction_tree(graph).cliques if frozenset(c) not in scopes]
    return f"no factor for the clique {missing[0]}" if missing else None


class ClosedFormObjective(TableObjective):
    """The likelihood, with the jump to its maximum as its update."""

    name = "closed-form"

    def update(self, theta: FloatArray) -> FloatArray:
        """Return the parameters of maximum likelihood, wherever it starts."""
        graph, tree = self.model.graph, junction_tree(self.model.graph)
        separators = {child: s for (_, child), s in zip(tree.edges, tree.separators, strict=True)}
        number = {frozenset(graph.scopes[a]): a for a in self.margins.factors}
        tables = {}
        for c, clique in enumerate(tree.cliques):
            a = number[frozenset(clique)]
            target = self.margins.targets[a]
            outside = tuple(k for k, i in enumerate(graph.scopes[a]) if i not in separators.get(c, ()))
            below = target.sum(axis=outside, keepdims=True) if c in separators else 1.0
            ratio = np.divide(target, below, out=np.zeros_like(target), where=target > 0)
            tables[a] = np.log(ratio, out=np.zeros_like(target), where=ratio > 0)
        return np.asarray(self.model.transpose(self.margins.scattered(tables)), np.float64)


@register
@dataclass(frozen=True)
class ClosedForm(Method):
    """The closed form of maximum likelihood, for chordal graphs: ``"closed-form"``."""

    name: ClassVar[str] = "closed-form"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "prod_C p_C / prod_S p_S",
        consistent=True,
        convex=True,
        constants=False,
        tables=True,
        penalised=False,
        likelihood=True,
        update=True,
        note="exact, in one step; only for chordal graphs with a factor for each maximal clique",
    )

    def check(self, task: Task) -> None:
        """Refuse graphs that are not chordal."""
        super().check(task)
        if (reason := _objection(task.model.graph)) is not None:
            expected = "a chordal graph with a factor for each maximal clique, for method='closed-form'"
            raise InputError("graph", expected, reason, "use method='ipf'")

    def objective(self, task: Task) -> ClosedFormObjective:
        """Return the likelihood, with its maximum."""
        return ClosedFormObjective(task)
