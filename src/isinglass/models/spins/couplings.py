"""What the Ising and the Potts model share: fields at variables, and one coupling for each pair.

    log p(x) = sum_ij J_ij c(x_i, x_j) + sum_i h_i(x_i) - log Z

with a fixed pattern c: the product of spins, or whether the states are equal. The parameters are J and h, so that such
a model has one parameter for a pair where tables have four or more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, describe
from isinglass.models.checks import NUMBERS
from isinglass.models.model import Model
from isinglass.models.terms import Term
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import LARGEST_LOG, array_of, instance


class PatternTerm(Term):
    """One parameter for each table, times a fixed pattern: phi_t(x) = W_t c(x).

    Parameters
    ----------
    name : str
    pattern : array
        Its shape is that of the tables.
    n_tables : int, optional
        Without it there is one, and the parameter is a single number.
    table_ids : int array (factors,), optional

    Examples
    --------
    >>> PatternTerm("coupling", np.eye(2), 2).tables(np.array([0.5, 2.0])).tolist()
    [[[0.5, 0.0], [0.0, 0.5]], [[2.0, 0.0], [0.0, 2.0]]]
    """

    def __init__(
        self, name: str, pattern: ArrayLike, n_tables: int | None = None, table_ids: ArrayLike | None = None
    ) -> None:
        self.pattern = np.asarray(pattern, np.float64)
        shape = () if n_tables is None else (n_tables,)
        super().__init__(name, shape, self.pattern.shape, 1 if n_tables is None else n_tables, table_ids)

    def tables(self, weights: Array) -> Array:
        """Multiply the pattern."""
        return np.multiply.outer(weights, self.pattern).reshape(self.tables_shape)

    def transpose(self, bars: Array) -> Array:
        """Add up derivatives by the pattern."""
        return np.asarray((bars * self.pattern).reshape(self.n_tables, -1).sum(axis=1).reshape(self.shape))


class ModelFamily(ABC):
    """What stands for a log-linear model on a graph: `MRF` fits it."""

    graph: FactorGraph

    @abstractmethod
    def model(self, tied: bool = False) -> Model:
        """Return the model whose parameters are learned; `tied`: the same ones everywhere in the graph."""


class CouplingModel(ModelFamily):
    """Base class of models with fields and couplings on a graph of variables with equally many states."""

    pattern: FloatArray  # (states, states)

    def __init__(self, graph: FactorGraph, n_states: int) -> None:
        instance(graph, FactorGraph, "graph")
        fitting = ((n_states,), (n_states, n_states))
        other = [group.shape for group in graph.groups if len(group) and group.shape not in fitting]
        if other:
            what = "binary variables" if n_states == 2 else f"variables of {n_states} states"
            raise InputError("graph", f"{what} and factors of one or two", f"a table of shape {other[0]}")
        self.graph = graph

    @abstractmethod
    def field_term(self, n: int | None, table_ids: IntArray) -> Term:
        """Return the term of the fields of `n` variables (None: one for all)."""

    def model(self, tied: bool = False) -> Model:
        """Return the model with the parameters "field" and "coupling", for `MRF`.

        Parameters
        ----------
        tied : bool
            Whether all variables share one field, and all pairs one coupling.

        Returns
        -------
        Model
            "field" has one entry for each variable that has a factor of its own, "coupling" one for each pair, in
            factor order.
        """
        owner = self._owners()
        listed, pairs = np.flatnonzero(owner >= 0), self.pairs
        place = np.full(self.graph.n_factors, -1)
        place[owner[listed]] = 0 if tied else np.arange(len(listed))
        place[pairs] = 0 if tied else np.arange(len(pairs))
        terms: list[list[Term]] = []
        for group in self.graph.groups:
            ids = place[group.factors]
            if group.arity == 2:
                terms.append([PatternTerm("coupling", self.pattern, None if tied else len(pairs), ids)])
            else:
                terms.append([self.field_term(None if tied else len(listed), ids)])
        return Model(self.graph, terms)

    @property
    def pairs(self) -> IntArray:
        """The factors of two variables, in their order."""
        found = [np.zeros(0, np.int64), *(g.factors for g in self.graph.groups if g.arity == 2)]
        return np.sort(np.concatenate(found))

    def _potentials(self, coupling: ArrayLike, fields: FloatArray) -> Potentials:
        """Return log-potentials, given the field tables of all factors (factors, states); one coupling is shared."""
        strengths, order = numbers(coupling, len(self.pairs), "coupling", "pairs"), self.pairs
        groups, ids = [], []
        for group in self.graph.groups:
            if group.arity == 2:
                values = strengths if strengths.ndim == 0 else strengths[np.searchsorted(order, group.factors)]
                tables = np.multiply.outer(values, self.pattern).reshape(-1, *self.pattern.shape)
            else:
                tables = fields[group.factors]
            groups.append(tables)
            ids.append(np.zeros(len(group), np.int64) if len(tables) == 1 else np.arange(len(group)))
        return Potentials._build(self.graph, groups, ids, {})

    def _owners(self) -> IntArray:
        """Return the first factor of one variable at each variable, -1 for none."""
        graph = self.graph
        factors = np.concatenate([np.zeros(0, np.int64), *(g.factors for g in graph.groups if g.arity == 1)])
        variables = np.concatenate([np.zeros(0, np.int64), *(g.scopes[:, 0] for g in graph.groups if g.arity == 1)])
        by_number = np.argsort(factors)
        have, first = np.unique(variables[by_number], return_index=True)
        owner = np.full(graph.n_variables, -1)
        owner[have] = factors[by_number][first]
        return owner

    def _fields(self, tables: FloatArray) -> FloatArray:
        """Return the field tables of all factors, given those of the variables (variables, states)."""
        owner = self._owners()
        missing = np.flatnonzero(tables.any(axis=1) & (owner < 0))
        if len(missing):
            got = f"one at variable {missing[0]}, which has none"
            raise InputError("field", "fields only at variables that have a factor of their own", got)
        out = np.zeros((self.graph.n_factors, tables.shape[1]))
        out[owner[owner >= 0]] = tables[owner >= 0]
        return out

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {describe(self.graph)}"


def moderate(values: ArrayLike, argument: str) -> FloatArray:
    """Check that numbers are finite, and that their sums are."""
    array = array_of(values, argument, NUMBERS)
    if array.dtype.kind not in "biuf" or not np.isfinite(array).all():
        raise InputError(argument, NUMBERS, f"{values!r:.60}")
    if (np.abs(array) > LARGEST_LOG).any():
        raise InputError(argument, f"numbers up to {LARGEST_LOG:g}, whose sums are finite", f"{values!r:.60}")
    return array.astype(np.float64)


def numbers(values: ArrayLike, count: int, argument: str, what: str) -> FloatArray:
    """Check one number, or `count` numbers."""
    array = moderate(values, argument)
    if array.ndim and array.size != count:
        raise InputError(argument, f"one number, or one for each of {count} {what}", f"shape {array.shape}")
    return array.ravel() if array.ndim else array
