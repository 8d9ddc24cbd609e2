"""Stochastic meta-descent (Schraudolph 1999; Vishwanathan, Schraudolph, Schmidt and Murphy 2006, section 4).

Every parameter has a gain of its own, which follows how a longer step would have changed the objective:

    eta_t    =  eta_{t-1} max( 1/2, 1 - mu g_t v_t )                     coordinate by coordinate
    x_{t+1}  =  x_t - eta_t g_t
    v_{t+1}  =  lam v_t - eta_t ( g_t + lam H_t v_t ),                   eta_0 = learning_rate,   v_0 = 0

g_t is the mean gradient of a batch and H_t its Hessian, which enters by products with v alone: v is the derivative of x
by the logarithms of the gains, over about 1 / (1 - lam) steps. The products are those of the objective, where it has
`hessian_product(x, v)`: exact, by a complex step, for all losses through a fixed number of iterations of inference.
For other functions they are central differences of the gradient.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch, MiniBatchState
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import number


@register
@dataclass(frozen=True)
class Smd(MiniBatch):
    """Stochastic meta-descent.

    Parameters
    ----------
    learning_rate, epochs, batch_size, schedule, decay, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`. `learning_rate` is the first gain of every parameter.
    mu : float
        How fast gains change; with zero they do not.
    lam : float
        In [0, 1]: how long the effect of a gain is remembered.

    Examples
    --------
    >>> scale = np.array([1.0, 30.0])
    >>> r = Smd(learning_rate=0.01, epochs=200).minimise(lambda x: ((scale * x**2).sum() / 2, scale * x), [3.0, -1.0])
    >>> bool(abs(r.x).max() < 1e-3)
    True
    """

    learning_rate: float = 0.05
    mu: float = 0.05
    lam: float = 0.9

    name: ClassVar[str] = "smd"

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        number(self.mu, "mu", 0, np.inf)
        number(self.lam, "lam", 0, np.nextafter(1.0, 2.0))

    def fresh(self, x: FloatArray) -> Vectors:
        """Begin with equal gains, and v = 0."""
        return np.full_like(x, self.learning_rate), np.zeros_like(x)

    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Step without curvature; `change` has it."""
        return self._stepped(g, np.zeros_like(g), rate, memory)

    def change(
        self, f: Counted, chosen: IntArray, state: MiniBatchState, g: FloatArray, rate: float
    ) -> tuple[FloatArray, Vectors]:
        """Adapt the gains, step, and carry v on with the product of the batch's Hessian."""
        v = state.memory[1]
        product = f.hessian_product(chosen, state.x, v) / len(chosen) if v.any() and self.mu > 0 else np.zeros_like(g)
        return self._stepped(g, product, rate, state.memory)

    def _stepped(self, g: FloatArray, product: FloatArray, rate: float, memory: Vectors) -> tuple[FloatArray, Vectors]:
        gains, v = memory
        gains = gains * np.maximum(0.5, 1 - self.mu * g * v)
        eta = gains * (rate / self.learning_rate)
        return -eta * g, (gains, self.lam * v - eta * (g + self.lam * product))
