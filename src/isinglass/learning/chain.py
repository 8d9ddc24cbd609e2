"""What learning minimises for sequences: a loss of exact inference on chains, plus a penalty.

    F(theta)  =  sum_s loss_s(theta)  +  sum_j l2_j theta_j²

The losses are in `isinglass.learning.chain_losses`. Where all labels are known, the likelihood is done by one compiled
loop from weights to slopes (`KnownPieces`).

Sequences are done in pieces, on as many threads as wished; cuts and the order of sums depend on the data alone, so that
the result has the same bits for any number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from threading import local

import numpy as np
from scipy.sparse import csr_array

from isinglass.errors import InputError
from isinglass.inference.chain.exact import Room, Transition
from isinglass.learning.chain_losses import Piece, Sums, likelihood, piece_loss
from isinglass.learning.chain_margin import ChainSweep, hinge_planes, right_states
from isinglass.learning.optimizers.vectors import dot, entrywise, moved
from isinglass.losses import HingeLoss, Loss
from isinglass.models.chain.layout import aligned, width_of
from isinglass.models.chain.model import PIECE, SequenceModel, Sequences, Tables, ends_of
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

_FEWEST, _MOST_PAIRS = 64, 2**20
_MOST_PIECES, _FEW_PIECES = 512, 32


@dataclass(eq=False)
class SequenceObjective:
    """A function of the parameters: ``objective(theta)`` returns its value and gradient.

    Parameters
    ----------
    model : SequenceModel
    data : Sequences
    labels : int array (tokens,)
        -1 where a label was not observed.
    loss : Loss
    l2 : float or array (size,)
    weights : array (tokens,), optional
        For the likelihood equal within a sequence.
    threads : int
    X : sparse array (tokens, attributes), optional
        The attributes of the tokens, for `planes`.
    completion : int array (tokens,), optional
        States that stand for labels that were not observed, in hinge losses.
    """

    model: SequenceModel
    data: Sequences
    labels: IntArray
    loss: Loss
    l2: float | FloatArray = 0.0
    weights: FloatArray | None = None
    threads: int = 1
    X: csr_array | None = None
    completion: IntArray | None = None

    def __post_init__(self) -> None:
        self.proved = True  # so far; see `Proving`
        self.of_piece = piece_loss(self.loss)
        self.spread = ThreadMap(self.threads)
        self.penalty = np.broadcast_to(np.asarray(self.l2, np.float64), self.model.size)
        self.rooms, self.slopes = local(), np.empty((0, 0))
        paired = self.loss.facts.uses == "beliefs"  # their derivatives need the beliefs of all pairs
        most = min(PIECE, max(_FEWEST, _MOST_PAIRS // self.model.states.count**2)) if paired else PIECE
        self.pieces = [(first, last, self._piece(first, last)) for first, last in self.data.pieces(most)]
        self.known = KnownPieces.of(self)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        model, data = self.model, self.data
        tables = model.tables(theta, data.tokens, self.spread)
        slopes = self.slopes = (
            self.slopes if self.slopes.size else aligned(int(data.offsets[-1]), width_of(model.features.card))
        )
        found = self._found(tables, Transition(tables.transition), slopes)
        gradient, n = np.empty(model.size), model.features.size
        data.tokens.transpose(slopes, self.spread, gradient[:n])
        k, (begins, ends) = model.features.card, ends_of(data.offsets)
        edges = [slopes[tokens, :k].sum(axis=0) if model.boundary else slopes[:0] for tokens in (begins, ends)]
        gradient[n:] = model.others(np.sum([pairs for _, pairs in found], axis=0), *edges)
        self.proved = self.proved and all(piece.missed[0] == 0 for _, _, piece in self.pieces)
        pull = entrywise(np.multiply, self.penalty, theta)
        value = float(np.sum([value for value, _ in found]) + dot(pull, theta))
        return value, moved(gradient, 2.0, pull)

    @property
    def size(self) -> int:
        """Length of theta."""
        return self.model.size

    @property
    def iterations(self) -> int:
        """One: inference is exact."""
        return 1

    @property
    def converged_share(self) -> float:
        """The share of sequences whose maximum was proved; one but for slack rescaling."""
        return 1.0 - sum(float(piece.missed[0]) for _, _, piece in self.pieces) / max(self.n_examples, 1)

    def unpenalised(self, theta: FloatArray) -> float:
        """Return the value without penalties."""
        return self(theta)[0] - float(np.sum(self.l2 * theta * theta))

    @property
    def n_examples(self) -> int:
        """The number of sequences."""
        return len(self.data.offsets) - 1

    def planes(self, theta: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the hinges of some sequences, without penalties, and their derivatives (rows, size)."""
        if not isinstance(self.loss, HingeLoss) or self.X is None or self.model.order != 1:
            expected = "a hinge ('margin') and order=1, where each sequence has a plane of its own ('bcfw')"
            raise InputError("loss", expected, repr(self.loss.name), "use optimizer 'cutting-plane'")
        sizes = np.diff(self.data.offsets)[rows]
        tokens = ranges(self.data.offsets[rows], sizes)
        weights = np.ones(len(tokens)) if self.weights is None else self.weights[tokens]
        completion = None if self.completion is None else self.completion[tokens]
        piece = Piece(0, starts(sizes), self.labels[tokens], weights, self.model.states, completion)
        X = csr_array(self.X[tokens])
        part = Sequences(self.model.features.compiled(X), piece.offsets)
        tables = self.model.tables(theta, part.tokens)
        scores = np.zeros((len(tokens), width_of(self.model.states.count)))
        part.scores(tables, 0, len(rows), scores)
        found = hinge_planes(self.loss, piece, scores, Transition(tables.transition), X, self.model)
        self.proved = self.proved and bool(piece.missed[0] == 0)
        return found

    def completed(self, theta: FloatArray) -> SequenceObjective:
        """Return the function with the hidden labels that are best at theta, whatever its argument."""
        tables = self.model.tables(theta, self.data.tokens, self.spread)
        transition, found = Transition(tables.transition), [np.zeros(0, np.int64)]
        for first, last, piece in self.pieces:
            scores = np.zeros((len(piece.labels), width_of(transition.card)))
            self.data.scores(tables, first, last, scores)
            found.append(right_states(replace(piece, completion=None), scores, transition))
        return replace(self, completion=np.concatenate(found))

    @property
    def sweeps(self) -> bool:
        """Whether `sweep` can make the steps of block-coordinate Frank-Wolfe: for margins of first order."""
        known = self.completion is not None or bool((self.labels >= 0).all())
        plain = isinstance(self.loss, HingeLoss) and not (self.loss.by_slack or self.loss.by_counts)
        return plain and known and self.X is not None and self.model.order == 1

    @cached_property
    def sweep(self) -> ChainSweep:
        """Passes of block-coordinate Frank-Wolfe; see `BlockFrankWolfe`."""
        assert isinstance(self.loss, HingeLoss)
        assert self.X is not None
        return ChainSweep(self.loss, self._piece(0, self.n_examples), self.X, self.model)

    def _piece(self, first: int, last: int) -> Piece:
        offsets = self.data.offsets[first : last + 1]
        tokens = slice(int(offsets[0]), int(offsets[-1]))
        weights = np.ones(tokens.stop - tokens.start) if self.weights is None else self.weights[tokens]
        completion = None if self.completion is None else self.completion[tokens]
        return Piece(first, offsets - offsets[0], self.labels[tokens], weights, self.model.states, completion)

    def _room(self) -> Room:
        """Return the arrays of this thread."""
        if not hasattr(self.rooms, "own"):
            self.rooms.own = Room()
        found: Room = self.rooms.own
        return found

    def _found(self, tables: Tables, transition: Transition, slopes: FloatArray) -> list[Sums]:
        """Return the sums of all pieces, and write the slopes."""
        attributes = self.data.tokens.attributes(tables.weights) if self.known is not None else None
        if self.known is not None and attributes is not None:
            found = self.known(self, tables, transition, attributes, slopes)
            if found is not None:
                return found
        return self.spread(partial(self._sums, tables, transition, slopes), self.pieces)

    def _sums(
        self, tables: Tables, transition: Transition, slopes: FloatArray, first: int, last: int, piece: Piece
    ) -> Sums:
        room = self._room()
        start, end = int(self.data.offsets[first]), int(self.data.offsets[last])
        scores = room.take("scores", end - start, width_of(transition.card))
        self.data.scores(tables, first, last, scores)
        if self.model.order == 1:
            return self.of_piece(piece, scores, transition, slopes[start:end], room)
        wide = room.take("slopes", *scores.shape)
        sums = self.of_piece(piece, scores, transition, wide, room)
        slopes[start:end, : piece.states.card] = piece.states.collect(wide[:, : transition.card])
        return sums


@dataclass(frozen=True, eq=False)
class KnownPieces:
    """The likelihood of sequences whose labels are all known, in compiled passes from weights to slopes.

    Attributes
    ----------
    pieces : int array (pieces + 1,)
        The first sequence of each piece, over which sums are taken.
    weights : array (sequences,)
    longest : int
        The tokens of the longest sequence.
    """

    pieces: IntArray
    weights: FloatArray
    longest: int

    @classmethod
    def of(cls, objective: SequenceObjective) -> KnownPieces | None:
        """Return the pieces; None if it is another loss, of second order, or if labels are not known."""
        parts = [piece for _, _, piece in objective.pieces]
        whole = all((piece.every | (np.diff(piece.offsets) == 0)).all() for piece in parts)
        if objective.model.order != 1 or objective.of_piece is not likelihood or not whole:
            return None
        offsets = objective.data.offsets
        ends = [last for _, last in objective.data.pieces(max(PIECE, int(offsets[-1]) // _MOST_PIECES))]
        weights = np.concatenate([np.zeros(0), *(piece.sequence_weights for piece in parts)])
        return cls(np.array([0, *ends]), weights, int(np.diff(offsets).max(initial=0)))

    def __call__(
        self,
        objective: SequenceObjective,
        tables: Tables,
        transition: Transition,
        attributes: tuple[tuple[object, ...], tuple[object, ...]],
        slopes: FloatArray,
    ) -> list[Sums] | None:
        """Return the sums of the pieces, and write the slopes; None if a label is ruled out."""
        from isinglass.kernels.numba.chains.likelihood import known_likelihood

        t, data, n = transition, objective.data, len(self.pieces) - 1
        values, flagged = np.empty(n), np.empty(len(self.weights), np.bool_)
        pairs, counts = np.zeros((n, *t.linear.shape)), np.zeros((n, *t.log.shape))
        given = self.pieces, data.offsets, objective.labels, self.weights, *attributes, tables.ends
        logs = t.card, t.widest, t.linear, t.transposed, t.log, t.top

        def work(first: int, last: int) -> None:
            room = objective._room()
            wide = [room.take(name, self.longest, slopes.shape[1]) for name in ("scores", "nodes", "alpha")]
            long = [room.take(name, self.longest, 1).reshape(-1) for name in ("tops", "scales")]
            known_likelihood(first, last, *given, logs, (*wide, *long), slopes, (values, pairs, counts), flagged)

        objective.spread(work, self._shares(objective.threads))
        if (values == -np.inf).any():
            return None
        found = list(zip(values.tolist(), (pairs * t.linear)[:, : t.card, : t.card] - counts, strict=True))
        left = [(s, s + 1, objective._piece(s, s + 1)) for s in np.flatnonzero(flagged).tolist()]
        return found + objective.spread(partial(objective._sums, tables, t, slopes), left)

    def _shares(self, threads: int) -> list[tuple[int, int]]:
        """Cut the pieces into some runs for each thread: fewer calls, and none for long."""
        n = len(self.pieces) - 1
        count = min(n, max(-(-n // _FEW_PIECES), 4 * threads if threads > 1 else 1))
        return list(pairwise(n * i // count for i in range(count + 1)))
