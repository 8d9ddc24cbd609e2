"""Hopfield networks: an Ising model on all pairs, as an associative memory.

    E(s) = - 1/2 sum_ij W_ij s_i s_j,        s_i in {-1, +1},        W symmetric, W_ii = 0

Patterns xi_1, ..., xi_P of N spins are stored by

    Hebb                W = 1/N sum_p xi_p xi_p'                              (Hopfield 1982)
    pseudo-inverse      W = X (X'X)^+ X',   X = (xi_1, ..., xi_P)             (Personnaz, Guyon and Dreyfus 1985)
    pseudolikelihood    W = argmax  sum_p sum_i log p(xi_pi | the other spins of xi_p) - l2 sum_{i<j} W_ij²

with the diagonal set to zero. With the second rule every pattern is a fixed point while P_ii < 1 for the projection P,
however alike the patterns are; with the first only if they are nearly orthogonal, and fewer than about .14 N. The third
is learning by approximate maximum likelihood, log p(xi_i | rest) = - log(1 + exp(-2 xi_i sum_j W_ij xi_j)), which also
raises the energy of what is no pattern (Hillar, Sohl-Dickstein and Koepsell 2012).

Recall is iterated conditional modes (ICM): one spin after the other is set to the sign of its field sum_j W_ij s_j, so
that the energy never rises, until no spin changes. (Murphy 2012, section 19.4.2.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.builders import complete_graph
from isinglass.models.spins.ising import Ising
from isinglass.potentials import Potentials
from isinglass.runtime.blas import one_blas_thread
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import array_of, positive, real_numbers, whole_number

Storage = Literal["hebb", "pseudo-inverse", "pseudolikelihood"]
STORAGES: tuple[Storage, ...] = ("hebb", "pseudo-inverse", "pseudolikelihood")
DEPENDENT = 1e-10  # singular values of patterns below this share of the largest are zero but for rounding
ROUNDING = 1e-12  # a field below this, relative to the largest weight times N, changes no spin


@dataclass(frozen=True, eq=False)
class Recall:
    """What a network made of a start.

    Attributes
    ----------
    states : int array (variables,)
        0 or 1.
    energies : array (sweeps + 1,)
        The energy at the start and after each sweep; it never rises.
    converged : bool
        Whether no spin changed in the last sweep.
    """

    states: IntArray
    energies: FloatArray
    converged: bool


class Hopfield:
    """An associative memory of binary patterns.

    Parameters
    ----------
    weights : array (variables, variables)
        Symmetric; the diagonal must be zero.

    Examples
    --------
    >>> patterns = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 1, 0]])
    >>> memory = Hopfield.store(patterns)
    >>> found = memory.recall([1, 1, 1, 0, 0, 0, 0, 0])
    >>> found.states.tolist(), found.converged
    ([1, 1, 1, 1, 0, 0, 0, 0], True)
    >>> found.energies.round(2).tolist()
    [-1.5, -3.0, -3.0]
    """

    def __init__(self, weights: ArrayLike) -> None:
        found = real_numbers(weights, "weights", "a symmetric matrix of finite numbers")
        square = found.ndim == 2 and found.shape[0] == found.shape[1]
        if not square or not np.array_equal(found, found.T) or np.diagonal(found).any():
            raise InputError("weights", "a symmetric matrix with a diagonal of zeros", f"shape {found.shape}")
        self.weights: FloatArray = found

    @classmethod
    def store(cls, patterns: ArrayLike, storage: Storage = "hebb", l2: float = 0.1) -> Hopfield:
        """Store patterns, an array (patterns, variables) of 0 and 1.

        Parameters
        ----------
        patterns : array
        storage : {"hebb", "pseudo-inverse", "pseudolikelihood"}
        l2 : float
            Of the pseudolikelihood: the weight of the squared weights, against the sum over patterns.
        """
        spins = _spins(patterns, 2, "patterns")
        if storage not in STORAGES:
            raise InputError("storage", " or ".join(map(repr, STORAGES)), repr(storage))
        if storage == "hebb":
            weights = spins.T @ spins / spins.shape[1]
        elif storage == "pseudo-inverse":
            weights = np.linalg.pinv(spins, rcond=DEPENDENT) @ spins
        else:
            weights = _most_likely(spins, positive(l2, "l2"))
        weights = (weights + weights.T) / 2
        np.fill_diagonal(weights, 0.0)
        return cls(weights)

    @property
    def n_variables(self) -> int:
        """Number of spins."""
        return len(self.weights)

    def energy(self, states: ArrayLike) -> FloatArray:
        """Return the energy of assignments (..., variables) of 0 and 1."""
        spins = self._known(states, None)
        return np.asarray(-0.5 * np.einsum("...i,ij,...j->...", spins, self.weights, spins, optimize=True))

    def recall(self, states: ArrayLike, clamped: ArrayLike | None = None, max_sweeps: int = 100) -> Recall:
        """Set spin after spin to the sign of its field, until none changes.

        Parameters
        ----------
        states : array (variables,)
            The start, 0 or 1.
        clamped : Boolean array (variables,), optional
            Spins that keep their states: what is seen of a pattern.
        max_sweeps : int
        """
        spins = self._known(states, 1)
        held = np.zeros(len(spins), bool) if clamped is None else self._mask(clamped)
        limit = whole_number(max_sweeps, "max_sweeps", 1)
        fields, free = self.weights @ spins, np.flatnonzero(~held)
        tiny = ROUNDING * len(spins) * float(np.abs(self.weights).max(initial=0.0))
        energies, changed = [-0.5 * float(spins @ fields)], True
        while changed and len(energies) <= limit:
            changed = False
            for i in free:
                if fields[i] * spins[i] < -tiny:
                    spins[i] = -spins[i]
                    fields += 2 * spins[i] * self.weights[i]
                    changed = True
            energies.append(-0.5 * float(spins @ (self.weights @ spins)))
        return Recall((spins > 0).astype(np.int64), np.array(energies), not changed)

    def potentials(self, temperature: float = 1.0) -> Potentials:
        """Return the Ising model exp(-E / temperature) on all pairs, for any inference."""
        if not temperature > 0:
            raise InputError("temperature", "a number above zero", repr(temperature))
        graph = complete_graph(self.n_variables, 2)
        pairs = np.concatenate([np.zeros((0, 2), np.int64), *(g.scopes for g in graph.groups if g.arity == 2)])
        return Ising(graph).potentials(coupling=self.weights[pairs[:, 0], pairs[:, 1]] / temperature)

    def __repr__(self) -> str:
        return f"Hopfield: {self.n_variables} variables"

    def _known(self, states: ArrayLike, ndim: int | None) -> FloatArray:
        spins = _spins(states, ndim, "states")
        if spins.shape[-1:] != (self.n_variables,):
            raise InputError("states", f"{self.n_variables} states, 0 or 1", f"shape {spins.shape}")
        return spins

    def _mask(self, clamped: ArrayLike) -> Mask:
        mask = array_of(clamped, "clamped", "True or False for each variable")
        if mask.dtype != bool or mask.shape != (self.n_variables,):
            got = f"{mask.dtype} of shape {mask.shape}"
            raise InputError("clamped", f"{self.n_variables} times True or False", got)
        return mask


def _most_likely(spins: FloatArray, l2: float) -> FloatArray:
    """Maximise the pseudolikelihood of patterns (patterns, variables) by L-BFGS; it is concave."""
    from scipy.optimize import minimize
    from scipy.special import expit

    n = spins.shape[1]
    above = np.triu_indices(n, 1)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        weights = np.zeros((n, n))
        weights[above] = flat
        margin = 2 * spins * (spins @ (weights + weights.T))
        slope = -2 * (expit(-margin) * spins).T @ spins
        value = np.logaddexp(0.0, -margin).sum() + l2 * (flat**2).sum()
        return float(value), (slope + slope.T)[above] + 2 * l2 * flat

    with one_blas_thread():  # products are small, and threads would wait for each other
        found = minimize(objective, np.zeros(len(above[0])), jac=True, method="L-BFGS-B", options={"maxiter": 1000})
    weights = np.zeros((n, n))
    weights[above] = found.x
    return np.asarray(weights + weights.T)


def _spins(states: ArrayLike, ndim: int | None, argument: str) -> FloatArray:
    """Turn 0 and 1 into spins."""
    array = array_of(states, argument, "states 0 and 1")
    if (ndim is not None and array.ndim != ndim) or not array.size or not np.isin(array, (0, 1)).all():
        shape = "" if ndim is None else f" of {ndim} dimension{'s' * (ndim > 1)}"
        raise InputError(argument, f"an array{shape} of 0 and 1", f"shape {array.shape}")
    return 2.0 * array.astype(np.float64) - 1.0
