"""Exact inference by a junction tree (here: the bucket tree of an elimination order).

There is one upward pass of messages and one downward pass of beliefs. So log Z and the marginals of all variables
and factors cost about three times as much as log Z alone; forests and chains take linear time. The same messages, in
the max semiring, give the most probable assignments. Sampling from the last bucket to the first gives exact samples.
The equations are in `isinglass.kernels.numba.junction_tree.buckets`.

n best assignments: the partition of Lawler (1972). Backtracking from the last bucket to the first gives the best
assignment. Every other assignment first differs from it at some bucket b, with another state k. The score of the best
of these is lower by the loss of k at b, which the messages give. Each such candidate is partitioned in the same way.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from isinglass.graph.elimination.order import Restarts
from isinglass.graph.factor_graph import FactorGraph, FactorGroup
from isinglass.inference.algorithm import Algorithm, Cost, Facts, Progress, Taping, register
from isinglass.inference.assignment import Assignment, centred, is_wide, ranked
from isinglass.inference.brute import Brute
from isinglass.inference.complex_step import along_beliefs
from isinglass.inference.evidence import base_states
from isinglass.inference.junction_tree.orders import Wishes, cost_of, order_for, remedies
from isinglass.inference.junction_tree.upward import Upward, upward
from isinglass.inference.result import FactorBeliefs, Info, Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.runtime.memory import memory_limit_bytes
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import bytes_text, flag, jobs_of

LARGE, TOP = 50, 300  # derivatives by beliefs from 2^50 on are brought to 2^300, which is done with logarithms
DRAWS = 1_000_000  # uniform numbers drawn at once; Ctrl-C is heard between


@register
@dataclass(frozen=True)
class Exact(Algorithm):
    """Exact inference.

    Parameters
    ----------
    memory_limit : str, int or None
        The memory that it may use, such as "12GB" or a number of bytes; by default half of the free memory. If the
        model needs more, it is refused before any work.
    restarts : int or "long", optional
        The number of randomised repetitions of the search for an elimination order (see `elimination_order`). More
        repetitions find cheaper orders for hard models. By default a few, and "long" if the order found does not fit
        in memory.
    order : sequence of int, optional
        The elimination order, instead of a search. Variables that are observed or have one state may be left out.
    beliefs : bool
        False: compute only log Z, in about a third of the time and with much less memory, because each message is
        freed after its use. If beliefs are used later, they are computed by a second run.
    n_jobs : int, optional
        The number of threads; -1: one for each processor. The result has the
        same bits for any number.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    >>> round(ig.infer(p, "exact").log_z, 6)
    13.891525
    """

    memory_limit: str | int | float | None = None
    restarts: Restarts = None
    order: Sequence[int] | IntArray | None = None
    beliefs: bool = True
    n_jobs: int | None = None

    name: ClassVar[str] = "exact"
    facts: ClassVar[Facts] = replace(
        Brute.facts, summary="junction tree: exact marginals, log Z, maxima and samples", threads=True
    )

    def cost(self, potentials: Potentials) -> Cost:
        """Price the elimination order that `run` would take."""
        return cost_of(potentials, order_for(potentials, self.wishes), self.beliefs)

    @property
    def wishes(self) -> Wishes:
        """What is asked of the elimination order."""
        return Wishes(
            self.memory_limit,
            self.restarts,
            self.order,
            jobs_of(self.n_jobs),
            flag(self.beliefs, "beliefs"),
        )

    @property
    def _all_wishes(self) -> Wishes:
        """What is asked of the order where log Z alone would be of no use."""
        return self.wishes._replace(beliefs=True, more=True)

    @property
    def splits(self) -> bool:
        """Whether examples can be run apart: not in an order that is given for all of them."""
        return self.order is None

    def run(
        self, potentials: Potentials, progress: Progress | None = None, tape: Taping = False, init: Result | None = None
    ) -> Result:
        """Pass messages up and beliefs down."""
        up = upward(potentials, False, self.wishes, progress, self.beliefs)
        later = _Later(self, potentials, up)
        whole = replace(self, beliefs=True)
        return Result(
            potentials,
            up.component_log_z,
            VariableBeliefs(potentials.graph, later.variables),
            FactorBeliefs(potentials.graph, later.factors),
            Info(self.name, True, 1, 0.0, "exact", 0.0),
            joint_of=partial(whole._joint, potentials),
            reverse=partial(along_beliefs, whole.run, potentials, shifts=_shifts) if tape else None,
        )

    def shortage(self, potentials: Potentials) -> str:
        """Compare the cost with the memory limit."""
        cost, limit = self.cost(potentials), memory_limit_bytes(self.memory_limit)
        if cost.bytes <= limit:
            return ""
        remedy = remedies(potentials, order_for(potentials, self.wishes), self.wishes)
        return f"exact inference does not fit ({cost.text}; the memory limit is {bytes_text(limit)}); {remedy}"

    def maximise(self, potentials: Potentials, n: int = 1, progress: Progress | None = None) -> list[Assignment]:
        """Follow the max-messages down; see the module's text for n > 1."""
        judged = centred(potentials) if is_wide(potentials) else potentials
        up = upward(judged, True, self._all_wishes, progress)
        return ranked(potentials, np.array(_n_best(judged, up, n)), judged)

    def sample(self, potentials: Potentials, n: int, rng: np.random.Generator) -> IntArray:
        """Draw each variable given its separator, the last bucket first."""
        from isinglass.kernels.numba.junction_tree import descent

        up = upward(potentials, False, self._all_wishes)
        passes, buckets = up.passes, up.passes.layout.tree.n_buckets
        states = np.tile(base_states(potentials), (n, 1))
        row = np.empty(int(potentials.graph.cards.max(initial=1)))
        step = max(1, DRAWS // max(buckets, 1))
        for first in range(0, n, step):
            some = states[first : first + step]
            uniforms = rng.random((len(some), buckets))
            descent.sample(passes.layout.program, passes.values, passes.start_of, up.semiring_of, uniforms, some, row)
        return states

    def _joint(self, potentials: Potentials, wanted: IntArray) -> Array:
        """Add a constant factor on the wanted variables; its belief is their joint belief."""
        return self.run(_with_factor(potentials, wanted)).factor(potentials.graph.n_factors)


class _Later:
    """The flat beliefs of variables and factors: known, or from a run that is made when they are first asked for."""

    def __init__(self, algorithm: Exact, potentials: Potentials, up: Upward) -> None:
        self.algorithm, self.potentials, self.known = algorithm, potentials, (up.variables, up.factors)

    def both(self) -> tuple[Array, Array]:
        """Return both; a run that two threads make at the same time gives them the same."""
        variables, factors = self.known
        if variables is None or factors is None:
            whole = upward(self.potentials, False, self.algorithm._all_wishes, marginals=True)
            self.known = whole.variables, whole.factors
            return self.both()
        return variables, factors

    def variables(self) -> Array:
        """Return the beliefs of variables."""
        return self.both()[0]

    def factors(self) -> Array:
        """Return the beliefs of factors."""
        return self.both()[1]


def _shifts(largest: FloatArray) -> IntArray:
    """Return the exponents of steps, to one; for large derivatives, of tiny beliefs, to where logarithms are used."""
    exponent = np.frexp(largest)[1].astype(np.int64)
    return np.where(exponent < LARGE, 0, TOP) - exponent


def _with_factor(potentials: Potentials, scope: IntArray) -> Potentials:
    """Return the potentials with one more factor, all zeros in log, on these variables; all in one component."""
    graph = potentials.graph
    shape = tuple(graph.cards[scope].tolist())
    group = FactorGroup(scope[None], shape, np.array([graph.n_factors]))
    larger = FactorGraph._build(graph.cards, [*graph.groups, group])
    tables = [*potentials.groups, np.zeros((1, *shape), potentials.dtype)]
    return Potentials._build(larger, tables, [*potentials.table_ids, np.zeros(1, np.int64)], potentials.evidence)


def _n_best(potentials: Potentials, up: Upward, n: int) -> list[IntArray]:
    """Return up to n assignments, best first (up to rounding)."""
    from isinglass.kernels.numba.junction_tree.descent import descend
    from isinglass.kernels.numba.junction_tree.strided import LOG_MAX

    own, passes = up.passes.layout.tree.order.order, up.passes
    cards = potentials.graph.cards[own]
    first = np.concatenate([[0], np.cumsum(cards)])
    bucket_of = np.repeat(np.arange(len(own)), cards) if n > 1 else np.zeros(0, np.int64)
    losses = np.full(len(bucket_of), -np.inf)
    row = np.empty(int(potentials.graph.cards.max(initial=1)))
    found: list[IntArray] = []
    # (loss, tie, parent solution, bucket where it leaves that solution, other state there)
    heap: list[tuple[float, int, int, int, int]] = [(0.0, 0, -1, len(own), 0)]
    pushed = 0
    while heap and len(found) < n:
        loss, _, parent, bucket, state = heapq.heappop(heap)
        states = base_states(potentials) if parent < 0 else found[parent].copy()
        if parent >= 0:
            states[own[bucket]] = state
        descend(passes.layout.program, bucket, passes.values, passes.start_of[LOG_MAX], states, first, losses, row)
        found.append(states)
        wanted = n - len(found)
        if not wanted:
            break
        losses[first[:bucket] + states[own[:bucket]]] = -np.inf
        for entry in _largest(losses[: first[bucket]], wanted):
            pushed += 1
            b = int(bucket_of[entry])
            heapq.heappush(heap, (loss - float(losses[entry]), pushed, len(found) - 1, b, entry - int(first[b])))
        if len(heap) > 4 * wanted:
            heap = heapq.nsmallest(wanted, heap)  # sorted, so still a heap
    return found


def _largest(values: FloatArray, most: int) -> list[int]:
    """Return the entries of the largest values, at most `most` of them; -inf does not count."""
    entries = np.argpartition(-values, most - 1)[:most] if most < len(values) else np.arange(len(values))
    chosen: list[int] = entries[values[entries] > -np.inf].tolist()
    return chosen
