"""The likelihood of sequences whose labels are all known, in a compiled loop from weights to derivatives.

Pieces of sequences go through `isinglass.kernels.numba.chains.likelihood`. Sequences whose numbers are too small for it
are done again, in logarithms, after the others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from isinglass.inference.chain.exact import Transition
from isinglass.learning.chain_losses import Sums, likelihood
from isinglass.models.chain.layout import aligned
from isinglass.models.chain.model import Tables, ends_of
from isinglass.segments import starts
from isinglass.typing import Array, FloatArray

if TYPE_CHECKING:
    from isinglass.learning.chain import SequenceObjective

Found = tuple[list[Sums], tuple[FloatArray, FloatArray]]
"""Of some sequences, the sums; the derivatives by the scores of first and of last labels (labels,)."""

GROUP = 4  # pieces whose slopes are added up together
_AT_ONCE = 64  # pieces of a call, so that none takes long
_SPARE = 4  # groups that many threads may be ahead of one that the system holds up for some milliseconds


@dataclass(eq=False)
class KnownPieces:
    """Sequences whose labels are all known.

    Attributes
    ----------
    weights : array (sequences,)
    longest : int
        The tokens of the longest sequence.
    slopes : array (rows, width)
        Those of some pieces, until they are added to the derivatives; made by the first call.
    """

    weights: FloatArray
    longest: int
    slopes: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @classmethod
    def of(cls, objective: SequenceObjective) -> KnownPieces | None:
        """Return the sequences; None if it is another loss, or if labels are not known."""
        parts = [piece for _, _, piece in objective.pieces]
        whole = all((piece.every | (np.diff(piece.offsets) == 0)).all() for piece in parts)
        if objective.of_piece is not likelihood or not whole:
            return None
        weights = np.concatenate([np.zeros(0), *(piece.sequence_weights for piece in parts)])
        return cls(weights, int(np.diff(objective.data.offsets).max(initial=0)))

    def __call__(self, f: SequenceObjective, tables: Tables, t: Transition) -> Found | None:
        """Return the sums of the pieces, and write the derivatives; None if a label is ruled out."""
        n, width, k = len(f.cuts) - 1, len(t.linear), t.card
        values, flagged = np.empty(n), np.empty(len(self.weights), np.bool_)
        pairs, counts, edges = np.zeros((n, width, width)), np.zeros((n, k, k)), np.zeros((n, 2, width))
        self._run(f, tables, t, (values, pairs, counts, edges, flagged))
        if (values == -np.inf).any():
            return None
        sums = list(zip(values.tolist(), (pairs * t.linear)[:, :k, :k] - counts, strict=True))
        first, last = edges.sum(axis=0)[:, :k]
        others, (first_of_others, last_of_others) = _in_logarithms(f, tables, t, np.flatnonzero(flagged).tolist())
        return sums + others, (first + first_of_others, last + last_of_others)

    def _run(self, f: SequenceObjective, tables: Tables, t: Transition, sums: tuple[Array, ...]) -> None:
        """Write the sums of all pieces and the derivatives, on all threads; see `known_gradient`."""
        from isinglass.kernels.numba.arithmetic.in_order import new_queue
        from isinglass.kernels.numba.chains.likelihood import known_gradient

        training, threads, width, n = f.training, f.threads, len(t.linear), len(f.cuts) - 1
        assert training.entries is not None
        rows = int(np.diff(training.cuts.pieces).max(initial=1))
        if not self.slopes.size:
            self.slopes = aligned(_groups_at_once(threads) * rows, width)
        rich, poor = (*training.rows, tables.weights.rows), (*training.entries.arrays, tables.weights.lists)
        logs = t.card, t.widest, t.linear, t.transposed, t.log, t.top
        chains = f.cuts, f.data.offsets, f.labels, self.weights
        queue, layout = new_queue(n, training.parts_of(threads), GROUP), training.layout(threads)
        given = sums, (self.slopes, self.slopes.reshape(-1), rows), layout, training.derivatives[1]

        def work(_: int) -> None:
            room = f.room()
            wide = [room.take(name, self.longest, width) for name in ("scores", "nodes", "alpha")]
            long = [room.take(name, self.longest, 1).reshape(-1) for name in ("tops", "scales")]
            known_gradient(_AT_ONCE, queue, chains, (rich, poor, tables.ends, logs, (*wide, *long)), *given)

        f.spread(work, [(i,) for i in range(-(-n // _AT_ONCE) + threads - 1)])


def _groups_at_once(threads: int) -> int:
    """Return how many groups have slopes at the same time; those of few threads stay closer in the caches."""
    return min(_SPARE, threads // 2) + -(-2 * threads // GROUP) if threads > 1 else 1


def _in_logarithms(f: SequenceObjective, tables: Tables, t: Transition, flagged: list[int]) -> Found:
    """Return the sums of some sequences, and add to the derivatives."""
    offsets = f.data.offsets
    at = starts(np.diff(offsets)[flagged])
    slopes = aligned(int(at[-1]), len(t.linear))
    parts = [slopes[a:b] for a, b in pairwise(at.tolist())]
    given = [(s, s + 1, f.piece(s, s + 1), part) for s, part in zip(flagged, parts, strict=True)]
    sums = f.spread(partial(f.sums_of, tables, t), given)
    for s, part in zip(flagged, parts, strict=True):
        f.training.add(int(offsets[s]), int(offsets[s + 1]), part)
    first, last = (slopes[tokens, : t.card].sum(axis=0) for tokens in ends_of(at))
    return sums, (first, last)
