"""Our sweeps beside those of PGMax, in one run on this machine."""

from __future__ import annotations

from functools import cache, partial

from benchmarks.pgmax_peer import sweeps
from benchmarks.problems import grid_model
from benchmarks.sweeps import sweep_seconds
from benchmarks.timing import Row, Rows, seconds

TITLE = "Belief propagation beside PGMax 0.6.1 (float32, JAX on the CPU, its own threads), binary grids, one table"
COLUMNS = ("what", "general engine", "grid kernel", "PGMax", "PGMax / general", "PGMax / grid")
SIDES = (100, 300)


def rows() -> Rows:
    """Name the rows."""
    return {f"PGMax {side} x {side}": partial(_row, side) for side in SIDES}


@cache
def _pgmax() -> dict[int, float] | str:
    return sweeps(SIDES)


def _row(side: int) -> Row:
    general, grid = (sweep_seconds(grid_model(side, shared=True, general=g)) for g in (True, False))
    theirs, head = _pgmax(), [f"sweep, {side} x {side}", seconds(general), seconds(grid)]
    if isinstance(theirs, str):
        return [*head, theirs, "-", "-"]
    time = theirs[side]
    return [*head, seconds(time), f"{time / general:.2g} x", f"{time / grid:.2g} x"]
