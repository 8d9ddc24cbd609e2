"""The registry of losses: names, facts, options."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from loss_helpers import draw, flat_factors, with_beliefs

import isinglass as ig
from checks import refuses
from isinglass import losses
from isinglass.losses import LOSSES, BeliefLoss, LossFacts, LossValue, UnivariateLoss
from isinglass.segments import sum_at

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "loss.md"
NAMES = {"cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass"}
NAMES |= {"piecewise", "mpf"}
NAMES |= {"margin", "slack", "perceptron", "viterbi", "expected", "log-expected"}
NAMES |= {"cd", "pcd", "sml"}
NAMES |= {"hamming", "l1", "mse", "f1", "hybrid"}


def test_every_loss_has_its_name_and_its_facts():
    assert set(losses.LOSSES) == NAMES
    for name, cls in losses.LOSSES.items():
        assert cls.name == name
        assert cls.facts.formula
        assert cls.facts.note
        assert issubclass(cls, losses.BeliefLoss) == (cls.facts.uses == "beliefs")
        assert isinstance(losses.make(name), cls)


def defined(name="of-a-cell", **changes):
    """Define a loss as a cell of a notebook does, each time anew."""

    @dataclass(frozen=True)
    class OfACell(losses.UnivariateQuadratic):
        lam: float = 1.0

    OfACell.name = name
    for attribute, value in changes.items():
        setattr(OfACell, attribute, value)
    return OfACell


@pytest.fixture
def kept_entries(monkeypatch):
    """Forget what a test registers."""
    monkeypatch.setattr(losses.LOSSES, "_entries", dict(losses.LOSSES._entries))


def test_a_cell_that_is_run_again_replaces_its_loss(kept_entries):
    old, new = losses.register(defined()), losses.register(defined())
    assert old is not new
    assert losses.LOSSES["of-a-cell"] is new
    with pytest.raises(ig.InputError, match="a new loss, got 'of-a-cell', which is taken"):
        losses.register(dataclass(frozen=True)(type("Other", (old,), {})))
    refuses("a new loss, got 'ucl', which is taken", losses.register, defined("ucl"))
    assert losses.LOSSES["ucl"] is losses.UnivariateLikelihood


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (defined(name=None), "name: expected a class attribute of type str, got none in OfACell"),
        (defined(facts=None), "facts: expected a class attribute of type LossFacts, got none in OfACell"),
        (defined(facts={}), "facts: expected a class attribute of type LossFacts, got dict in OfACell"),
        (type("Bare", (defined(),), {}), r"Bare: expected a dataclass, .* write @dataclass\(frozen=True\) below"),
    ],
)
def test_what_a_loss_must_declare(cls, message, kept_entries):
    before = list(losses.LOSSES)
    refuses(message, losses.register, cls)
    assert list(losses.LOSSES) == before


def test_what_is_no_loss():
    with pytest.raises(ig.InputError, match="uses: expected 'beliefs' or 'log_z' or 'potentials', got 'belief'"):
        losses.LossFacts("", convex=True, consistent=True, uses="belief", note="")
    refuses("loss: expected an object such as", ig.testing.check_loss, "ucl")
    ig.testing.check_loss(Focal())
    ig.testing.check_loss(Plain())


def test_what_the_thesis_says_of_them():
    hinges = {"margin", "slack", "perceptron", "viterbi"}  # not of the thesis
    convex = {"cl", "pseudo", "piecewise", "mpf"}
    assert {n for n, cls in losses.LOSSES.items() if cls.facts.convex} - hinges == convex
    consistent = {"cl", "pseudo", "ccl", "cquad", "mpf", "pcd", "sml"}
    assert {n for n, cls in losses.LOSSES.items() if cls.facts.consistent} == consistent
    assert losses.make("suclass", lam=7.0) == losses.SmoothedUnivariate(7.0)
    assert losses.make(losses.SmoothedClique(), lam=7.0) == losses.SmoothedClique(7.0)
    assert losses.make(losses.UnivariateLikelihood()) == losses.UnivariateLikelihood()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda r: losses.make("suclas"), "loss: expected one of .* did you mean 'suclass'?"),
        (lambda r: losses.make("ucl", lam=3.0), r"lam: expected an option of 'ucl' \(no options\), got 3.0"),
        (
            lambda r: losses.make(3),
            r"loss: expected a name such as 'ucl' or an object such as UnivariateLikelihood\(\)",
        ),
        (lambda r: losses.make(losses.SmoothedUnivariate), "got the class SmoothedUnivariate"),
        (lambda r: losses.SmoothedUnivariate(0.0)(r, [0]), "lam: expected a positive number, got 0"),
        (lambda r: losses.SmoothedUnivariate(-1.0)(r, [0]), "lam: expected a number of at least 0, got -1.0"),
        (lambda r: losses.SmoothedUnivariate("steep")(r, [0]), "lam: expected a number"),
    ],
)
def test_wrong_choices_are_answered_kindly(call, message):
    result = ig.infer(ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]]), "brute")
    refuses(message, call, result)


def test_the_guide_to_a_loss_of_ones_own():
    """The loss of the guide, with its derivative and an impossible label."""
    code = GUIDE.read_text().split("```python")[1].split("```")[0].replace("@register\n", "").replace(", register", "")
    names = {}
    exec(code, names)
    focal = names["Focal"]()
    p, labels, weights, rng = draw("mixed", 1)
    result = ig.infer(p, "brute")
    flat, direction = result.variables.flat, rng.normal(size=result.variables.flat.shape)

    def value(step):
        moved_result = with_beliefs(result, flat + step * direction, flat_factors(result))
        return focal(moved_result, labels, weights).value.sum()

    mine = focal(result, labels, weights).variables @ direction
    assert mine == pytest.approx(value(1e-20j).imag / 1e-20, rel=1e-12)


@pytest.mark.parametrize("name", ["Focal", "HiddenLikelihood"])
def test_the_losses_of_the_guide_pass_the_checks(name):
    blocks = [block.split("```")[0] for block in GUIDE.read_text().split("```python")[1:]]
    code = "\n".join(block for block in blocks if "class " in block)
    assert set(re.findall(r"class (\w+)", code)) == {"Focal", "HiddenLikelihood"}
    exec(code.replace("@register\n", ""), names := {})
    ig.testing.check_loss(names[name]())


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
