"""The messages of regular grids in planes: where they lie, how threads share them, and the way to edges and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from isinglass.inference.message_passing import shares
from isinglass.kernels.backend import GridKernels
from isinglass.kernels.layout import PlaneSteps
from isinglass.runtime.array_pool import Loan
from isinglass.runtime.threads import ThreadMap
from isinglass.typing import Array, FloatArray, IntArray, Mask

PIECE = 2**27  # entries of tables that are multiplied between two moments at which Ctrl-C is heard
TOPS = 1024  # entries of planes that are looked at together
EDGES = 2**15  # whose messages are moved at a time, at least, where threads share the work


class BeliefDerivatives(NamedTuple):
    """The beliefs of variables, derivatives by them, and those by potentials, to which some are added; all flat."""

    beliefs: Array
    bars: Array
    phi: Array


class Planes(Protocol):
    """Where the messages of regular grids of one size lie in planes."""

    @property
    def card(self) -> int:
        """The number of states of every variable."""

    @property
    def height(self) -> int:
        """The number of rows of a grid."""

    @property
    def width(self) -> int:
        """The number of columns of a grid."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the messages."""

    @property
    def shape_of_one(self) -> tuple[int, ...]:
        """The shape of the messages in planes for one grid."""

    def of_all(self, planes: FloatArray) -> FloatArray:
        """Return the messages of all grids, from planes for all or for one."""

    @property
    def of_edges(self) -> tuple[IntArray, int, int]:
        """Where the message of each edge begins, its number of states, and the distance between two of them."""

    @property
    def steps(self) -> PlaneSteps:
        """Where the numbers of a site lie."""

    @property
    def in_order(self) -> bool:
        """Whether the variables of the graph are the sites, grid after grid and row by row."""

    @property
    def border(self) -> int:
        """How many rows and columns there are around a grid that are not sites."""

    def by_grids(self, planes: FloatArray) -> FloatArray:
        """Return the messages as (grids, directions, states, rows, columns), with the border."""


def rim(sites: FloatArray, side: int) -> FloatArray:
    """Return the sites (..., rows, columns) that have no neighbour on a side (left, right, up, down)."""
    end = -(side % 2)
    return sites[..., end] if side < 2 else sites[..., end, :]


def write_borders(spread: ThreadMap, grid: Planes, planes: FloatArray, value: float, inside: bool) -> None:
    """Write a value around grids; and, `inside`, to sites where no message arrives, as they have no neighbour there."""
    rooms, border = grid.by_grids(planes), grid.border
    sites = rooms[..., border : border + grid.height, border : border + grid.width]

    def write(first: int, last: int) -> None:
        for side in range(4 * border):
            rim(rooms[first:last], side)[...] = value
        for side in range(4 * inside):
            rim(sites[first:last, side], side)[...] = value

    shares.in_ranges(spread, len(rooms), write, 1 + shares.RANGE // work_of(grid))


def work_of(grid: Planes) -> int:
    """Return the number of entries of the tables of a grid, of one direction."""
    return grid.height * grid.width * grid.card**2


def is_short(grid: Planes, iterations: int) -> bool:
    """Tell whether a loop may do so many iterations of a grid at once, because Ctrl-C is heard soon enough."""
    return iterations * work_of(grid) <= PIECE


def grids_at_once(work: int) -> int:
    """Return how many grids a loop may do at once, each of them so much work."""
    return max(1, PIECE // max(1, work))


def grid_pieces(spread: ThreadMap, first: int, last: int, work: int) -> list[tuple[int, int]]:
    """Cut grids from `first` to before `last`, each of them so much work, into as many as a loop may do at once.

    Where threads share them, pieces are smaller. Grids do not depend on each other: their bits do not depend on this.
    """
    most = grids_at_once(work)
    if spread.threads > 1:
        most = min(most, max(-(-(last - first) // shares.pieces_at_most(spread)), 1 + shares.RANGE // max(1, work)))
    return [(at, min(at + most, last)) for at in range(first, last, most)]


def row_pieces(spread: ThreadMap, grid: Planes, grids: int) -> list[tuple[int, int, int, int]]:
    """Cut grids into pieces ``first, last, top, bottom``: some grids, or, of large ones, some rows of one.

    What is done to a site must not depend on the others.
    """
    work = work_of(grid)
    rows = shares.cut(grid.height, min(shares.pieces_at_most(spread), work // shares.RANGE))
    if len(rows) == 1 or grids >= len(rows):
        return [(first, last, 0, grid.height) for first, last in grid_pieces(spread, 0, grids, work)]
    return [(c, c + 1, top, bottom) for c in range(grids) for top, bottom in rows]


def spread_out(
    kernels: GridKernels, spread: ThreadMap, m: FloatArray, planes: FloatArray, of_edges: tuple[IntArray, int, int]
) -> None:
    """Write the messages of edges to their places in planes."""
    (place, card, apart), flat = of_edges, planes.reshape(-1)

    def some(first: int, last: int) -> None:
        kernels.spread(m[first * card : last * card], flat, place[first:last], card, apart)

    shares.in_ranges(spread, len(place), some, EDGES)


def collect(
    kernels: GridKernels, spread: ThreadMap, planes: FloatArray, m: FloatArray, of_edges: tuple[IntArray, int, int]
) -> None:
    """Write the messages in planes to their edges."""
    (place, card, apart), flat = of_edges, planes.reshape(-1)

    def some(first: int, last: int) -> None:
        kernels.collect(flat, m[first * card : last * card], place[first:last], card, apart)

    shares.in_ranges(spread, len(place), some, EDGES)


def beliefs_back(
    kernels: GridKernels, spread: ThreadMap, grid: Planes, grids: int, given: BeliefDerivatives, planes: FloatArray
) -> None:
    """Write the derivatives by the logs of messages, and add those by potentials, given those by beliefs."""

    def back(*piece: int) -> None:
        kernels.read_out_back(
            given.beliefs, given.bars, given.phi, planes.reshape(-1), grid.steps, grid.card, grid.height, grid.width,
            *piece,
        )  # fmt: skip

    spread(back, row_pieces(spread, grid, grids))


def used_places(size: int, of_edges: tuple[IntArray, int, int]) -> Mask:
    """Tell which entries of planes hold messages of edges."""
    place, card, apart = of_edges
    used = np.zeros(size, bool)
    used[place[:, None] + apart * np.arange(card)] = True
    return used


def largest_of_grids(
    kernels: GridKernels,
    spread: ThreadMap,
    planes: FloatArray,
    used: Mask,
    runs: int,
    grids: int,
    bounds: tuple[int, int],
) -> FloatArray:
    """Return the largest used entry of the grids from the first to before the last; zero for the others.

    Planes consist of `runs`, each with a stretch for every grid.
    """
    shape = (runs, grids, planes.size // (runs * grids))
    sites, mine = planes.reshape(shape), used.reshape(shape)

    def some(run: int, first: int, last: int) -> FloatArray:
        found, part = np.zeros(grids), slice(run, run + 1) if many else slice(None)
        kernels.largest(sites[part], mine[part], first, last, np.empty(min(TOPS, shape[2])), found)
        return found

    many = spread.threads > 1 and grids == 1  # runs are shared out; else grids are
    if many:
        pieces = [(run, *bounds) for run in range(runs)]
    else:
        pieces = [(0, *piece) for piece in grid_pieces(spread, *bounds, runs * shape[2])]
    found: FloatArray = np.max(spread(some, pieces), axis=0, initial=0.0)
    return found


def on_edges(
    kernels: GridKernels,
    spread: ThreadMap,
    planes: FloatArray,
    of_edges: tuple[IntArray, int, int],
    loans: Sequence[Loan] = (),
) -> FloatArray:
    """Return the messages in planes as those of edges; `loans` hold the planes until then."""
    place, card, _ = of_edges
    m = np.empty(len(place) * card)
    collect(kernels, spread, planes, m, of_edges)
    return m
