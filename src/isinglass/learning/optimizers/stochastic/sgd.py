"""Stochastic gradient descent: x_{t+1} = x_t - η_t g_t (Robbins and Monro 1951)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.learning.optimizers.base import register
from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.typing import FloatArray


@register
@dataclass(frozen=True)
class Sgd(MiniBatch):
    """Stochastic gradient descent; the rate falls as 1 / (1 + decay · epochs) by default.

    Parameters
    ----------
    learning_rate, epochs, batch_size, schedule, decay, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.array([1.0, 2.0, 6.0])  # half the squared distance to the data is least at their mean
    >>> f = lambda indices, x: (((x - data[indices]) ** 2).sum() / 2, (x - data[indices]).sum(keepdims=True))
    >>> r = Sgd(learning_rate=0.5, epochs=200, averaging=True, random_state=0).minimise_batches(f, 3, [0.0])
    >>> bool(abs(r.x[0] - 3) < 0.1)
    True
    """

    schedule: str = "inverse"

    name: ClassVar[str] = "sgd"

    def fresh(self, x: FloatArray) -> Vectors:
        """Keep nothing."""
        return ()

    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Follow the negative gradient."""
        return -rate * g, memory
