"""Checks that every loss must pass, whoever wrote it.

Exact inference runs on two small examples, with loops, a factor of three variables and variables of two and three
states. With L the loss of an example, φ the log tables, y the labels and w the weight of the example:

- derivatives: dL/dφ along random directions equals finite differences of L, with all labels and with some hidden;
- analytic: for complex log tables φ + i ε v, the imaginary part of L is ε times the directional derivative, which
  second derivatives need;
- hidden labels: L and its derivatives are zero if no label is observed;
- order: renumbering the variables changes nothing;
- examples: L of an example does not depend on the rest of the batch;
- weights: L(w) = w L(1), and the same for the derivatives.

The derivatives of a loss that samples (``facts.sampled``) are estimates, which depend on the order of the variables, so
that the first two and the fourth are left out. Its random numbers depend on the number of an example in the batch, so
that the fifth is of the first example alone.
"""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose

from isinglass.errors import InputError
from isinglass.gradients import forward, rule
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference import Exact
from isinglass.losses import Loss, LossProblem
from isinglass.potentials import Potentials, potentials_union
from isinglass.typing import Array, IntArray

_CARDS = (2, 3, 2, 3, 2)
_SCOPES = ((0,), (0, 1), (1, 2), (2, 3), (3, 0), (1,), (2, 3, 4), (4,))
_TINY = 1e-20
_DIRECTIONS = 3


def check_loss(loss: Loss, *, random_state: int = 0, rtol: float = 1e-5) -> None:
    """Check a loss: derivatives, hidden labels, independence of order and batch, weights.

    Parameters
    ----------
    loss : Loss
        It must be smooth in the log tables, under exact inference.
    random_state : int
    rtol : float
        Relative tolerance of the comparison with finite differences.

    Raises
    ------
    AssertionError
        Names the loss and the check that failed.

    Examples
    --------
    >>> import isinglass as ig
    >>> ig.testing.check_loss(ig.losses.UnivariateQuadratic())
    """
    if not isinstance(loss, Loss):
        raise InputError("loss", "an object such as ig.losses.UnivariateLikelihood()", type(loss).__name__)
    checks = _Checks(loss, np.random.default_rng(random_state), rtol)
    for labels, what in ((checks.labels, "observed"), (checks.partly, "some labels hidden")):
        checks.values(labels, what)
        if not loss.facts.sampled:
            checks.derivatives(labels, what)
            checks.order(labels, what)
        checks.examples(labels, what)
        checks.weights(labels, what)
    checks.hidden()


class _Checks:
    """A batch of two examples with labels, and the checks of one loss on it."""

    def __init__(self, loss: Loss, rng: np.random.Generator, rtol: float) -> None:
        self.loss, self.rng, self.rtol = loss, rng, rtol
        self.parts = [_random(rng), _random(rng)]
        self.batch = potentials_union(self.parts)
        self.labels = np.concatenate([rng.integers(0, _CARDS) for _ in self.parts])
        self.partly = self.labels.copy()
        self.partly[[1, 4, 7, 8]] = -1

    def values(self, labels: IntArray, what: str) -> None:
        """The value is one real, finite number for each example; the labels are not changed."""
        given = labels.copy()
        value = self._value(self.batch, given)
        if value.shape != (2,) or value.dtype.kind != "f" or not np.isfinite(value).all():
            self._fail("value", what, f"expected two finite real numbers, one for each example, got {value!r}")
        if not np.array_equal(given, labels):
            self._fail("value", what, "it changes the caller's labels")

    def derivatives(self, labels: IntArray, what: str) -> None:
        """Directional derivatives equal finite differences and complex steps."""
        groups = self._groups(self.batch, labels)
        for _ in range(_DIRECTIONS):
            v = [self.rng.normal(size=group.shape) for group in self.batch.groups]
            slope = sum(float((g * d).sum()) for g, d in zip(groups, v, strict=True))
            coarse, fine = (self._difference(v, step, labels) for step in (2e-4, 1e-4))
            self._same((4 * fine - coarse) / 3, slope, "derivatives differ from differences", what, self.rtol)
            value = self._value(_moved(self.batch, v, 1j * _TINY), labels)
            if value.dtype.kind != "c":
                self._fail("not analytic", what, "complex log tables must give complex values (no abs, no .real)")
            self._same(value.imag.sum() / _TINY, slope, "not analytic: a complex step gives another slope", what, 1e-7)

    def hidden(self) -> None:
        """The loss is zero if no label is observed: in the whole batch, or in one of its examples."""
        nothing = np.full_like(self.labels, -1)
        for labels, examples in ((nothing, [0, 1]), (np.where(np.arange(10) < 5, -1, self.labels), [0])):
            value, groups = self._value(self.batch, labels)[examples], self._groups(self.batch, labels)
            self._same(value, np.zeros(len(examples)), "not zero where nothing is observed", "labels hidden", 1e-9)
            if len(examples) == 2:
                for group in groups:
                    self._same(group, np.zeros_like(group), "slopes where nothing is observed", "labels hidden", 1e-9)

    def order(self, labels: IntArray, what: str) -> None:
        """Renumber the variables of an example."""
        order = self.rng.permutation(len(_CARDS))
        mine = labels[: len(_CARDS)]
        moved = np.empty_like(mine)
        moved[order] = mine
        before = self._value(self.parts[0], mine)
        after = self._value(_renumbered(self.parts[0], order), moved)
        self._same(after, before, "depends on the order of the variables", what, 1e-9)

    def examples(self, labels: IntArray, what: str) -> None:
        """Compare an example alone with the same example in the batch."""
        alone = [self._value(p, y)[0] for p, y in zip(self.parts, np.split(labels, 2), strict=True)]
        some = 1 if self.loss.facts.sampled else 2
        together = self._value(self.batch, labels)
        self._same(together[:some], np.array(alone[:some]), "depends on what else is in the batch", what, 1e-9)

    def weights(self, labels: IntArray, what: str) -> None:
        """Scale examples by their weights."""
        value, groups = self._value(self.batch, labels), self._groups(self.batch, labels)
        for one, two in ((1.0, 1.0), (3.0, 3.0), (0.0, 2.5)):
            w = np.repeat([one, two], len(_CARDS))
            found = self._value(self.batch, labels, w)
            self._same(found, np.array([one, two]) * value, "weights of examples do not scale it", what, 1e-9)
            if one == two:
                for mine, plain in zip(self._groups(self.batch, labels, w), groups, strict=True):
                    self._same(mine, one * plain, "weights of examples do not scale its derivatives", what, 1e-9)

    def _value(self, p: Potentials, labels: IntArray, weights: Array | None = None) -> Array:
        return np.asarray(self.loss.evaluate(LossProblem(p, labels, weights), forward(Exact())).value)

    def _difference(self, v: list[Array], step: float, labels: IntArray) -> float:
        up, down = (self._value(_moved(self.batch, v, s), labels).sum() for s in (step, -step))
        return float((up - down) / (2 * step))

    def _groups(self, p: Potentials, labels: IntArray, weights: Array | None = None) -> tuple[Array, ...]:
        exact = rule("unrolled").differentiate(Exact())
        return self.loss.evaluate(LossProblem(p, labels, weights), exact).groups

    def _same(self, found: float | Array, expected: float | Array, problem: str, what: str, rtol: float) -> None:
        try:
            assert_allclose(found, expected, rtol=rtol, atol=rtol)
        except AssertionError:
            self._fail(problem, what, f"got {np.ravel(found)[:6]}, expected {np.ravel(expected)[:6]}")

    def _fail(self, problem: str, what: str, detail: str) -> None:
        name = getattr(self.loss, "name", type(self.loss).__name__)
        raise AssertionError(f"loss {name!r}: {problem} ({what}): {detail}")


def _random(rng: np.random.Generator) -> Potentials:
    tables = [rng.normal(size=tuple(_CARDS[i] for i in scope)) for scope in _SCOPES]
    return Potentials(FactorGraph(_CARDS, _SCOPES), tables)


def _moved(p: Potentials, direction: list[Array], step: complex) -> Potentials:
    groups = [table + step * d for table, d in zip(p.groups, direction, strict=True)]
    return Potentials.from_groups(p.graph, groups, p.table_ids)


def _renumbered(p: Potentials, order: IntArray) -> Potentials:
    """Give variable i the number order[i]."""
    cards = np.empty(len(order), np.int64)
    cards[order] = p.graph.cards
    scopes = [tuple(int(order[i]) for i in scope) for scope in p.graph.scopes]
    return Potentials(FactorGraph(cards, scopes), list(p.log_tables))
