"""Smoothed classification losses: how often the most believed state is not the label, made differentiable.

With sigma(t) = 1 / (1 + exp(-t)) for the step from right to wrong,

    suclass   L  =  sum_i sigma( lam ( max_{x != y_i} b_i(x) - b_i(y_i) ) )
    scclass   L  =  sum_a sigma( lam ( max_{x_a != y_a} b_a(x_a) - b_a(y_a) ) )

over observed variables, and over factors of arity two or more whose variables are all observed (Gross, Russakovsky,
Do and Batzoglou 2007; Domke 2009, sections 3.5.3 and 3.6.3). As lam grows they tend to the number of wrong decisions by
maximum posterior marginals, and get more local minima. The derivative is that of the state that attains the maximum
(table 4.1): the lowest one at a tie, where the loss has a kink. A belief over one state cannot be wrong: its term is 0.

A variable that is wrong by far hardly changes the loss. From zero, where all labels tie, the way down is to give all
variables the most frequent label, and from there nothing leads on. The thesis starts from the likelihood (sections 3.7
and 6.2), exact or convex. Here it is that of single labels, or cliques, under the same inference, exact or not: ucl and
ccl, which go with all that these losses go with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.losses.clique import CliqueLoss
from isinglass.losses.loss import LossFacts, register
from isinglass.losses.univariate import UnivariateLoss
from isinglass.typing import Array, IntArray
from isinglass.validation import positive


def smooth_rule(beliefs: Array, labels: IntArray, lam: float) -> tuple[Array, Array]:
    """Return the smoothed 0-1 error of beliefs (n, states) at labels (n,), and its derivatives.

    Examples
    --------
    >>> value, bar = smooth_rule(np.array([[0.5, 0.5], [0.9, 0.1]]), np.array([0, 0]), 5.0)
    >>> value.round(4).tolist(), bar.round(4).tolist()
    ([0.5, 0.018], [[-1.25, 1.25], [-0.0883, 0.0883]])
    """
    sharp = positive(lam, "lam", "with it, every prediction costs the same")
    bars = np.zeros_like(beliefs)
    if beliefs.shape[1] < 2:
        return np.zeros(len(beliefs), beliefs.dtype), bars
    rows = np.arange(len(labels))
    others = beliefs.real.copy()
    others[rows, labels] = -np.inf
    rival = others.argmax(axis=1)
    values, slopes = _sigmoid(sharp * (beliefs[rows, rival] - beliefs[rows, labels]))
    bars[rows, rival] = sharp * slopes
    bars[rows, labels] = -sharp * slopes
    return values, bars


def _sigmoid(t: Array) -> tuple[Array, Array]:
    """Return 1 / (1 + exp(-t)) and its derivative, without overflow."""
    right = t.real < 0
    small = np.exp(np.where(right, t, -t))
    return np.where(right, small, 1.0) / (1.0 + small), small / (1.0 + small) ** 2


@dataclass(frozen=True)
class _Smoothed:
    """The option and the terms of both losses."""

    lam: float = 5.0

    def terms(self, beliefs: Array, labels: IntArray) -> tuple[Array, Array]:
        """Return the smoothed error of each variable, or clique."""
        return smooth_rule(beliefs, labels, self.lam)


@register
@dataclass(frozen=True)
class SmoothedUnivariate(_Smoothed, UnivariateLoss):
    """The smoothed number of wrong variables: ``"suclass"``.

    Parameters
    ----------
    lam : float
        Positive; how steep the step from right to wrong is.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    >>> [ig.losses.SmoothedUnivariate(lam)(ig.infer(p), [0]).value.round(4).tolist() for lam in (5, 50)]
    [[0.9241], [1.0]]
    """

    name: ClassVar[str] = "suclass"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i sigma(lam (max_{x != y_i} b_i(x) - b_i(y_i)))",
        note="fits decisions by maximum posterior marginals; steeper with lam, with more local minima",
        starts_from="ucl",
    )


@register
@dataclass(frozen=True)
class SmoothedClique(_Smoothed, CliqueLoss):
    """The smoothed number of wrong cliques, each decided for itself: ``"scclass"``.

    Parameters
    ----------
    lam : float
        Positive; how steep the step from right to wrong is.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[3.0, 1.0], [2.0, 2.0]])])
    >>> ig.losses.SmoothedClique()(ig.infer(p), [0, 0]).value.round(4).tolist()
    [0.3486]
    """

    name: ClassVar[str] = "scclass"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_a sigma(lam (max_{x_a != y_a} b_a(x_a) - b_a(y_a)))",
        note="cliques are decided one by one: no assignment need attain it; the proof for ccl does not cover it",
        starts_from="ccl",
    )
