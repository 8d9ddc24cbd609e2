"""A log-linear model compiled for one batch: from parameters theta to log-potentials phi, and the transpose back.

    phi = A theta,        dL/dtheta = A^T dL/dphi,

with A given by terms (see `isinglass.models.terms`), never formed. theta is one flat vector; its parts have names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError, require
from isinglass.graph.factor_graph import FactorGraph, FactorGroup, describe
from isinglass.graph.names import EvidenceLike, evidence_numbers
from isinglass.models.placement import SliceMap, SparseMap, is_whole, place, selection
from isinglass.models.terms import Kind, Term
from isinglass.potentials import Potentials
from isinglass.typing import Array, IntArray, Mask
from isinglass.validation import Evidence, array_of, instance, items


class _Part(NamedTuple):
    """A term, where its parameters lie in theta, and where its tables lie in its group."""

    term: Term
    where: slice
    placed: SliceMap | SparseMap


class _Group(NamedTuple):
    """The tables of one group, and the terms that add up to them."""

    shape: tuple[int, ...]  # of all distinct tables
    parts: list[_Part]


class Model:
    """A log-linear model of one batch of examples; component c of its graph is example c.

    Everything that does not depend on the parameters is done once, here; `potentials` and `transpose` are then a few
    products of matrices. All potentials of a model have the same graph and the same table_ids, so that inference
    prepares its structure once.

    Parameters
    ----------
    graph : FactorGraph
    terms : sequence of sequences of Term
        For each group of the graph the terms that add up to its tables; none: tables of zeros. Terms of the same
        name share their parameters.

    Attributes
    ----------
    graph : FactorGraph
    table_ids : tuple of int arrays
        For each group, which of its distinct tables a factor uses.
    parameters : dict of str to tuple of int
        The shape of each named array of parameters, in the order that they have in theta.
    kinds : dict of str to "node", "edge" or "clique"
        What each belongs to.
    size : int
        The length of theta.

    Examples
    --------
    A chain of three binary variables, two features at each, and one table that both edges share:

    >>> import isinglass as ig
    >>> from isinglass.models import NodeTerm, SharedTerm
    >>> features = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]
    >>> model = Model(ig.chain_graph(3, 2), [[NodeTerm("node", features, 2)], [SharedTerm("edge", (2, 2))]])
    >>> model.parameters
    {'node': (2, 2), 'edge': (2, 2)}
    >>> p = model.potentials(np.arange(8.0))
    >>> p.log_tables[2].tolist(), p.log_tables[3].tolist()
    ([2.0, 4.0], [[4.0, 5.0], [6.0, 7.0]])

    The gradient of log Z by the parameters: marginals, summed by table, and the transpose.

    >>> r = ig.infer(p, "exact", tape=True)
    >>> model.transpose(r.backward(log_z=1.0).groups)[4:].sum().round(6)
    np.float64(2.0)
    """

    graph: FactorGraph
    table_ids: tuple[IntArray, ...]
    parameters: dict[str, tuple[int, ...]]
    kinds: dict[str, Kind]
    size: int

    def __init__(self, graph: FactorGraph, terms: Sequence[Sequence[Term]]) -> None:
        instance(graph, FactorGraph, "graph")
        self._terms = _check_terms(graph, terms)
        self.graph = graph
        self.parameters, self.kinds = _names(self._terms)
        self._where = slices(self.parameters)
        self.size = sum(map(prod, self.parameters.values()))
        made = [self._compile(group, found) for group, found in zip(graph.groups, self._terms, strict=True)]
        self.table_ids = tuple(ids for ids, _ in made)
        self._groups = [group for _, group in made]
        self._evidence: Evidence | None = None  # of earlier potentials: read-only, and known to be right

    def __reduce__(self) -> tuple[object, ...]:
        return (Model, (self.graph, self._terms))

    @property
    def terms(self) -> list[Term]:
        """The terms of all groups, one group after the other."""
        return [term for listed in self._terms for term in listed]

    @property
    def is_table_model(self) -> bool:
        """Whether theta is the tables of all factors, one after the other; constants beside them are allowed.

        Examples
        --------
        >>> import isinglass as ig
        >>> from isinglass.models import table_model
        >>> chain = ig.chain_graph(3, 2)
        >>> table_model(chain).is_table_model, table_model(chain, tied=True).is_table_model
        (True, False)
        """
        free = [[term for term in listed if prod(term.shape)] for listed in self._terms]
        names = [term.name for listed in free for term in listed]
        shapes = [[term.shape for term in listed] for listed in free]
        fits = all(
            not found or (found == [(len(group), *group.shape)] and listed[0].holds_tables)
            for found, listed, group in zip(shapes, free, self.graph.groups, strict=True)
        )
        return fits and len(set(names)) == len(names)

    @property
    def free_factors(self) -> IntArray:
        """The factors whose tables have parameters; those of others are constant."""
        free = [any(prod(term.shape) for term in listed) for listed in self._terms]
        found = [group.factors for group, is_free in zip(self.graph.groups, free, strict=True) if is_free]
        return np.sort(np.concatenate([np.zeros(0, np.int64), *found]))

    def potentials(self, theta: ArrayLike, evidence: EvidenceLike | None = None) -> Potentials:
        """Return the log-potentials for parameters.

        Parameters
        ----------
        theta : array (size,)
            Finite; complex for derivatives by a complex step.
        evidence : mapping of int to int, optional
            Observed variables and their states. The `evidence` of this model's last potentials that had new evidence
            is not checked again.
        """
        weights = self._checked(theta)
        groups = [self._tables(group, weights) for group in self._groups]
        known = evidence is not None and evidence is self._evidence
        checked = self._evidence if known else evidence_numbers(self.graph, evidence)
        potentials = Potentials._build(self.graph, groups, self.table_ids, checked or {})
        if checked and not known:
            self._evidence = potentials.evidence
        return potentials

    def transpose(self, bars: Sequence[Array]) -> Array:
        """Carry derivatives by the tables back to the parameters.

        Parameters
        ----------
        bars : sequence of arrays (tables, k_1, ..., k_r)
            One for each group, shaped like `Potentials.groups`: for instance `groups` of `Result.backward`.

        Returns
        -------
        array (size,)
        """
        arrays = self._check_bars(bars)
        total = np.zeros(self.size, np.result_type(np.float64, *(a.dtype for a in arrays)))
        for group, array in zip(self._groups, arrays, strict=True):
            for part in group.parts:
                found = np.asarray(part.term.transpose(part.placed.collect(array)))
                total[part.where] += _same(found, part.term.shape, part.term, "transpose").ravel()
        return total

    def without_inference(self) -> Model:
        """Return the model without parameters of inference: itself, where it has none."""
        return self

    def inference_parameters(self, theta: ArrayLike) -> dict[str, Array]:
        """Return the values of those parameters of inference that theta determines, by name; none, by default.

        `Algorithm.with_parameters` takes them. A model with such parameters is an `InferenceModel`.
        """
        return {}

    def inference_transpose(self, theta: ArrayLike, slopes: Mapping[str, Array]) -> Array:
        """Carry derivatives by the parameters of inference back to theta, as `transpose` does for the tables."""
        return np.zeros(self.size)

    def inference_start(self, values: Mapping[str, ArrayLike]) -> dict[str, Array]:
        """Return the named parameters, if any, by which inference has certain options, for a warm start."""
        return {}

    def with_terms(self, g: int, terms: Sequence[Term]) -> Model:
        """Return the model with other terms, of the same parameters, for one group; the rest is not compiled again.

        Examples
        --------
        >>> from isinglass.models import NodeTerm, graph_model
        >>> model = graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2)
        >>> other = model.with_terms(0, [NodeTerm("node", [[5.0], [7.0]], 2)])
        >>> other.potentials(np.arange(6.0)).groups[0].tolist()
        [[0.0, 5.0], [0.0, 7.0]]
        """
        own = _check_group(self.graph.groups[g], terms, g)
        checked = [*self._terms[:g], own, *self._terms[g + 1 :]]
        if _names(checked) != (self.parameters, self.kinds):
            raise InputError("terms", f"terms of the parameters {self.parameters}", f"{_names(checked)[0]}")
        ids, group = self._compiled_like(g, own) or self._compile(self.graph.groups[g], own)
        if ids is not self.table_ids[g] and np.array_equal(ids, self.table_ids[g]):
            ids = self.table_ids[g]  # the same array is known below
        model = Model.__new__(Model)
        model.__dict__.update(self.__dict__)
        model._terms, model._evidence = checked, None
        model.table_ids = (*self.table_ids[:g], ids, *self.table_ids[g + 1 :])
        model._groups = [*self._groups[:g], group, *self._groups[g + 1 :]]
        return model

    def split(self, theta: ArrayLike) -> dict[str, Array]:
        """Return copies of the named parts of theta.

        Examples
        --------
        >>> from isinglass.models import graph_model
        >>> model = graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2)
        >>> model.split(np.arange(6))["node"].tolist()
        [[0.0, 1.0]]
        """
        flat = self._checked(theta)
        return {name: flat[self._where[name]].reshape(shape).copy() for name, shape in self.parameters.items()}

    def join(self, named: Mapping[str, ArrayLike]) -> Array:
        """Return theta with these named parts: the inverse of `split`.

        Examples
        --------
        >>> from isinglass.models import graph_model
        >>> model = graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2)
        >>> model.join({"node": [[0.0, 1.0]], "edge": np.eye(2)}).tolist()
        [0.0, 1.0, 1.0, 0.0, 0.0, 1.0]
        """
        if not isinstance(named, Mapping) or set(named) != set(self.parameters):
            got = ", ".join(map(repr, named)) if isinstance(named, Mapping) else type(named).__name__
            raise InputError("named", f"a mapping with the names {', '.join(map(repr, self.parameters))}", got)
        arrays = [_shaped(named[name], shape, f"named[{name!r}]") for name, shape in self.parameters.items()]
        return np.concatenate([np.zeros(0), *(array.ravel() for array in arrays)])

    def reduced(self, theta: ArrayLike) -> Array:
        """Return the canonical parameters among all that give the same tables: symmetric ones, for symmetric tables.

        Examples
        --------
        >>> from isinglass.models import graph_model
        >>> model = graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2, symmetric=True)
        >>> model.reduced([0, 0, 1, 2, 4, 5]).tolist()
        [0.0, 0.0, 1.0, 3.0, 3.0, 5.0]
        """
        flat = self._checked(theta)
        for part in (part for group in self._groups for part in group.parts):
            flat[part.where] = part.term.reduced(flat[part.where].reshape(part.term.shape)).ravel()
        return flat

    def mask(self, kind: Kind) -> Mask:
        """Return which entries of theta are parameters of nodes, of edges, or of other cliques.

        Examples
        --------
        >>> from isinglass.models import graph_model
        >>> graph_model([([[1.0], [2.0]], [(0, 1)])], n_states=2).mask("edge").tolist()
        [False, False, True, True, True, True]
        """
        require(kind in ("node", "edge", "clique"), "kind", "'node', 'edge' or 'clique'", repr(kind))
        found = np.zeros(self.size, bool)
        for name, where in self._where.items():
            found[where] = self.kinds[name] == kind
        return found

    def __repr__(self) -> str:
        names = ", ".join(f"{name} {'x'.join(map(str, shape)) or '1'}" for name, shape in self.parameters.items())
        n = self.graph.n_components
        return f"Model: {n} example{'s' if n > 1 else ''}, {describe(self.graph)}, {self.size} parameters ({names})"

    def _compile(self, group: FactorGroup, terms: Sequence[Term]) -> tuple[IntArray, _Group]:
        """Find the distinct tables of a group and where its terms go."""
        cards = terms[0].cards if terms else group.shape
        ids = [_ids_of(term, len(group)) for term in terms] or [np.zeros(len(group), np.int64)]
        table_ids, n_tables, chosen = place(ids, [t.n_tables for t in terms] or [1], len(group))
        parts = [
            _Part(term, self._where[term.name], selection(which, term.n_tables))
            for term, which in zip(terms, chosen, strict=False)
        ]
        return table_ids, _Group((n_tables, *cards), parts)

    def _compiled_like(self, g: int, terms: Sequence[Term]) -> tuple[IntArray, _Group] | None:
        """Return what `_compile` would, if the tables of the terms are where those of the group's own are."""
        group, known = self._groups[g], self._terms[g]
        if [_places(term) for term in terms] != [_places(term) for term in known]:
            return None
        parts = [part._replace(term=term) for part, term in zip(group.parts, terms, strict=True)]
        return self.table_ids[g], group._replace(parts=parts)

    def _tables(self, group: _Group, weights: Array) -> Array:
        """Add up the terms of a group."""
        if len(group.parts) == 1 and is_whole(group.parts[0].placed, group.shape[0]):
            return self._of_term(group.parts[0], weights)
        total = np.zeros(group.shape, weights.dtype)
        for part in group.parts:
            part.placed.add(self._of_term(part, weights), total)
        return total

    def _of_term(self, part: _Part, weights: Array) -> Array:
        tables = np.asarray(part.term.tables(weights[part.where].reshape(part.term.shape)))
        return _same(tables, part.term.tables_shape, part.term, "tables")

    def _checked(self, theta: ArrayLike) -> Array:
        """Copy theta to float64 or complex128."""
        flat = _shaped(theta, (self.size,), "theta")
        if not np.isfinite(flat).all():
            i = int(np.flatnonzero(~np.isfinite(flat))[0])
            name = next(name for name, where in self._where.items() if where.start <= i < where.stop)
            raise InputError("theta", "finite numbers", f"theta[{i}] = {flat[i]}, in {name!r}")
        return flat

    def _check_bars(self, bars: Sequence[Array]) -> list[Array]:
        found = items(bars, "bars", "one array for each group, in a sequence")
        arrays = [array_of(bar, f"bars[{g}]", "derivatives") for g, bar in enumerate(found)]
        shapes = [group.shape for group in self._groups]
        if [a.shape for a in arrays] != shapes:
            raise InputError("bars", f"arrays of the shapes {shapes}", f"{[a.shape for a in arrays]}")
        return arrays


def _check_terms(graph: FactorGraph, terms: Sequence[Sequence[Term]]) -> list[list[Term]]:
    """Check that there is a list of terms for each group, and that they fit its factors."""
    found = items(terms, "terms", "a list of terms for each group")
    if len(found) != len(graph.groups):
        raise InputError("terms", f"a list of terms for each of {len(graph.groups)} groups", f"{len(found)}")
    return [_check_group(group, listed, g) for g, (group, listed) in enumerate(zip(graph.groups, found, strict=True))]


def _check_group(group: FactorGroup, listed: Sequence[Term], g: int) -> list[Term]:
    """Check the terms of group g."""
    checked: list[Term] = items(listed, f"terms[{g}]", "a list of terms")
    for i, term in enumerate(checked):
        instance(term, Term, f"terms[{g}][{i}]")
        _check_fit(term, group, f"terms[{g}][{i}] ({term.name!r})", checked[0].cards)
    return checked


def _check_fit(term: Term, group: FactorGroup, argument: str, cards: tuple[int, ...]) -> None:
    """Check the shape and the number of a term's tables against a group."""
    expected = group.shape if len(group) else cards
    require(term.cards == expected, argument, f"tables of shape {expected}", f"shape {term.cards}")
    if term.table_ids is None and len(group) and term.n_tables not in (1, len(group)):
        wanted = f"one table for each of {len(group)} factors, or one that all share"
        raise InputError(argument, wanted, f"{term.n_tables}", "or give it table_ids")
    if term.table_ids is not None and len(term.table_ids) != len(group):
        raise InputError(argument, f"table_ids for {len(group)} factors", f"{len(term.table_ids)}")


def _same(array: Array, shape: tuple[int, ...], term: Term, method: str) -> Array:
    """Check what a term has returned (it may be the user's)."""
    if array.shape != shape:
        raise InputError(f"{method} of {term!r}", f"shape {shape}", f"shape {array.shape}")
    return array


def _places(term: Term) -> tuple[str, tuple[int, ...], int | None]:
    """Return what says where a term's tables are in its group."""
    return term.name, term.tables_shape, None if term.table_ids is None else id(term.table_ids)


def _ids_of(term: Term, n_factors: int) -> IntArray:
    if term.table_ids is not None:
        return term.table_ids
    return np.arange(n_factors) if term.n_tables == n_factors else np.zeros(n_factors, np.int64)


def _names(terms: Sequence[Sequence[Term]]) -> tuple[dict[str, tuple[int, ...]], dict[str, Kind]]:
    """Collect names in order; terms of one name must agree."""
    shapes: dict[str, tuple[int, ...]] = {}
    kinds: dict[str, Kind] = {}
    for term in (t for listed in terms for t in listed):
        if shapes.setdefault(term.name, term.shape) != term.shape:
            got = f"{shapes[term.name]} and {term.shape}"
            raise InputError("terms", f"one shape of the parameters {term.name!r}", got, "give one another name")
        if kinds.setdefault(term.name, term.kind) != term.kind:
            got = f"{kinds[term.name]!r} and {term.kind!r}"
            raise InputError("terms", f"one kind of the parameters {term.name!r}", got, "give one another name")
    return shapes, kinds


def slices(parameters: Mapping[str, tuple[int, ...]]) -> dict[str, slice]:
    """Return where each named part lies in theta."""
    ends = np.cumsum([0, *map(prod, parameters.values())]).tolist()
    return {name: slice(a, b) for name, a, b in zip(parameters, ends[:-1], ends[1:], strict=True)}


def _shaped(values: ArrayLike, shape: tuple[int, ...], argument: str) -> Array:
    """Copy to float64, or complex128, of this shape."""
    array = array_of(values, argument, "real or complex numbers")
    if array.dtype.kind not in "iufc":
        raise InputError(argument, "real or complex numbers", f"dtype {array.dtype}")
    if array.shape != shape:
        raise InputError(argument, f"shape {shape}", f"shape {array.shape}")
    return np.array(array, np.complex128 if array.dtype.kind == "c" else np.float64)
