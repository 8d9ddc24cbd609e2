"""The history of a training run: one `Epoch` for each iteration, and its form in files."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from isinglass.errors import FileFormatError
from isinglass.typing import Array, FloatArray


@dataclass(frozen=True)
class Epoch:
    """One iteration of training, as `history_` keeps it.

    Attributes
    ----------
    iteration : int
    value, gradient_norm : float
        The objective and the length of its gradient.
    inference_iterations : int
        The most that an example took.
    converged_share : float
        The share of examples of which it is known that inference converged.
    validation : float or None
        The loss on validation data, where there are some; None within an epoch of minibatches.
    stage : int
        Which of the `stages` of training it belongs to.
    """

    iteration: int
    value: float
    gradient_norm: float
    inference_iterations: int
    converged_share: float
    validation: float | None = None
    stage: int = 0

    @property
    def converged(self) -> bool:
        """Whether inference converged on all examples."""
        return self.converged_share == 1

    def __str__(self) -> str:
        seen = "" if self.validation is None else f"  validation {self.validation:.6g}"
        return (
            f"{self.iteration:5d}  {self.value:.8g}  |g| {self.gradient_norm:.2e}  "
            f"inference: {self.inference_iterations} iterations, {self.converged_share:.0%} converged{seen}"
        )


def history_rows(history: list[Epoch]) -> FloatArray:
    """Return a history as an array (iterations, 6), or (iterations, 7) with stages; NaN where nothing was validated."""
    names = [field.name for field in fields(Epoch)]
    if not any(epoch.stage for epoch in history):
        names.remove("stage")
    rows = [[getattr(epoch, name) for name in names] for epoch in history]
    return np.asarray(rows, np.float64).reshape(-1, len(names))


def history_of(rows: Array | None, file: str) -> list[Epoch]:
    """Return the history that `history_rows` made an array of, once it is checked."""
    width = len(fields(Epoch))
    if rows is None or rows.dtype != np.float64 or rows.ndim != 2 or rows.shape[1] not in (width - 1, width):
        raise FileFormatError(file, None, f"a history (iterations, {width - 1} or {width})", "something else")
    looks, others = rows[:, 5], np.delete(rows, 5, axis=1)
    if not np.isfinite(others).all() or np.isinf(looks).any():
        raise FileFormatError(file, None, "a history of finite numbers", "others")
    return [_epoch(*row) for row in rows.tolist()]


def _epoch(i: float, v: float, g: float, n: float, share: float, seen: float, stage: float = 0.0) -> Epoch:
    return Epoch(int(i), v, g, int(n), share, None if math.isnan(seen) else seen, int(stage))
