"""The checks for losses: the built-in ones pass, wrong ones are caught, each for what is wrong with it."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.losses import LOSSES, BeliefLoss, LossFacts, LossValue, UnivariateLoss
from isinglass.segments import sum_at

FACTS = LossFacts("a test", convex=False, consistent=False, uses="beliefs", note="")


@pytest.mark.long
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", [0, 1])
def test_built_in_losses_pass(name, seed):
    ig.testing.check_loss(LOSSES[name](), random_state=seed)


@dataclass(frozen=True)
class Focal(UnivariateLoss):
    """The example of the guide."""

    name: ClassVar[str] = "focal"
    facts: ClassVar[LossFacts] = FACTS

    def terms(self, beliefs, labels):
        rows = np.arange(len(labels))
        b = beliefs[rows, labels]
        bars = np.zeros_like(beliefs)
        bars[rows, labels] = 2 * (1 - b) * np.log(b) - (1 - b) ** 2 / b
        return -((1 - b) ** 2) * np.log(b), bars


class WrongSlope(Focal):
    def terms(self, beliefs, labels):
        values, bars = super().terms(beliefs, labels)
        return values, 1.01 * bars


class NotAnalytic(Focal):
    def terms(self, beliefs, labels):
        values, bars = super().terms(beliefs, labels)
        return abs(values) if values.dtype.kind == "c" else values, bars


@dataclass(frozen=True)
class Plain(BeliefLoss):
    """-2 b(y) of each observed variable, from the bottom up, with places to go wrong in."""

    name: ClassVar[str] = "plain"
    facts: ClassVar[LossFacts] = FACTS
    wrong: str = ""

    def __call__(self, result, labels, weights=None):
        graph, flat = result.potentials.graph, result.variables.flat
        y = np.asarray(labels)
        w = np.ones(len(y)) if weights is None or self.wrong == "weights" else np.asarray(weights)
        if self.wrong == "order":
            w = w * (1 + 0.1 * np.arange(len(y)) % 5)
        seen = np.ones(len(y), bool) if self.wrong == "hidden" else y >= 0
        first = np.cumsum(graph.cards) - graph.cards
        places = (first + np.where(y < 0, graph.cards - 1, y))[seen]
        bars = np.zeros_like(flat)
        bars[places] = -2 * w[seen]
        value = sum_at(graph.variable_component[seen], bars[places] * flat[places], graph.n_components)
        if self.wrong == "batch":
            value, bars = value / len(y), bars / len(y)
        if self.wrong == "total":
            value = value.sum()
        if self.wrong == "labels":
            labels[:] = 0
        return LossValue(value, np.zeros(graph.n_components, flat.dtype), bars, None)


def test_losses_from_the_bottom_up_pass():
    ig.testing.check_loss(Focal())
    ig.testing.check_loss(Plain())


WRONG = {
    "slope": (WrongSlope(), "'focal': derivatives differ from differences"),
    "not analytic": (NotAnalytic(), "'focal': not analytic"),
    "hidden": (Plain("hidden"), "'plain': not zero where nothing is observed"),
    "weights": (Plain("weights"), "'plain': weights of examples do not scale it"),
    "order": (Plain("order"), "'plain': depends on the order of the variables"),
    "batch": (Plain("batch"), "'plain': depends on what else is in the batch"),
    "total": (Plain("total"), "'plain': value .* one for each example"),
    "labels": (Plain("labels"), "'plain': value .* changes the caller's labels"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_losses_are_caught(name):
    loss, message = WRONG[name]
    refuses(message, ig.testing.check_loss, loss, error=AssertionError)


def test_what_is_no_loss():
    refuses("loss: expected an object such as", ig.testing.check_loss, "ucl")
