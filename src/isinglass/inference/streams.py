"""Random numbers of stochastic algorithms: one stream for each component (example) of a batch.

The stream of a component is seeded by `random_state` and by a hash of what the component is: the cardinalities of its
variables, its scopes, log tables and evidence. It is not seeded by the place of the component in the batch. Therefore

- an example draws the same random numbers alone and in any batch, so that its result has the same bits;
- examples that differ, be it in one log table, draw independent numbers;
- equal examples draw equal numbers. Where that is not wanted (several chains of one model as a batch, Monte Carlo
  gradients of a data set with repeated rows), ``distinct=True`` also counts how often the example came before. The
  first of the equal examples then keeps its stream, and the others depend on how many there are before them.
"""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np

from isinglass.potentials import Potentials
from isinglass.segments import place_in
from isinglass.typing import Array, IntArray
from isinglass.validation import RandomState, generator, instance

WORDS = 4  # of 32 bits, that seed a stream besides the hash


def streams(potentials: Potentials, random_state: RandomState, *, distinct: bool = False) -> list[np.random.Generator]:
    """Return a generator for each component.

    Parameters
    ----------
    potentials : Potentials
    random_state : int, Generator or None
        A generator is advanced by one draw, whatever the number of components.
    distinct : bool
        Give equal components different streams.

    Examples
    --------
    >>> import isinglass as ig
    >>> p, q = (ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, x]]) for x in (1.0, 2.0))
    >>> batch = ig.potentials_union([q, p])
    >>> bool(streams(p, 0)[0].random() == streams(batch, 0)[1].random())
    True
    """
    instance(potentials, Potentials, "potentials")
    base = generator(random_state).integers(0, 2**32, WORDS, np.uint32)
    before: Counter[bytes] = Counter()
    found = []
    for digest in fingerprints(potentials):
        words = np.frombuffer(digest, "<u4").tolist()
        seed = np.random.SeedSequence(np.array([*base.tolist(), *words, before[digest]], np.uint32))
        before[digest] += distinct
        found.append(np.random.default_rng(seed))
    return found


def fingerprints(potentials: Potentials) -> list[bytes]:
    """Return a hash (SHA-256) of each component: equal where its model is, whatever else is in the batch.

    Variables and factors count by their numbers inside the component. Tables that factors share count like equal ones,
    0.0 like -0.0, and only the real part of complex tables (so that a complex step draws the same numbers).
    """
    graph = potentials.graph
    hashes = [hashlib.sha256() for _ in range(graph.n_components)]
    variable, factor = place_in(graph.variable_component), place_in(graph.factor_component)

    def mix(digest: hashlib._Hash, columns: tuple[Array, ...]) -> None:
        for part in columns if len(columns[0]) else ():
            digest.update(f"{part.shape}".encode())
            digest.update(part.astype("<i8" if part.dtype.kind == "i" else "<f8").tobytes())

    def add(component: IntArray, *columns: Array) -> None:
        """Hash the rows of each component, in their order."""
        if graph.n_components == 1:  # the usual case, and a few times faster
            mix(hashes[0], columns)
            return
        order = np.argsort(component, kind="stable")
        ends = np.searchsorted(component[order], np.arange(graph.n_components + 1))
        for c in np.unique(component).tolist():
            rows = order[ends[c] : ends[c + 1]]
            mix(hashes[c], tuple(column[rows] for column in columns))

    add(graph.variable_component, graph.cards)
    observed = np.fromiter(potentials.evidence.keys(), np.int64, len(potentials.evidence))
    states = np.fromiter(potentials.evidence.values(), np.int64, len(potentials.evidence))
    add(graph.variable_component[observed], variable[observed], states)
    for shape in sorted({group.shape for group in graph.groups}):
        some = [g for g, group in enumerate(graph.groups) if group.shape == shape]
        factors = np.concatenate([graph.groups[g].factors for g in some])
        order = np.argsort(factors)
        scopes = np.concatenate([graph.groups[g].scopes for g in some])
        tables = np.concatenate([potentials.groups[g].real[potentials.table_ids[g]] for g in some])
        factors = factors[order]
        add(graph.factor_component[factors], factor[factors], variable[scopes[order]], tables[order] + 0.0)
    return [h.digest() for h in hashes]
