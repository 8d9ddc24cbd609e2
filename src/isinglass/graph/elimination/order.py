"""Elimination orders: the order in which exact inference sums out the variables, and its cost.

To sum out v, all factors and messages that contain v are multiplied into one table, its bucket. The variables of a
bucket are v and its separator. The *width* is the size of the largest separator. The time of exact inference is
proportional to the number of entries of all buckets, its memory to that of all separators (the stored messages).

The order is found greedily (Koller and Friedman 2009, section 9.4.3), by min-weight. For each connected component that
is not trivial, min-fill, weighted min-fill, sweeps across the component (`sweeps`) and repetitions of the greedy rules
with random ties are tried, too. Each connected component is searched separately, so its order does not depend on the
others. Graphs with a large grid or a dense minor are not searched: no order fits (`bounds`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.elimination.bounds import dense_minor, square_grid
from isinglass.graph.factor_graph import FactorGraph
from isinglass.segments import starts
from isinglass.typing import FloatArray, IntArray, Mask
from isinglass.validation import bytes_text, instance, read_only, variables_of, whole_number

Restarts = int | Literal["long"] | None
Method = Literal["auto", "min_weight", "min_fill", "weighted_min_fill"]
METHODS: tuple[Method, ...] = ("auto", "min_weight", "min_fill", "weighted_min_fill")

BYTES = 8  # of a double
HOPELESS = 48.0  # log2 entries of a bucket that no machine holds: the search stops there
STATED = 1000.0  # log2 entries that are stated at most, so that doubles hold all costs
EASY = 1024.0  # entries of a part's largest bucket up to which the first order is good enough
WORTH_RESTARTS = 2.0**18
SEARCH_WORK = 300_000_000  # inner steps that the search may take for one part, about a second
MAX_RESTARTS = 100  # by default; more is for the caller to ask for
SEARCH_SHARE = 4  # restarts may take one step for so many table entries, less than the inference itself
LONG_RESTARTS, LONG_WORK = 1000, 1_000_000_000  # of a long search, about five seconds for a part
NOISE = 0.2  # by which the weights of a fill are changed at random
HUGE = 50_000  # variables above which a dense minor is looked for, which is quicker than a search
LARGE = 2000  # variables of a part above which a hopeless first order is not improved


@dataclass(frozen=True, eq=False)
class EliminationOrder:
    """An elimination order and its cost.

    Attributes
    ----------
    order : int array
        The variables in the order in which they are summed out; clamped and one-state variables are left out. It is
        not complete if `complete` is false.
    first, separators : int arrays
        The separator of ``order[i]`` is ``separators[first[i]:first[i + 1]]``.
    width : int
        The largest number of variables in a separator; at least this number if `complete` is false.
    log2_largest : float
        The base-2 logarithm of the entries of the largest bucket.
    entries, message_entries : float
        The total number of entries of all buckets (work), and of all separators (memory).
    most_inputs : float
        The largest total number of entries of the messages into one bucket.
    complete : bool
        False if there is a bucket that is too large for any machine, or if the search took too many steps. The costs
        are then only lower bounds.
    """

    order: IntArray
    first: IntArray
    separators: IntArray
    width: int
    log2_largest: float
    entries: float
    message_entries: float
    most_inputs: float
    complete: bool

    @property
    def bytes(self) -> float:
        """Memory that the messages and the working tables of exact inference take at most, in doubles."""
        largest = float(np.rint(2.0**self.log2_largest))
        return BYTES * (self.message_entries + 2 * largest + max(largest, self.most_inputs))

    @property
    def gave_up(self) -> bool:
        """Whether the search took too many steps, so that nobody knows what an order would need."""
        return not self.complete and self.log2_largest < HOPELESS

    @property
    def width_text(self) -> str:
        """The width, in words."""
        return f"width {self.width}" if self.complete else f"width at least {self.width}"

    def bytes_text(self, size: float) -> str:
        """Write how many bytes this order needs; it is a lower bound if the order is not complete."""
        if self.gave_up:
            return f"more than {bytes_text(size)} (the search for an order took too many steps)"
        return bytes_text(size) if self.complete else f"more than {bytes_text(size)}"

    def __repr__(self) -> str:
        return f"EliminationOrder: {self.width_text}, exact needs {self.bytes_text(self.bytes)}"


def elimination_order(
    graph: FactorGraph,
    method: Method = "auto",
    *,
    clamped: IntArray | list[int] | tuple[int, ...] = (),
    restarts: Restarts = None,
    random_state: int = 0,
    order: IntArray | Sequence[int] | None = None,
) -> EliminationOrder:
    """Find an elimination order.

    Parameters
    ----------
    graph : FactorGraph
    method : {"auto", "min_weight", "min_fill", "weighted_min_fill"}
        A greedy rule, or the best order of all of them.
    clamped : sequence of int
        Observed variables, which are left out.
    restarts : int or "long", optional
        The number of repetitions with random ties and random fill weights. By default hard components are searched for
        at most about as long as the inference itself would take. "long": a thousand repetitions, or about five seconds.
    random_state : int
        The seed for random ties.
    order : sequence of int, optional
        A given order, instead of a search; its cost is computed. It must contain each variable once; clamped and
        one-state variables may be left out.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> elimination_order(grid_graph(4, 4, 2)).width
    4
    >>> elimination_order(grid_graph(2, 8, 2), order=range(16)).width
    8
    """
    instance(graph, FactorGraph, "graph")
    if method not in METHODS:
        raise InputError("method", " or ".join(map(repr, METHODS)), repr(method))
    fixed = tuple(sorted(variables_of(clamped, graph.n_variables, "clamped").tolist()))
    tries = restarts if restarts in (None, "long") else whole_number(restarts, "restarts")
    seed = whole_number(random_state, "random_state")
    if order is not None:
        given = variables_of(order, graph.n_variables, "order")
        return graph.cached(("given_order", fixed, given.tobytes()), lambda: _given(graph, given, fixed))
    hopeless = graph.cached(("no order fits", fixed), lambda: _hopeless(graph, fixed))
    if hopeless is not None:
        return hopeless
    key = ("elimination_order", method, fixed, tries, seed)
    return graph.cached(key, lambda: _search(graph, method, fixed, tries, seed))


def partial_order(graph: FactorGraph) -> IntArray:
    """Return the order of `elimination_order`; where no order fits, that of the variables that are eliminated first.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> len(elimination_order(grid_graph(60, 60, 2)).order), len(partial_order(grid_graph(60, 60, 2))) > 2000
    (0, True)
    """
    return graph.cached(("elimination_order", "auto", (), None, 0), lambda: _search(graph, "auto", (), None, 0)).order


@dataclass(frozen=True, eq=False)
class _Part:
    """An interaction graph: adjacency (flat) and cardinalities, with its own vertex numbers."""

    first: IntArray
    neighbours: IntArray
    log_cards: FloatArray

    def __len__(self) -> int:
        return len(self.log_cards)


@dataclass(frozen=True, eq=False)
class _Attempt:
    """What one greedy run found on a part."""

    order: IntArray
    first: IntArray
    separators: IntArray
    sizes: FloatArray  # entries of the buckets
    stuck: int  # degree of the vertex that it stopped at
    work: int

    @property
    def entries(self) -> float:
        return float(self.sizes.sum())

    @property
    def rank(self) -> tuple[int, float]:
        """What makes an order better: more vertices eliminated, then fewer entries."""
        return -len(self.order), self.entries


def interaction_graph(graph: FactorGraph, kept: IntArray) -> tuple[IntArray, IntArray]:
    """Return the adjacency (flat) of the kept variables, renumbered: neighbours share a factor."""
    number = np.full(graph.n_variables, -1, np.int64)
    number[kept] = np.arange(len(kept))
    n = max(len(kept), 1)
    keys = [np.zeros(0, np.int64)]
    for group in graph.groups:
        scopes = number[group.scopes]
        for i in range(group.arity):
            for j in range(i + 1, group.arity):
                a, b = scopes[:, i], scopes[:, j]
                both = (a >= 0) & (b >= 0)
                keys += [a[both] * n + b[both], b[both] * n + a[both]]
    edges = np.unique(np.concatenate(keys))
    first = np.searchsorted(edges, np.arange(len(kept) + 1) * n)
    return first.astype(np.int64), edges % n


def _search(
    graph: FactorGraph, method: Method, clamped: tuple[int, ...], restarts: Restarts, seed: int
) -> EliminationOrder:
    kept, part = _free_part(graph, clamped)
    rule: Method = "min_weight" if method == "auto" else method
    attempt = _greedy(part, rule)
    if method == "auto" or restarts:
        attempt = _improve(part, attempt, method, restarts, seed)
    return _with_costs(attempt, kept, graph.cards)


def _free(graph: FactorGraph, clamped: tuple[int, ...]) -> Mask:
    """Mark the variables to eliminate."""
    free: Mask = graph.cards > 1
    free[list(clamped)] = False
    return free


def _hopeless(graph: FactorGraph, clamped: tuple[int, ...]) -> EliminationOrder | None:
    """Return an empty order, with lower bounds of its costs, if a bound shows that no order fits."""
    free = _free(graph, clamped)
    least = float(np.log2(graph.cards[free].min(initial=graph.cards.max(initial=1)))) if free.any() else 0.0
    width = square_grid(graph, free, int(HOPELESS // least)) if least else 0
    if not width and np.count_nonzero(free) > HUGE:
        width = dense_minor(graph, free, int(HOPELESS // least))
    if not width:
        return None
    log2_largest, none = min((width + 1) * least, STATED), np.zeros(0, np.int64)
    entries = float(np.exp2(log2_largest))
    return EliminationOrder(none, np.zeros(1, np.int64), none, width, log2_largest, entries, 0.0, 0.0, False)


def _free_part(graph: FactorGraph, clamped: tuple[int, ...]) -> tuple[IntArray, _Part]:
    """Return the variables to eliminate, and their interaction graph."""
    kept = np.flatnonzero(_free(graph, clamped))
    first, neighbours = interaction_graph(graph, kept)
    return kept, _Part(first, neighbours, np.log2(graph.cards[kept]))


def _given(graph: FactorGraph, order: IntArray, clamped: tuple[int, ...]) -> EliminationOrder:
    """Price an order of the caller's."""
    kept, part = _free_part(graph, clamped)
    number = np.full(graph.n_variables, -1, np.int64)
    number[kept] = np.arange(len(kept))
    asked = number[order][number[order] >= 0]
    if len(asked) < len(kept):
        missing = np.setdiff1d(kept, order)
        raise InputError("order", "all variables with several states", f"none of {missing[:5].tolist()}")
    attempt = _followed(part, asked, np.inf)
    if attempt is None:
        raise InputError("order", f"one whose tables have at most 2^{HOPELESS:g} entries", "larger ones")
    return _with_costs(attempt, kept, graph.cards)


def _followed(part: _Part, order: IntArray, max_entries: float) -> _Attempt | None:
    """Eliminate in this order, unless that takes more table entries."""
    from isinglass.graph.elimination.sweeps import follow

    found = follow(order, part.first, part.neighbours, part.log_cards, HOPELESS, max_entries)
    return None if found is None else _attempt(part, *found, 0, len(found[2]))


def _greedy(part: _Part, rule: Method, ties: FloatArray | None = None, weights: FloatArray | None = None) -> _Attempt:
    """Eliminate greedily; ties go to fewer states, the fill weights are those of the rule, unless they are given."""
    from isinglass.graph.elimination.small import MOST, eliminate_small

    repeated = ties is not None
    if weights is None:
        weights = np.exp2(part.log_cards) if rule == "weighted_min_fill" else np.ones(len(part))
    ties = part.log_cards if ties is None else ties
    use_fill = rule != "min_weight"
    arguments = (part.first, part.neighbours, part.log_cards, weights, ties, use_fill, HOPELESS)
    if len(part) <= MOST and not repeated:
        return _attempt(part, *eliminate_small(*arguments), 0)
    from isinglass.graph.elimination.greedy import eliminate

    return _attempt(part, *eliminate(*arguments, SEARCH_WORK))


def _attempt(part: _Part, order: IntArray, first: IntArray, separators: IntArray, stuck: int, work: int) -> _Attempt:
    of_separators = np.concatenate([[0.0], np.cumsum(part.log_cards[separators])])
    log_sizes = part.log_cards[order] + of_separators[first[1:]] - of_separators[first[:-1]]
    return _Attempt(order, first, separators, np.rint(np.exp2(log_sizes)), int(stuck), int(work))


def _improve(part: _Part, attempt: _Attempt, method: Method, restarts: Restarts, seed: int) -> _Attempt:
    """Search for a better order in each connected part that is hard; keep the first order elsewhere."""
    if len(attempt.order) == len(part) and attempt.sizes.max(initial=1.0) <= EASY:
        return attempt
    label = _labels(part)
    largest = np.zeros(int(label.max(initial=-1)) + 1)
    np.maximum.at(largest, label[attempt.order], attempt.sizes)
    unfinished = np.ones(len(part), bool)
    unfinished[attempt.order] = False
    largest[np.unique(label[unfinished])] = np.inf
    hopeless = np.isinf(largest) & (np.bincount(label, minlength=len(largest)) > LARGE)
    hard = np.flatnonzero((largest > EASY) & ~hopeless)
    if not len(hard):
        return attempt
    pieces = [_selected(attempt, ~np.isin(label[attempt.order], hard))]
    by_part = np.argsort(label, kind="stable")
    first = np.searchsorted(label[by_part], np.arange(len(largest) + 1))
    number = np.empty(len(part), np.int64)  # of each vertex in its own part
    number[by_part] = np.arange(len(part)) - first[label[by_part]]
    known: dict[bytes, _Attempt] = {}
    for piece in hard.tolist():
        members = by_part[first[piece] : first[piece + 1]]
        sub = _subpart(part, members, number)
        key = b"/".join(array.tobytes() for array in (sub.first, sub.neighbours, sub.log_cards))
        if key not in known:
            known[key] = _best(sub, method, restarts, seed)
        best = known[key]
        pieces.append(replace(best, order=members[best.order], separators=members[best.separators]))
    return _concatenated(pieces)


def _best(part: _Part, method: Method, restarts: Restarts, seed: int) -> _Attempt:
    """Try the rules, then random tie-breaking, for no longer than the inference itself will take."""
    mixed = bool((part.log_cards != part.log_cards[0]).any())
    rules: list[Method] = [method]
    if method == "auto":
        rules = ["min_weight", "min_fill", *(["weighted_min_fill"] if mixed else [])]  # type: ignore[list-item]
    greedy, rule = min(((_greedy(part, rule), rule) for rule in rules), key=lambda found: found[0].rank)
    best = _swept(part, greedy) if method == "auto" else greedy
    for attempt in _repeated(part, rule, method == "auto", best, restarts, seed):
        best = min(best, attempt, key=lambda found: found.rank)
    return best


def _repeated(
    part: _Part, rule: Method, free: bool, best: _Attempt, restarts: Restarts, seed: int
) -> Iterator[_Attempt]:
    """Repeat a rule with random ties, in turns (where the rule is free) with least fill of random weights."""
    rng, spent, entries = np.random.default_rng(seed), 0, best.entries
    most = restarts if isinstance(restarts, int) else LONG_RESTARTS if restarts == "long" else MAX_RESTARTS
    for i in range(most):
        worth = entries >= WORTH_RESTARTS and spent <= min(SEARCH_WORK, entries / SEARCH_SHARE)
        if (restarts is None and not worth) or (restarts == "long" and spent > LONG_WORK):
            return
        ties, noise = rng.random((2, len(part)))
        if free and i % 2:
            attempt = _greedy(part, "min_fill", ties, part.log_cards * (1 + NOISE * noise))
        else:
            attempt = _greedy(part, rule, ties)
        spent, entries = spent + attempt.work, min(entries, attempt.entries)
        yield attempt


def _swept(part: _Part, best: _Attempt) -> _Attempt:
    """Try sweeps on a connected part, unless it is easy anyway; return the best order."""
    from isinglass.graph.elimination.sweeps import sweeps

    complete = len(best.order) == len(part)
    if complete and best.entries < WORTH_RESTARTS:
        return best
    for order in sweeps(part.first, part.neighbours):
        attempt = _followed(part, order, best.entries if len(best.order) == len(part) else np.inf)
        best = best if attempt is None else attempt
    return best


def _labels(part: _Part) -> IntArray:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(part.neighbours), np.int8)
    matrix = csr_array((ones, part.neighbours, part.first), shape=(len(part), len(part)))
    labels: IntArray = connected_components(matrix, directed=False)[1].astype(np.int64)
    return labels


def _subpart(part: _Part, members: IntArray, number: IntArray) -> _Part:
    """Return the graph of some vertices, which nothing else is tied to, with the given numbers."""
    counts = np.diff(part.first)[members]
    first = starts(counts)
    within = np.arange(first[-1]) - np.repeat(first[:-1], counts)
    neighbours = number[part.neighbours[np.repeat(part.first[members], counts) + within]]
    return _Part(first.astype(np.int64), neighbours, part.log_cards[members])


def _selected(attempt: _Attempt, keep: Mask) -> _Attempt:
    counts = np.diff(attempt.first)
    separators = attempt.separators[np.repeat(keep, counts)]
    first = starts(counts[keep])
    return replace(attempt, order=attempt.order[keep], first=first, separators=separators, sizes=attempt.sizes[keep])


def _concatenated(pieces: list[_Attempt]) -> _Attempt:
    order, separators, sizes = (
        np.concatenate([getattr(p, name) for p in pieces]) for name in ("order", "separators", "sizes")
    )
    first = starts(np.concatenate([np.diff(p.first) for p in pieces]))
    stuck = max(p.stuck for p in pieces[1:]) if len(pieces) > 1 else pieces[0].stuck
    return _Attempt(order, first, separators, sizes, stuck, sum(p.work for p in pieces))


def _with_costs(attempt: _Attempt, kept: IntArray, cards: IntArray) -> EliminationOrder:
    order, separators = kept[attempt.order], kept[attempt.separators]
    complete = len(order) == len(kept)
    messages = attempt.sizes / cards[order]
    largest, entries = float(np.log2(attempt.sizes.max(initial=1.0))), attempt.entries
    if attempt.stuck and not complete:  # at a bucket that is larger than that
        largest, entries = HOPELESS, max(entries, 2.0**HOPELESS)
    return EliminationOrder(
        order=read_only(order),
        first=read_only(attempt.first),
        separators=read_only(separators),
        width=int(max(np.diff(attempt.first).max(initial=0), 0 if complete else attempt.stuck)),
        log2_largest=largest,
        entries=entries,
        message_entries=float(messages.sum()),
        most_inputs=_most_inputs(order, attempt.first, separators, messages, len(cards)),
        complete=complete,
    )


def _most_inputs(order: IntArray, first: IntArray, separators: IntArray, messages: FloatArray, n: int) -> float:
    """Return the most entries of the messages into one bucket, that of the separator's first eliminated variable."""
    has_parent = np.diff(first) > 0
    if not has_parent.any():
        return 0.0
    position = np.full(n, len(order), np.int64)
    position[order] = np.arange(len(order))
    parent = np.minimum.reduceat(position[separators], first[:-1][has_parent])
    return float(np.bincount(parent, messages[has_parent]).max())
