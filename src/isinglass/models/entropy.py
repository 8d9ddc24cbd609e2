"""Entropy weights as parameters of a model, for the inference that minimises a convex free energy.

    w_i(x)  =  w_0 exp(sum_f G_if T_f(x))        T: "entropy/variables", (features, states) or (features,)
    w_a(x)  =  w_1 exp(sum_f G_af U_f(x))        U: "entropy/factors", (features, k_1, ..., k_r) or (features,)

(Domke 2009, sections 6.1 and 6.3). They are positive whatever the parameters; parameters of zero give the entropy
(w_0, w_1) to begin with. Without features, G = 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.models.checks import times
from isinglass.models.inference import InferenceModel
from isinglass.models.model import Model
from isinglass.models.symmetry import require_symmetric, symmetric_part
from isinglass.models.terms import Kind
from isinglass.typing import Array, FloatArray
from isinglass.validation import flag, instance, real_numbers

VARIABLES, FACTORS = "entropy/variables", "entropy/factors"


class EntropyModel(InferenceModel):
    """A model with further parameters: the entropy weights of variables and of factors with two or more variables.

    Parameters
    ----------
    plain : Model
        What the log-potentials come from.
    variables : float or array (states,)
    factors : float or array (k_1, ..., k_r)
        The weights at parameters of zero, positive; by default entropy A: .01 and 1.
    per : "configuration" or "clique"
        Whether weights differ between states and configurations, or are one number for a variable or factor.
    variable_features : array (variables, features), optional
    factor_features : mapping of int to array (factors, features), optional
        For groups of the graph.
    symmetric : bool, default=False
        Whether weights of pairs are symmetric in the two states, as tables may be (`SymmetricTerm`).

    Examples
    --------
    >>> import isinglass as ig
    >>> model = EntropyModel(ig.models.graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2), per="clique")
    >>> model.parameters
    {'node': (1, 2), 'edge': (2, 2), 'entropy/variables': (1,), 'entropy/factors/1': (1,)}
    >>> by_state, groups = model.weights(np.zeros(model.size))
    >>> by_state.tolist(), groups[1].ravel().tolist()
    ([0.01, 0.01, 0.01, 0.01], [1.0])
    """

    def __init__(
        self,
        plain: Model,
        variables: ArrayLike = 0.01,
        factors: ArrayLike = 1.0,
        per: Literal["configuration", "clique"] = "configuration",
        variable_features: ArrayLike | None = None,
        factor_features: Mapping[int, ArrayLike] | None = None,
        symmetric: bool = False,
    ) -> None:
        instance(plain, Model, "plain")
        require(per in ("configuration", "clique"), "per", "'configuration' or 'clique'", repr(per))
        self.graph, self.per, self.symmetric = plain.graph, per, flag(symmetric, "symmetric")
        self.base = (_positive(variables, "variables"), _positive(factors, "factors"))
        self._given = (variable_features, factor_features)
        cards = np.unique(self.graph.cards)
        if per == "configuration" and len(cards) > 1:
            raise InputError("per", "'clique' where variables differ in their states", "'configuration'")
        self._features: dict[str, FloatArray] = {}
        self._group_of: dict[str, int] = {}
        added = {VARIABLES: self._added(VARIABLES, variable_features, self.graph.n_variables, cards.tolist(), "node")}
        for g, group in enumerate(self.graph.groups):
            if group.arity >= 2:
                name = f"{FACTORS}/{g}"
                self._group_of[name] = g
                added[name] = self._added(name, (factor_features or {}).get(g), len(group), group.shape, "edge")
        self._check_base(tuple(cards.tolist()))
        self._extend(plain, added)

    def __reduce__(self) -> tuple[Any, ...]:
        return (EntropyModel, (self.plain, *self.base, self.per, *self._given, self.symmetric))

    def weights(self, theta: ArrayLike) -> tuple[FloatArray, list[FloatArray]]:
        """Return the weights of all states, flat, and for each group an array that broadcasts to its tables."""
        parts = self.split(theta)
        of_states = self.base[0] * np.exp(self._spread(parts, VARIABLES))
        cards = self.graph.cards
        by_state = of_states.ravel() if self.per == "configuration" else np.repeat(of_states, cards)
        groups: list[FloatArray] = [np.ones(1)] * len(self.graph.groups)
        for name, g in self._group_of.items():
            found = self.base[1] * np.exp(self._spread(parts, name))
            groups[g] = (
                found.reshape(found.shape[0], *((1,) * self.graph.groups[g].arity)) if found.ndim == 1 else found
            )
        return by_state, groups

    def weights_transpose(self, theta: ArrayLike, by_state: Array, groups: Sequence[Array]) -> FloatArray:
        """Carry derivatives by the weights back to theta."""
        of_states, of_groups = self.weights(theta)
        total = np.zeros(self.size)
        slope = by_state * of_states
        if self.per == "configuration":
            slope = slope.reshape(self.graph.n_variables, -1)
        else:
            slope = np.add.reduceat(slope, np.cumsum(self.graph.cards) - self.graph.cards)
        total[self._where[VARIABLES]] = self._collect(VARIABLES, slope)
        for name, g in self._group_of.items():
            slope = groups[g] * of_groups[g]
            if self.per == "clique":
                slope = slope.sum(axis=tuple(range(1, slope.ndim)))
            total[self._where[name]] = self._collect(name, slope)
        return total

    def inference_parameters(self, theta: ArrayLike) -> dict[str, FloatArray]:
        """Return the weights of all states, flat, and of the configurations of each group."""
        by_state, groups = self.weights(theta)
        return {VARIABLES: by_state, **{f"{FACTORS}/{g}": weights for g, weights in enumerate(groups)}}

    def inference_transpose(self, theta: ArrayLike, slopes: Mapping[str, Array]) -> FloatArray:
        """Carry derivatives by those back to theta."""
        groups = [slopes[f"{FACTORS}/{g}"] for g in range(len(self.graph.groups))]
        return self.weights_transpose(theta, slopes[VARIABLES], groups)

    def inference_start(self, values: Mapping[str, ArrayLike]) -> dict[str, FloatArray]:
        """Return the named parameters that give weights of "variables" and "factors"; without features."""
        return self.parameters_of(**values)

    def parameters_of(self, variables: ArrayLike, factors: ArrayLike) -> dict[str, FloatArray]:
        """Return the named parameters that give certain weights, of states and of configurations; without features."""
        logs = [
            np.log(_positive(given, argument) / base)
            for given, argument, base in zip((variables, factors), ("variables", "factors"), self.base, strict=True)
        ]
        found = {VARIABLES: logs[0], **dict.fromkeys(self._group_of, logs[1])}
        return {name: np.broadcast_to(log, self.parameters[name]).copy() for name, log in found.items()}

    def reduced(self, theta: ArrayLike) -> Array:
        """Return the parameters to keep, of all that give the same tables and weights."""
        parts = self.split(theta)
        return super().reduced(self.join(parts | {name: self._symmetric(parts[name], name) for name in self._group_of}))

    def _check_base(self, states: tuple[int, ...]) -> None:
        """Refuse tables of other shapes than those of the graph."""
        wanted = [(states,), [self.graph.groups[g].shape for g in self._group_of.values()]]
        for argument, base, shapes in zip(("variables", "factors"), self.base, wanted, strict=True):
            if base.ndim and (self.per == "clique" or any(base.shape != shape for shape in shapes)):
                expected = "a number" if self.per == "clique" else f"a number or shape {shapes[0]}"
                raise InputError(argument, expected, f"shape {base.shape}")
        if self.symmetric and self.base[1].ndim == 2:
            require_symmetric(self.base[1], "factors")

    def _added(
        self, name: str, given: ArrayLike | None, rows: int, shape: Sequence[int], kind: Kind
    ) -> tuple[tuple[int, ...], Kind]:
        """Check features, and return the shape and the kind of the parameters that they go with."""
        expected = f"finite numbers ({rows}, features)"
        features = np.ones((1, 1)) if given is None else real_numbers(given, f"features of {name!r}", expected)
        if features.ndim != 2 or (given is not None and len(features) != rows) or not np.isfinite(features).all():
            raise InputError(f"features of {name!r}", expected, f"shape {features.shape}")
        self._features[name] = features
        return (features.shape[1], *(shape if self.per == "configuration" else ())), kind

    def _spread(self, parts: Mapping[str, Array], name: str) -> FloatArray:
        """Return G T, one row for each variable or factor."""
        found = times(self._features[name], self._symmetric(parts[name], name))
        rows = self.graph.n_variables if name == VARIABLES else len(self.graph.groups[self._group_of[name]])
        return np.asarray(np.broadcast_to(found, (rows, *found.shape[1:]))) if name == VARIABLES else found

    def _collect(self, name: str, slope: Array) -> FloatArray:
        """Return G' times the slopes of rows."""
        features = self._features[name]
        if len(features) == 1 and len(slope) != 1:
            slope = slope.sum(axis=0, keepdims=True)
        return self._symmetric(times(features.T, slope), name).ravel()

    def _symmetric(self, tables: Array, name: str) -> Array:
        """Return the symmetric part of parameters of pairs, where they are to be symmetric, or of derivatives."""
        pairs = self.symmetric and self.per == "configuration" and self.kinds[name] == "edge" and tables.ndim == 3
        return symmetric_part(tables) if pairs else np.asarray(tables)


def _positive(given: ArrayLike, argument: str) -> FloatArray:
    values = real_numbers(given, argument, "positive weights").copy()
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InputError(argument, "positive weights", f"{given!r:.40}")
    return values
