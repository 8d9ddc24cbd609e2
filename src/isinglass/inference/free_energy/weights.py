"""Entropy weights: the weight of each term b log b of a convex free energy.

With w = 1 for factors and 1 - (number of factors) for variables it is the Bethe free energy, whose stationary points
are the fixed points of belief propagation; it is convex on forests. Entropies A, B and C of Domke (2009, section 6.3)
have w = 1 for factors and .01, .1 and 1 for variables. They are convex on every graph. The larger the weight of the
variables, the further they are from the Bethe free energy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, iter_groups
from isinglass.graph.layout import belief_entries, first_states
from isinglass.graph.message_graph import edges_of
from isinglass.models.symmetry import require_symmetric
from isinglass.typing import Array, FloatArray, Mask
from isinglass.validation import real_numbers

NAMED = {"A": 0.01, "B": 0.1, "C": 1.0}
_CHOICES = "'A', 'B', 'C', 'bethe', a mapping of 'variables' and 'factors', or EntropyWeights(...)"


class WeightGradients(NamedTuple):
    """Derivatives by entropy weights: flat by variable and state, and (factors, k_1, ..., k_r) for each group."""

    variables: Array
    groups: tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class EntropyWeights:
    """Weights of the entropies of variables and of factors with two or more variables.

    Parameters
    ----------
    variables : float or array (variables,) or array (states,)
        One for all variables, one for each variable, or one for each state, flat like ``Result.variables.flat``. Any
        sign.
    factors : float, array (factors,) or sequence of arrays
        One for all factors, one for each factor, or for each group an array that broadcasts to (factors, k_1, ...,
        k_r). Positive. Those of factors with less than two variables are ignored.

    Examples
    --------
    >>> import isinglass as ig
    >>> w = EntropyWeights(variables=0.1)
    >>> [part.tolist() for part in w.on(ig.chain_graph(2, 2))][0]
    [0.1, 0.1, 0.1, 0.1]
    """

    variables: ArrayLike = NAMED["A"]
    factors: ArrayLike | Sequence[ArrayLike] = 1.0

    @classmethod
    def named(cls, name: str, graph: FactorGraph) -> EntropyWeights:
        """Return entropy "A", "B" or "C", or that of "bethe"."""
        if name == "bethe":
            return cls(1.0 - np.diff(edges_of(graph).first_edge))
        if name not in NAMED:
            raise InputError("weights", _CHOICES, repr(name))
        return cls(NAMED[name])

    def on(self, graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
        """Return the weight of every state of a variable, and of every configuration of a factor, flat."""
        return self._by_state(graph), self._by_configuration(graph)

    def _by_state(self, graph: FactorGraph) -> FloatArray:
        given, states = _numbers(self.variables, "weights.variables"), int(first_states(graph)[-1])
        if given.ndim == 0:
            return np.full(states, float(given))
        if given.shape == (graph.n_variables,):
            return np.repeat(given, graph.cards)
        if given.shape == (states,):
            return given.copy()
        expected = f"a number, {graph.n_variables} numbers (variables) or {states} (states)"
        raise InputError("weights.variables", expected, f"shape {given.shape}")

    def _by_configuration(self, graph: FactorGraph) -> FloatArray:
        flat = np.ones(belief_entries(graph))
        parts = self._groups(graph)
        for g, (group, part) in enumerate(iter_groups(graph)):
            if group.arity < 2 or not len(group):
                continue
            values = _numbers(parts[g], f"weights.factors[{g}]")
            if values.shape == (len(group),):
                values = values.reshape((-1,) + (1,) * group.arity)
            try:
                flat[part] = np.broadcast_to(values, (len(group), *group.shape)).ravel()
            except ValueError:
                expected = f"an array that broadcasts to {(len(group), *group.shape)}"
                raise InputError(f"weights.factors[{g}]", expected, f"shape {values.shape}") from None
            if not (flat[part] > 0).all():
                remedy = "to leave a factor out, give it a table of zeros"
                raise InputError("weights.factors", "positive numbers", f"{flat[part].min():g}", remedy)
        return flat

    def _groups(self, graph: FactorGraph) -> list[ArrayLike]:
        given = self.factors
        if isinstance(given, Sequence) and len(given) == len(graph.groups) and any(np.ndim(v) > 0 for v in given):
            return list(given)
        values = _numbers(given, "weights.factors")
        if values.ndim == 0:
            return [values] * len(graph.groups)
        if values.shape == (graph.n_factors,):
            return [values[group.factors] for group in graph.groups]
        expected = f"a number, one for each of {graph.n_factors} factors, or one array for each group"
        raise InputError("weights.factors", expected, f"shape {values.shape}")


@dataclass(frozen=True, eq=False)
class EntropyTable:
    """The same weights for all variables, and for all factors: of each state, and of each configuration.

    Parameters
    ----------
    variables : float or array (states,)
        Any sign.
    factors : float or array (k_1, ..., k_r)
        Positive.
    fit : bool
        Whether the weights are learned, starting from these values; see `ConvexFreeEnergy.learned`.
    symmetric : bool
        Whether pairwise tables must be symmetric, also when they are learned.

    Examples
    --------
    >>> import isinglass as ig
    >>> by_state, by_pair = EntropyTable([0.1, 0.2], [[1.0, 2.0], [3.0, 4.0]]).on(ig.chain_graph(3, 2))
    >>> by_state.tolist()
    [0.1, 0.2, 0.1, 0.2, 0.1, 0.2]
    >>> by_pair[-8:].tolist()
    [1.0, 2.0, 3.0, 4.0, 1.0, 2.0, 3.0, 4.0]
    """

    variables: ArrayLike = NAMED["A"]
    factors: ArrayLike = 1.0
    fit: bool = False
    symmetric: bool = False

    @classmethod
    def of(cls, weights: object) -> EntropyTable:
        """Return the table that a name, a mapping, or None (entropy A) stands for; "bethe" and the like have none."""
        if isinstance(weights, EntropyTable):
            return weights
        if isinstance(weights, EntropyWeights):
            weights = {"variables": weights.variables, "factors": weights.factors}
            if any(not isinstance(part, float | int) for part in weights.values()):
                raise InputError("weights", "the same for all variables and factors", "EntropyWeights of single ones")
        if weights is None or (isinstance(weights, str) and weights in NAMED):
            return cls(NAMED[weights or "A"])
        if not isinstance(weights, Mapping):
            got = repr(weights) if isinstance(weights, str) else type(weights).__name__
            raise InputError("weights", "'A', 'B', 'C' or a mapping of 'variables' and 'factors'", got)
        for name in weights:
            if name not in ("variables", "factors"):
                raise InputError("weights", "a mapping of 'variables' and 'factors'", f"{name!r:.40}")
        numbers = {name: _numbers(given, f"weights.{name}") for name, given in weights.items()}
        table = cls(numbers.get("variables", NAMED["A"]), numbers.get("factors", 1.0))
        if np.ndim(table.variables) > 1 or np.min(np.asarray(table.factors), initial=np.inf) <= 0:
            raise InputError("weights", "numbers or a vector for variables, and positive numbers for factors", "others")
        return table

    def check(self, graph: FactorGraph) -> None:
        """Refuse tables that do not fit a graph, or are not symmetric where they are to be."""
        self.on(graph)
        if self.symmetric and np.ndim(self.factors) == 2:
            require_symmetric(np.asarray(self.factors), "weights['factors']")

    def on(self, graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
        """Return the weight of every state of a variable, and of every configuration of a factor, flat."""
        states = np.asarray(self.variables, np.float64)
        if states.ndim == 1:
            if (graph.cards != len(states)).any():
                raise InputError("weights.variables", f"weights of {graph.cards.max()} states", f"{len(states)}")
            states = np.tile(states, graph.n_variables)
        tables = np.asarray(self.factors, np.float64)
        for group in graph.groups:
            if tables.ndim and group.arity > 1 and tables.shape != group.shape:
                raise InputError("weights.factors", f"a number or shape {group.shape}", f"shape {tables.shape}")
        groups = [tables[None] if tables.ndim else tables.reshape(1)] * len(graph.groups)
        return EntropyWeights(states, groups).on(graph)


def resolved(weights: object, graph: FactorGraph) -> tuple[FloatArray, FloatArray]:
    """Return the weights that a name, a mapping, an object or None (entropy A) stands for."""
    if isinstance(weights, str):
        weights = EntropyWeights.named(weights, graph)
    elif weights is None or isinstance(weights, Mapping):
        weights = EntropyTable.of(weights)
    if not isinstance(weights, EntropyWeights | EntropyTable):
        raise InputError("weights", _CHOICES, type(weights).__name__)
    return weights.on(graph)


def covers(graph: FactorGraph, by_state: FloatArray, by_configuration: FloatArray) -> Mask:
    """Return for which components the entropy is at least the true one, so that log Z is an upper bound.

    It is if no weight is negative and the weights of the variable and its factors add up to one or more, for every
    variable: by Shearer's inequality a weighted sum of entropies that covers each variable with total weight one is an
    upper bound on the joint entropy.
    """
    least = np.minimum.reduceat(by_state, first_states(graph)[:-1]) if len(by_state) else np.zeros(0)
    fine, around = least >= 0, least.copy()
    for group, part in iter_groups(graph):
        if group.arity >= 2 and len(group):
            of_factor = by_configuration[part].reshape(len(group), -1).min(axis=1)
            for slot in range(group.arity):
                np.add.at(around, group.scopes[:, slot], of_factor)
    fine &= (around >= 1) | (graph.cards == 1)
    result = np.ones(graph.n_components, bool)
    result[graph.variable_component[~fine]] = False
    return result


def _numbers(given: object, argument: str) -> FloatArray:
    values = real_numbers(given, argument, "numbers")
    if not np.isfinite(values).all():
        raise InputError(argument, "finite numbers", "inf or nan")
    return values
