"""Canonical potentials: the constructive half of the Hammersley-Clifford theorem (Murphy 2012, theorem 19.3.1).

A positive distribution that has the independencies of a graph is a product of potentials over its cliques. With a
reference state r_i of each variable, they are

    phi_A(x_A) = sum_(B in A) (-1)^|A - B| log p(x_B, r_rest)

for every set A of variables. phi_A is zero where any x_i = r_i, i in A, and it is zero altogether if two variables of A
are independent given the others (Besag 1974; Koller and Friedman 2009, section 4.4.2.1). So A runs over the cliques of
the graph alone. With state 0 as the reference, the entries are the coefficients of a log-linear model in treatment
contrasts.

For potentials that are a sum of tables, the canonical form of the sum is the sum of the canonical forms: no joint table
is needed. Along one axis, a table is split into its values at the reference and the differences to these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph
from isinglass.potentials import Potentials
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import assignments, number, real_numbers

Scope = tuple[int, ...]


def canonical_potentials(
    model: Potentials | ArrayLike, reference: Sequence[int] | None = None, tol: float = 1e-9
) -> Potentials:
    """Return the canonical potentials of a positive distribution.

    Two models are the same distribution, up to a constant factor, if and only if their canonical potentials of one or
    more variables are the same.

    Parameters
    ----------
    model : Potentials, or array of positive numbers with one axis for each variable
        Potentials without hard zeros; or a table of probabilities or counts.
    reference : sequence of int, optional
        The reference state of each variable; zeros by default.
    tol : float
        Sets of variables whose potentials are at most this large (in nats) are left out.

    Returns
    -------
    Potentials
        One factor for each remaining set of variables, smaller sets first. Their sum is the given log-potentials,
        constants included, so ``infer(p).joint(range(n))`` returns the normalised table.

    Examples
    --------
    A chain of three variables, as one table of eight numbers; the theorem finds its edges:

    >>> import isinglass as ig
    >>> coupling = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> table = np.einsum("ab,bc->abc", coupling, coupling)
    >>> canonical = ig.canonical_potentials(table)
    >>> canonical.graph.scopes[:]
    [(), (0,), (1,), (2,), (0, 1), (1, 2)]
    >>> np.allclose(ig.infer(canonical).joint([0, 1, 2]), table / table.sum())
    True
    """
    given = model if isinstance(model, Potentials) else _of_table(model)
    cards = given.graph.cards
    at = np.zeros(len(cards), np.int64) if reference is None else assignments(reference, cards, "reference")
    found = canonical_tables(given, at)
    least = number(tol, "tol", 0, np.inf)
    kept = {scope: table for scope, table in sorted(found.items(), key=_by_size) if np.abs(table).max() > least}
    graph = FactorGraph(cards, list(kept)).with_names(given.graph.names)
    return Potentials(graph, list(kept.values()), dict(given.evidence))


def canonical_tables(potentials: Potentials, reference: IntArray) -> dict[Scope, Array]:
    """Return the canonical table of every set of variables inside a scope; scopes are sorted."""
    total: dict[Scope, Array] = {}
    for a, (scope, table) in enumerate(zip(potentials.graph.scopes, potentials.log_tables, strict=True)):
        if not np.isfinite(table).all():
            got = f"a zero in the table of factor {a}, {scope}"
            raise InputError("model", "positive probabilities", got, "the theorem holds for positive distributions")
        order = np.argsort(scope, kind="stable")
        variables = np.asarray(scope, np.int64)[order]
        for part, values in _split(tuple(variables.tolist()), np.transpose(table, order), reference).items():
            total[part] = total[part] + values if part in total else values
    return total


def _split(scope: Scope, table: Array, reference: IntArray) -> dict[Scope, Array]:
    """Split one table into canonical tables of all subsets of its scope."""
    parts: dict[Scope, Array] = {(): table}  # axes that are still to be split come last
    for i in scope:
        split: dict[Scope, Array] = {}
        for done, values in parts.items():
            axis = len(done)
            base = np.take(values, [reference[i]], axis)
            split[done] = base.squeeze(axis)
            split[(*done, i)] = values - base
        parts = split
    return parts


def _of_table(table: ArrayLike) -> Potentials:
    values: FloatArray = real_numbers(table, "model", "Potentials, or a table of positive numbers")
    if not (np.isfinite(values) & (values > 0)).all():
        where = tuple(np.argwhere(~(np.isfinite(values) & (values > 0)))[0].tolist())
        remedy = "the theorem holds for positive distributions"
        raise InputError("model", "positive finite numbers", f"{values[where]} at index {where}", remedy)
    return Potentials(FactorGraph(values.shape, [range(values.ndim)]), [np.log(values)])


def _by_size(entry: tuple[Scope, Array]) -> tuple[int, Scope]:
    return len(entry[0]), entry[0]


def largest_difference(first: Mapping[Scope, Array], second: Mapping[Scope, Array]) -> float:
    """Return the largest difference of two sets of canonical tables, constants apart.

    Examples
    --------
    >>> largest_difference({(): np.array(3.0), (0,): np.array([0.0, 1.0])}, {(0,): np.array([0.0, 0.5])})
    0.5
    """
    scopes = (first.keys() | second.keys()) - {()}
    zero = np.zeros(1)
    return max((float(np.abs(first.get(s, zero) - second.get(s, zero)).max()) for s in scopes), default=0.0)
