"""What the engine is to run: schedules for the components of a graph, counting numbers, when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from isinglass.typing import FloatArray, IntArray, Mask

Schedule = Literal["flooding", "residual", "grid"] | Callable[[int], IntArray]
"""All links at once, by residual, the sweep of a grid, or one after the other: the links of iteration t."""


@dataclass(frozen=True, eq=False)
class Part:
    """A schedule for some of the components.

    Attributes
    ----------
    wanted : bool array (components,)
    schedule : "flooding", "residual", "grid" or callable
    settled : bool
        One undamped iteration is known to be a fixed point (a tree schedule on a forest).
    """

    wanted: Mask
    schedule: Schedule
    settled: bool = False


@dataclass(frozen=True, eq=False)
class Plan:
    """What to run.

    Attributes
    ----------
    parts : list of Part
        Every component in one of them; which one must not depend on the other components.
    counting : array (links,)
    powers : bool
        Whether counting numbers may differ from one; false takes the faster path.
    damping : float
    iterations : int or None
        Exactly so many; None runs until `tol`, at most `max_iter`.
    tol, max_iter
    maximise : bool
        The max semiring.
    threads : int
        How many may work on the components side by side.
    """

    parts: list[Part]
    counting: FloatArray
    powers: bool
    damping: float
    iterations: int | None
    tol: float
    max_iter: int
    maximise: bool = False
    threads: int = 1
