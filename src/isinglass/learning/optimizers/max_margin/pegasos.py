"""Stochastic subgradients with the step sizes of strong convexity: Pegasos, and the averaged perceptron.

The mean function is f(x) = (1/n) sum_i R_i(x) + lambda/2 |x|², lambda = 2 l2 / n. With g_t a batch's subgradient,

    x_{t+1}  =  x_t - g_t / (lambda t)            (Shalev-Shwartz, Singer and Srebro 2007; Murphy 2012, algorithm 19.5)

With different penalties the smallest is taken. The result is the mean of the points with weights t, whose function
approaches the least as 1 / t (Lacoste-Julien, Schmidt and Bach 2012); the first points are far away.

The averaged perceptron (Collins 2002) adds and subtracts features of one example at a time, with a step of one, where
its best labels are wrong, and returns the mean; it is for loss "perceptron" and l2 = 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from isinglass.learning.optimizers.base import Counted, register
from isinglass.learning.optimizers.max_margin.gap import require_positive
from isinglass.learning.optimizers.state import Vectors
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch, MiniBatchState
from isinglass.learning.optimizers.stochastic.sgd import Sgd
from isinglass.typing import FloatArray


@register
@dataclass(frozen=True, eq=False)
class Pegasos(MiniBatch):
    """Stochastic subgradients with steps 1 / (lambda t), for losses with a squared penalty.

    Parameters
    ----------
    l2 : float or array (n,)
        The penalties that the function contains, all positive; an estimator sets them to its own.
    learning_rate : float
        A factor of the steps.
    epochs, batch_size, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`. The steps have their own schedule.

    Examples
    --------
    >>> data = np.array([1.0, 2.0, 6.0])
    >>> f = lambda rows, x: (float(np.abs(x - data[rows]).sum() + len(rows) * x @ x / 3),
    ...                      np.sign(x - data[rows]).sum(keepdims=True) + 2 * len(rows) * x / 3)
    >>> r = Pegasos(l2=1.0, epochs=300, batch_size=1, random_state=0).minimise_batches(f, 3, [0.0])
    >>> bool(abs(r.x[0] - 1) < 0.1)
    True
    """

    l2: float | ArrayLike = 0.0
    learning_rate: float = 1.0
    averaging: bool = True

    name: ClassVar[str] = "pegasos"

    def check(self, size: int) -> None:
        """Check the options."""
        super().check(size)
        require_positive(self.l2, size, self.name)

    def start(self, f: Counted, x: FloatArray) -> MiniBatchState:
        """Keep the number of examples, which lambda depends on."""
        return replace(super().start(f, x), memory=(np.full(len(x), float(f.n_examples)),))

    def newest(self, count: int) -> float:
        """Return the weight of the newest point, where weights grow as t."""
        return 2 / (count + 1)

    def fresh(self, x: FloatArray) -> Vectors:
        """Return nothing: `start` fills it."""
        return ()

    def update(self, g: FloatArray, rate: float, memory: Vectors, t: int) -> tuple[FloatArray, Vectors]:
        """Follow the negative subgradient by 1 / (lambda t)."""
        strength = 2 * float(np.min(np.asarray(self.l2, np.float64))) / float(memory[0][0])
        return -rate * g / (strength * t), memory


@register
@dataclass(frozen=True)
class AveragedPerceptron(Sgd):
    """Steps of one, one example at a time, and the mean of the points: for the loss "perceptron" and ``l2=0``.

    Parameters
    ----------
    learning_rate, epochs, batch_size, schedule, decay, averaging, burn_in, tol, random_state
        As for every minibatch optimizer; see `MiniBatch`.

    Examples
    --------
    >>> AveragedPerceptron().averaging, AveragedPerceptron().batch_size
    (True, 1)
    """

    learning_rate: float = 1.0
    batch_size: int | None = 1
    schedule: str = "constant"
    averaging: bool = True

    name: ClassVar[str] = "averaged-perceptron"
