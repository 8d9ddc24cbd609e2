"""Bayesian networks as factor graphs: one factor for each conditional probability table.

    p(x) = prod_i p(x_i | x_parents(i)),

so the log-potentials are the logarithms of the tables, on the moral graph, and log Z is zero (Murphy 2012, section
19.3.1; Koller and Friedman 2009, section 4.5.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.graph.names import Names, evidence_numbers, nearest, variable_number
from isinglass.graph.semantics.directed import Parents, find_cycle, moralise
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray
from isinglass.validation import items, real_numbers

ROUNDING = 1e-6  # by which the rows of a table may miss one
States = tuple[str, ...]


class BayesianNetwork(Potentials):
    """A Bayesian network, as the potentials of its moral graph, with the names of variables and states.

    It is used like any `Potentials`. Factor i is the conditional probability table of variable i: its scope is the
    variable's parents, and then the variable itself.

    Attributes
    ----------
    parents : tuple of tuples of int
        The parents of each variable.

    Examples
    --------
    >>> import isinglass as ig
    >>> network = ig.from_bayesian_network(
    ...     {"rain": [], "wet": ["rain"]}, {"rain": [0.8, 0.2], "wet": [[0.9, 0.1], [0.25, 0.75]]}
    ... )
    >>> ig.infer(network, evidence={"wet": 1}).variable("rain").round(3)
    array([0.348, 0.652])
    """

    __slots__ = ("parents",)

    parents: Parents

    @classmethod
    def of(cls, names: Sequence[str], states: Sequence[States], parents: Parents, tables: Sequence[FloatArray]) -> Self:
        """Build from checked parts; `tables` hold probabilities, the axes of parents first."""
        graph = moralise(parents, [len(s) for s in states]).with_names(Names(names, states))
        network = cls.__new__(cls)
        with np.errstate(divide="ignore"):
            Potentials.__init__(network, graph, [np.log(table) for table in tables])
        object.__setattr__(network, "parents", parents)
        return network

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return self._names.variables

    @property
    def states(self) -> tuple[States, ...]:
        """The names of each variable's states."""
        return tuple(states or () for states in self._names.states)

    @property
    def _names(self) -> Names:
        assert self.graph.names is not None  # `of` gives some to every network
        return self.graph.names

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (self.names, self.states, self.parents, [np.asarray(t) for t in self.log_tables])

    def number(self, name: str) -> int:
        """Return the number of a variable."""
        return variable_number(self.graph, name, "name")

    def observe(self, observed: Mapping[str, str | int] | None = None, /, **named: str | int) -> dict[int, int]:
        """Return evidence for `infer`, given by the names of variables, and the names or numbers of states."""
        return evidence_numbers(self.graph, {**(observed or {}), **named}, "observed")


def _rebuilt(
    names: tuple[str, ...], states: tuple[States, ...], parents: Parents, log_tables: list[FloatArray]
) -> BayesianNetwork:
    return BayesianNetwork.of(names, states, parents, [np.exp(table) for table in log_tables])


def from_bayesian_network(
    network: Any,
    tables: Mapping[str, ArrayLike] | Sequence[ArrayLike] | None = None,
    states: Mapping[str, Sequence[str]] | None = None,
) -> BayesianNetwork:
    """Convert a Bayesian network to a factor graph.

    Parameters
    ----------
    network : pgmpy network, mapping of str to sequence of str, or sequence of sequences of int
        A pgmpy network has its own tables and states. A mapping gives the names of the parents of each variable; a
        sequence gives their numbers.
    tables : mapping or sequence of arrays, optional
        The conditional probabilities of each variable: one axis for each parent, in their order, and a last axis for
        the variable's own states, along which they sum to one.
    states : mapping of str to sequence of str, optional
        The names of states; numbers by default.

    Returns
    -------
    BayesianNetwork
        Potentials, with names.

    Examples
    --------
    >>> import isinglass as ig
    >>> network = ig.from_bayesian_network([[], [0]], [[0.4, 0.6], [[1.0, 0.0], [0.5, 0.5]]])
    >>> network.graph.scopes[:], ig.infer(network).variable(1).tolist()
    ([(0,), (0, 1)], [0.7, 0.3])
    """
    if hasattr(network, "get_cpds"):
        return _of_pgmpy(network)
    named = isinstance(network, Mapping)
    listed = network if named else dict(enumerate(items(network, "network", "a network, or the parents of variables")))
    names = [str(name) for name in listed]
    parents = _numbered({str(name): [str(p) for p in given] for name, given in listed.items()})
    if tables is None:
        raise InputError("tables", "the conditional probabilities of each variable", "none")
    chosen = (
        _in_order(tables, names) if isinstance(tables, Mapping) else items(tables, "tables", "one for each variable")
    )
    if len(chosen) != len(names):
        raise InputError("tables", f"one table for each of {len(names)} variables", f"{len(chosen)}")
    arrays = [real_numbers(table, f"tables[{name!r}]", "numbers") for name, table in zip(names, chosen, strict=True)]
    for name, array, given in zip(names, arrays, parents, strict=True):
        _refuse_columns(array, len(given), f"tables[{name!r}]")
    cards = [array.shape[-1] if array.ndim else 0 for array in arrays]
    labels = [_labels(states, name, card) for name, card in zip(names, cards, strict=True)]
    for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
        check_table(array, tuple(cards[j] for j in (*parents[i], i)), f"tables[{name!r}]", ROUNDING)
    return BayesianNetwork.of(names, labels, parents, arrays)


def _refuse_columns(table: FloatArray, n_parents: int, argument: str) -> None:
    """Refuse the layout of pgmpy's TabularCPD: a row for each own state, a column for the parents' states together."""
    if table.ndim == 2 and np.allclose(table.sum(axis=0), 1, atol=ROUNDING):
        if n_parents == 1 and np.allclose(table.sum(axis=1), 1, atol=ROUNDING):
            return
        expected = "an axis for each parent, and a last one for the variable's own states, along which it sums to one"
        remedy = "give np.transpose(table).reshape(states of each parent, own states), or pgmpy's network itself"
        raise InputError(argument, expected, "columns that sum to one, as in pgmpy's TabularCPD", remedy)


def check_table(table: FloatArray, shape: tuple[int, ...], argument: str, rounding: float) -> None:
    """Check the shape of a table of conditional probabilities, and that its rows sum to one."""
    if table.shape != shape:
        expected = f"shape {shape}: the states of its parents, then its own"
        raise InputError(argument, expected, f"shape {table.shape}")
    if not (np.isfinite(table) & (table >= 0)).all():
        raise InputError(argument, "probabilities", f"{table[~(np.isfinite(table) & (table >= 0))][0]}")
    sums = table.sum(axis=-1)
    if not (np.abs(sums - 1) <= rounding).all():
        where = tuple(np.argwhere(np.abs(sums - 1) > rounding)[0].tolist())
        given = f" given parents in the states {where}" if where else ""
        raise InputError(argument, "probabilities that sum to one", f"{sums[where]:.6g}{given}")


def _numbered(network: Mapping[str, Sequence[str]]) -> Parents:
    """Return the parents by number; refuse unknown ones and cycles, by name."""
    number = {name: i for i, name in enumerate(network)}
    for name, given in network.items():
        unknown = [p for p in given if p not in number]
        if unknown:
            got = f"{unknown[0]!r}, a parent of {name!r}"
            raise InputError("network", "parents that are variables of the network", got)
    parents = tuple(tuple(number[p] for p in given) for given in network.values())
    if cycle := find_cycle(parents):
        names = list(network)
        raise InputError("network", "no directed cycle", " -> ".join(names[i] for i in cycle))
    return parents


def _in_order(tables: Mapping[str, ArrayLike], names: Sequence[str]) -> list[ArrayLike]:
    by_name = {str(name): table for name, table in tables.items()}
    for name in names:
        if name not in by_name:
            raise InputError("tables", "one table for each variable", f"none for {name!r}")
    if further := [name for name in by_name if name not in names]:
        raise InputError("tables", "names of variables", repr(further[0]), nearest(further[0], names))
    return [by_name[name] for name in names]


def _labels(states: Mapping[str, Sequence[str]] | None, name: str, card: int) -> States:
    given = None if states is None else states.get(name)
    if given is None:
        return tuple(map(str, range(card)))
    if len(given) != card or len(set(given)) != card:
        raise InputError(f"states[{name!r}]", f"{card} different names", f"{list(given)!r:.60}")
    return tuple(map(str, given))


def _of_pgmpy(network: Any) -> BayesianNetwork:
    """Read a pgmpy network, whose tables have the variable's own axis first."""
    cpds = list(network.get_cpds())
    if not cpds:
        raise InputError("network", "a network with tables", "one without", "add_cpds first")
    numbers = {cpd.variable: i for i, cpd in enumerate(cpds)}
    lost = [str(node) for node in network.nodes if node not in numbers]
    if lost:
        raise InputError("network", "a table for each variable", f"none for {lost[0]!r}")
    listed = {str(cpd.variable): [str(p) for p in cpd.variables[1:]] for cpd in cpds}
    tables = {str(cpd.variable): np.moveaxis(np.asarray(cpd.values), 0, -1) for cpd in cpds}
    states = {str(cpd.variable): [str(s) for s in cpd.state_names[cpd.variable]] for cpd in cpds}
    return from_bayesian_network(listed, tables, states)
