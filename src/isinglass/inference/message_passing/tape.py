"""What a run records for its reverse: every step, or checkpoints from which the others are recomputed.

``"full"`` keeps the messages that each iteration overwrote. ``"sqrt"`` keeps the messages at marks whose distance grows
with the length of the run: T iterations leave at most about 2 sqrt(T) marks, and the reverse recomputes the iterations
between two marks, at most about sqrt(T) at a time (Chen, Xu, Zhang and Guestrin 2016). The iterations are the same to
the last bit, so the derivatives are too; they cost one more forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from isinglass.inference.message_passing.moves.move import Move
from isinglass.inference.message_passing.run import Run, Step
from isinglass.inference.message_passing.shares import copied
from isinglass.kernels.layout import Status
from isinglass.typing import Array, Mask


@dataclass(eq=False)
class Tape:
    """Keeps every step."""

    keeps_steps: ClassVar[bool] = True
    steps: list[Step] = field(default_factory=list, init=False)

    def before(self, run: Run, t: int) -> None:
        """Record the state before iteration t; a step has all of it."""

    def after(self, step: Step) -> None:
        """Record a step."""
        self.steps.append(step)

    @property
    def last_move(self) -> Move:
        """The move that did the last iteration."""
        return self.steps[-1].move

    def backwards(self, run: Run) -> Iterator[Step]:
        """Yield the steps, last first; run.m may be overwritten."""
        return reversed(self.steps)


@dataclass(eq=False)
class MarkedTape(Tape):
    """Keeps the messages at marks, and recomputes the iterations between them."""

    keeps_steps: ClassVar[bool] = False
    stride: int = 1
    marks: dict[int, Array] = field(default_factory=dict)
    done: list[tuple[Move, Mask]] = field(default_factory=list)

    def before(self, run: Run, t: int) -> None:
        """Keep the messages of every `stride`-th iteration; with too many marks, double the stride."""
        if t % self.stride:
            return
        if len(self.marks) > 2 * self.stride:
            self.stride *= 2
            self.marks = {at: m for at, m in self.marks.items() if at % self.stride == 0}
            if t % self.stride:
                return
        if self.done:
            self.done[-1][0].finish(run)
        self.marks[t] = copied(run.spread, run.m)

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
        """Recompute the iterations from each mark, last mark first."""
        last = len(self.done)
        for mark in sorted(self.marks, reverse=True):
            run.m, run.uniform = copied(run.spread, self.marks[mark]), False
            steps: list[Step] = []
            for t in range(mark, last):
                move, active = self.done[t]
                if steps and steps[-1].move is not move:
                    steps[-1].move.finish(run)
                status = Status(active & run.wanted, np.zeros(len(active), bool), np.zeros(len(active)))
                steps.append(move.forward(run, t, status, True))
            if steps:
                steps[-1].move.finish(run)
            yield from reversed(steps)
            last = mark
