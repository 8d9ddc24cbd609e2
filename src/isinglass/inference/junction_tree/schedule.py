"""The order in which the buckets of a tree pass their messages, and what threads do in parallel.

Buckets of small subtrees are combined into jobs of about equal work, which run in parallel; the buckets above them are
processed one after the other. A bucket with large messages is divided into pieces, which also run in parallel
(`kernels.numba.junction_tree.large`). Jobs and pieces depend only on the tree, and each entry is always computed in the
same way. So the result is the same, bit for bit, for any number of threads.

Ctrl-C is handled between runs of buckets of about CHUNK entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from isinglass.graph.elimination.bucket_tree import BucketTree
from isinglass.inference.junction_tree.arrangement import Arrangement
from isinglass.typing import IntArray

CHUNK = 20_000_000  # bucket entries between two reports of progress, where Ctrl-C is heard
WORTH_JOBS = 2**18  # entries of all buckets from which jobs are made
JOBS = 64
PIECES, PIECE = 128, 2**11  # of a large bucket: at most, and the fewest entries of one


Part = tuple[int, int]
"""A range of the sequence of buckets."""


def chunks(work: int) -> float:
    """Tell how many chunks some entries are."""
    return work / CHUNK


@dataclass(frozen=True, eq=False)
class Schedule:
    """In which sequence the messages go up.

    Attributes
    ----------
    sequence : int array (buckets,)
        The buckets, children before their parents.
    jobs : int array
        The j-th job is ``sequence[jobs[j]:jobs[j + 1]]``; the last one needs the messages of all others.
    pieces : int array (buckets,)
        Into how many pieces a large bucket is cut; 0 for one without large messages.
    work : int array (buckets,)
        Entries of the buckets.
    """

    sequence: IntArray
    jobs: IntArray
    pieces: IntArray
    work: IntArray

    def segments(self, job: int, most: int = 1) -> list[Part]:
        """Cut a job into runs of about so many chunks, or of one bucket."""
        first, last = int(self.jobs[job]), int(self.jobs[job + 1])
        done = np.cumsum(self.work[self.sequence[first:last]]) // (most * CHUNK)
        cuts = [0, *(np.flatnonzero(np.diff(done)) + 1).tolist(), last - first]
        return [(first + i, first + j) for i, j in pairwise(cuts) if i < j]


def make_schedule(tree: BucketTree, arrangement: Arrangement, local_size: IntArray) -> Schedule:
    """Choose the jobs and the pieces."""
    job_of = _jobs(tree.arrays.parent, tree.work)
    sequence = np.argsort(job_of, kind="stable")
    jobs = np.searchsorted(job_of[sequence], np.arange(job_of.max(initial=0) + 2))
    pieces = np.zeros(tree.n_buckets, np.int64)
    for b in np.flatnonzero(arrangement.large).tolist():
        first = tree.arrays.first_axis[b]
        axes = arrangement.arrays.axis[first : first + arrangement.missing_axis[b]]
        tiles = int(tree.arrays.cards[axes].prod())
        room = int(tree.work[b] // (2 * local_size[b]))  # each piece has a local table of beliefs
        pieces[b] = max(1, min(tiles, PIECES, room, tree.work[b] // PIECE))
    return Schedule(sequence, jobs, pieces, tree.work)


def _jobs(parent: IntArray, work: IntArray) -> IntArray:
    """Return the job of each bucket: whole subtrees, up to a JOBS-th of the work; the last job has what is above."""
    n, total = len(parent), int(work.sum())
    if total < WORTH_JOBS:
        return np.zeros(n, np.int64)
    below, above = work.tolist(), parent.tolist()
    for b in range(n):
        if above[b] >= 0:
            below[above[b]] += below[b]
    most = total / JOBS
    job_of, job, filled = [-1] * n, 0, 0
    for b in range(n - 1, -1, -1):
        if below[b] > most:
            continue
        if above[b] >= 0 and job_of[above[b]] >= 0:
            job_of[b] = job_of[above[b]]
            continue
        if filled and filled + below[b] > most:
            job, filled = job + 1, 0
        job_of[b], filled = job, filled + below[b]
    if job == 0:
        return np.zeros(n, np.int64)  # nothing would be done side by side
    found = np.array(job_of)
    return np.where(found < 0, found.max(initial=-1) + 1, found)
