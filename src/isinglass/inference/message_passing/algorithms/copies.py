"""Beliefs of many copies of one grid that differ only in the unary potentials, such as images of one size.

The loops are those of the grid schedule, and the beliefs have the same bits. But only the structure of one grid is
built, and little Python code runs, for which other threads would have to wait.

If a product is close to an underflow, or might be in the beliefs of links, no beliefs are returned, and the caller must
use `infer`, which can compute with logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isinglass.inference.message_passing.engine import Engine
from isinglass.inference.message_passing.model.log_model import BOUND, only_unary
from isinglass.inference.message_passing.moves.grid_sweep import GridSweep
from isinglass.inference.message_passing.moves.planes import is_short
from isinglass.inference.message_passing.moves.sheets import Sheets, sweep_room
from isinglass.inference.message_passing.plan import Plan
from isinglass.inference.message_passing.run import Run
from isinglass.kernels.layout import SAFE, WIDE, CopyPlanes
from isinglass.potentials import Potentials
from isinglass.typing import FloatArray


@dataclass(frozen=True, eq=False)
class Copies:
    """Iterations of the grid schedule on copies of a grid.

    Attributes
    ----------
    engine : Engine
        Of one copy; its potentials of variables are zero.
    run : Run
    move : GridSweep
    start : array (1, 4, states, height, width)
        The first messages, of all copies.
    """

    engine: Engine
    run: Run
    move: GridSweep
    start: FloatArray

    def __call__(self, tables: FloatArray) -> FloatArray | None:
        """Return the beliefs (copies * variables, states), given such log tables, which are overwritten.

        None: a product is too small.
        """
        z = self.run.pool.take((len(tables),), WIDE)
        least, size = self.run.kernels.take_tops(tables, tables, z, 0, len(tables))
        fine = least >= np.log(SAFE) and size < BOUND
        if fine:
            np.exp(tables, out=tables)
            fine = self.engine.reading.stays_clear(self.run, self._sweep(tables.reshape(-1), z))
        self.run.pool.give(z)
        return tables if fine else None

    def _sweep(self, values: FloatArray, z: FloatArray) -> float:
        """Replace potentials by beliefs; return a lower bound of these before their normalisation."""
        model, sheets = self.move.models[0], self.move.sheets
        return self.move.kernels.sweep_copies(
            values, z, self.start, _planes(sheets), sheets.steps, self.engine.plan.iterations, model.across,
            model.along, sweep_room(sheets, self.run.pool, self), model.limit, model.own, model.lanes,
        )  # fmt: skip


def _planes(sheets: Sheets) -> CopyPlanes:
    """Return room for the potentials and messages of a grid."""
    phi, messages = np.empty(sheets.shape[2:]), np.empty((2, *sheets.shape[1:]))
    return CopyPlanes(phi, phi.reshape(-1), messages, messages.reshape(2, -1))


def copies_of(potentials: Potentials, plan: Plan) -> Copies | None:
    """Return how copies of a graph are inferred; None where `Copies` is not for them.

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.grid_graph(8, 9, 2), [np.zeros((72, 2)), np.eye(2)[None]])
    >>> copies = ig.BeliefPropagation(iterations=3, schedule="grid").copies(p)
    >>> logs = np.random.default_rng(0).normal(size=(5 * 72, 2))
    >>> found = copies(logs.copy())[72:144]
    >>> other = ig.Potentials.from_groups(p.graph, [logs[72:144], np.eye(2)[None]])
    >>> np.array_equal(found, ig.infer(other, "bp", iterations=3, schedule="grid").variables)
    True
    """
    given, graph, iterations = only_unary(potentials), potentials.graph, plan.iterations
    by_lines = [part.schedule for part in plan.parts] == ["grid"]
    if not (iterations and by_lines) or given is None or graph.n_components != 1 or potentials.dtype.kind != "f":
        return None
    groups = [np.zeros_like(tables) if tables is given else tables for tables in potentials.groups]
    engine = Engine([Potentials._build(graph, groups, potentials.table_ids, {})], plan)
    run, move = engine.begun(plan.parts[0])
    if not isinstance(move, GridSweep) or engine.low.any() or not engine.models[0].bounded:
        return None
    if move.is_large or move.models[0].own or not is_short(move.planes, iterations):
        return None
    return Copies(engine, run, move, move.into_planes(run, taped=True))
