"""Max-product belief propagation: max-marginals and the score that they add up to.

The messages are those of `isinglass.kernels.numba.messages` with sums replaced by maxima. The belief of a variable or
factor is its max-marginal, scaled to sum to one, b_i(x_i) ~ max_{x with x_i} exp(sum_a phi_a(x_a)): exact on forests
(Pearl 1988). `log_z` is what `passes` forms with log maxima in place of log sums; at a fixed point on a forest it is
the score of a best assignment.

Messages only move potentials from table to table. So for *every* assignment x, at every iteration,

    log_z  =  sum_a phi_a(x_a)  +  sum_a (log max b_a - log b_a(x_a))  +  sum_i c_i (log max b_i - log b_i(x_i))

with a the factors of arity two or more in the second sum and c_i = 1 - (their number at i) (Wainwright, Jaakkola and
Willsky 2004). The reverse of log_z is taken through this identity at a decoded x; where x attains all maxima, the
derivative is the indicator of x, as it must be (Danskin 1966). Derivatives of a maximum are those of the chosen entry;
they mean nothing at ties.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isinglass.errors import InputError
from isinglass.graph.factor_graph import iter_groups
from isinglass.inference.algorithm import Facts, Progress, register
from isinglass.inference.bp import MessagePassing
from isinglass.inference.decode import decode
from isinglass.inference.engine import Engine, Outcome, Plan
from isinglass.inference.exact import Exact
from isinglass.inference.result import Bound, Gradients, first_beliefs, first_states
from isinglass.potentials import LogTables, Potentials
from isinglass.validation import IntArray


class MaxEngine(Engine):
    """The engine in the max semiring, with the normalisation of beliefs and the reverse of log_z that belong to it."""

    def run(self, taped: bool, progress: Progress | None = None) -> Outcome:
        """Pass messages; beliefs sum to one in their imaginary parts too."""
        outcome = super().run(taped, progress)
        if self.potentials.dtype.kind == "c":
            first = first_states(self.graph)
            outcome.variables /= np.repeat(np.add.reduceat(outcome.variables, first[:-1]), np.diff(first))
            for group, part in iter_groups(self.graph):
                rows = outcome.factors[part].reshape(len(group), group.table_size)
                outcome.factors[part] = (rows / rows.sum(axis=1, keepdims=True)).ravel()
        return outcome

    def backward(
        self, outcome: Outcome, z_bar: NDArray[Any], variables_bar: NDArray[Any], factors_bar: NDArray[Any]
    ) -> Gradients:
        """Carry derivatives back; those by log_z through the beliefs and the score of a decoded assignment."""
        if not z_bar.any():
            return super().backward(outcome, z_bar, variables_bar, factors_bar)
        states = self._reference(outcome)
        variables_bar, factors_bar = variables_bar.copy(), factors_bar.copy()
        edges, counting = self.edges, self.plan.counting
        first, at = first_beliefs(self.graph)[edges.link_factor], np.zeros(len(edges.size), np.int64)
        link = np.repeat(np.arange(len(at)), np.diff(edges.first_slot))
        np.add.at(at, link, states[edges.slot_variable] * edges.slot_stride)
        of_links = _add_ratio(outcome.factors, factors_bar, first, edges.size, at, z_bar[edges.component] * counting)
        own = np.ones(len(edges.cards))
        np.subtract.at(own, edges.slot_variable, counting[link])
        weight = z_bar[edges.variable_component] * own
        of_own = _add_ratio(outcome.variables, variables_bar, edges.first_state[:-1], edges.cards, states, weight)
        gradients = super().backward(outcome, np.zeros_like(z_bar), variables_bar, factors_bar)
        np.subtract.at(of_links, link, of_own[edges.slot_variable])
        gradients.counting_numbers[edges.link_factor] += z_bar[edges.component] * of_links
        return self._with_score(gradients, states, z_bar)

    def _reference(self, outcome: Outcome) -> IntArray:
        """Return a possible assignment: the decoded one, or, where it meets a hard zero, a best one."""
        p = self.potentials
        real = Potentials._build(p.graph, [g.real for g in p.groups], p.table_ids, p.evidence)
        states = decode(real, outcome.variables.real, outcome.factors.real)
        return states if real.log_score(states) > -np.inf else Exact().maximise(real)[0].states

    def _with_score(self, gradients: Gradients, states: IntArray, z_bar: NDArray[Any]) -> Gradients:
        """Add the derivative of the score of an assignment."""
        groups = []
        for group, ids, bar in zip(self.graph.groups, self.potentials.table_ids, gradients.groups, strict=True):
            total, chosen = bar.copy(), tuple(states[group.scopes[:, k]] for k in range(group.arity))
            np.add.at(total, (ids, *chosen), z_bar[self.graph.factor_component[group.factors]])
            groups.append(total)
        of_factors = LogTables(self.graph, groups, self.potentials.table_ids)
        return replace(gradients, groups=tuple(groups), log_tables=of_factors)


def _add_ratio(
    beliefs: NDArray[Any], bars: NDArray[Any], first: IntArray, size: IntArray, at: IntArray, weight: NDArray[Any]
) -> NDArray[Any]:
    """Add the derivatives of weight * log(max b / b(at)) by beliefs that start at `first`. Returns the logarithms."""
    logs = np.zeros(len(first), beliefs.dtype)
    for j, (start, length, chosen, w) in enumerate(zip(first, size, at, weight, strict=True)):
        row = beliefs[start : start + length]
        top = int(np.argmax(row.real))
        if row[top].real == row[chosen].real:
            continue
        if row[chosen].real == 0:
            expected = "0: its derivative underflows at potentials of this size"
            raise InputError("log_z", expected, "another number", "divide the potentials by a temperature")
        bars[start + top] += w / row[top]
        bars[start + chosen] -= w / row[chosen]
        logs[j] = np.log(row[top] / row[chosen])
    return logs


@register
@dataclass(frozen=True)
class MaxProduct(MessagePassing):
    """Max-product belief propagation: beliefs are max-marginals, `log_z` is the score of a best assignment on forests.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
    >>> r = ig.infer(p, "max-product")
    >>> round(float(np.exp(r.log_z)), 12), r.variable(0).round(4).tolist()  # 2 : 4
    (4.0, [0.3333, 0.6667])
    """

    powers: ClassVar[bool] = False
    engine: ClassVar[type[Engine]] = MaxEngine
    name: ClassVar[str] = "max-product"
    facts: ClassVar[Facts] = Facts(
        "max-product belief propagation: max-marginals, exact on forests, and an assignment",
        exact="never",
        bound=None,
        maximises="one",
        iterative=True,
        semiring="max",
    )

    def bound(self, potentials: Potentials, converged: bool) -> Bound:
        """Promise nothing about log Z."""
        return None

    def _plan(self, potentials: Potentials) -> Plan:
        return replace(super()._plan(potentials), maximise=True)
