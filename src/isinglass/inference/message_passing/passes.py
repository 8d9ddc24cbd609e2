"""Parallel passes over a graph: flooding and the read-out, their reverses, and the measure of changes.

A pass has phases: updates of variables, and updates of links. In a phase no variable (link) writes what another one
reads or writes, so each share of the graph (see `shares`) can be processed by another thread; threads wait between the
phases. If several blocks of one component would write the same value, such as a residual or a flag, each block writes
to its own array. With one thread, all phases are done in one call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from isinglass.inference.message_passing.run import Run, unwatched
from isinglass.kernels.layout import Bars, BeliefBars, Beliefs, Scratch, Span, Status, Values
from isinglass.typing import Array, IntArray, Mask

Phase = Literal["variables", "links"]
Call = Callable[[Run, Status, int], object]
"""Work on a run that has one share of the graph, its status, and the number of the share."""


def flood(run: Run, values: Values, new: Array, status: Status) -> None:
    """Update all links at once, from the messages ``run.m`` to `new`."""
    _pass(run, status, lambda mine, found, _: run.kernels.flood(mine, values, new, found), "variables", "links")


def flood_pairs(run: Run, partner: IntArray, values: Values, new: Array, status: Status) -> None:
    """Do the same on a pairwise graph: each variable writes what its neighbours receive."""
    pairs = run.kernels.pairs
    assert pairs is not None
    _pass(run, status, lambda mine, found, _: pairs.flood(mine, partner, values, new, found), "variables")


def flood_pairs_back(run: Run, partner: IntArray, values: Values, new_bar: Array, bars: Bars, moved: Mask) -> None:
    """Reverse `flood_pairs`."""
    pairs = run.kernels.pairs
    assert pairs is not None

    if not run.shares:
        pairs.flood_back(run, partner, values, new_bar, bars, moved)
        return

    def back(mine: Run, found: Status, number: int) -> None:
        pairs.flood_back(mine, partner, values, new_bar, bars, moved)

    _pass(run, unwatched(moved), back, "variables")


def flood_back(run: Run, values: Values, bars: Bars, moved: Mask, flagged: Mask) -> None:
    """Reverse `flood`; derivatives by counting numbers, to which all ends of a link add, take one thread."""
    if not run.shares or len(bars.counting):
        run.kernels.flood_back(run, values, bars, moved, flagged)
        return
    damping = [np.zeros_like(bars.damping) for _ in run.shares]

    def back(mine: Run, found: Status, number: int) -> None:
        own = bars._replace(damping=damping[number])
        run.kernels.flood_back(mine, values, own, moved, found.flagged, sent=True)

    _pass(run, unwatched(moved), lambda mine, found, _: run.kernels.flood(mine, values, run.m, found), "variables")
    _pass(run, unwatched(moved), back, "links", "variables")
    for one in damping:
        bars.damping[:] += one


def read_out_variables(run: Run, values: Values, beliefs: Beliefs, active: Mask) -> None:
    """Write the beliefs of variables and their normalisers."""

    def read(mine: Run, found: Status, number: int) -> None:
        run.kernels.read_out_variables(mine, values, beliefs, active)

    _pass(run, unwatched(active), read, "variables")


def read_out_links(run: Run, values: Values, beliefs: Beliefs, active: Mask, flagged: Mask) -> None:
    """Write the beliefs of links and their normalisers."""
    status = Status(active, flagged, np.zeros(len(active)))

    def read(mine: Run, found: Status, number: int) -> None:
        run.kernels.read_out_links(mine, values, beliefs, active, found.flagged)

    _pass(run, status, read, "variables", "links")


def read_out_back(run: Run, values: Values, beliefs: Beliefs, given: BeliefBars, bars: Bars, active: Mask) -> None:
    """Reverse the read-out; with derivatives by counting numbers, on one thread."""
    if len(bars.counting):
        run.kernels.read_out_back(run, values, beliefs, given, bars, active)
        return

    def back(mine: Run, found: Status, number: int) -> None:
        run.kernels.read_out_back(mine, values, beliefs, given, bars, active)

    _pass(run, unwatched(active), back, "links", "variables")


def effects(run: Run, old: Array, new: Array, status: Status) -> None:
    """Set residuals to the largest change of a probability that the change from `old` to `new` can cause."""
    _pass(run, status, lambda mine, found, _: run.kernels.effects(mine, old, new, found), "variables")


def _pass(run: Run, status: Status, call: Call, *phases: Phase) -> None:
    """Let threads do the phases, each on all shares; or do all at once."""
    if not run.shares:
        call(run, status, 0)
        return
    m, apart = run.m, [_own(status) if share.inner else status for share in run.shares]

    def work(number: int, phase: Phase) -> None:
        mine = replace(run, m=m, span=_only(phase, run.shares[number].span), scratch=_own_rows(run.scratch))
        call(mine, apart[number], number)

    for phase in phases:
        run.spread(work, [(number, phase) for number in range(len(run.shares))])
    _join(run, status, apart)


def _only(phase: Phase, span: Span) -> Span:
    """Leave the links out, or the variables."""
    if phase == "variables":
        return span._replace(last_link=span.first_link)
    return span._replace(last_variable=span.first_variable)


def _own(status: Status) -> Status:
    """Return a status to which one block of a component writes."""
    return status._replace(flagged=np.zeros_like(status.flagged), residual=np.zeros_like(status.residual))


def _join(run: Run, status: Status, apart: list[Status]) -> None:
    """Combine what the blocks of each large component have found."""
    inner = [(share.span.first_component, one) for share, one in zip(run.shares, apart, strict=True) if share.inner]
    for c in {c for c, _ in inner if status.active[c]}:
        status.residual[c] = max(one.residual[c] for at, one in inner if at == c)
        status.flagged[c] |= any(one.flagged[c] for at, one in inner if at == c)


def _own_rows(scratch: Scratch) -> Scratch:
    """Return working memory for one thread; what has a place for each edge is shared."""
    names = ("row", "back", "out", "raw", "mixed", "bar", "totals", "prefix", "digits")
    return scratch._replace(**{name: np.empty_like(getattr(scratch, name)) for name in names})
