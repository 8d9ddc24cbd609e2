"""The registry of losses: names, facts, options."""

import pytest

import isinglass as ig
from isinglass import losses

NAMES = {"cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass"}


def test_every_loss_has_its_name_and_its_facts():
    assert set(losses.LOSSES) == NAMES
    for name, cls in losses.LOSSES.items():
        assert cls.name == name
        assert cls.facts.formula
        assert cls.facts.note
        assert issubclass(cls, losses.BeliefLoss) == (cls.facts.uses == "beliefs")
        assert isinstance(losses.make(name), cls)


def test_what_the_thesis_says_of_them():
    assert {n for n, cls in losses.LOSSES.items() if cls.facts.convex} == {"cl", "pseudo"}
    assert {n for n, cls in losses.LOSSES.items() if cls.facts.consistent} == {"cl", "pseudo", "ccl", "cquad"}


def test_losses_are_values():
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
    with pytest.raises(ig.InputError, match=message):
        call(result)


def test_a_loss_of_ones_own():
    """A new univariate loss is one method: the term of a belief and its derivative."""
    from dataclasses import dataclass

    import numpy as np

    @dataclass(frozen=True)
    class Linear(losses.UnivariateLoss):
        def terms(self, beliefs, labels):
            bars = np.zeros_like(beliefs)
            bars[np.arange(len(labels)), labels] = -1.0
            return (bars * beliefs).sum(axis=1), bars

    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [np.log([1.0, 3.0])])
    assert Linear()(ig.infer(p, "brute"), [1]).value == pytest.approx(-0.75)
