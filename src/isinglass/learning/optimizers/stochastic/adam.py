"""Adam (Kingma and Ba, ICLR 2015, algorithm 1).

m_t = β₁ m_{t-1} + (1 - β₁) g_t          m̂ = m_t / (1 - β₁ᵗ)
v_t = β₂ v_{t-1} + (1 - β₂) g_t²         v̂ = v_t / (1 - β₂ᵗ)
x_t = x_{t-1} - η m̂ / (√v̂ + ε)          coordinate by coordinate
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.optimizers.base import register
from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.typing import FloatArray
from isinglass.validation import number, positive


@register
@dataclass(frozen=True)
class Adam(MiniBatch):
    """Adam.

    Parameters
    ----------
    learning_rate, epochs, batch_size, schedule, decay, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`.
    beta1, beta2 : float
        How slowly the moments forget, below 1.
    epsilon : float
        Added to the square root, positive.

    Examples
    --------
    >>> r = Adam(learning_rate=0.1, epochs=500).minimise(lambda x: ((x**2).sum(), 2 * x), [3.0, -1.0])
    >>> bool(abs(r.x).max() < 1e-3)
    True
    """

    learning_rate: float = 0.001
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8

    name: ClassVar[str] = "adam"

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        number(self.beta1, "beta1", 0, 1)
        number(self.beta2, "beta2", 0, 1)
        positive(self.epsilon, "epsilon")

    def fresh(self, x: FloatArray) -> Vectors:
        """Begin with moments of zero."""
        return np.zeros_like(x), np.zeros_like(x)

    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Divide the first moment by the root of the second, both without their bias."""
        m = self.beta1 * memory[0] + (1 - self.beta1) * g
        v = self.beta2 * memory[1] + (1 - self.beta2) * g * g
        m_hat, v_hat = m / (1 - self.beta1**t), v / (1 - self.beta2**t)
        return -rate * m_hat / (np.sqrt(v_hat) + self.epsilon), (m, v)
