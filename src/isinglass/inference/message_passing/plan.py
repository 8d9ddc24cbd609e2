"""The plan of a run: a schedule for each component, counting numbers, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from isinglass.kernels.layout import LOG_MAX, LOG_SUM, SUM, Semiring
from isinglass.typing import FloatArray, IntArray, Mask

Schedule = Literal["flooding", "residual", "grid"] | Callable[[], IntArray]
"""All links at once, by residual, the sweep of a grid, or the sequence of links of an iteration, by a function."""


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
    """How to pass messages.

    Attributes
    ----------
    parts : list of Part
        Each component is in one of them, which must not depend on the other components.
    counting : array (links,)
    powers : bool
        Whether counting numbers may differ from one; if not, faster loops are used.
    damping : float
    iterations : int or None
        The exact number; None runs until `tol`, at most `max_iter`.
    tol, max_iter
    maximise : bool
        The max semiring.
    threads : int
        How many may work on the components in parallel.
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

    @property
    def semirings(self) -> tuple[Semiring, ...]:
        """Those that components are run with, one after the other: with the next one, if a product underflows."""
        return (LOG_MAX,) if self.maximise else (SUM, LOG_SUM)
