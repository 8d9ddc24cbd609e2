"""Terms of log-linear models: the tables of one group of factors as a linear function of one array of parameters.

A term with parameters W gives table t of its group, for the states x of the factor's variables,

    node, edge, clique    phi_t(x) = sum_j F_tj W_j(x)          F: features, one row for each table
    shared                phi_t(x) = W_t(x)                     the parameters are the tables
    indicator             phi_t(x) = sum_j A_(t,x),j W_j        A: features of table and states together, sparse
    callable              phi = L(W)                            L: any linear map, given with its transpose

and `transpose` is the adjoint map: for derivatives bars = dL/dphi it returns dL/dW, e.g. dL/dW_j(x) = sum_t F_tj
dL/dphi_t(x) for features. No conjugate is taken, so that complex steps pass through. (Lafferty, McCallum and Pereira
2001; Domke 2013.)

`table_ids` says which table of the term each factor of the group uses; -1: the term says nothing about that factor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from math import prod
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.models.checks import Features, Matrix, cards_of, matrix, stacked, times
from isinglass.typing import Array, IntArray
from isinglass.validation import integers, read_only, whole_number

Kind = Literal["node", "edge", "clique"]
Map = Callable[[Array], ArrayLike]


class Term(ABC):
    """One array of parameters and the tables that it gives.

    To make your own, derive from it and write `tables` and `transpose`; `check` compares them.

    Parameters
    ----------
    name : str
        Of the parameters. Terms of one model that have the same name share them.
    shape : tuple of int
        Of the array of parameters.
    cards : tuple of int
        The shape of a table: the numbers of states of a factor's variables.
    n_tables : int
    table_ids : int array (factors,), optional
        The table that each factor of the group uses, -1 for none. Without it: as many tables as factors, in their
        order, or one for all.

    Attributes
    ----------
    kind : "node", "edge" or "clique"
        By the number of variables: one, two, or any other.
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        cards: Sequence[int],
        n_tables: int,
        table_ids: ArrayLike | None = None,
    ) -> None:
        require(isinstance(name, str) and name, "name", "a name for the parameters, such as 'node'", repr(name))
        self.name = name
        self.shape = tuple(whole_number(s, "shape") for s in shape)
        self.cards = cards_of(cards)
        self.n_tables = whole_number(n_tables, "n_tables")
        self.table_ids = None if table_ids is None else _ids(table_ids, self.n_tables)

    @abstractmethod
    def tables(self, weights: Array) -> Array:
        """Return the tables ``(n_tables, *cards)`` for parameters of this term's `shape`, real or complex."""

    @abstractmethod
    def transpose(self, bars: Array) -> Array:
        """Return derivatives by the parameters, given those by the tables ``(n_tables, *cards)``."""

    def reduced(self, weights: Array) -> Array:
        """Return the canonical parameters among all that give the same tables: by default the given ones."""
        return weights

    def check(self) -> None:
        """Compare the two maps at random w and bars: <bars, tables(w) - tables(0)> = <transpose(bars), w>.

        A constant in the tables is allowed, hard zeros too. Raises InputError if they differ.
        """
        draw = np.random.default_rng(0).standard_normal
        weights, bars = np.asarray(draw(self.shape)), draw(self.tables_shape)
        constant, moved = self.tables(np.zeros(self.shape)), self.tables(weights)
        free = np.isfinite(constant)
        bars = np.where(free, bars, 0.0)
        change = np.where(free, moved, 0.0) - np.where(free, constant, 0.0)
        forward, back = (bars * change).ravel(), np.ravel(self.transpose(bars) * weights)
        if not abs(forward.sum() - back.sum()) <= 1e-8 * (np.abs(forward).sum() + np.abs(back).sum()):
            expected = "the transpose of tables: <bars, tables(w) - tables(0)> = <transpose(bars), w>"
            got = f"{forward.sum():.6g} and {back.sum():.6g}"
            raise InputError("transpose", expected, got, "tables must be linear, but for a constant")

    @property
    def holds_tables(self) -> bool:
        """Whether the parameters are the tables of the factors themselves, in their order."""
        return False

    @property
    def kind(self) -> Kind:
        """What the parameters belong to: nodes, edges, or cliques of another size."""
        return "node" if len(self.cards) == 1 else "edge" if len(self.cards) == 2 else "clique"

    @property
    def tables_shape(self) -> tuple[int, ...]:
        """The shape ``(n_tables, *cards)`` of all tables."""
        return (self.n_tables, *self.cards)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"{type(self).__name__}({self.name!r}, parameters {size}, {self.n_tables} tables {self.cards})"


class CliqueTerm(Term):
    """Features times parameters, for factors of any arity: one row of features for each table.

    Parameters
    ----------
    name : str
    features : array (tables, features), dense or scipy.sparse
    cards : sequence of int
    table_ids : int array (factors,), optional

    Examples
    --------
    Two triples of binary variables, with one feature:

    >>> term = CliqueTerm("triple", [[1.0], [3.0]], (2, 2, 2))
    >>> term.shape, term.kind
    ((1, 2, 2, 2), 'clique')
    >>> term.tables(np.ones(term.shape))[:, 0, 0, 0].tolist()
    [1.0, 3.0]
    """

    def __init__(self, name: str, features: Features, cards: Sequence[int], table_ids: ArrayLike | None = None) -> None:
        self._set(name, stacked([matrix(features, "features")], "features"), cards_of(cards), table_ids)

    @classmethod
    def _build(cls, name: str, features: Matrix, cards: tuple[int, ...], table_ids: IntArray | None = None) -> Self:
        """Wrap features that are known to be valid, and not shared."""
        term = cls.__new__(cls)
        term._set(name, features, cards, table_ids)
        return term

    def _set(self, name: str, features: Matrix, cards: tuple[int, ...], table_ids: ArrayLike | None) -> None:
        self.features = features
        Term.__init__(self, name, (features.shape[1], *cards), cards, features.shape[0], table_ids)

    def tables(self, weights: Array) -> Array:
        """Multiply features and parameters."""
        return times(self.features, weights)

    def transpose(self, bars: Array) -> Array:
        """Multiply transposed features and derivatives."""
        return times(self.features.T, bars)


class NodeTerm(CliqueTerm):
    """Features of nodes times parameters (features, states).

    Parameters
    ----------
    name : str
    features : array (nodes, features), dense or scipy.sparse
    n_states : int
    table_ids : int array (factors,), optional

    Examples
    --------
    >>> term = NodeTerm("node", [[1.0, 2.0], [0.0, 1.0]], n_states=2)
    >>> term.tables(np.array([[0.0, 1.0], [0.0, 10.0]])).tolist()
    [[0.0, 21.0], [0.0, 10.0]]
    """

    def __init__(self, name: str, features: Features, n_states: int, table_ids: ArrayLike | None = None) -> None:
        super().__init__(name, features, cards_of([n_states], "n_states"), table_ids)


class EdgeTerm(CliqueTerm):
    """Features of edges times parameters (features, states of the first end, states of the second).

    Parameters
    ----------
    name : str
    features : array (edges, features), dense or scipy.sparse
    n_states : int or pair of int
        A pair where the two ends differ.
    table_ids : int array (factors,), optional

    Examples
    --------
    >>> term = EdgeTerm("edge", [[0.5], [2.0]], n_states=2)
    >>> term.tables(np.eye(2)[None])[1].tolist()
    [[2.0, 0.0], [0.0, 2.0]]
    """

    def __init__(
        self, name: str, features: Features, n_states: int | tuple[int, int], table_ids: ArrayLike | None = None
    ) -> None:
        cards = cards_of(n_states if isinstance(n_states, tuple) else [n_states] * 2, "n_states")
        require(len(cards) == 2, "n_states", "one number, or a pair", repr(n_states))
        super().__init__(name, features, cards, table_ids)


class SharedTerm(Term):
    """Parameters that are the tables themselves, shared by all factors with the same number in `table_ids`.

    Parameters
    ----------
    name : str
    cards : sequence of int
    n_tables : int, optional
        Without it there is one, and the parameters have the shape `cards`; else ``(n_tables, *cards)``.
    table_ids : int array (factors,), optional

    Examples
    --------
    >>> SharedTerm("edge", (2, 2)).shape, SharedTerm("edge", (2, 2), n_tables=3).shape
    ((2, 2), (3, 2, 2))
    """

    def __init__(
        self, name: str, cards: Sequence[int], n_tables: int | None = None, table_ids: ArrayLike | None = None
    ) -> None:
        cards = cards_of(cards)
        shape = cards if n_tables is None else (n_tables, *cards)
        super().__init__(name, shape, cards, 1 if n_tables is None else n_tables, table_ids)

    @property
    def holds_tables(self) -> bool:
        """Whether each factor has the table of its own number."""
        ids = self.table_ids
        return self.shape == self.tables_shape and (ids is None or np.array_equal(ids, np.arange(self.n_tables)))

    def tables(self, weights: Array) -> Array:
        """Return the parameters."""
        return weights.reshape(self.tables_shape)

    def transpose(self, bars: Array) -> Array:
        """Return the derivatives."""
        return bars.reshape(self.shape)


class IndicatorTerm(Term):
    """One parameter for each feature of table and states together, such as "the word is 'the' and the tag is DT".

    Parameters
    ----------
    name : str
    features : scipy.sparse array (tables * entries, parameters)
        The row of table t and states x is the place of that entry in the tables, C order:
        ``t * prod(cards) + ravel_multi_index(x, cards)``.
    cards : sequence of int
    table_ids : int array (factors,), optional

    Examples
    --------
    A Potts model: one parameter, added where two binary neighbours agree.

    >>> from scipy.sparse import csr_array
    >>> potts = IndicatorTerm("agree", csr_array([[1], [0], [0], [1]]), (2, 2))
    >>> potts.tables(np.array([0.7])).tolist()
    [[[0.7, 0.0], [0.0, 0.7]]]
    """

    def __init__(self, name: str, features: Features, cards: Sequence[int], table_ids: ArrayLike | None = None) -> None:
        self.features = stacked([matrix(features, "features", "tables * entries, parameters")], "features")
        cards, (rows, columns) = cards_of(cards), self.features.shape
        if rows % prod(cards):
            expected = f"{prod(cards)} rows for each table of shape {cards}"
            raise InputError("features", expected, f"{rows} rows, which is no multiple")
        super().__init__(name, (columns,), cards, rows // prod(cards), table_ids)

    def tables(self, weights: Array) -> Array:
        """Multiply features and parameters."""
        return times(self.features, weights).reshape(self.tables_shape)

    def transpose(self, bars: Array) -> Array:
        """Multiply transposed features and derivatives."""
        return times(self.features.T, bars.reshape(self.features.shape[0]))


class CallableTerm(Term):
    """Tables by a function of your own, linear in the parameters up to a constant, given with its transpose.

    The two are checked against each other, by a dot product, when the term is made.

    Parameters
    ----------
    name : str
    shape : tuple of int
        Of the parameters; () for one number, (0,) for constants such as hard zeros.
    cards : sequence of int
    n_tables : int
    function : callable
        From parameters of that shape to tables ``(n_tables, *cards)``. For Hessian-vector products it must take complex
        parameters too.
    transpose : callable
        From derivatives by the tables to derivatives by the parameters, without a conjugate.
    table_ids : int array (factors,), optional

    Examples
    --------
    Potentials that fall linearly with the distance of two labels, with one slope:

    >>> distance = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))[None]
    >>> term = CallableTerm(
    ...     "slope", (), (3, 3), 1, lambda w: -w * distance, lambda bars: -(bars * distance).sum()
    ... )
    >>> term.tables(np.array(0.5))[0, 0].tolist()
    [-0.0, -0.5, -1.0]
    """

    def __init__(
        self,
        name: str,
        shape: tuple[int, ...],
        cards: Sequence[int],
        n_tables: int,
        function: Map,
        transpose: Map,
        table_ids: ArrayLike | None = None,
    ) -> None:
        super().__init__(name, shape, cards, n_tables, table_ids)
        for argument, value in (("function", function), ("transpose", transpose)):
            require(callable(value), argument, "a function", type(value).__name__)
        self._function, self._transpose = function, transpose
        self.check()

    def tables(self, weights: Array) -> Array:
        """Call the function."""
        return _of_shape(self._function(weights), self.tables_shape, "function")

    def transpose(self, bars: Array) -> Array:
        """Call its transpose."""
        return _of_shape(self._transpose(bars), self.shape, "transpose")


def _ids(table_ids: ArrayLike, n_tables: int) -> IntArray:
    ids = integers(table_ids, "table_ids", 1)
    if ids.size and (ids.min() < -1 or ids.max() >= n_tables):
        raise InputError("table_ids", f"numbers from -1 (none) to {n_tables - 1}", f"{ids.min()} to {ids.max()}")
    return read_only(ids)


def _of_shape(values: ArrayLike, shape: tuple[int, ...], argument: str) -> Array:
    array = np.array(values)
    if array.shape != shape:
        raise InputError(argument, f"an array of shape {shape} from it", f"shape {array.shape}")
    return array
