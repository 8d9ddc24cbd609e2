"""Queries of a fitted Markov random field: missing values, and conditional distributions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from isinglass.errors import ImpossibleEvidenceError, InputError
from isinglass.estimators.field.conditional import Predictions
from isinglass.estimators.predicting import warn_of_scores
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.names import EvidenceLike, VariableLike, evidence_numbers, is_name, name_of, variable_numbers
from isinglass.inference import Exact, infer, map_assignment
from isinglass.inference import sample as draw
from isinglass.learning.markov import Copies, Samples
from isinglass.learning.markov.data import decode
from isinglass.learning.markov.frames import framed, is_frame
from isinglass.learning.training.stages import stages_of
from isinglass.losses import Likelihood
from isinglass.potentials import Potentials
from isinglass.segments import distinct_rows
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import RandomState, generator, items

AT_ONCE = 200_000  # states of variables in one inference
HOW = ("marginal", "joint", "sample")


class Queries(Predictions):
    """What can be asked of a fitted Markov random field."""

    def predict_proba(self, X: Any) -> list[FloatArray]:
        """Return the probabilities of the states of all variables, given the observed values of each sample.

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
        warn_of_scores(stages_of(self)[-1].loss)
        states = self._encoded(X)
        first, where = distinct_rows(states)
        rows = states[first]
        cards = self.model_.graph.cards
        with self._naming(states):
            found = [infer(clamped, self._algorithm()).variables.flat for clamped in self._clamped(rows)]
        flat = np.concatenate(found).reshape(len(rows), int(cards.sum()))[where]
        return [np.asarray(part, np.float64) for part in np.split(flat, np.cumsum(cards)[:-1], axis=1)]

    def impute(self, X: Any, how: str = "marginal", random_state: RandomState = None) -> Any:
        """Return samples with their missing values filled in.

        Parameters
        ----------
        X : array (samples, variables)
            As in `fit`.
        how : "marginal", "joint" or "sample"
            The most probable state of each missing value, the most probable joint state of all missing values of a
            sample, or a sample from their distribution.
        random_state : int or Generator, optional
            The seed for "sample".

        Returns
        -------
        array (samples, variables)
            States, or labels if the training data had labels. A data frame, if `X` is one.

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
            return self._decoded(np.where(states < 0, best, states), X)
        if how == "sample":
            rng = generator(random_state)
            with self._naming(states):
                drawn = [draw(one, 1, Exact(), random_state=rng)[0] for one in self._clamped(states)]
            return self._decoded(np.concatenate(drawn).reshape(states.shape), X)
        first, where = distinct_rows(states)
        rows = states[first]
        with self._naming(states):
            found = [map_assignment(clamped, "exact").states for clamped in self._clamped(rows)]
        return self._decoded(np.concatenate(found).reshape(rows.shape)[where], X)

    def _decoded(self, states: IntArray, like: Any) -> Any:
        """Return states by their labels, in a frame where samples came in one."""
        values = decode(states, self.categories_)
        return framed(values, like, self.model_.graph.names) if is_frame(like) else values

    def conditional(
        self, variables: VariableLike | Sequence[VariableLike], given: EvidenceLike | Sequence[VariableLike] = ()
    ) -> FloatArray:
        """Return the conditional distribution of some variables.

        Parameters
        ----------
        variables : int or sequence of int
            By numbers or names.
        given : mapping of int to int, or sequence of int
            States of other variables; or only the variables, for a table over all of their states.

        Returns
        -------
        array
            One axis for each variable of `variables`. If `given` lists variables without states, their axes come
            first; entries are NaN where the given states are impossible.

        Examples
        --------
        >>> import isinglass as ig
        >>> mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [2, 2]])
        >>> mrf.conditional(1, given={0: 0}), mrf.conditional([1], given=[0]).tolist()
        (array([0.75, 0.25]), [[0.75, 0.25], [0.5, 0.5]])
        """
        self._require_fitted()
        graph = self.potentials_.graph
        wanted = _numbers(graph, variables, "variables")
        if isinstance(given, Mapping):
            evidence = evidence_numbers(graph, self._states_given(given), "given")
            both = sorted(set(wanted) & set(evidence))
            if both:
                raise InputError("given", "variables other than those asked for", name_of(graph, both[0]))
            return np.asarray(infer(self.potentials_, Exact(), evidence=evidence).joint(wanted), np.float64)
        known = _numbers(graph, given, "given")
        joint = np.asarray(infer(self.potentials_, Exact()).joint([*known, *wanted]), np.float64)
        total = joint.sum(axis=tuple(range(len(known), joint.ndim)), keepdims=True)
        found: FloatArray = np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0)
        return found

    def _states_given(self, given: Any) -> Any:
        """Return evidence in which labels that `fit` numbered by itself are numbers."""
        if self.categories_ is None or self.potentials_.graph.names is not None:
            return given
        found = {}
        for key, state in given.items():
            labels = self.categories_[key] if _is_number(key) and 0 <= key < len(self.categories_) else None
            found[key] = labels.index(state) if labels is not None and state in labels else state
        return found

    @contextmanager
    def _naming(self, states: IntArray) -> Iterator[None]:
        """Say which sample is impossible, where evidence is."""
        try:
            yield
        except ImpossibleEvidenceError:
            lost = np.flatnonzero(np.isneginf(self._score_states(states)))
            if not len(lost):
                raise
            text = f"sample {lost[0]} has probability zero: its observed values, {states[lost[0]].tolist()!r:.60}, "
            raise ImpossibleEvidenceError(f"{text}meet a hard zero; score_samples is -inf for such samples") from None

    def _score_states(self, states: IntArray) -> FloatArray:
        raise NotImplementedError

    def _clamped(self, states: IntArray) -> Iterator[Potentials]:
        """Return the potentials of samples, with what each shows as evidence, some samples at a time."""
        step = max(1, AT_ONCE // max(int(self.model_.graph.cards.sum()), 1))
        for start in range(0, len(states), step):
            part = states[start : start + step]
            copies = Copies(self.model_, Samples(part, np.ones(len(part))))
            yield Likelihood().clamp(copies.potentials(self.potentials_), copies.labels)


def _numbers(graph: FactorGraph, variables: Any, argument: str) -> list[int]:
    """Return the numbers of one variable or several."""
    one = is_name(variables) or _is_number(variables)
    listed = [variables] if one else items(variables, argument, "a variable, or a list of variables")
    found: list[int] = variable_numbers(graph, listed, argument).tolist()
    return found


def _is_number(variable: object) -> bool:
    """Tell whether a variable is given by its number."""
    return isinstance(variable, int | np.integer) and not isinstance(variable, bool)
