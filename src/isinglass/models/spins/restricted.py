"""Restricted Boltzmann machines: weights between visible and hidden units only (Smolensky 1986; Hinton 2002).

    log p(v, h) = a'v + b'h + v'W h - log Z,        v_i, h_j in {0, 1}

Given one layer, the units of the other are independent, with s(x) = 1 / (1 + exp(-x)):

    p(h_j = 1 | v) = s(b_j + (v'W)_j),        p(v_i = 1 | h) = s(a_i + (W h)_i)

so that the hidden units can be summed out. With the free energy

    F(v) = - a'v - sum_j log(1 + exp(b_j + (v'W)_j)),        p(v) = exp(-F(v)) / Z

the gradient of log p(v) by W is v E[h | v]' minus its mean under the model, and likewise for a and b. The
pseudolikelihood of v is the sum over i of log s(F(v with v_i flipped) - F(v)).

Products are those of `isinglass.models.products`: a row has the same bits whatever other rows there are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.models.checks import dense
from isinglass.models.products import times
from isinglass.models.spins.boltzmann import BoltzmannMachine
from isinglass.models.spins.couplings import numbers
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray

MOST_UNITS = 20  # of the smaller layer, for an exact log Z
AT_ONCE = 2**22  # numbers of one piece of work


class RestrictedBoltzmannMachine:
    """Visible and hidden binary units, and a weight for each pair of one and the other; `ig.RBM` learns one.

    Parameters
    ----------
    weights : array (visible, hidden)
    visible_bias : float or array (visible,)
    hidden_bias : float or array (hidden,)

    Examples
    --------
    >>> machine = RestrictedBoltzmannMachine([[1.0], [-1.0]], hidden_bias=0.5)
    >>> machine.hidden_probabilities([[1, 0]]).round(3).tolist()
    [[0.818]]
    >>> import isinglass as ig
    >>> bool(abs(machine.log_z() - ig.infer(machine.potentials()).log_z) < 1e-12)
    True
    """

    def __init__(self, weights: ArrayLike, visible_bias: ArrayLike = 0.0, hidden_bias: ArrayLike = 0.0) -> None:
        self.weights: FloatArray = np.ascontiguousarray(dense(weights, "weights", "visible, hidden"))
        visible, hidden = self.weights.shape
        if not visible:
            raise InputError("weights", "at least one visible unit", f"shape {self.weights.shape}")
        first = numbers(visible_bias, visible, "visible_bias", "units")
        second = numbers(hidden_bias, hidden, "hidden_bias", "units")
        self.visible_bias: FloatArray = np.array(np.broadcast_to(first, visible))
        self.hidden_bias: FloatArray = np.array(np.broadcast_to(second, hidden))
        self.transposed: FloatArray = np.ascontiguousarray(self.weights.T)

    @property
    def n_visible(self) -> int:
        """Number of visible units."""
        return len(self.visible_bias)

    @property
    def n_hidden(self) -> int:
        """Number of hidden units."""
        return len(self.hidden_bias)

    def hidden_log_odds(self, visible: FloatArray) -> FloatArray:
        """Return b + v'W of rows (n, visible), unchecked."""
        return np.asarray(times(visible, self.weights) + self.hidden_bias)

    def visible_log_odds(self, hidden: FloatArray) -> FloatArray:
        """Return a + W h of rows (n, hidden), unchecked."""
        return np.asarray(times(hidden, self.transposed) + self.visible_bias)

    def hidden_probabilities(self, visible: ArrayLike) -> FloatArray:
        """Return p(h_j = 1 | v), shape (n, hidden)."""
        from scipy.special import expit

        return np.asarray(expit(self.hidden_log_odds(units(visible, self.n_visible, "visible"))))

    def visible_probabilities(self, hidden: ArrayLike) -> FloatArray:
        """Return p(v_i = 1 | h), shape (n, visible)."""
        from scipy.special import expit

        return np.asarray(expit(self.visible_log_odds(units(hidden, self.n_hidden, "hidden"))))

    def free_energy(self, visible: ArrayLike) -> FloatArray:
        """Return F(v), shape (n,): minus log p(v), but for log Z."""
        v = units(visible, self.n_visible, "visible")
        softened = np.logaddexp(0.0, self.hidden_log_odds(v)).sum(axis=1)
        return np.asarray(-times(v, self.visible_bias[:, None])[:, 0] - softened)

    def pseudolikelihood(self, visible: ArrayLike) -> FloatArray:
        """Return the sum over visible units of log p(v_i | all others), shape (n,)."""
        v = units(visible, self.n_visible, "visible")
        step = max(1, AT_ONCE // max(1, self.weights.size))
        parts = [self._pseudo(v[k : k + step]) for k in range(0, len(v), step)]
        return np.concatenate([np.zeros(0), *parts])

    def _pseudo(self, v: FloatArray) -> FloatArray:
        """Compare the free energy of rows with that after each change of one unit."""
        log_odds, change = self.hidden_log_odds(v), 1.0 - 2.0 * v
        softened = np.logaddexp(0.0, log_odds).sum(axis=1)
        flipped = log_odds[:, None, :] + change[:, :, None] * self.weights
        gain = change * self.visible_bias + np.logaddexp(0.0, flipped).sum(axis=2) - softened[:, None]
        return np.asarray(-np.logaddexp(0.0, gain).sum(axis=1))

    def log_z(self) -> float:
        """Return log Z exactly, by the states of the smaller layer, which has at most 20 units."""
        turned = self.n_hidden < self.n_visible
        layer = self.n_hidden if turned else self.n_visible
        if layer > MOST_UNITS:
            got, remedy = f"{self.n_visible} and {self.n_hidden}", "annealing estimates log Z: ig.RBM.log_z"
            raise InputError("weights", f"a layer of at most {MOST_UNITS} units", got, remedy)
        weights = self.transposed if turned else self.weights
        own, other = (self.hidden_bias, self.visible_bias) if turned else (self.visible_bias, self.hidden_bias)
        total, step = -np.inf, max(1, AT_ONCE // (max(weights.shape) + 1))
        for first in range(0, 2**layer, step):
            number = np.arange(first, min(first + step, 2**layer))
            states = (number[:, None] >> np.arange(layer) & 1).astype(np.float64)
            softened = np.logaddexp(0.0, times(states, weights) + other).sum(axis=1)
            scores = times(states, own[:, None])[:, 0] + softened
            total = np.logaddexp(total, np.logaddexp.reduce(scores))
        return float(total)

    def potentials(self) -> Potentials:
        """Return the model of all units, visible ones first, for any inference."""
        machine = BoltzmannMachine(self.n_visible, self.n_hidden, "restricted")
        return machine.potentials(self.weights.ravel(), np.concatenate([self.visible_bias, self.hidden_bias]))

    def __repr__(self) -> str:
        return f"RestrictedBoltzmannMachine: {self.n_visible} visible and {self.n_hidden} hidden units"


def units(values: ArrayLike, count: int, argument: str) -> FloatArray:
    """Check rows of a layer: states 0 and 1, or numbers between them that stand for probabilities."""
    found = dense(values, argument, "samples, units")
    if found.shape[1] != count:
        raise InputError(argument, f"an array (samples, {count})", f"shape {found.shape}")
    if found.size and not (found.min() >= 0 and found.max() <= 1):
        bad = found.min() if found.min() < 0 else found.max()
        raise InputError(argument, "numbers between 0 and 1", f"{bad:g}", "scale them, or compare with a threshold")
    return np.ascontiguousarray(found)
