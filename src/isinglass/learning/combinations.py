"""Which losses, inference algorithms and gradient rules go together, and what each combination guarantees.

A loss of the potentials alone (pseudolikelihood) has its own derivative, and training with it runs no inference. It
goes with every inference, which is then used only in prediction, and with every gradient rule, which is then ignored.
"""

from __future__ import annotations

from typing import NamedTuple

from isinglass.errors import InputError
from isinglass.gradients import RULES, GradientRule
from isinglass.inference import ALGORITHMS, Algorithm
from isinglass.losses import LOSSES, Loss


class Combination(NamedTuple):
    """A loss, an inference and a gradient rule that can be used together."""

    loss: str
    inference: str
    gradient: str
    guarantee: str


def combinations() -> list[Combination]:
    """Return all valid combinations, with what each guarantees.

    Examples
    --------
    >>> [c.guarantee for c in combinations() if c[:3] == ("ucl", "bp", "unrolled")]
    ['the derivative of what is computed, after any number of iterations']
    >>> sorted({c.gradient for c in combinations() if c.loss == "pseudo"})
    ['envelope', 'implicit', 'perturbation', 'unrolled']
    """
    found = []
    for loss in LOSSES.values():
        for algorithm in ALGORITHMS.values():
            for rule in RULES.values():
                one = algorithm()
                if objection(loss(), one, rule) is None:
                    found.append(Combination(loss.name, one.name, rule.name, guarantee(loss(), one, rule)))
    return found


def objection(loss: Loss, algorithm: Algorithm, rule: GradientRule) -> str | None:
    """Say why a combination is not valid, or None if it is."""
    if loss.facts.uses == "potentials":
        return None
    if algorithm.facts.semiring == "max":
        return f"{algorithm.name!r} gives max-marginals, which are no probabilities of single labels"
    return rule.objection(algorithm, loss.facts.uses == "beliefs")


def guarantee(loss: Loss, algorithm: Algorithm, rule: GradientRule) -> str:
    """Say what a valid combination gives."""
    if loss.facts.sampled:
        return "an estimate of the derivative, by Markov chains, whatever inference and gradient rule"
    if loss.facts.uses == "potentials":
        return "the exact derivative, without inference, whatever the gradient rule"
    if algorithm.facts.exact == "always":
        return "the exact derivative of the exact loss"
    if rule.of_iterations:
        return "the derivative of what is computed, after any number of iterations"
    return "the derivative of the fixed point; as good as the convergence"


def require_valid(loss: Loss, algorithm: Algorithm, rule: GradientRule) -> None:
    """Refuse an invalid combination, and name the rules that would do."""
    reason = objection(loss, algorithm, rule)
    if reason is None:
        return
    others = [r.name for r in RULES.values() if objection(loss, algorithm, r) is None]
    remedy = f"use {' or '.join(map(repr, others))}" if others else "see ig.combinations()"
    expected = f"a rule for loss {loss.name!r} and inference {algorithm.name!r}"
    raise InputError("gradient", expected, f"{rule.name!r}: {reason}", remedy)
