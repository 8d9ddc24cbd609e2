"""What the minibatch optimizers share: epochs, the order of examples, averaging.

The objective is a sum over examples, F(x) = Σ_i f_i(x). A step sees a batch B through the mean of its gradients,

    g_t = (1 / |B|) Σ_{i in B} ∇f_i(x_t),

so that a learning rate means the same for any number of examples. A regulariser R(x) of the whole objective is part of
each f_i with weight 1 / n, that is |B| / n in a batch. The order of the examples depends on the seed and on the number
of the epoch only. With averaging the result is x̄, the mean of the x_t after the first `burn_in` epochs (Polyak and
Juditsky 1992), updated as x̄ += (x_t - x̄) / count.

What is reported is the function at the result, summed over all examples once more. That the values of two epochs are
alike proves no minimum: a run ends by `tol`, but has converged only where the result is at a known lower bound, as is a
perceptron that makes no mistake. While the last point is there and the mean is not yet, the run goes on.

A step may be so long that a label has belief zero at x_t, where no gradient leads back. Half the way back to x_{t-1} is
then tried, a quarter, and so on, and the learning rate stays smaller by the same factor.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import ConvergenceWarning, ImpossibleLabelError, InputError, require
from isinglass.learning.optimizers.base import (
    Callback,
    Counted,
    End,
    Function,
    Optimizer,
    OptimResult,
    StuckError,
)
from isinglass.learning.optimizers.max_margin.gap import NO_PROOF, least, proved
from isinglass.learning.optimizers.state import State, Vectors
from isinglass.learning.optimizers.stochastic.rates import RATES
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, generator, number, positive, whole_number

_STEPS = 20  # in an epoch, where no batch size is given
_MOST_HALVINGS = 30


@dataclass(frozen=True, eq=False, kw_only=True)
class MiniBatchState(State):
    """The complete state of a minibatch optimizer between two steps.

    Attributes
    ----------
    n_examples, seed : int
        What the order of the examples follows from.
    epoch, seen : int
        Epochs done, and examples done in the current one.
    memory : tuple of arrays (n,)
        What the update rule keeps (sums of squares, moments).
    average : array (n,); averaged : int
        The mean of so many points.
    value : float; gradient : array (n,)
        Sums over the examples of the epoch so far, each at the x of its time.
    last, previous : float
        The value of the last complete epoch and of the one before.
    good : array (n,)
        The last point at which a batch was evaluated.
    shortened : float
        The factor of the learning rate, halved whenever a step was too long.
    """

    n_examples: int
    seed: int
    epoch: int = 0
    seen: int = 0
    memory: Vectors
    average: FloatArray
    averaged: int = 0
    value: float = math.nan
    gradient: FloatArray
    last: float = math.inf
    previous: float = math.inf
    good: FloatArray
    shortened: float = 1.0

    @property
    def done(self) -> int:
        """The number of epochs done."""
        return self.epoch

    @property
    def within_epoch(self) -> bool:
        """Whether the current epoch has begun and not ended."""
        return self.seen > 0


@dataclass(frozen=True)
class MiniBatch(Optimizer[MiniBatchState]):
    """Base class; the options that all minibatch optimizers have.

    Parameters
    ----------
    learning_rate : float
        η, for the mean gradient of a batch.
    epochs : int
        How often each example is seen.
    batch_size : int, optional
        Examples a step; the last batch of an epoch may be smaller. None: a twentieth of the examples, so that an epoch
        has about 20 steps and costs a few times as much as one step of an optimizer that looks at all examples.
    schedule : {"constant", "inverse", "sqrt"}
    decay : float
        How the rate falls; see `isinglass.learning.optimizers.stochastic.rates`.
    averaging : bool
        Whether to return the mean of the points.
    burn_in : int
        Epochs that are left out of the mean.
    tol : float
        Stop when the value of an epoch differs from that of the one before by no more than this, relative to
        max(1, its size). That proves no minimum, so that the result has not converged. Zero: run all epochs.
    random_state : int, Generator or None
    """

    learning_rate: float = 0.1
    epochs: int = 10
    batch_size: int | None = None
    schedule: str = "constant"
    decay: float = 1.0
    averaging: bool = False
    burn_in: int = 0
    tol: float = 0.0
    random_state: RandomState = None

    state_type: ClassVar[type[State]] = MiniBatchState
    minibatch: ClassVar[bool] = True
    limit: ClassVar[str] = "epochs"

    @abstractmethod
    def fresh(self, x: FloatArray) -> Vectors:
        """Return the memory of the update rule at the start."""

    @abstractmethod
    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Return the change of x and the memory after step number `t` (from 1)."""

    def change(
        self, f: Counted, chosen: IntArray, state: MiniBatchState, g: FloatArray, rate: float
    ) -> tuple[FloatArray, Vectors]:
        """Return the change of x and the memory, given the mean gradient of a batch; by default `update`."""
        return self.update(g, rate, state.memory, state.iteration + 1)

    def minimise(
        self, f: Function, x0: ArrayLike | None = None, *, callback: Callback | None = None, state: State | None = None
    ) -> OptimResult:
        """Minimise a function of one vector, as a single example: a step an epoch; see `Optimizer.minimise`."""
        return self.minimise_batches(_Single(f), 1, x0, callback=callback, state=state)

    def check(self, size: int) -> None:
        """Check the options."""
        positive(self.learning_rate, "learning_rate")
        whole_number(self.epochs, "epochs")
        whole_number(self.burn_in, "burn_in")
        if self.batch_size is not None:
            whole_number(self.batch_size, "batch_size", 1)
        number(self.decay, "decay", 0, math.inf)
        number(self.tol, "tol", 0, math.inf)
        RATES[self.schedule]
        if self.averaging and self.burn_in >= max(self.epochs, 1):
            raise InputError("burn_in", f"fewer than the {self.epochs} epochs", f"{self.burn_in}")

    def start(self, f: Counted, x: FloatArray) -> MiniBatchState:
        """Draw the seed; nothing is evaluated."""
        seed, unknown = _seed(self.random_state), np.full_like(x, np.nan)
        order = {"n_examples": f.n_examples, "seed": seed, "memory": self.fresh(x)}
        return MiniBatchState(self.name, x, 0, 0, average=x, gradient=unknown, good=x, **order)  # type: ignore[arg-type]

    def step(self, f: Counted, state: MiniBatchState) -> MiniBatchState:
        """Follow the gradient of the next batch."""
        size = self.batch_size or -(-state.n_examples // _STEPS)
        chosen = _order(state.seed, state.epoch, state.n_examples)[state.seen : state.seen + size]
        state, value, gradient = _evaluated(f, chosen, state)
        time = state.epoch + state.seen / state.n_examples
        rate = state.shortened * self.learning_rate * RATES[self.schedule](self.decay * time)
        with np.errstate(over="ignore", invalid="ignore"):
            change, memory = self.change(f, chosen, state, gradient / len(chosen), rate)
            x = state.x + change
        if not (math.isfinite(value) and np.isfinite(x).all()):
            raise StuckError("the function or the next point is not finite; try a smaller learning_rate")
        done = {"memory": memory, "iteration": state.iteration + 1, "evaluations": f.evaluations}
        done |= self._averaged(state, x) | _counted(state, value, gradient, len(chosen))
        return replace(state, x=x, good=state.x, **done)  # type: ignore[arg-type]

    def _averaged(self, state: MiniBatchState, x: FloatArray) -> dict[str, object]:
        """Take the new point into the mean."""
        if not self.averaging or state.epoch < self.burn_in:
            return {}
        count = state.averaged + 1
        return {"average": state.average + self.newest(count) * (x - state.average), "averaged": count}

    def newest(self, count: int) -> float:
        """Return the weight of the newest of so many points in their mean."""
        return 1 / count

    def ended(self, state: MiniBatchState) -> End | None:
        """Look at the values of the last two epochs and at the number of epochs."""
        if state.seen == 0 and state.epoch >= 2 and self.tol > 0:
            change = abs(state.previous - state.last) / max(1.0, abs(state.last))
            if change <= self.tol:
                text = f"the relative change in an epoch, {change:.3g}, is within tol = {self.tol:g}"
                remedy = "lower tol, or use an optimizer that sees all examples at once"
                return End(False, f"{text}, which proves no minimum; {remedy}")
        return End(False, f"ran {state.epoch} epochs") if state.epoch >= self.epochs else None

    def ended_at(self, f: Counted, state: MiniBatchState) -> End | None:
        """Go on while the last point is at a lower bound of the function and the result is not."""
        end = self.ended(state)
        if state.seen or not state.epoch or state.value > least(f.f) or _estimates(f):
            return end
        if self._whole(f, state.n_examples, self.outcome(state)[0])[0] <= least(f.f):
            proof = "" if proved(f.f) else f"; {NO_PROOF}"
            return End(True, f"the function is at its lower bound, {least(f.f):g}{proof}")
        return end if state.epoch >= self.epochs else None

    def reported(self, f: Counted, found: OptimResult) -> OptimResult:
        """Return the value and the gradient at the result, unless they would be estimates."""
        if _estimates(f):
            return found
        value, gradient = self._whole(f, f.n_examples, found.x)
        return replace(found, value=value, gradient=gradient, evaluations=f.evaluations)

    def _whole(self, f: Counted, n: int, x: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient of the sum over all examples; infinite where a label is impossible."""
        size = max(self.batch_size or 1, -(-n // _STEPS))
        try:
            parts = [f(np.arange(i, min(i + size, n)), x) for i in range(0, n, size)]
        except ImpossibleLabelError:
            return math.inf, np.full_like(x, np.nan)
        return math.fsum(value for value, _ in parts), np.sum([gradient for _, gradient in parts], axis=0)

    def outcome(self, state: MiniBatchState) -> tuple[FloatArray, float, FloatArray]:
        """Return the point or the mean, with value and gradient estimated from the epoch so far."""
        scale = state.n_examples / (state.seen or state.n_examples)
        x = state.average if self.averaging and state.averaged else state.x
        return x, scale * state.value, scale * state.gradient


class _Single:
    """A function of one vector as that of a single example."""

    def __init__(self, f: Function) -> None:
        self.f, self.least = f, least(f)
        if (product := getattr(f, "hessian_product", None)) is not None:
            self.hessian_product = lambda _, x, v: product(x, v)

    def __call__(self, _: IntArray, x: FloatArray) -> tuple[float, FloatArray]:
        return self.f(x)


def _estimates(f: Counted) -> bool:
    """Tell whether the values of a function are no more than estimates."""
    return bool(getattr(f.f, "estimates", False))


def _evaluated(f: Counted, chosen: IntArray, state: MiniBatchState) -> tuple[MiniBatchState, float, FloatArray]:
    """Evaluate a batch, after steps back from where a label has belief zero."""
    back = state
    for _ in range(_MOST_HALVINGS):
        try:
            value, gradient = f(chosen, back.x)
        except ImpossibleLabelError:
            if state.iteration == 0:  # the model rules the label out, not a step
                raise
            back = replace(back, x=back.good + (back.x - back.good) / 2, shortened=back.shortened / 2)
            continue
        if back is not state:
            text = f"step {state.iteration} made a label impossible: it was shortened, and the learning rate is now "
            text += f"{back.shortened:g} times the one given; try a smaller learning_rate"
            warnings.warn(text, ConvergenceWarning, stacklevel=2)
        return back, value, gradient
    remedy = "a label is impossible after any step; the last point where none was is kept; try a smaller learning_rate"
    raise StuckError(remedy, replace(state, x=state.good))


@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, n_examples: int) -> IntArray:
    """Return the order of the examples in an epoch."""
    if n_examples == 1:  # an objective that is one whole: nothing to shuffle in its many epochs
        return np.zeros(1, np.int64)
    return np.random.default_rng([seed, epoch]).permutation(n_examples)


def _counted(state: MiniBatchState, value: float, gradient: FloatArray, size: int) -> dict[str, object]:
    """Add a batch to the sums of the epoch, and begin a new epoch after the last one."""
    if state.seen:
        value, gradient = state.value + value, state.gradient + gradient
    seen = state.seen + size
    if seen < state.n_examples:
        return {"seen": seen, "value": value, "gradient": gradient}
    ended = {"epoch": state.epoch + 1, "seen": 0, "last": value, "previous": state.last}
    return {"value": value, "gradient": gradient, **ended}


def _seed(random_state: RandomState) -> int:
    """Return a seed that a file can keep."""
    if isinstance(random_state, np.random.Generator) or random_state is None:
        return int(generator(random_state).integers(2**63 - 1))
    seed = whole_number(random_state, "random_state")
    require(seed < 2**63, "random_state", "a whole number below 2**63", str(seed))
    return seed
