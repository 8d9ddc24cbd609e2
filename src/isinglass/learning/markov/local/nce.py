"""Noise-contrastive estimation (Gutmann and Hyvaerinen 2012).

Tell samples x of weight w from noise x' of a known distribution q, nu noise samples for each:

    f(theta) = min_c  - sum_n w_n log sigma(D(x_n)) - sum_m v_m log sigma(-D(x'_m)),
    D(x) = theta . f(x) + c - log q(x) - log nu

The parameter c takes the place of -log Z. It is found for each theta by itself (the function is convex in it), so that
what is minimised is a convex function of theta alone. The noise has independent variables, with the marginals of the
samples; in models with few joint states all of them are its samples, each with its expected weight, and nothing is
random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.markov.likelihood.maximum import counted
from isinglass.learning.markov.method import Method, MethodFacts, register
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.learning.markov.samples import Samples
from isinglass.losses import Evaluation, Loss, Pseudolikelihood
from isinglass.potentials import Potentials
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import positive, whole_number

ENUMERATED = 4096  # joint states up to which all of them are noise
FLOOR = 1.0  # added to the count of each state of a variable, so that noise can show all of them


class NoiseObjective(MarkovObjective):
    """The logistic loss of telling samples from noise."""

    def __init__(self, task: Task, ratio: float, random_state: int) -> None:
        super().__init__(task)
        self.ratio, self.random_state = ratio, random_state
        self.constant = 0.0

    def evaluate(self, potentials: Potentials) -> Evaluation:
        """Return the loss at the best constant, and its derivative."""
        states, signs, weights = self.points
        offset = self._log_noise(states) + math.log(self.ratio)
        scores = np.asarray(potentials.log_score(states), np.float64) - offset
        self.constant = _best_constant(scores, signs, weights, self.constant)
        margin = signs * (scores + self.constant)
        value = float((weights * np.logaddexp(0.0, -margin)).sum())
        pull = -weights * signs * _sigmoid(-margin)
        return Evaluation(np.asarray(value), counted(potentials, Samples(states, pull)))

    def report(self, theta: FloatArray) -> dict[str, object]:
        """Return the estimate of log Z."""
        self(theta)
        return {"log_z": -self.constant}

    @cached_property
    def points(self) -> tuple[IntArray, FloatArray, FloatArray]:
        """Samples and noise, +1 or -1 for each, and their weights."""
        samples, noise = self.samples, self._noise()
        states = np.concatenate([samples.states, noise.states])
        signs = np.repeat([1.0, -1.0], [len(samples.weights), len(noise.weights)])
        return states, signs, np.concatenate([samples.weights, noise.weights])

    @cached_property
    def marginals(self) -> list[FloatArray]:
        """The distribution of each variable of the noise."""
        states, weights = self.samples.states, self.samples.weights
        found = []
        for i, k in enumerate(self.model.graph.cards.tolist()):
            share = np.bincount(states[:, i], weights, k) / weights.sum()
            found.append(np.asarray((share + FLOOR / 100) / (1 + k * FLOOR / 100), np.float64))
        return found

    def _noise(self) -> Samples:
        graph, total = self.model.graph, self.ratio * float(self.samples.weights.sum())
        if math.prod(graph.cards.astype(float).tolist()) <= ENUMERATED:
            cells = np.array(list(np.ndindex(*graph.cards.tolist())), np.int64).reshape(-1, graph.n_variables)
            return Samples(cells, total * np.exp(self._log_noise(cells)))
        rng = np.random.default_rng(self.random_state)
        count = max(1, math.ceil(self.ratio * len(self.samples.weights)))
        drawn = np.stack([rng.choice(len(p), count, p=p) for p in self.marginals], axis=1).astype(np.int64)
        return Samples.of(drawn, np.full(count, total / count))

    def _log_noise(self, states: IntArray) -> FloatArray:
        return np.asarray(sum(np.log(p)[states[:, i]] for i, p in enumerate(self.marginals)), np.float64)


def _sigmoid(t: FloatArray) -> FloatArray:
    small = np.exp(-np.abs(t))
    return np.asarray(np.where(t > 0, 1.0, small) / (1.0 + small), np.float64)


def _best_constant(scores: FloatArray, signs: FloatArray, weights: FloatArray, start: float) -> float:
    """Minimise the loss over the constant, by Newton's method inside a bracket."""

    def slope(c: float) -> tuple[float, float]:
        p = _sigmoid(-signs * (scores + c))
        return float(-(weights * signs * p).sum()), float((weights * p * (1 - p)).sum())

    low, high = -float(scores.max()) - 50.0, -float(scores.min()) + 50.0
    c = min(max(start, low), high)
    for _ in range(200):
        first, second = slope(c)
        low, high = (c, high) if first < 0 else (low, c)
        step = c - first / second if second > 0 else math.nan
        new = step if low < step < high else (low + high) / 2
        if abs(new - c) <= 1e-14 * max(1.0, abs(c)):
            return new
        c = new
    return c


@register
@dataclass(frozen=True)
class NoiseContrastive(Method):
    """Noise-contrastive estimation: ``"nce"``.

    Parameters
    ----------
    ratio : float, default=10
        Noise samples for each sample. With more, the estimate comes near to maximum likelihood.
    random_state : int, default=0
        Seed of the noise, where it is drawn.
    """

    ratio: float = 10.0
    random_state: int = 0

    name: ClassVar[str] = "nce"
    facts: ClassVar[MethodFacts] = MethodFacts(
        "- sum_n w_n log sigma(D(x_n)) - sum_m v_m log sigma(-D(x'_m))",
        consistent=True,
        convex=True,
        log_z=False,
        virtual=False,
        note="needs no inference, and estimates log Z (report_); as good as its noise is like the samples",
    )

    @property
    def loss(self) -> Loss:
        """A loss that needs no inference either."""
        return Pseudolikelihood()

    def check(self, task: Task) -> None:
        """Check the options."""
        super().check(task)
        positive(self.ratio, "method.ratio")
        whole_number(self.random_state, "method.random_state")

    def objective(self, task: Task) -> NoiseObjective:
        """Return the logistic loss."""
        return NoiseObjective(task, float(self.ratio), self.random_state)
