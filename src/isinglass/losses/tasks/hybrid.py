"""Interpolated losses, and sequences of losses for training in stages.

    L  =  lambda L_1  +  (1 - lambda) L_2                  (Stoyanov, Ropson and Eisner 2011, section 7)

A smooth L_2 finds the region of a good minimum of a bumpy L_1, as lambda goes from 0 to 1: a continuation method. Any
two losses will do; each evaluates itself, and inference of the same potentials is run for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.decoding.decoder import Decoder
from isinglass.errors import InputError
from isinglass.inference.result import Result
from isinglass.losses.loss import (
    BeliefLoss,
    Differentiate,
    Evaluation,
    Loss,
    LossFacts,
    LossProblem,
    LossValue,
    make,
    register,
)
from isinglass.losses.tasks.decoded import require_decoded
from isinglass.typing import Array
from isinglass.validation import items, positive, real_numbers


@register
@dataclass(frozen=True)
class Hybrid(BeliefLoss):
    """A mixture of two losses, of any kind: ``"hybrid"``.

    Parameters
    ----------
    task : str or Loss
        In an estimator, a loss of decisions has its decoder.
    smooth : str or Loss
        A loss of decisions keeps the decoder that matches it.
    weight : float
        lambda, between 0 and 1: how much the first counts.

    Attributes
    ----------
    facts : LossFacts
        What is true of both.

    Examples
    --------
    >>> import numpy as np
    >>> import isinglass as ig
    >>> r = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 4.0])]))
    >>> hybrid = ig.losses.Hybrid(ig.losses.L1(temperature=1e-3), "mse", 0.5)
    >>> round(float(hybrid(r, [0]).value[0]), 4)
    0.82
    """

    task: str | Loss = "l1"
    smooth: str | Loss = "mse"
    weight: float = 0.5

    name: ClassVar[str] = "hybrid"
    facts: ClassVar[LossFacts] = LossFacts(
        "lambda L_1 + (1 - lambda) L_2", note="a mixture of two losses; what is true of it depends on them"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "facts", _facts(make(self.task).facts, make(self.smooth).facts))

    @property
    def parts(self) -> tuple[Loss, Loss]:
        """Both losses."""
        return make(self.task), make(self.smooth)

    @property
    def jumps(self) -> bool:
        """Whether one of the losses that count does."""
        shares = self._share(), 1 - self._share()
        return any(loss.jumps for loss, share in zip(self.parts, shares, strict=True) if share)

    def for_decoder(self, decoder: Decoder) -> Hybrid:
        """Return the mixture behind a decoder; the smooth part keeps its own, or has the one that matches it."""
        return replace(self, task=make(self.task).for_decoder(decoder))

    def remark(self, decoder: Decoder) -> str | None:
        """Say what is to be said of the first part."""
        return make(self.task).remark(decoder)

    def evaluate(self, problem: LossProblem, differentiate: Differentiate) -> Evaluation:
        """Evaluate both, unless one has no weight; two losses of beliefs share one inference."""
        share = self._share()
        if share in (0.0, 1.0):
            return self.parts[0 if share else 1].evaluate(problem, differentiate)
        if of_beliefs(self):
            return super().evaluate(problem, differentiate)
        one, two = (loss.evaluate(problem, differentiate) for loss in self.parts)
        return scaled(one, share) + scaled(two, 1 - share)

    def __call__(self, result: Result, labels: ArrayLike, weights: ArrayLike | None = None) -> LossValue:
        """Return the mixture of two losses of beliefs."""
        share, found = self._share(), []
        for loss in self.parts:
            if not isinstance(loss, BeliefLoss):
                raise InputError("loss", "two losses of beliefs", repr(loss.name), "use evaluate")
            found.append(loss(result, labels, weights))
        return mixed(found[0], found[1], share)

    def _share(self) -> float:
        share = real_numbers(self.weight, "weight", "a number between 0 and 1")
        if share.ndim or not 0 <= share <= 1:
            raise InputError("weight", "a number between 0 and 1", f"{self.weight!r:.40}")
        return float(share)


def of_beliefs(loss: Loss) -> bool:
    """Tell whether a loss is a function of the result of one inference."""
    return all(map(of_beliefs, loss.parts)) if isinstance(loss, Hybrid) else isinstance(loss, BeliefLoss)


def _facts(one: LossFacts, two: LossFacts) -> LossFacts:
    uses = {one.uses, two.uses}
    return LossFacts(
        f"lambda ({one.formula}) + (1 - lambda) ({two.formula})",
        convex=one.convex and two.convex,
        uses="beliefs" if "beliefs" in uses else "log_z" if "log_z" in uses else "potentials",
        note=Hybrid.facts.note,
        starts_from=one.starts_from or two.starts_from,
    )


def scaled(one: Evaluation, factor: float) -> Evaluation:
    """Return an evaluation times a number."""
    named = {name: factor * slope for name, slope in one.parameters.items()}
    return Evaluation(factor * one.value, tuple(factor * group for group in one.groups), one.infos, named)


def mixed(one: LossValue, two: LossValue, share: float) -> LossValue:
    """Return share times one loss of a result and the rest of another."""
    zeros = np.zeros_like(one.value)
    options = {
        name: share * one.options.get(name, zeros) + (1 - share) * two.options.get(name, zeros)
        for name in {**one.options, **two.options}
    }
    return LossValue(
        share * one.value + (1 - share) * two.value,
        share * one.log_z + (1 - share) * two.log_z,
        _sum(one.variables, two.variables, share),
        _sum(one.factors, two.factors, share),
        options,
    )


def _sum(one: Array | None, two: Array | None, share: float) -> Array | None:
    if one is None:
        return None if two is None else np.asarray((1 - share) * two)
    return np.asarray(share * one if two is None else share * one + (1 - share) * two)


def hybrids(task: str | Loss, smooth: str | Loss = "mse", weights: Sequence[float] = (0.0, 0.5, 1.0)) -> list[Loss]:
    """Return mixtures of two losses with growing weights, for the stages of a training.

    Examples
    --------
    >>> import isinglass as ig
    >>> [loss.weight for loss in ig.losses.hybrids("f1")]
    [0.0, 0.5, 1.0]
    """
    given = items(weights, "weights", "numbers between 0 and 1, in a sequence")
    found = [Hybrid(task, smooth, weight) for weight in given]
    for one in found:
        one._share()
    return list(found)


def annealed(loss: str | Loss, temperatures: Sequence[float] = (1.0, 0.5, 0.25)) -> list[Loss]:
    """Return a loss of decisions at falling temperatures, for the stages of a training.

    Examples
    --------
    >>> import isinglass as ig
    >>> [loss.temperature for loss in ig.losses.annealed("l1")]
    [1.0, 0.5, 0.25]
    """
    made = require_decoded(make(loss))
    given = items(temperatures, "temperatures", "positive numbers, in a sequence")
    return [replace(made, temperature=positive(t, "temperatures")) for t in given]
