"""The plan of a run: a schedule for each component, counting numbers, and when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from isinglass.kernels.layout import LOG_MAX, LOG_SUM, SUM, WIDE, Semiring
from isinglass.typing import DType, FloatArray, IntArray, Mask

Schedule = Literal["flooding", "residual", "grid"] | Callable[[int], IntArray]
"""All links at once, by residual, the sweep of a grid, or the sequence of links of each iteration, by a function."""


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
    dtype : dtype
        In which the loops for regular grids keep messages; float32 only where they can (see `algorithms.narrow`).
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
    dtype: DType = WIDE

    @property
    def arithmetics(self) -> list[tuple[Semiring, DType]]:
        """Semiring and dtype in planes that components are run with; if a product underflows, with the next ones."""
        if self.maximise:
            return [(LOG_MAX, WIDE)]
        return [(SUM, dtype) for dtype in dict.fromkeys((self.dtype, WIDE))] + [(LOG_SUM, WIDE)]
