"""What every optimizer is: a frozen bag of options, a pure step from state to state, and one loop around it.

The loop (`Optimizer.drive`) reports to a callback, stops when the state says so, and hands back the last complete
state when it is interrupted; nothing that was computed is lost.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.learning.optimizers.state import S, State
from isinglass.registry import Registry, choose
from isinglass.runtime.interrupts import keeps_best
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import array_of, read_only, whole_number

Function = Callable[[FloatArray], tuple[float, Array]]
"""A function to minimise: x to its value and gradient. It must give the same bits for the same x."""

BatchFunction = Callable[[IntArray, FloatArray], tuple[float, Array]]
"""From indices of examples and x to the value and gradient of the sum over these examples."""


@dataclass(frozen=True, eq=False)
class Progress:
    """What a callback is told after each iteration.

    Attributes
    ----------
    iteration : int
        Steps done since the very start, also over resumed runs.
    value, gradient_norm : float
        Of the point `x`; minibatch optimizers estimate them from the batches of the epoch so far.
    x : array (n,)
        The point that would be returned now, read-only.
    state : State
        What to go on from.
    """

    iteration: int
    value: float
    gradient_norm: float
    x: FloatArray
    state: State


Callback = Callable[[Progress], object]
"""Told the progress after each iteration; if it returns True the run ends."""


@dataclass(frozen=True, eq=False)
class OptimResult:
    """What a run found.

    Attributes
    ----------
    x : array (n,)
        The best point (the average, if minibatches are averaged).
    value : float
        The function there; NaN if not even one evaluation was completed.
    gradient : array (n,)
        The gradient there; with an l1 penalty the subgradient of least norm.
    iterations, evaluations : int
        Since the very start, also over resumed runs.
    converged : bool
        Whether a tolerance was reached.
    message : str
        Why the run ended.
    state : State or None
        What to go on from; None if not even one evaluation was completed.
    growing : tuple of int
        The entries of x that seem to grow without end, the largest first.
    """

    x: FloatArray
    value: float
    gradient: FloatArray
    iterations: int
    evaluations: int
    converged: bool
    message: str
    state: State | None
    growing: tuple[int, ...] = ()


@dataclass(frozen=True)
class End:
    """Why a run ends."""

    converged: bool
    message: str


class StuckError(Exception):
    """Raised by a step that finds no next state; the message is for the result, which may have another state."""

    def __init__(self, message: str, state: State | None = None) -> None:
        super().__init__(message)
        self.state = state


class Counted:
    """A function that counts its calls, keeps the caller's hands off the state and checks what comes back."""

    def __init__(self, f: Callable[..., tuple[float, Array]], n_examples: int = 1) -> None:
        self.f, self.n_examples = f, n_examples
        self.evaluations = 0

    def __call__(self, *arguments: Any) -> tuple[float, FloatArray]:
        """Return value and gradient; the point is the last argument."""
        answer = self.f(*(argument.copy() for argument in arguments))
        self.evaluations += 1
        if not isinstance(answer, tuple | list) or len(answer) != 2:
            raise InputError("f", "a function that returns (value, gradient)", f"one that returns {answer!r:.40}")
        gradient = np.asarray(answer[1], np.float64)
        if gradient.shape != arguments[-1].shape:
            raise InputError("f", f"a gradient of shape {arguments[-1].shape}", f"shape {gradient.shape}")
        return float(answer[0]), gradient.copy()

    def hessian_product(self, *arguments: Any) -> FloatArray:
        """Return the Hessian times the last argument, at the last but one; it counts as two evaluations."""
        *before, x, v = arguments
        own = getattr(self.f, "hessian_product", None)
        if own is None:
            return along(lambda point: self(*before, point)[1], x, v)
        self.evaluations += 2
        return np.asarray(own(*(argument.copy() for argument in arguments)), np.float64)


def dot(a: FloatArray, b: FloatArray) -> float:
    """Return aᵀb in a fixed order, which BLAS does not promise; what overflows is infinite or NaN.

    Examples
    --------
    >>> dot(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    11.0
    """
    return float(np.einsum("i,i->", a, b))


def norm(a: FloatArray) -> float:
    """Return the Euclidean length."""
    return math.sqrt(dot(a, a))


def along(gradient: Callable[[FloatArray], Array], x: FloatArray, v: FloatArray) -> FloatArray:
    """Return the derivative of a gradient along v, by a central difference."""
    step = float(np.cbrt(np.finfo(float).eps)) * max(1.0, norm(x)) / max(norm(v), float(np.finfo(float).tiny))
    return np.asarray((gradient(x + step * v) - gradient(x - step * v)) / (2 * step), np.float64)


class Optimizer(ABC, Generic[S]):
    """Base class of optimizers; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    state_type: ClassVar[type[State]]
    sparse: ClassVar[bool] = False  # whether it has an l1 penalty
    convex: ClassVar[bool] = False  # whether it is for convex functions alone
    latent: ClassVar[bool] = False  # whether it completes labels that were not observed, and is convex given these
    minibatch: ClassVar[bool] = False  # whether it steps through minibatches, by `minimise_batches`
    limit: ClassVar[str] = "max_iter"  # the option that ends a run

    def minimise(
        self, f: Function, x0: ArrayLike | None = None, *, callback: Callback | None = None, state: State | None = None
    ) -> OptimResult:
        """Minimise a function of one vector.

        Parameters
        ----------
        f : callable
            From x to (value, gradient).
        x0 : array (n,)
            Where to start. With `state` it may be left out; only its length is looked at.
        callback : callable, optional
            Called with a `Progress` after each iteration; the run ends if it returns True.
        state : State, optional
            Go on from the state of an earlier run, bit for bit as if it had not stopped. Limits such as `max_iter`
            count from the very start.

        Returns
        -------
        OptimResult
        """
        return self.drive(Counted(f), x0, callback, state)

    def minimise_batches(
        self,
        f: BatchFunction,
        n_examples: int,
        x0: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
        state: State | None = None,
    ) -> OptimResult:
        """Minimise a sum over examples by steps that look at some of them; only where `minibatch` is true.

        Parameters
        ----------
        f : callable
            From (indices, x) to the value and gradient of the sum over these examples, with the share
            len(indices) / n_examples of a regulariser.
        n_examples : int
        x0, callback, state
            As for `minimise`; an iteration is a step, that is a batch.

        Returns
        -------
        OptimResult
            After an interrupt, and where values are estimates, value and gradient are those of the epoch so far, added
            up while x moved and scaled to all examples.
        """
        expected, remedy = "a minibatch optimizer", "use 'sgd', 'adagrad' or 'adam'"
        require(self.minibatch, "optimizer", expected, repr(self.name), remedy)
        n = whole_number(n_examples, "n_examples", 1)
        if (before := getattr(state, "n_examples", n)) != n:
            raise InputError("n_examples", f"{before}, as in the state", str(n))
        return self.drive(Counted(f, n), x0, callback, state)

    def at_its_end(self, state: State) -> Self:
        """Return the optimizer with a limit that a state has reached."""
        return replace(self, **{self.limit: state.done})  # type: ignore[type-var]

    @abstractmethod
    def check(self, size: int) -> None:
        """Check the options, for vectors of so many entries, before any work."""

    @abstractmethod
    def start(self, f: Counted, x: FloatArray) -> S:
        """Return the first state."""

    @abstractmethod
    def step(self, f: Counted, state: S) -> S:
        """Return the next state, or raise `StuckError`; the given one is left as it is."""

    @abstractmethod
    def ended(self, state: S) -> End | None:
        """Say whether a run ends at this state, and why."""

    def ended_at(self, f: Counted, state: S) -> End | None:
        """Say the same, and look at the function if need be."""
        return self.ended(state)

    @abstractmethod
    def outcome(self, state: S) -> tuple[FloatArray, float, FloatArray]:
        """Return the point, value and gradient to report."""

    def drive(self, f: Counted, x0: ArrayLike | None, callback: Callback | None, state: State | None) -> OptimResult:
        """Step from state to state until the end; an interrupt ends it, too."""
        x, current = self._begin(x0, state)
        f.evaluations = 0 if current is None else current.evaluations
        end: End | None = None
        try:
            if current is None:
                current = self.start(f, x)
            while (end := self.ended_at(f, current)) is None:
                current = self.step(f, current)
                if callback is not None and callback(self._progress(current)):
                    end = End(False, "stopped by the callback")
                    break
        except KeyboardInterrupt:
            if not keeps_best():
                raise
            end = End(False, "interrupted")
        except StuckError as error:
            end = End(False, str(error))
            current = current if error.state is None else error.state  # type: ignore[assignment]
        found = self._result(x, current, f.evaluations, end)
        return found if current is None or end.message == "interrupted" else self.reported(f, found)

    def reported(self, f: Counted, found: OptimResult) -> OptimResult:
        """Return the result of a run that was not interrupted, once it is compared with the function at its point."""
        return found

    def _begin(self, x0: ArrayLike | None, state: State | None) -> tuple[FloatArray, S | None]:
        """Check where to start from."""
        if state is None:
            x = _vector(x0)
            self.check(len(x))
            return x, None
        if not isinstance(state, self.state_type) or state.optimizer != self.name:
            got = f"one of {state.optimizer!r}" if isinstance(state, State) else type(state).__name__
            raise InputError("state", f"a state of {self.name!r}", got)
        if x0 is not None and len(_vector(x0)) != len(state.x):
            raise InputError("x0", f"{len(state.x)} entries, as in the state", f"{len(_vector(x0))}", "leave it out")
        self.check(len(state.x))
        return state.x, state  # type: ignore[return-value]

    def _progress(self, state: S) -> Progress:
        x, value, gradient = self.outcome(state)
        return Progress(state.iteration, value, norm(gradient), read_only(x), state)

    def _result(self, x0: FloatArray, state: S | None, evaluations: int, end: End) -> OptimResult:
        if state is None:
            x, value, gradient = x0, math.nan, np.full_like(x0, np.nan)
        else:
            x, value, gradient = self.outcome(state)
        iterations = 0 if state is None else state.iteration
        return OptimResult(x.copy(), value, gradient.copy(), iterations, evaluations, end.converged, end.message, state)


AnyOptimizer = Optimizer[Any]
OPTIMIZERS: Registry[type[AnyOptimizer]] = Registry("optimizer")

O = TypeVar("O", bound=type[AnyOptimizer])  # noqa: E741


def register(cls: O) -> O:
    """File an optimizer under its name (a class decorator)."""
    OPTIMIZERS.register(cls.name)(cls)
    return cls


def make_optimizer(optimizer: str | AnyOptimizer, **options: object) -> AnyOptimizer:
    """Return the optimizer that a name or an object and further options stand for.

    Examples
    --------
    >>> from isinglass.learning.optimizers import Lbfgs
    >>> make_optimizer("lbfgs", memory=3) == make_optimizer(Lbfgs(), memory=3) == Lbfgs(memory=3)
    True
    """
    return choose(OPTIMIZERS, Optimizer, optimizer, options, "lbfgs")  # type: ignore[type-abstract]


def _vector(x0: ArrayLike | None) -> FloatArray:
    """Return the start as a new vector of finite numbers."""
    expected = "a vector of finite real numbers"
    require(x0 is not None, "x0", expected, "None", "only with state= may it be left out")
    x = array_of(x0, "x0", expected)
    require(x.dtype.kind in "iuf" and x.ndim == 1, "x0", expected, f"dtype {x.dtype} of shape {x.shape}")
    if not np.isfinite(x).all():
        raise InputError("x0", expected, f"{x[~np.isfinite(x)][0]} at index {int(np.argmin(np.isfinite(x)))}")
    return x.astype(np.float64)
