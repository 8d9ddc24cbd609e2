"""AdaGrad with a diagonal matrix (Duchi, Hazan and Singer, JMLR 2011).

h_t = h_{t-1} + g_t²,   x_{t+1} = x_t - η g_t / (δ + √h_t)     coordinate by coordinate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.optimizers.base import register
from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.typing import FloatArray
from isinglass.validation import positive


@register
@dataclass(frozen=True)
class AdaGrad(MiniBatch):
    """AdaGrad.

    Parameters
    ----------
    learning_rate, epochs, batch_size, schedule, decay, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`.
    delta : float
        Added to the square root, positive.

    Examples
    --------
    >>> r = AdaGrad(learning_rate=1.0, epochs=100).minimise(lambda x: ((x**2).sum(), 2 * x), [3.0, -1.0])
    >>> bool(abs(r.x).max() < 1e-6)
    True
    """

    delta: float = 1e-8

    name: ClassVar[str] = "adagrad"

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        positive(self.delta, "delta")

    def fresh(self, x: FloatArray) -> Vectors:
        """Begin with sums of zero."""
        return (np.zeros_like(x),)

    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Divide by the root of the sum of squares."""
        h = memory[0] + g * g
        return -rate * g / (self.delta + np.sqrt(h)), (h,)
