"""Tables between files and potentials: files hold values, potentials hold natural logarithms.

A value v is read as log v. Going back, exp(L) rounded to a double need not have L as its logarithm; among the
doubles next to it the writer takes one that has, so that what was read from a file is written and read again
without a change of a single bit. A logarithm between those of two neighbouring doubles (only possible when
abs(L) < 1) goes to the nearer one.

Below 2.2e-308, the logarithm -708.4, doubles are subnormal: they have fewer digits, down to one bit at -744.4. What was
read from a file survives there, too. Other logarithms would change, and are refused.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.potentials import Potentials
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray, Mask

MAX_CARD = 2**31 - 1
FREE_ENTRIES = 2**20  # of all tables together, which may be larger than what the file lists
ENTRIES_A_TOKEN = 64
MAX_ARITY = 63  # NumPy arrays have at most 64 axes; one numbers the tables
_STEPS = 3
_LEAST = float(np.finfo(float).tiny)  # the least double with all digits
_CLOSE = 1e-12  # nats: the rounding of logarithms of the least doubles


class Layout(NamedTuple):
    """The scopes of all factors: the variables of factor a are ``variables[first[a]:first[a + 1]]``."""

    arity: IntArray
    first: IntArray
    variables: IntArray

    @classmethod
    def of(cls, arity: IntArray, variables: IntArray) -> Layout:
        """Add the starts."""
        return cls(arity, starts(arity), variables)


def table_sizes(slot_cards: IntArray, layout: Layout) -> FloatArray:
    """Multiply the cardinalities of each scope; exact below 2**53, and inf rather than an overflow.

    Examples
    --------
    >>> layout = Layout.of(np.array([2, 0]), np.array([0, 1]))
    >>> table_sizes(np.array([3, 4]), layout).tolist()
    [12.0, 1.0]
    """
    sizes = np.ones(len(layout.arity))
    with np.errstate(over="ignore"):
        for slot in range(int(layout.arity.max(initial=0))):
            has = np.flatnonzero(layout.arity > slot)
            sizes[has] *= slot_cards[layout.first[has] + slot]
    return sizes


def repeated_slot(layout: Layout) -> int | None:
    """Return a slot whose variable its scope has twice, or None.

    Examples
    --------
    >>> repeated_slot(Layout.of(np.array([1, 3]), np.array([7, 7, 2, 7])))
    3
    """
    factor = np.repeat(np.arange(len(layout.arity)), layout.arity)
    order = np.lexsort((layout.variables, factor))
    same = (np.diff(layout.variables[order]) == 0) & (np.diff(factor[order]) == 0)
    return int(order[1:][same].min()) if same.any() else None


def from_values(cards: IntArray, layout: Layout, values: FloatArray, order: Literal["C", "F"]) -> Potentials:
    """Build potentials from the tables of all factors, one after the other, in C or Fortran order.

    Examples
    --------
    >>> layout = Layout.of(np.array([2]), np.array([0, 1]))
    >>> p = from_values(np.array([2, 2]), layout, np.array([1.0, 0.0, 2.0, 1.0]), "F")
    >>> p.log_tables[0].round(3).tolist()
    [[0.0, 0.693], [-inf, 0.0]]
    """
    variables, first = tuple(layout.variables.tolist()), layout.first.tolist()
    graph = FactorGraph(cards, [variables[s:e] for s, e in pairwise(first)])
    with np.errstate(divide="ignore"):
        logs = np.log(values)
    begin = starts(table_sizes(cards[layout.variables], layout).astype(np.int64))
    return Potentials.from_groups(graph, [_group_tables(g, logs, begin, order) for g in graph.groups])


def _group_tables(group: FactorGroup, logs: FloatArray, begin: IntArray, order: Literal["C", "F"]) -> FloatArray:
    size = group.table_size
    flat = logs[ranges(begin[group.factors], np.full(len(group), size))]
    if order == "C":
        return flat.reshape(len(group), *group.shape)
    return flat.reshape(len(group), *group.shape[::-1]).transpose(0, *range(group.arity, 0, -1))


def group_values(potentials: Potentials) -> list[FloatArray]:
    """Return the values, exp of the logs, of the distinct tables of each group.

    Raises
    ------
    InputError
        If the potentials are complex, or a finite logarithm has no positive finite double as its value, or only a
        subnormal one with another logarithm.
    """
    if np.issubdtype(potentials.dtype, np.complexfloating):
        raise InputError("potentials", "real log-tables", "complex ones", "write the real part")
    values = [exp_of_logs(np.ascontiguousarray(tables).ravel()) for tables in potentials.groups]
    for group, flat in enumerate(values):
        logs = potentials.groups[group].ravel()
        bad = np.flatnonzero(np.isinf(flat) | _is_lost(flat, logs))
        if len(bad):
            _refuse(potentials, group, int(bad[0]))
    return [flat.reshape(tables.shape) for flat, tables in zip(values, potentials.groups, strict=True)]


def _is_lost(values: FloatArray, logs: FloatArray) -> Mask:
    """Tell which values are zero or subnormal and have not the logarithm that they should have."""
    lost: Mask = (values < _LEAST) & (logs > -np.inf)
    small = np.flatnonzero(lost)
    with np.errstate(divide="ignore"):
        lost[small] = np.abs(np.log(values[small]) - logs[small]) > _CLOSE
    return lost


def factor_texts(potentials: Potentials, text: Callable[[list[float]], str]) -> list[str]:
    """Write each distinct table once, its entries in C order; hand the text to every factor that uses it."""
    texts = [""] * potentials.graph.n_factors
    for group, values, ids in zip(potentials.graph.groups, group_values(potentials), potentials.table_ids, strict=True):
        written = [text(row) for row in values.reshape(len(values), group.table_size).tolist()]
        for factor, table in zip(group.factors.tolist(), ids.tolist(), strict=True):
            texts[factor] = written[table]
    return texts


def exp_of_logs(logs: FloatArray) -> FloatArray:
    """Return doubles whose np.log is `logs`, to the bit where there are such doubles, else the nearest.

    Examples
    --------
    >>> logs = np.log(np.arange(1.0, 1000.0) / 7)
    >>> bool((np.log(exp_of_logs(logs)) == logs).all())
    True
    """
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        best = np.exp(logs)
        todo = np.flatnonzero((np.log(best) != logs) & np.isfinite(best) & (best > 0))
        best[todo] = _nearest(best[todo], logs[todo])
    return best


def _nearest(values: FloatArray, logs: FloatArray) -> FloatArray:
    """Look a few doubles up and down for the smallest error of the logarithm."""
    best, error = values, np.abs(np.log(values) - logs)
    for direction in (np.inf, 0.0):
        candidate = values
        for _ in range(_STEPS):
            candidate = np.nextafter(candidate, direction)
            its_error = np.abs(np.log(candidate) - logs)
            better = its_error < error
            best, error = np.where(better, candidate, best), np.where(better, its_error, error)
    return best


def _refuse(potentials: Potentials, group: int, entry: int) -> None:
    """Raise an InputError that names the first factor with the table and the entry."""
    tables = potentials.groups[group]
    table, *states = (int(i) for i in np.unravel_index(entry, tables.shape))
    row = int(np.flatnonzero(potentials.table_ids[group] == table)[0])
    factor = int(potentials.graph.groups[group].factors[row])
    raise InputError(
        f"log_tables[{factor}]",
        "logarithms of numbers in the range of a double, about -708 to 709.7",
        f"{float(tables.ravel()[entry])} at index {tuple(states)}",
        "subtract a constant from the table, which changes nothing but log Z",
    )
