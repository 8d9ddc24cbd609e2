"""The part of a bucket tree that depends on the structure only: tables, order, pieces, and working memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from isinglass.graph.elimination.bucket_tree import BucketTree
from isinglass.inference.junction_tree.arrangement import Arrangement, arranged
from isinglass.inference.junction_tree.schedule import Part, Schedule, make_schedule
from isinglass.typing import IntArray, Mask

if TYPE_CHECKING:
    from isinglass.kernels.numba.junction_tree.large import Cuts
    from isinglass.kernels.numba.junction_tree.program import Program


class Needs(NamedTuple):
    """The memory that some buckets take, in entries of arrays; for large ones, what threads share and what each has."""

    work: int  # entries of the buckets
    axes: int
    card: int  # the most states of a variable
    small: int  # the largest table of a small bucket
    message: int  # the largest local message
    pieces: int  # of a large bucket; 0: there is none
    local: int  # the largest local table of a large bucket
    marginals: int  # the local tables of all pieces
    own: tuple[int, ...]  # of each thread (`_sizes`)


@dataclass(frozen=True, eq=False)
class Layout:
    """What depends on the structure alone: tree, program, arrangement of large buckets, schedule.

    `widest` is, for each bucket, the entries of its largest local message; `message_entries` those of the vector of all
    messages; `cuts` says how large buckets are cut into pieces, and `sizes` what a thread needs for them (`_sizes`).
    """

    tree: BucketTree
    program: Program
    arrangement: Arrangement
    schedule: Schedule
    widest: IntArray
    message_entries: int
    cuts: Cuts
    sizes: IntArray
    known: dict[Part, Needs] = field(default_factory=dict)

    def with_messages(self, first_message: IntArray, entries: int) -> Layout:
        """Return the layout with other places for the messages."""
        return replace(self, program=self.program._replace(first_message=first_message), message_entries=entries)

    def needs(self, part: Part) -> Needs:
        """Return what some buckets need; found once."""
        if part not in self.known:
            self.known[part] = self._needs(self.schedule.sequence[slice(*part)])
        return self.known[part]

    def _needs(self, buckets: IntArray) -> Needs:
        program, all_pieces = self.program, self.schedule.pieces[buckets]
        large, small = buckets[all_pieces > 0], buckets[all_pieces == 0]
        pieces, local = self.schedule.pieces[large], program.local_size[large]
        return Needs(
            int(self.tree.work[buckets].sum()),
            int(np.diff(program.first_axis)[buckets].max(initial=1)),
            int(program.cards.max(initial=1)),
            int(program.local_size[small].max(initial=1)),
            int(self.widest[buckets].max(initial=1)),
            int(pieces.max(initial=0)),
            int(local.max(initial=0)),
            int((pieces * local).max(initial=0)),
            tuple(self.sizes[large].max(axis=0, initial=0).tolist()),
        )


def make_layout(tree: BucketTree) -> Layout:
    """Arrange the tables and write the program."""
    from isinglass.kernels.numba.junction_tree.program import make_program

    arrangement = arranged(tree)
    program = make_program(arrangement.arrays, arrangement.is_large)
    widest = np.ones(tree.n_buckets, np.int64)
    local = np.flatnonzero((tree.arrays.parent >= 0) & ~arrangement.is_large)
    np.maximum.at(widest, tree.arrays.parent[local], program.message_size[local])
    schedule = make_schedule(tree, arrangement, program.local_size)
    entries, cuts = int(tree.arrays.first_message[-1]), _cuts(program, arrangement, schedule)
    sizes = np.zeros((tree.n_buckets, 6), np.int64)
    for b in np.flatnonzero(schedule.pieces).tolist():
        sizes[b] = _sizes(program, cuts, b)
    return Layout(tree, program, arrangement, schedule, widest, entries, cuts, sizes)


def _cuts(program: Program, arrangement: Arrangement, schedule: Schedule) -> Cuts:
    """Count the tiles of large buckets."""
    from isinglass.kernels.numba.junction_tree.large import Cuts

    tiles, first, missing = np.zeros(len(schedule.pieces), np.int64), program.first_axis, arrangement.missing_axis
    for b in np.flatnonzero(schedule.pieces).tolist():
        tiles[b] = program.cards[first[b] : first[b] + missing[b]].prod()
    light = light_ones(program.local_size, schedule.pieces)
    return Cuts(missing, arrangement.run_axis, tiles, schedule.pieces, light, arrangement.is_large)


def light_ones(local_size: IntArray, pieces: IntArray) -> Mask:
    """Tell of which buckets there is room for the local tables of two."""
    from isinglass.kernels.numba.junction_tree.large import LIGHT, LIGHT_MARGINALS

    light: Mask = (local_size <= LIGHT) & (pieces * local_size <= LIGHT_MARGINALS)
    return light


def _sizes(program: Program, cuts: Cuts, b: int) -> tuple[int, int, int, int, int, int]:
    """Return, for a large bucket, its large messages, axes, missing axes, run, block, and message entries in a tile."""
    missing, run_axis = int(cuts.missing_axis[b]), int(cuts.run_axis[b])
    cards = program.cards[program.first_axis[b] : program.first_axis[b + 1]]
    run = int(cards[run_axis:-1].prod())
    inputs = range(int(program.first_large[b]), int(program.first_input[b + 1]))
    has = [program.strides[program.first_stride[i] :][missing:run_axis] > 0 for i in inputs]
    entries = sum(int(cards[missing:run_axis][axes].prod()) for axes in has)
    block = run * int(cards[-1])
    return len(inputs), len(cards), run_axis - missing, run, block, entries * block
