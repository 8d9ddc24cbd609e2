"""Tables of pairs that do not depend on the order in which an edge is written.

Of the parameters W_f of a term of pairs the symmetric part is used,

    S(W)_f(x, y)  =  (W_f(x, y) + W_f(y, x)) / 2        for the features f that are symmetric, W_f for others,

phi = A S(W). S is its own transpose, so dL/dW = S(A^T dL/dphi): derivatives are symmetric, and training that begins
with symmetric parameters keeps them so. A penalty l2 ||W||² is then that of the tables, in which two labels that differ
occur twice. (This is PyStruct's convention for `symmetric_edge_features`, Mueller and Behnke 2014.)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isinglass.errors import InputError
from isinglass.models.terms import Term
from isinglass.typing import Array
from isinglass.validation import instance, items


class SymmetricTerm(Term):
    """A term of pairs whose parameters are made symmetric in the two labels.

    Parameters
    ----------
    term : Term
        With parameters (states, states) or (features, states, states), such as an `EdgeTerm` or a `SharedTerm`.
    features : sequence of int, optional
        Those whose tables are symmetric; by default all.

    Examples
    --------
    >>> from isinglass.models import SharedTerm
    >>> SymmetricTerm(SharedTerm("edge", (2, 2))).tables(np.array([[0.0, 1.0], [3.0, 5.0]])).tolist()
    [[[0.0, 2.0], [2.0, 5.0]]]
    """

    def __init__(self, term: Term, features: Sequence[int] | None = None) -> None:
        instance(term, Term, "term")
        if len(term.cards) != 2 or term.cards[0] != term.cards[1] or term.shape[-2:] != term.cards:
            expected = "a term of pairs with parameters (..., states, states)"
            raise InputError("term", expected, f"{term!r}")
        super().__init__(term.name, term.shape, term.cards, term.n_tables, term.table_ids)
        self.term = term
        self.features = None if features is None else feature_numbers(features, term.shape[:-2], "features")

    def tables(self, weights: Array) -> Array:
        """Return the tables of the symmetric part."""
        return self.term.tables(self.reduced(weights))

    def transpose(self, bars: Array) -> Array:
        """Return the symmetric part of the derivatives."""
        return self.reduced(self.term.transpose(bars))

    def reduced(self, weights: Array) -> Array:
        """Return the symmetric part of parameters."""
        if self.features is None:
            return symmetric_part(weights)
        found = np.array(weights)
        found[self.features] = symmetric_part(found[self.features])
        return found

    def __repr__(self) -> str:
        which = "all features" if self.features is None else f"features {self.features}"
        return f"SymmetricTerm({self.term!r}, {which})"


def symmetric_part(tables: Array) -> Array:
    """Return the mean of tables (..., states, states) and their transposes.

    Examples
    --------
    >>> symmetric_part(np.array([[0.0, 1.0], [3.0, 5.0]])).tolist()
    [[0.0, 2.0], [2.0, 5.0]]
    """
    return np.asarray((tables + np.swapaxes(tables, -1, -2)) / 2)


def require_symmetric(table: Array, argument: str) -> None:
    """Refuse a table that depends on the order of the two labels."""
    if not np.array_equal(table, table.T):
        x, y = (int(i) for i in np.argwhere(table != table.T)[0])
        got = f"{table[x, y]:g} and {table[y, x]:g} for the states {x} and {y}"
        raise InputError(argument, "a table that is symmetric, as those of the edges are", got, "use (w + w.T) / 2")


def feature_numbers(given: object, axes: tuple[int, ...], argument: str) -> list[int]:
    """Check which features, of parameters with these axes before those of the two labels, are symmetric.

    Examples
    --------
    >>> feature_numbers((2, 0, 2), (3,), "features")
    [2, 0]
    """
    if not axes:
        got, remedy = f"{given!r:.60}", "there is one table, which is symmetric or not"
        raise InputError(argument, "no numbers of features where there are no features", got, remedy)
    found = items(given, argument, "True, False, or numbers of features")
    if not all(isinstance(f, int | np.integer) and not isinstance(f, bool) and 0 <= f < axes[0] for f in found):
        raise InputError(argument, f"numbers of features, from 0 to {axes[0] - 1}", f"{given!r:.60}")
    return [*dict.fromkeys(map(int, found))]
