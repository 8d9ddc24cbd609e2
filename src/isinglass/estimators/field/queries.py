"""Questions to a fitted Markov random field: missing values, and conditional distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.estimators.field.conditional import Predictions
from isinglass.estimators.field.data import decode
from isinglass.inference import Exact, infer, map_assignment
from isinglass.inference import sample as draw
from isinglass.learning.markov import Copies, Samples
from isinglass.losses import Likelihood
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import RandomState, distinct_rows, generator

AT_ONCE = 200_000  # states of variables in one inference
HOW = ("marginal", "joint", "sample")


class Queries(Predictions):
    """What can be asked of a fitted Markov random field."""

    def predict_proba(self, X: Any) -> list[FloatArray]:
        """Return the probabilities of the states of all variables, given what each sample shows.

        Parameters
        ----------
        X : array (samples, variables)
            As in `fit`; -1, NaN, None or masked where a value is missing.

        Returns
        -------
        list of arrays (samples, states)
            One for each variable. A value that is not missing has probability one.

        Examples
        --------
        >>> import isinglass as ig
        >>> mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [2, 2]])
        >>> mrf.predict_proba([[0, -1], [-1, -1]])[1]
        array([[0.75 , 0.25 ],
               [0.625, 0.375]])
        """
        self._require_fitted()
        rows, where = distinct_rows(self._encoded(X))
        cards = self.model_.graph.cards
        found = [infer(clamped, self._algorithm()).variables.flat for clamped in self._clamped(rows)]
        flat = np.concatenate(found).reshape(len(rows), int(cards.sum()))[where]
        return [np.asarray(part, np.float64) for part in np.split(flat, np.cumsum(cards)[:-1], axis=1)]

    def impute(self, X: Any, how: str = "marginal", random_state: RandomState = None) -> Array:
        """Return samples with their missing values filled in.

        Parameters
        ----------
        X : array (samples, variables)
            As in `fit`.
        how : "marginal", "joint" or "sample"
            The most probable state of each value by itself, the most probable states of all missing values of a sample
            together, or a draw from their distribution.
        random_state : int or Generator, optional
            For draws.

        Returns
        -------
        array (samples, variables)
            States; labels, where `fit` saw labels.

        Examples
        --------
        >>> import isinglass as ig
        >>> mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [2, 4]])
        >>> mrf.impute([[0, -1], [1, -1]]).tolist()
        [[0, 0], [1, 1]]
        """
        self._require_fitted()
        if how not in HOW:
            raise InputError("how", " or ".join(map(repr, HOW)), repr(how))
        states = self._encoded(X)
        if how == "marginal":
            best = np.stack([p.argmax(axis=1) for p in self.predict_proba(X)], axis=1)
            return decode(np.where(states < 0, best, states), self.categories_)
        if how == "sample":
            rng = generator(random_state)
            drawn = [draw(one, 1, Exact(), random_state=rng)[0] for one in self._clamped(states)]
            return decode(np.concatenate(drawn).reshape(states.shape), self.categories_)
        rows, where = distinct_rows(states)
        found = [map_assignment(clamped, "exact").states for clamped in self._clamped(rows)]
        return decode(np.concatenate(found).reshape(rows.shape)[where], self.categories_)

    def conditional(self, variables: Sequence[int] | int, given: Mapping[int, int] | Sequence[int] = ()) -> FloatArray:
        """Return the conditional distribution of some variables.

        Parameters
        ----------
        variables : int or sequence of int
        given : mapping of int to int, or sequence of int
            States of other variables; or other variables, for a table with all of their states.

        Returns
        -------
        array
            One axis for each of `given`, where these are variables, and then one for each of `variables`. It is NaN
            where states of the given variables are impossible.

        Examples
        --------
        >>> import isinglass as ig
        >>> mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [2, 2]])
        >>> mrf.conditional(1, given={0: 0}), mrf.conditional([1], given=[0]).tolist()
        (array([0.75, 0.25]), [[0.75, 0.25], [0.5, 0.5]])
        """
        self._require_fitted()
        wanted = [variables] if isinstance(variables, int | np.integer) else list(variables)
        if isinstance(given, Mapping):
            both = sorted(set(wanted) & set(given))
            if both:
                raise InputError("given", "variables that are not asked for", f"{both[0]}")
            return np.asarray(infer(self.potentials_, Exact(), evidence=given).joint(wanted), np.float64)
        known = [int(given)] if isinstance(given, int | np.integer) else list(given)
        joint = np.asarray(infer(self.potentials_, Exact()).joint([*known, *wanted]), np.float64)
        total = joint.sum(axis=tuple(range(len(known), joint.ndim)), keepdims=True)
        found: FloatArray = np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
        return found

    def _clamped(self, states: IntArray) -> Iterator[Potentials]:
        """Return the potentials of samples, with what each shows as evidence, some samples at a time."""
        step = max(1, AT_ONCE // max(int(self.model_.graph.cards.sum()), 1))
        for start in range(0, len(states), step):
            part = states[start : start + step]
            copies = Copies(self.model_, Samples(part, np.ones(len(part))))
            yield Likelihood().clamp(copies.potentials(self.potentials_), copies.labels)
