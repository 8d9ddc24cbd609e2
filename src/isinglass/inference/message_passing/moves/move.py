"""How one iteration is done, and its reverse: the base class of all moves.

A move takes a run from the messages of iteration t to those of t + 1 and returns a `Step`, from which it can go back.
If several moves implement a schedule, all of them give the same messages, to the last bit. Their reverses differ in the
last bits, so the choice of the reverse depends only on the component (see `flood_back`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from isinglass.inference.message_passing.passes import read_out_variables
from isinglass.inference.message_passing.run import Derivatives, Run, Step, unwatched
from isinglass.kernels.layout import Beliefs, Status
from isinglass.segments import Largest
from isinglass.typing import Array, FloatArray, IntArray, Mask


class Move(ABC):
    """One way to do an iteration."""

    in_place: ClassVar[bool] = False  # whether it writes new messages over the old ones
    floods: ClassVar[bool] = False  # whether its reverse is that of flooding, which all such steps of a run share

    @abstractmethod
    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t on the active components; set their residuals, flag those in which a product underflows."""

    def forward_all(self, run: Run, iterations: int, status: Status, taped: bool, tol: float = -1.0) -> Step | None:
        """Do all iterations at once, if that is possible and better; else do nothing.

        Residuals of at most `tol` are those of `effects`, if they are watched.
        """
        return None

    def look_closely(self, run: Run, step: Step, status: Status, tol: float) -> None:
        """Where messages hardly changed, measure what their change can do to a probability."""
        near = status.active & ~status.flagged & (status.residual <= tol)
        if np.count_nonzero(near):  # much faster than any() for few
            self.effects(run, step, status._replace(active=near))

    @abstractmethod
    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Set the residuals of the active components to what a further iteration can do to any probability.

        Residuals of `forward` are changes of normalised messages, which are never larger and cost nothing. This is
        the measure by which convergence is decided (see `kernels.numba.messages.changes`).
        """

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step from the messages of a run at a fixed point that updates all of them."""
        step = self.forward_all(run, 1, unwatched(active), True) or self.forward(run, 0, unwatched(active), True)
        step.move.finish(run)
        return step

    @abstractmethod
    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Turn derivatives by the messages after a step into those by the messages before it."""

    def messages_before(self, run: Run, step: Step, t: int) -> Array:
        """Return the messages before iteration t of a step, on edges, if it keeps all of them."""
        return step.before

    def planes_of(self, step: Step) -> tuple[FloatArray, FloatArray] | None:
        """Return the messages before a step and after each of its iterations, where they are kept in planes."""
        return None

    def finish(self, run: Run) -> None:  # noqa: B027
        """Leave the messages in run.m; most moves always have them there."""

    def read_out(self, run: Run, beliefs: Beliefs, active: Mask) -> float | None:
        """Read the beliefs of variables out, after `finish`.

        Returns a lower bound of all of them before their normalisation; None if it is not known.
        """
        read_out_variables(run, run.models[-1], beliefs, active)
        return None

    def read_out_back(self, run: Run, beliefs: Array, beliefs_bar: Array, bars: Derivatives) -> bool:
        """Carry derivatives by the beliefs of all variables to the last messages, where this move keeps those.

        Returns whether it did: by default not, and `bars.m` is written by the general loop.
        """
        return False

    def repeat_back(self, run: Run, step: Step, moved: Mask, bars: Derivatives, times: int) -> None:
        """Reverse a step several times, always at the messages of `run`, which are at rest."""
        messages = run.m
        for _ in range(times):
            run.m = messages.copy() if self.in_place else messages
            self.backward(run, step, moved, bars)
        run.m = messages

    def looks(self, run: Run) -> IntArray:
        """Return how many iterations at rest each component goes back between two looks at what is left."""
        return np.ones(len(run.wanted), np.int64)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> FloatArray:
        """Return the largest derivative by a log message so far, of real and imaginary parts, (parts, components)."""
        return largest.parts(bars.m)

    def finish_back(self, run: Run, bars: Derivatives) -> None:  # noqa: B027
        """Leave the derivatives in bars.m."""
