"""The elimination order of exact inference: the caller's, the first one found, or the result of a longer search.

The first search takes no longer than the inference itself would. If its order does not fit in memory, but another one
might, a longer search follows before the model is refused. It is announced by a warning, because it takes some seconds.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from isinglass.errors import SearchWarning
from isinglass.graph.elimination.bucket_tree import bucket_tree
from isinglass.graph.elimination.cost import exact_bytes
from isinglass.graph.elimination.order import (
    LONG_RESTARTS,
    WORTH_RESTARTS,
    EliminationOrder,
    Restarts,
    elimination_order,
)
from isinglass.graph.factor_graph import FactorGraph
from isinglass.inference.algorithm import Cost, Progress
from isinglass.inference.junction_tree.layout import Layout, make_layout
from isinglass.inference.junction_tree.recycling import recycled
from isinglass.potentials import Potentials
from isinglass.runtime.array_pool import Pool
from isinglass.runtime.memory import memory_limit_bytes, require_memory
from isinglass.typing import IntArray
from isinglass.validation import bytes_text

LITTLE = 1e6  # bytes that always fit, so that nobody asks how many are left, which takes time
SAVES = 1000  # a longer search does not save more memory than this factor
NOBODY_HAS = 1e14  # bytes of memory


class Wishes(NamedTuple):
    """What the caller asks for: a limit of bytes, restarts of the search or the order itself, threads, beliefs."""

    memory_limit: str | int | float | None = None
    restarts: Restarts = None
    order: Sequence[int] | IntArray | None = None
    threads: int = 1
    beliefs: bool = True  # not log Z alone
    more: bool = False  # more than beliefs and log Z, such as samples: log Z alone is no choice


def order_for(potentials: Potentials, wishes: Wishes, progress: Progress | None = None) -> EliminationOrder:
    """Return the order for these potentials' evidence."""
    graph, clamped = potentials.graph, tuple(potentials.evidence)
    order = elimination_order(graph, clamped=clamped, restarts=wishes.restarts, order=wishes.order)
    if wishes.restarts is not None or wishes.order is not None or order.entries < WORTH_RESTARTS:
        return order
    if is_at_hand(potentials, order, wishes):
        return order
    needed, limit = bytes_of(potentials, order, wishes.beliefs), memory_limit_bytes(wishes.memory_limit)
    if not limit < needed <= SAVES * limit:
        return order
    return graph.cached(("longer search", clamped), lambda: _longer(potentials, order, needed, limit, progress))


def _longer(
    potentials: Potentials, order: EliminationOrder, needed: float, limit: int, progress: Progress | None
) -> EliminationOrder:
    """Announce a longer search, and make it; return the order that takes least memory."""
    text = f"exact inference would need {bytes_text(needed)}, more than {bytes_text(limit)}, in the order found first"
    warnings.warn(f"{text}: now searching longer, for some seconds", SearchWarning, stacklevel=2)
    if progress is not None:
        progress("searching longer for an elimination order", 0.0)
    other = elimination_order(potentials.graph, clamped=tuple(potentials.evidence), restarts="long")
    return min(order, other, key=lambda found: bytes_of(potentials, found))


def bytes_of(potentials: Potentials, order: EliminationOrder, beliefs: bool = True) -> float:
    """Return the bytes that exact inference takes with an order; infinite where that is not known."""
    if not order.complete:
        return np.inf
    whole = exact_bytes(potentials.graph, order, potentials.groups)
    if beliefs:
        return whole
    _, kept = recycled_of(potentials.graph, layout_of(potentials.graph, order))
    return whole - potentials.dtype.itemsize * (order.message_entries - kept)


def is_at_hand(potentials: Potentials, order: EliminationOrder, wishes: Wishes) -> bool:
    """Tell whether an inference before has left the memory for all messages; nobody asks then how much is left."""
    if wishes.memory_limit is not None or not order.complete:
        return False
    entries = 2 * sum(tables.size for tables in potentials.groups) + int(order.message_entries)
    return pool_of(potentials.graph).holds((entries,), potentials.dtype)


def pool_of(graph: FactorGraph) -> Pool:
    """Return the pool for the values of a graph's inferences."""
    return graph.cached("exact pool", Pool)


def layout_of(graph: FactorGraph, order: EliminationOrder) -> Layout:
    """Return the layout of an order, made once for a graph."""
    return graph.cached(("layout", order), lambda: make_layout(bucket_tree(graph, order)))


def recycled_of(graph: FactorGraph, layout: Layout) -> tuple[IntArray, int]:
    """Return the places of messages for log Z alone, found once for a graph."""
    return graph.cached(("recycled", layout.tree.order), lambda: recycled(layout))


def cost_of(potentials: Potentials, order: EliminationOrder, beliefs: bool = True) -> Cost:
    """Price an order."""
    needed, more = bytes_of(potentials, order, beliefs), "" if order.complete else "more than "
    bytes_needed = _bytes_text(potentials, order, needed)
    text = f"{order.width_text}, {bytes_needed}, {more}{order.entries:.3g} table entries"
    return Cost(needed, order.entries, text)


def _bytes_text(potentials: Potentials, order: EliminationOrder, needed: float) -> str:
    """Say what an order needs; at least what its first part does, where the search did not finish."""
    return order.bytes_text(needed if order.complete else exact_bytes(potentials.graph, order, potentials.groups))


def affordable(potentials: Potentials, wishes: Wishes, progress: Progress | None) -> Layout:
    """Return the layout of the order; refuse if it does not fit."""
    order = order_for(potentials, wishes, progress)
    needed = bytes_of(potentials, order, wishes.beliefs)
    if (needed > LITTLE or wishes.memory_limit is not None) and not is_at_hand(potentials, order, wishes):
        _require(potentials, order, needed, wishes)
    layout = layout_of(potentials.graph, order)
    return layout if wishes.beliefs else layout.with_messages(*recycled_of(potentials.graph, layout))


def remedies(potentials: Potentials, order: EliminationOrder, wishes: Wishes) -> str:
    """Say what may help where an order does not fit, and nothing that cannot."""
    needed, limit = bytes_of(potentials, order, wishes.beliefs), memory_limit_bytes(wishes.memory_limit)
    longer = wishes.restarts is None or (isinstance(wishes.restarts, int) and wishes.restarts < LONG_RESTARTS)
    alone = bytes_of(potentials, order) - potentials.dtype.itemsize * order.message_entries  # log Z, or a bit more
    found = {
        "raise memory_limit (--memory)": needed <= NOBODY_HAS,
        "leave out order=, so that one is searched": wishes.order is not None,
        f"search longer for an elimination order (restarts={LONG_RESTARTS}, --restarts {LONG_RESTARTS})": (
            wishes.order is None and longer and needed <= SAVES * limit
        ),
        "give an elimination order (order=)": wishes.order is None and order.gave_up,
        "observe more variables": True,
        "ask for log Z alone (beliefs=False, --task PR)": wishes.beliefs and not wishes.more and alone <= limit,
    }
    return ", ".join(text for text, helps in found.items() if helps)


def _require(potentials: Potentials, order: EliminationOrder, needed: float, wishes: Wishes) -> None:
    more = "" if order.complete else "more than "
    what = (
        f"exact inference needs {_bytes_text(potentials, order, needed)} "
        f"({order.width_text}, largest table {more}2^{order.log2_largest:.1f} entries)"
    )
    limit, remedy = memory_limit_bytes(wishes.memory_limit), remedies(potentials, order, wishes)
    require_memory(needed, limit, what, f"{remedy}, or use an approximate algorithm")
