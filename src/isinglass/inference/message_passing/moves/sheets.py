"""Where regular grids lie in planes for the grid schedule, grid after grid; see `kernels.numba.grids.sweeps`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from isinglass.graph.factor_graph import FactorGraph
from isinglass.graph.grids import grid_shape
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.moves.planes import work_of
from isinglass.inference.message_passing.run import Run
from isinglass.inference.message_passing.shares import block_count, copy
from isinglass.kernels.layout import LANES, STRIP, WIDE, PlaneSteps, SweepWork, Values
from isinglass.runtime.array_pool import Pool
from isinglass.typing import Array, FloatArray, IntArray

LINE = 64  # columns or rows of a chunk, at least
_MASKS = np.tri(LANES).T.copy()


class Sheets(NamedTuple):
    """Where the edges of regular grids lie in planes (grids, 4, states, height, width)."""

    grids: int
    card: int
    height: int
    width: int
    edge_place: IntArray  # (edges,) of the first entry of the message

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the messages."""
        return (self.grids, 4, self.card, self.height, self.width)

    @property
    def shape_of_one(self) -> tuple[int, ...]:
        """Of messages in planes for one grid."""
        return (1, *self.shape[1:])

    def of_all(self, planes: FloatArray) -> FloatArray:
        """Return the messages of all grids, from planes for all or for one."""
        return np.broadcast_to(planes, self.shape)

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """What the loops `spread` and `collect` need to know."""
        return self.edge_place, self.card, self.height * self.width

    @property
    def steps(self) -> PlaneSteps:
        """Where the numbers of a site lie."""
        sites = self.height * self.width
        return PlaneSteps(self.card * sites, sites, 4 * self.card * sites, self.card * sites, self.width, 0, sites)

    @property
    def in_order(self) -> bool:
        """Whether the variables of the graph are the sites, grid after grid and row by row: always."""
        return True

    @property
    def column_chunk(self) -> int:
        """How many columns of a large grid have a sum of their own; all columns of a small one."""
        return _chunk(work_of(self), self.width)

    @property
    def row_chunk(self) -> int:
        """The same for rows."""
        return _chunk(work_of(self), self.height)

    @property
    def is_large(self) -> bool:
        """Whether threads share a grid."""
        return self.chunks > 1

    @property
    def fits_lanes(self) -> bool:
        """Whether variables are binary, and every line is long enough for loops over several of them at a time."""
        return self.card == 2 and min(self.height, self.width) >= LANES

    @property
    def chunks(self) -> int:
        """How many chunks of columns or of rows there are at most."""
        return max(-(-self.width // self.column_chunk), -(-self.height // self.row_chunk))

    @property
    def border(self) -> int:
        """How many rows and columns there are around a grid that are not sites: none."""
        return 0

    def by_grids(self, planes: FloatArray) -> FloatArray:
        """Return the messages as (grids, directions, states, rows, columns): as they are."""
        return planes

    def links(self, values: Array) -> tuple[Array, Array]:
        """Cut what there is of each link into horizontal ones, columns first, and vertical ones."""
        each = values.shape[1:]
        flat = values.reshape(self.grids, -1, *each)
        cut = self.height * (self.width - 1)
        along = flat[:, :cut].reshape(self.grids, self.height, self.width - 1, *each)
        return along.swapaxes(1, 2), flat[:, cut:].reshape(self.grids, self.height - 1, self.width, *each)


@lru_cache
def _chunk(work: int, length: int) -> int:
    """Return how many lines of a grid of so much work, of its `length`, are a chunk."""
    count = min(block_count(2 * work), length // LINE)
    return length if count < 2 else -(-length // (8 * count)) * 8


def sheets_of(graph: FactorGraph) -> Sheets | None:
    """Return where a regular grid, or several of one size, lie in planes; None for other graphs."""
    return graph.cached("sheets", lambda: _make(graph))


def _make(graph: FactorGraph) -> Sheets | None:
    shape = grid_shape(graph)
    if shape is None or min(shape) < 2 or graph.cards[0] < 2 or (graph.cards != graph.cards[0]).any():
        return None
    edges, card, sites = edges_of(graph), int(graph.cards[0]), shape[0] * shape[1]
    ends = edges.slot_variable.reshape(-1, 2)
    axis = np.where(ends[:, 1] - ends[:, 0] == 1, 0, 1)
    place = np.empty(len(edges.edge_link), np.int64)
    for slot in range(2):  # the first end receives from the right or from below
        grid, site = np.divmod(ends[:, slot], sites)
        side = 2 * axis + 1 - slot
        place[edges.slot_edge.reshape(-1, 2)[:, slot]] = (grid * 4 + side) * card * sites + site
    return Sheets(graph.n_components, card, *shape, place)


class SweepModel(NamedTuple):
    """One model in planes: potentials, and tables of vertical and horizontal links."""

    phi: FloatArray  # (grids, states, height, width)
    across: FloatArray  # (grids, states, states, height - 1, width), or (1, states, states, 1, 1) if they are shared
    along: FloatArray  # (grids, states, states, width - 1, height), or the same
    own: tuple[int, ...]  # tells by its type whether links have tables of their own
    lanes: tuple[int, ...]  # and whether the loops of `kernels.numba.grids.binary_lines` serve
    limit: float  # a product below is suspect


def sweep_model(sheets: Sheets, values: Values, run: Run) -> SweepModel:
    """Lay potentials and tables out in planes."""
    card, psi = sheets.card, values.psi
    phi = values.phi.reshape(sheets.grids, sheets.height, sheets.width, card).transpose(0, 3, 1, 2)
    along, across = sheets.links(values.table)
    ones = _known_ones(values.table, (along, across), run)
    along, across = (links[:1, :1, :1] if one else links for links, one in zip((along, across), ones, strict=True))
    shared = along.size == across.size == 1
    if shared:
        firsts = [int(links.item()) for links in (along, across)]
        entries = [psi[first : first + card**2].reshape(1, 1, 1, -1) for first in firsts]
    else:
        entries = list(sheets.links(_rows(values, card * card)))
    tables = [e.reshape(*e.shape[:3], card, card).transpose(0, 3, 4, 1, 2) for e in entries]
    beside, below = (_in_order(one, run) for one in tables)
    own, lanes = () if shared else (0,), (0,) if sheets.fits_lanes else ()
    return SweepModel(_in_order(phi, run), below, beside, own, lanes, values.limit)


def _in_order(values: Array, run: Run) -> FloatArray:
    """Return a contiguous copy."""
    out = np.empty(values.shape)
    copy(run.spread, out, values)
    return out


def _known_ones(of_links: IntArray, axes: tuple[IntArray, ...], run: Run) -> tuple[bool, ...]:
    """Tell for each axis what `_is_one` does; it is kept while the tables of links are the same array."""

    def look() -> tuple[IntArray, tuple[bool, ...]]:
        return of_links, tuple(map(_is_one, axes))

    return run.back.graph.cached("sheets of one table", look, lambda kept: kept[0] is of_links)[1]


def _is_one(links: IntArray) -> bool:
    """Tell whether all links have the same table."""
    return bool((links == links[0, 0, 0]).all())


def _rows(values: Values, size: int) -> Array:
    """Return the table of each link; a view, if they lie in order."""
    table, n = values.table, len(values.table)
    if np.array_equal(table, np.arange(n) * size + table[0]):
        return np.asarray(values.psi[table[0] : table[0] + n * size].reshape(n, size))
    rows: Array = values.psi[table[:, None] + np.arange(size)]
    return rows


def sweep_room(sheets: Sheets, pool: Pool, owner: object) -> SweepWork:
    """Return working memory for a grid; that of a large one goes back to the pool with its owner."""
    (card, height, width), large = sheets.shape[2:], sheets.is_large

    def room(*shape: int) -> FloatArray:
        if not large:
            return np.empty(shape)
        found = pool.take(shape, WIDE)
        pool.give_back_with(owner, found)
        return found

    return SweepWork(
        up=room(card, height, width),
        down=room(card, height, width),
        **_lines(sheets),
        up_bar=room(card, height, width),
        down_bar=room(card, height, width),
    )


def with_own_lines(sheets: Sheets, room: SweepWork) -> SweepWork:
    """Return the same planes, with other memory for strips and lines: for one of several threads that share a grid."""
    return room._replace(**_lines(sheets))


def _lines(sheets: Sheets) -> dict[str, FloatArray]:
    """Return working memory for strips and lines."""
    card, line = sheets.card, max(sheets.height, sheets.width)
    strip = card, sheets.width, STRIP + LANES if sheets.is_large else sheets.height
    shapes = {
        "sent": (card, line),
        "message": (card, line),
        "back": (card, line),
        "run": (2, line),
        "strips": (6, *strip),
        "strip_bars": (3, *strip),
    }
    rooms = {name: np.empty(shape) for name, shape in shapes.items()}
    return rooms | {"sums": np.empty((sheets.chunks, 4, LANES)), "masks": _MASKS}
