"""How threads share the work on a graph.

The partition and the order of sums depend only on the graph, never on the number of threads, so any number of threads
gives the same bits. A small component is processed by one thread. A large one is divided into blocks: rows of a grid,
or ranges of variables and of links. If several blocks add to one number, each has its own copy, and the copies are
added in a fixed order.

Values that are computed entry by entry, and maxima, have the same bits for any partition. These use ranges of flat
arrays, a few for each thread.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from isinglass import segments
from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.message_graph import edges_of
from isinglass.kernels.layout import Edges, Span
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, DType, IntArray

BLOCK = 2**18  # entries of tables that a block of a large component has at least: a fraction of a millisecond
LARGE = 4  # a component with work for fewer blocks is small
BLOCKS = 64  # of a component, or pieces of a batch, at most
RANGE = 2**16  # entries of a range, or of tables in a piece of a batch, at least
LIGHT = 2**18  # entries of a range that is read or written once: a thread that wakes takes as long
FEW = 2  # pieces for each thread, of work that can be cut anywhere
GROUPS = 24  # of components that add up derivatives by tables together, where there is little work


class Share(NamedTuple):
    """A part of a graph that one thread works on: whole components, or (`inner`) a block of a large one."""

    span: Span
    inner: bool


def shares_of(graph: FactorGraph) -> list[Share]:
    """Return the parts of a graph, in its order; one, if components do not lie side by side.

    Examples
    --------
    >>> from isinglass.graph.builders import grid_graph
    >>> len(shares_of(grid_graph(3, 3, 2)))
    1
    """
    return graph.cached("shares", lambda: _shares(edges_of(graph), graph.n_components))


def _shares(edges: Edges, n: int) -> list[Share]:
    whole = Span(0, len(edges.cards), 0, len(edges.component), 0, n)
    in_line = (np.diff(edges.variable_component) >= 0).all() and (np.diff(edges.component) >= 0).all()
    work = np.bincount(edges.component, edges.size, n).astype(np.int64)
    if not in_line or work.sum() < 2 * RANGE:
        return [Share(whole, inner=False)]
    variables, links = (np.searchsorted(of, np.arange(n + 1)) for of in (edges.variable_component, edges.component))
    bounds, shares = _piece_bounds(edges, work), list[Share]()
    for first, last in pairwise(bounds.tolist()):
        count = block_count(int(work[first])) if last == first + 1 else 1
        span = Span(*(int(v) for v in (variables[first], variables[last], links[first], links[last], first, last)))
        shares += [Share(one, inner=count > 1) for one in _blocks(span, count)]
    return shares


def _piece_bounds(edges: Edges, work: IntArray) -> IntArray:
    """Return where pieces of a batch begin, and the end of the last: whole groups; a large component is a piece."""
    n = len(work)
    large = np.flatnonzero(work >= LARGE * BLOCK)
    groups = component_groups(edges, n)
    least = max(RANGE, int(work.sum()) // BLOCKS)
    done = np.concatenate([[0], np.cumsum(work)])[groups] // least
    begins = groups[np.diff(done, prepend=-1) > 0]
    return np.unique(np.concatenate([begins, large, large + 1, [n]]))


def _blocks(span: Span, count: int) -> list[Span]:
    """Cut the variables and the links of a span."""
    variables, links = span.last_variable - span.first_variable, span.last_link - span.first_link
    return [
        span._replace(
            first_variable=span.first_variable + variables * b // count,
            last_variable=span.first_variable + variables * (b + 1) // count,
            first_link=span.first_link + links * b // count,
            last_link=span.first_link + links * (b + 1) // count,
        )
        for b in range(count)
    ]


def component_groups(edges: Edges, n: int) -> IntArray:
    """Return where groups of components begin, of about equal work, and the end of the last."""
    work = np.cumsum(np.bincount(edges.component, edges.size, n))
    most = BLOCKS if n and work[-1] >= BLOCKS * RANGE else GROUPS
    if n <= most:
        return np.arange(n + 1)
    cuts = np.searchsorted(work, work[-1] * np.arange(1, most) / most) + 1
    return np.unique(np.concatenate([[0], cuts.clip(0, n), [n]]))


def block_count(work: int) -> int:
    """Return the number of blocks of a component whose tables have so many entries; one if it is small.

    Examples
    --------
    >>> block_count(1000), block_count(10 * BLOCK), block_count(10**12)
    (1, 10, 64)
    """
    return min(BLOCKS, work // BLOCK) if work >= LARGE * BLOCK else 1


def cut(length: int, count: int) -> list[tuple[int, int]]:
    """Cut a length into ranges of about equal size, none of them empty.

    Examples
    --------
    >>> cut(10, 3), cut(2, 3)
    ([(0, 3), (3, 6), (6, 10)], [(0, 1), (1, 2)])
    """
    count = max(1, min(length, count))
    return list(pairwise(length * i // count for i in range(count + 1)))


def pieces_at_most(spread: ThreadMap) -> int:
    """Return into how many pieces work is cut that gives the same bits however it is cut.

    Examples
    --------
    >>> from isinglass.runtime.threads import team
    >>> pieces_at_most(team(1)), pieces_at_most(team(2))
    (1, 4)
    """
    return min(BLOCKS, FEW * spread.threads) if spread.threads > 1 else 1


def in_ranges(spread: ThreadMap, length: int, function: Callable[[int, int], object], least: int = RANGE) -> None:
    """Call a function with the bounds of ranges; what it does must not depend on how they are cut."""
    if spread.threads == 1 or length < 2 * least:
        function(0, length)
    else:
        spread(function, cut(length, min(pieces_at_most(spread), length // least)))


def fill(spread: ThreadMap, out: Array, value: float) -> None:
    """Fill a contiguous array."""
    if spread.threads == 1:
        out.fill(value)
        return
    flat = out.reshape(-1)
    in_ranges(spread, flat.size, lambda first, last: flat[first:last].fill(value), LIGHT)


def zeros(spread: ThreadMap, shape: tuple[int, ...], dtype: DType) -> Array:
    """Return zeros, to which each thread writes a part: then they take the memory from the system together."""
    if spread.threads == 1:
        return np.zeros(shape, dtype)
    out = np.empty(shape, dtype)
    fill(spread, out, 0)
    return out


def smallest(spread: ThreadMap, values: Array, initial: float) -> float:
    """Return the smallest real part of a flat array, at most `initial`; NaN, if there is one."""
    if spread.threads == 1:
        return float(values.real.min(initial=initial))
    found: list[float] = []
    in_ranges(spread, len(values), lambda a, b: found.append(float(values.real[a:b].min(initial=initial))), LIGHT)
    return float(np.min(found))


def component_sums(spread: ThreadMap, component: IntArray, starts: IntArray | None, values: Array, n: int) -> Array:
    """Do what `segments.component_sums` does, to the last bit: each component is added up by one thread."""
    if spread.threads == 1 or starts is None or not len(starts):
        return segments.component_sums(component, starts, values, n)
    total, ends = np.zeros(n, values.dtype), np.append(starts, len(values))

    def add_up(first: int, last: int) -> None:
        begin = starts[first]
        total[component[starts[first:last]]] = np.add.reduceat(values[begin : ends[last]], starts[first:last] - begin)

    in_ranges(spread, len(starts), add_up, 1 + RANGE * len(starts) // len(values))
    return total


def copy(spread: ThreadMap, out: Array, values: Array | float) -> None:
    """Copy values into an array of any strides."""
    _along(spread, out, values, lambda one, two: np.copyto(one, two))


def logarithms(spread: ThreadMap, values: Array) -> Array:
    """Return the logarithms of a flat array."""
    out = np.empty_like(values)
    in_ranges(spread, len(values), lambda first, last: np.log(values[first:last], out=out[first:last]))
    return out


def copied(spread: ThreadMap, values: Array) -> Array:
    """Return a copy of a flat array."""
    out = np.empty_like(values)
    copy(spread, out, values)
    return out


def add(spread: ThreadMap, out: Array, values: Array) -> None:
    """Add values to an array of any strides."""
    _along(spread, out, values, lambda one, two: np.add(one, two, out=one))


def _along(spread: ThreadMap, out: Array, values: Array | float, function: Callable[[Array, Array], object]) -> None:
    """Call a function with parts of two arrays, cut along the longest axis but the last (or along the only one)."""
    if spread.threads == 1 or out.size < 2 * RANGE:
        function(out, np.asarray(values))
        return
    given = np.broadcast_to(values, out.shape)
    axis = int(np.argmax(out.shape[:-1])) if out.ndim > 1 else 0

    def part(first: int, last: int) -> None:
        where = (slice(None),) * axis + (slice(first, last),)
        function(out[where], given[where])

    spread(part, cut(out.shape[axis], min(pieces_at_most(spread), out.size // RANGE)))
