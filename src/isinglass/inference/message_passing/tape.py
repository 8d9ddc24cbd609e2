"""What a run remembers for its reverse: every step, or a few of them from which the others are done again.

``"full"`` keeps the messages that each iteration overwrote. ``"sqrt"`` keeps the messages at marks whose distance grows
with the length of the run, so that T iterations leave at most about 2 sqrt(T) marks, and going back redoes the
iterations between two marks, at most about sqrt(T) at a time (Chen, Xu, Zhang and Guestrin 2016). The iterations
are the same to the last bit, so the derivatives are too; they cost one more forward pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isinglass.inference.message_passing.moves.move import Fate, Move, Run, Step
from isinglass.typing import Mask


class Tape(ABC):
    """The iterations of a run, to be gone through backwards."""

    keeps_steps: bool

    @abstractmethod
    def before(self, run: Run, t: int) -> None:
        """Look at a run before iteration t."""

    @abstractmethod
    def after(self, step: Step) -> None:
        """Take down what iteration t did."""

    @property
    @abstractmethod
    def last_move(self) -> Move:
        """The move that did the last iteration."""

    @abstractmethod
    def backwards(self, run: Run) -> Iterator[Step]:
        """Give the steps, last first; run.m is free to use."""


@dataclass(eq=False)
class FullTape(Tape):
    """Keeps every step."""

    keeps_steps = True
    steps: list[Step] = field(default_factory=list)

    def before(self, run: Run, t: int) -> None:
        """Need nothing."""

    def after(self, step: Step) -> None:
        """Keep it."""
        self.steps.append(step)

    @property
    def last_move(self) -> Move:
        """The move of the last step."""
        return self.steps[-1].move

    def backwards(self, run: Run) -> Iterator[Step]:
        """Give them back."""
        return reversed(self.steps)


@dataclass(eq=False)
class MarkedTape(Tape):
    """Keeps the messages at marks, and does again what lies between."""

    keeps_steps = False
    stride: int = 1
    marks: dict[int, NDArray[Any]] = field(default_factory=dict)
    done: list[tuple[Move, Mask]] = field(default_factory=list)

    def before(self, run: Run, t: int) -> None:
        """Mark every so many iterations; when there are too many marks, keep every other one."""
        if t % self.stride:
            return
        if len(self.marks) > 2 * self.stride:
            self.stride *= 2
            self.marks = {at: m for at, m in self.marks.items() if at % self.stride == 0}
            if t % self.stride:
                return
        if self.done:
            self.done[-1][0].finish(run)
        self.marks[t] = run.m.copy()

    def after(self, step: Step) -> None:
        """Keep which components moved; masks that do not change are shared."""
        active = step.active
        if self.done and np.array_equal(self.done[-1][1], active):
            active = self.done[-1][1]
        self.done.append((step.move, active))

    @property
    def last_move(self) -> Move:
        """The move of the last iteration."""
        return self.done[-1][0]

    def backwards(self, run: Run) -> Iterator[Step]:
        """Do the iterations from each mark again, last mark first."""
        last = len(self.done)
        for mark in sorted(self.marks, reverse=True):
            run.m, run.uniform = self.marks[mark].copy(), False
            steps: list[Step] = []
            for t in range(mark, last):
                move, active = self.done[t]
                if steps and steps[-1].move is not move:
                    steps[-1].move.finish(run)
                fate = Fate(active & run.wanted, np.zeros(len(active), bool), np.zeros(len(active)))
                steps.append(move.forward(run, t, fate, True))
            if steps:
                steps[-1].move.finish(run)
            yield from reversed(steps)
            last = mark
