"""Mean errors of decisions about an example's k outputs (Stoyanov, Ropson and Eisner 2011, section 5.1).

With q_i the share of each state in the decision about output i, and states counted 0, 1, ...,

    hamming    L  =  (1/k) sum_i (1 - q_i(y_i))
    l1         L  =  (1/k) sum_i sum_x q_i(x) |x - y_i|
    mse        L  =  (1/k) sum_i (sum_x x q_i(x) - y_i)²

For hard decisions they are the share of wrong outputs, the mean distance and the mean squared distance from the label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.decoding.decoder import Decoder
from isinglass.losses.loss import LossFacts, register
from isinglass.losses.tasks.decoded import Decided, DecodedLoss, mean_of_terms
from isinglass.typing import Array, IntArray

_NOTE = "of the relaxed decision; the loss of the decision itself as the temperature goes to zero"


@register
@dataclass(frozen=True)
class Hamming(DecodedLoss):
    """The share of wrong decisions: ``"hamming"``.

    Parameters
    ----------
    decoder, temperature
        As for every `DecodedLoss`; by default "mpm".

    Examples
    --------
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 4.0])]))
    >>> [round(float(ig.losses.Hamming(temperature=t)(r, [0]).value[0]), 4) for t in (1.0, 0.5, 0.01)]
    [0.8, 0.9412, 1.0]
    """

    name: ClassVar[str] = "hamming"
    facts: ClassVar[LossFacts] = LossFacts("1/k sum_i (1 - q_i(y_i))", note=_NOTE, starts_from="ucl")
    matched: ClassVar[str] = "mpm"

    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Return the mean share of wrong states."""
        return mean_of_terms(decided, _wrong)


@register
@dataclass(frozen=True)
class L1(DecodedLoss):
    """The mean distance of decided states from labels: ``"l1"``.

    Parameters
    ----------
    decoder, temperature
        As for every `DecodedLoss`; by default "median".

    Examples
    --------
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 4.0])]))
    >>> round(float(ig.losses.L1(decoder="mpm", temperature=0.5)(r, [0]).value[0]), 4)
    0.9412
    """

    name: ClassVar[str] = "l1"
    facts: ClassVar[LossFacts] = LossFacts("1/k sum_i sum_x q_i(x) |x - y_i|", note=_NOTE, starts_from="ucl")
    matched: ClassVar[str] = "median"

    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Return the mean distance."""
        return mean_of_terms(decided, _distance)


@register
@dataclass(frozen=True)
class MSE(DecodedLoss):
    """The mean squared error of the mean state in the decision: ``"mse"``.

    Parameters
    ----------
    decoder, temperature
        As for every `DecodedLoss`; by default "identity": the beliefs themselves, at any temperature.

    Examples
    --------
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 4.0])]))
    >>> round(float(ig.losses.MSE()(r, [0]).value[0]), 4)
    0.64
    """

    name: ClassVar[str] = "mse"
    facts: ClassVar[LossFacts] = LossFacts("1/k sum_i (sum_x x q_i(x) - y_i)^2", note=_NOTE, starts_from="ucl")
    matched: ClassVar[str] = "identity"

    def remark(self, decoder: Decoder) -> str | None:
        """Say that decided states do not have the squared error of the mean state."""
        if self.decoder is not None or decoder.name == "identity":
            return None
        return (
            f"loss 'mse' is of relaxed decisions of decoder {decoder.name!r}; the squared error of the mean state "
            "(Stoyanov, Ropson and Eisner 2011) needs decoder='identity', or loss=ig.losses.MSE(decoder='identity')"
        )

    def task(self, decided: Decided) -> tuple[Array, Array]:
        """Return the mean squared error."""
        return mean_of_terms(decided, _square)


def _wrong(shares: Array, labels: IntArray) -> tuple[Array, Array]:
    slopes = (np.arange(shares.shape[1]) != labels[:, None]).astype(shares.dtype)
    return (shares * slopes).sum(axis=1), slopes


def _distance(shares: Array, labels: IntArray) -> tuple[Array, Array]:
    slopes = np.abs(np.arange(shares.shape[1]) - labels[:, None]).astype(shares.dtype)
    return (shares * slopes).sum(axis=1), slopes


def _square(shares: Array, labels: IntArray) -> tuple[Array, Array]:
    states = np.arange(shares.shape[1], dtype=np.float64)
    miss = shares @ states - labels
    return miss**2, 2 * miss[:, None] * states
