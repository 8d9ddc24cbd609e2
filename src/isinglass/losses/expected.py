"""The posterior expected loss: what a random assignment from the model costs (Murphy 2012, eq. 19.80).

    L  =  E_{x ~ p} Delta(x, y)  =  sum_i sum_x b_i(x) C(y_i, x)

The costs C are those of `costs`. It is smooth and bounded, and not convex. It looks at univariate beliefs alone, of any
inference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from numpy.typing import ArrayLike

from isinglass.losses.costs import HAMMING, cost_matrix
from isinglass.losses.loss import LossFacts, register
from isinglass.losses.univariate import UnivariateLoss
from isinglass.typing import Array, IntArray


@register
@dataclass(frozen=True, eq=False)
class ExpectedCost(UnivariateLoss):
    """The expected cost of labels drawn from the beliefs: ``"expected"``.

    Parameters
    ----------
    cost : "hamming" or array (states, states)
        What a state costs given the label, (label, state): not negative, and zero for the label itself.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> ExpectedCost()(ig.infer(p), [0]).value.round(6).tolist()
    [0.75]
    """

    cost: str | ArrayLike = HAMMING

    name: ClassVar[str] = "expected"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i sum_x b_i(x) C(y_i, x)",
        convex=False,
        consistent=False,
        uses="beliefs",
        note="the expected number of errors of a random assignment",
        starts_from="ucl",
    )

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the expected cost of each belief."""
        slopes = cost_matrix(self.cost, beliefs.shape[1])[labels]
        return (beliefs * slopes).sum(axis=1), slopes.astype(beliefs.dtype)
