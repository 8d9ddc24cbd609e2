"""Flooding: all links are updated at once, from the messages of the iteration before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isinglass.inference.message_passing import passes
from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.run import Derivatives, Run, Step
from isinglass.kernels.layout import Status
from isinglass.segments import Largest
from isinglass.typing import Array, FloatArray, IntArray, Mask

NOISE = 1e-15  # of a derivative along a step of size one


class Flooding(Move):
    """What all floodings share: their reverse, which chooses its loop for each component (see `flood_back`)."""

    floods: ClassVar[bool] = True

    def backward(self, run: Run, step: Step, moved: Mask, bars: Derivatives) -> None:
        """Reverse a step."""
        run.back.backward(run, step, moved, bars)

    def repeat_back(self, run: Run, step: Step, moved: Mask, bars: Derivatives, times: int) -> None:
        """Reverse a step several times at once."""
        most = run.back.iterations_at_once(run)
        for done in range(0, times, most):
            self.backward(run, replace(step, iterations=min(most, times - done)), moved, bars)

    def looks(self, run: Run) -> IntArray:
        """Look less often at what is in planes."""
        return run.back.looks(run)

    def sizes_back(self, run: Run, bars: Derivatives, largest: Largest) -> FloatArray:
        """Measure the derivatives where they are."""
        return run.back.sizes(run, bars, largest)

    def read_out_back(self, run: Run, beliefs: Array, beliefs_bar: Array, bars: Derivatives) -> bool:
        """Carry derivatives by beliefs to messages in planes, if those of all variables are there."""
        return run.back.read_out_back(run, beliefs, beliefs_bar, bars)

    def finish_back(self, run: Run, bars: Derivatives) -> None:
        """Leave the derivatives in bars.m."""
        run.back.finish(run, bars)


class Flood(Flooding):
    """Flooding on any graph."""

    def forward(self, run: Run, t: int, status: Status, taped: bool) -> Step:
        """Do iteration t."""
        new, old = run.make_room(taped), run.m
        self.pass_messages(run, t, new, status)
        run.m, run.spare = new, None if taped else old
        return run.step(Step(self, t, status.active, old), taped)

    def pass_messages(self, run: Run, t: int, new: Array, status: Status) -> None:
        """Write the messages after iteration t to `new`."""
        passes.flood(run, run.values(t), new, status)

    def at_rest(self, run: Run, active: Mask) -> Step:
        """Return a step that was not done: to go back, the messages before it are enough."""
        return Step(self, 0, active, run.m)

    def effects(self, run: Run, step: Step, status: Status) -> None:
        """Compare the messages before and after the step."""
        measure(run, step.before, run.m, status)


@dataclass(eq=False)
class FloodPairs(Flood):
    """Flooding on pairwise graphs with linear values, variable by variable."""

    partner: IntArray

    def pass_messages(self, run: Run, t: int, new: Array, status: Status) -> None:
        """Write the messages after iteration t to `new`."""
        passes.flood_pairs(run, self.partner, run.values(t), new, status)


def flooding_of(run: Run) -> Flood:
    """Choose how to flood, with messages on edges."""
    return Flood() if run.partner is None else FloodPairs(run.partner)


def measure(run: Run, old: Array, new: Array, status: Status) -> None:
    """Set residuals by messages before and after an iteration; of complex ones, also by how far imaginary parts moved.

    Those stand for derivatives, which change relative to their size.
    """
    passes.effects(run, old, new, status)
    if run.dtype.kind == "c":
        moved, size = np.zeros(len(status.active)), np.zeros(len(status.active))
        run.kernels.imaginary_effects(run, old, new, status.active, moved, size)
        moved[moved <= NOISE * run.steps] = 0  # nothing but rounding
        share = np.divide(moved, size, out=np.zeros_like(moved), where=size > 0)
        np.maximum(status.residual, share, out=status.residual, where=status.active)
