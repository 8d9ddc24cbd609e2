"""Max-product belief propagation: max-marginals, and the score of a most probable assignment.

The messages are those of `kernels.numba.messages.updates` with maxima in place of sums. The belief of a variable or
factor is its max-marginal, scaled to sum to one, b_i(x_i) ~ max_{x with x_i} exp(sum_a phi_a(x_a)): exact on forests
(Pearl 1988). `log_z` is computed as in `passes`, with maxima in place of sums; at a fixed point on a forest it is
the score of a most probable assignment.

The derivative of a maximum is that of the entry that attains it (Danskin 1966), the first one at a tie.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from isinglass.inference.algorithm import Facts, register
from isinglass.inference.message_passing.algorithms.base import MessagePassing
from isinglass.inference.message_passing.outcome import Outcome
from isinglass.inference.message_passing.plan import Plan
from isinglass.inference.result import Bound
from isinglass.potentials import Potentials


@register
@dataclass(frozen=True)
class MaxProduct(MessagePassing):
    """Max-product belief propagation: beliefs are max-marginals; on forests `log_z` is the score of a MAP assignment.

    Its options are those of all message-passing algorithms; see `BeliefPropagation`.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
    >>> r = ig.infer(p, "max-product")
    >>> round(float(np.exp(r.log_z)), 12), r.variable(0).round(4).tolist()  # 2 : 4
    (4.0, [0.3333, 0.6667])
    """

    powers: ClassVar[bool] = False
    name: ClassVar[str] = "max-product"
    facts: ClassVar[Facts] = Facts(
        "max-product belief propagation: max-marginals, exact on forests, and an assignment",
        exact="never",
        bound=None,
        maximises="one",
        iterative=True,
        threads=True,
        semiring="max",
    )

    def bound(self, potentials: Potentials, outcome: Outcome) -> Bound:
        """Promise nothing about log Z."""
        return None

    def _plan(self, potentials: Potentials) -> Plan:
        return replace(super()._plan(potentials), maximise=True)
