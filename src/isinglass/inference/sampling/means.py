"""Beliefs as running means: conditional probabilities are averaged over all sweeps after the burn-in.

The belief of a variable is the average over sweeps and chains of p(x_i | rest), which has a smaller variance than the
frequency of a state (Rao and Blackwell; Gelfand and Smith 1990). A factor a has one of its variables, i, as its owner;
its belief is the average of p(x_i | rest) at the configurations that agree with the states of its other variables.

Standard errors come from the means of batches of consecutive sweeps (`isinglass.inference.sampling.diagnostics`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass.errors import ImpossibleEvidenceError
from isinglass.graph.incidences import Unsigned
from isinglass.graph.layout import belief_entries, first_beliefs, first_states
from isinglass.inference.evidence import impossible
from isinglass.inference.sampling.chains import Chains, States
from isinglass.inference.sampling.diagnostics import batch_errors
from isinglass.inference.sampling.sampler import Sampler
from isinglass.potentials import Potentials
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

FEWEST, MOST, LEAST = 128, 512, 4  # batches of all chains together; the fewest of one chain
NUMBERS = 2**26  # of all batches, beyond which there are fewer of them
CELL = 32  # sweeps
BLOCK = 2**24  # states that are kept before they are added up
AT_ONCE = 2**22  # numbers of batches in memory for standard errors


class Owners(NamedTuple):
    """Listed variables, and the factors of two or more variables that they own, with the other variables of these."""

    variable: Unsigned  # (listed,)
    row: Unsigned  # (listed,) of its first state
    first: Unsigned  # (listed + 1,)
    base: Unsigned  # (owned,) the row of its first entry
    own: Unsigned  # (owned,) step in the table when the owner's state grows
    rest: Unsigned  # (owned + 1,)
    other: Unsigned
    stride: Unsigned


class Rows(NamedTuple):
    """Rows of sums: the states of all variables, and the entries of factors of two or more variables."""

    number: int
    of_factors: IntArray  # (entries of factors,) rows; those of one variable share the rows of the variable
    certain: IntArray  # rows that are one in every sweep, as everything in them is observed


@dataclass(eq=False)
class RunningMeans:
    """Sums of rows in each chain, over all sweeps and over batches of them.

    Sums over all sweeps are sums of cells of `CELL` sweeps, whatever the batches are: a run that is continued has the
    bits of one that was as long from the start.

    Attributes
    ----------
    length : int
        Sweeps of a batch; of batches that are not made of whole cells, `short` is true.
    sweeps : int
        How many were added.
    total, cell, current : array (rows, chains)
        Sums over all full cells, over the cell that is not full, and over the batch that is not full.
    batches : list of arrays (rows, chains)
        Sums over the batches that are full.
    """

    length: int
    short: bool
    sweeps: int
    total: FloatArray
    cell: FloatArray
    current: FloatArray
    batches: list[FloatArray] = field(default_factory=list)

    @classmethod
    def start(cls, rows: int, chains: int, sweeps: int) -> RunningMeans:
        """Begin sums for so many sweeps to come."""
        length = max(1, sweeps // batches_of(chains, rows))
        short = 2 * length < CELL
        whole = length if short else CELL * -(-length // CELL)
        total, cell, current = np.zeros((3, rows, chains))
        return cls(whole, short, 0, total, cell, current)

    def lengthened(self, sweeps: int) -> RunningMeans:
        """Return a copy for so many further sweeps; if these are many, neighbouring batches are joined."""
        times = max(1, (self.sweeps + sweeps) // (self.length * batches_of(self.chains, len(self.total))))
        whole = len(self.batches) // times
        joined = [_sum(self.batches[k * times : (k + 1) * times]) for k in range(whole)]
        current = _sum([*self.batches[whole * times :], self.current])
        sums = self.total.copy(), self.cell.copy(), current
        return RunningMeans(self.length * times, self.short, self.sweeps, *sums, joined)

    @property
    def chains(self) -> int:
        """The number of chains."""
        return int(self.total.shape[1])

    @property
    def room(self) -> int:
        """How many sweeps can be added before a cell or a batch is full."""
        return min(CELL - self.sweeps % CELL, self.length - self.sweeps % self.length)

    def count(self, sweeps: int) -> None:
        """Take note that sweeps were added to the cell and, if it is short, to the current batch."""
        self.sweeps += sweeps
        if self.sweeps % CELL == 0:
            self.total += self.cell
            if not self.short:
                self.current += self.cell
            self.cell[:] = 0.0
        if self.sweeps % self.length == 0:
            self.batches.append(self.current)
            self.current = np.zeros_like(self.current)

    @property
    def means(self) -> FloatArray:
        """The mean of each row over all sweeps and chains."""
        return np.asarray((self.total + self.cell).sum(axis=1) / (self.chains * max(1, self.sweeps)))

    @property
    def errors(self) -> FloatArray:
        """The standard error of each mean; infinite where there are too few batches."""
        rows = len(self.total)
        if len(self.batches) < LEAST:
            return np.full(rows, np.inf)
        step = max(1, AT_ONCE // (self.chains * len(self.batches)))
        parts = [np.zeros(0)]
        for first in range(0, rows, step):
            some = np.array([batch[first : first + step] for batch in self.batches])
            parts.append(batch_errors(some / self.length))
        return np.concatenate(parts)


def batches_of(chains: int, rows: int) -> int:
    """Return how many batches a chain has, about.

    Examples
    --------
    >>> batches_of(8, 1000), batches_of(8, 10**6), batches_of(100, 10**6)
    (64, 16, 4)
    """
    number = min(MOST, max(FEWEST, NUMBERS // max(1, rows)))
    return max(LEAST, number // chains)


def _sum(arrays: Sequence[FloatArray]) -> FloatArray:
    """Add arrays up, in their order."""
    total = arrays[0].copy()
    for one in arrays[1:]:
        total += one
    return total


def rows_of(potentials: Potentials) -> Rows:
    """Tell which beliefs have which rows.

    Examples
    --------
    >>> import isinglass as ig
    >>> rows_of(ig.Potentials(ig.FactorGraph([2, 2], [(0,), (0, 1)]), [[0, 1], np.eye(2)])).of_factors.tolist()
    [0, 1, 4, 5, 6, 7]
    """
    graph, evidence = potentials.graph, potentials.evidence
    count, first = int(first_states(graph)[-1]), first_states(graph)
    of_factors, certain = np.zeros(belief_entries(graph), np.int64), [first[i] + s for i, s in evidence.items()]
    for group in graph.groups:
        entries = first_beliefs(graph)[group.factors][:, None] + np.arange(group.table_size)
        if group.arity == 1:
            of_factors[entries] = first[group.scopes[:, 0]][:, None] + np.arange(group.shape[0])
            continue
        of_factors[entries] = count + np.arange(entries.size).reshape(entries.shape)
        seen = np.isin(group.scopes, list(evidence)).all(axis=1)
        for f in np.flatnonzero(seen):
            states = [evidence[int(i)] for i in group.scopes[f]]
            certain.append(
                count + f * group.table_size + int(np.ravel_multi_index(states, group.shape) if states else 0)
            )
        count += entries.size
    return Rows(count, of_factors, np.array(certain, np.int64))


def owners_of(sampler: Sampler, rows: Rows, variables: IntArray) -> Owners:
    """Give each factor of two or more variables to its first variable that can move; return those of listed variables.

    Where none can move, one of a single state is the owner; where all are observed, there is none.
    """
    graph, place = sampler.graph, np.full(sampler.graph.n_variables, -1)
    can = np.ones(graph.n_variables, np.int64)
    can[list(sampler.potentials.evidence)] = 0
    can[sampler.free], place[variables] = 2, np.arange(len(variables))
    factors, owners, steps = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in graph.groups:
        if group.arity < 2 or not len(group):
            continue
        slot = np.argmax(can[group.scopes], axis=1)
        owner = group.scopes[np.arange(len(group)), slot]
        mine = np.flatnonzero((can[owner] > 0) & (place[owner] >= 0))
        factors.append(group.factors[mine])
        owners.append(owner[mine])
        steps.append(np.cumprod([1, *group.shape[:0:-1]])[::-1][slot[mine]])
    owner = np.concatenate(owners)
    order = np.argsort(place[owner], kind="stable")
    owner, factor, own = owner[order], np.concatenate(factors)[order], np.concatenate(steps)[order]
    flat = graph.flat_scopes
    count = np.diff(flat.first_slot)[factor]
    slots = ranges(flat.first_slot[factor], count)
    others = slots[flat.variable[slots] != np.repeat(owner, count)]
    arrays = (
        variables,
        first_states(graph)[variables],
        starts(np.bincount(place[owner], minlength=len(variables))),
        rows.of_factors[first_beliefs(graph)[factor]],
        own,
        starts(count - 1),
        flat.variable[others],
        flat.stride[others],
    )
    return Owners(*(array.astype(np.uint64) for array in arrays))


class Recorder:
    """Moves chains, and adds up their conditional probabilities after every sweep."""

    def __init__(self, sampler: Sampler, rows: Rows, means: RunningMeans, threads: int = 1) -> None:
        self.sampler, self.means, self.threads, self.pool = sampler, means, threads, ThreadMap(threads)
        potentials, graph = sampler.potentials, sampler.graph
        unseen = np.ones(graph.n_variables, bool)
        unseen[list(potentials.evidence)] = False
        self.owners = owners_of(sampler, rows, np.flatnonzero(unseen))
        cuts = [len(self.owners.variable) * k // threads for k in range(threads + 1)]
        self.parts = [(low, high) for low, high in pairwise(cuts) if low < high]
        self.most = min(CELL, max(1, BLOCK // max(1, graph.n_variables * means.chains)))

    def run(self, chains: Chains, sweeps: int) -> Iterator[States]:
        """Advance the chains and add up all sweeps; yield the states after each, some sweeps at a time."""
        n = len(chains.states)
        block = np.empty((min(self.most, sweeps), n, self.means.chains), chains.states.dtype)
        while sweeps:
            some, added = block[: min(len(block), sweeps)], 0
            self.sampler.record(chains, some, self.threads)
            while added < len(some):
                now = some[added : added + self.means.room]
                self.add(now)
                added += len(now)
            sweeps -= len(some)
            yield some

    def add(self, block: States) -> None:
        """Add states (sweeps, variables, chains) of not more sweeps than there is room for."""
        means = self.means
        for sums in (means.cell, means.current) if means.short else (means.cell,):
            if not all(self.pool(self._add, [(*part, block, sums) for part in self.parts])):
                told = impossible(self.sampler.potentials)
                raise ImpossibleEvidenceError(f"a chain is in an impossible state; {told}")
        means.count(len(block))

    def _add(self, begin: int, end: int, states: States, sums: FloatArray) -> bool:
        from isinglass.kernels.numba.sampling.gibbs import add_conditionals

        sampler, buffer = self.sampler, np.empty(int(self.sampler.graph.cards.max(initial=1)))
        part = np.uint64(begin), np.uint64(end), self.owners, sampler.near, sampler.model
        return bool(add_conditionals(*part, states, buffer, sums))
