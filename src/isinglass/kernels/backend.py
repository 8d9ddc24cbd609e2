"""What message passing asks of a backend, and which backend serves it.

A backend computes on flat arrays (see `kernels.layout`): a forward step and its reverse, the read-out of beliefs and
its reverse, and the measure of convergence. It writes to the arrays that it is given. `kernels.numba.backend` is the
one that serves by default; another one is put in its place by `using`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Protocol

from isinglass.kernels.layout import (
    Bars,
    BeliefBars,
    Beliefs,
    Edges,
    Queue,
    Scratch,
    Semiring,
    Span,
    Status,
    Values,
)
from isinglass.runtime.compilation.calls import Calls
from isinglass.typing import Array, FloatArray, IntArray, Mask

Loop = Callable[..., None]


class MessageRun(Protocol):
    """What a backend knows of a run of message passing."""

    edges: Edges
    span: Span  # the part of the graph to work on: variables and links, or, where threads share it, one of both
    semiring: Semiring
    units: Array  # the zero and the one of the semiring
    states: tuple[int, ...]  # as long as every variable has states, if that is one small number; else empty
    damping: float
    scratch: Scratch
    m: Array  # the messages from links to variables
    n: Array  # room for the messages from variables to links
    calls: Calls  # of loops, whose arguments have the same types in all iterations


class MessagePassingKernels(Protocol):
    """The backend of message passing. `pairs` and `grids` are faster loops for special graphs, which it may lack."""

    @property
    def pairs(self) -> PairKernels | None:
        """Loops for pairwise graphs."""

    @property
    def grids(self) -> GridKernels | None:
        """Loops for regular grids."""

    def take_tops(
        self, rows: FloatArray, out: FloatArray, tops: FloatArray, first: int, last: int
    ) -> tuple[float, float]:
        """Write the rows ``first:last`` of log tables without their largest entries, and these.

        Returns the smallest entry that was written, at most zero, and the largest size of a shift.
        """

    def flood(self, run: MessageRun, values: Values, new: Array, status: Status) -> None:
        """Update all links at once, from the messages ``run.m`` to `new`."""

    def flood_back(
        self, run: MessageRun, values: Values, bars: Bars, moved: Mask, flagged: Mask, sent: bool = False
    ) -> None:
        """Reverse `flood` from ``run.m`` in the components that moved: from derivatives by its result, in place.

        `sent`: a pass over the variables alone has left the messages to links in ``run.n``.
        """

    def update_in_sequence(
        self, run: MessageRun, values: Values, sequence: IntArray, log: Array, status: Status
    ) -> None:
        """Update one link after the other in ``run.m``; `log`, unless empty, records what was overwritten."""

    def update_in_sequence_back(
        self, run: MessageRun, values: Values, sequence: IntArray, log: Array, bars: Bars, moved: Mask
    ) -> None:
        """Reverse `update_in_sequence`; ``run.m`` becomes what it was before."""

    def update_by_residual(self, run: MessageRun, values: Values, queue: Queue, status: Status) -> tuple[int, int]:
        """Update the links of largest change in ``run.m``; return the number of updates and of entries in the log."""

    def read_out_variables(self, run: MessageRun, values: Values, beliefs: Beliefs, active: Mask) -> None:
        """Write the beliefs of variables that the messages ``run.m`` give, and their normalisers.

        Where counting numbers differ from one, it comes after `read_out_links`.
        """

    def read_out_links(self, run: MessageRun, values: Values, beliefs: Beliefs, active: Mask, flagged: Mask) -> None:
        """Write the beliefs of links that they give, and their normalisers; flag components that underflow."""

    def read_out_back(
        self, run: MessageRun, values: Values, beliefs: Beliefs, given: BeliefBars, bars: Bars, active: Mask
    ) -> None:
        """Reverse both; the normalisers are logarithms here."""

    def effects(self, run: MessageRun, old: Array, new: Array, status: Status) -> None:
        """Set residuals to the largest change of a probability that the change from `old` to `new` can cause."""

    def imaginary_effects(
        self, run: MessageRun, old: Array, new: Array, active: Mask, moved: FloatArray, size: FloatArray
    ) -> None:
        """Measure how far imaginary parts moved, and how large they are, by component."""


class PairKernels(Protocol):
    """Flooding on pairwise graphs, with linear values; `partner` is the edge at the other end of each edge's link."""

    def flood(self, run: MessageRun, partner: IntArray, values: Values, new: Array, status: Status) -> None:
        """Do what `MessagePassingKernels.flood` does, to the last bit."""

    def flood_back(
        self, run: MessageRun, partner: IntArray, values: Values, new_bar: Array, bars: Bars, moved: Mask
    ) -> None:
        """Reverse an undamped `flood`; derivatives by the messages before it are written to `new_bar`."""


class GridKernels(NamedTuple):
    """Loops whose arrays lie in planes; see the functions of the same names in `kernels.numba.backend`."""

    flood: Callable[..., float]
    flood_back: Loop
    sweep: Loop
    sweep_back: Loop
    sweep_copies: Callable[..., float]
    sweep_stage: Callable[..., tuple[float, bool]]
    sweep_stage_back: Loop
    spread: Loop
    collect: Loop
    spread_tables: Loop
    add_tables: Loop
    effects: Loop
    largest: Loop
    read_out: Callable[..., float]
    read_out_back: Loop


_CHOSEN: ContextVar[MessagePassingKernels | None] = ContextVar("message_passing_kernels", default=None)


def message_passing_kernels() -> MessagePassingKernels:
    """Return the backend that serves message passing."""
    from isinglass.kernels.numba.backend import NUMBA

    return _CHOSEN.get() or NUMBA


@contextmanager
def using(kernels: MessagePassingKernels) -> Iterator[None]:
    """Let another backend serve the message passing that begins inside."""
    before = _CHOSEN.set(kernels)
    try:
        yield
    finally:
        _CHOSEN.reset(before)
