"""What learning minimises for sequences: a loss of exact inference on chains, plus a penalty.

    F(theta)  =  sum_s loss_s(theta)  +  sum_j l2_j theta_j²

The losses are in `isinglass.learning.chain_losses`. Where all labels are known, the likelihood is done by one compiled
loop from weights to derivatives (`isinglass.learning.chain_known`).

Sequences are done in pieces, on as many threads as wished; cuts and the order of sums depend on the data alone, so that
the result has the same bits for any number of threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from threading import local

import numpy as np
from scipy.sparse import csr_array

from isinglass.errors import InputError
from isinglass.inference.chain.exact import Room, Transition
from isinglass.learning.chain_known import GROUP, Found, KnownPieces
from isinglass.learning.chain_losses import Piece, Sums, piece_loss
from isinglass.learning.chain_margin import ChainSweep, hinge_planes, right_states
from isinglass.losses import HingeLoss, Loss
from isinglass.models.chain.layout import Training, aligned, width_of
from isinglass.models.chain.model import PIECE, SequenceModel, Sequences, Tables, ends_of
from isinglass.runtime.cached_property import cached_property
from isinglass.runtime.threads import ThreadMap
from isinglass.segments import ranges, starts
from isinglass.typing import FloatArray, IntArray

_FEWEST, _MOST_PAIRS = 64, 2**20
_IN_CACHE, _MOST_PIECES = 2**16, 512  # numbers whose slopes stay in the second cache


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
        self.spread = ThreadMap(self.threads, waits=True)  # calls share arrays of this objective
        self.penalty = np.broadcast_to(np.asarray(self.l2, np.float64), self.model.size)
        self.rooms, self.slopes = local(), np.empty((0, 0))
        paired = self.loss.facts.uses == "beliefs"  # their derivatives need the beliefs of all pairs
        most = min(PIECE, max(_FEWEST, _MOST_PAIRS // self.model.features.card**2)) if paired else PIECE
        self.pieces = [(first, last, self.piece(first, last)) for first, last in self.data.pieces(most)]
        self.known = KnownPieces.of(self)

    def __call__(self, theta: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient."""
        model = self.model
        tables = model.tables(theta, self.data.tokens, self.spread)
        transition = Transition(tables.transition)
        sums, edges = self._known_sums(tables, transition) or self._all_sums(tables, transition)
        gradient, n = np.empty(model.size), model.features.size
        self.training.gradient(self.spread, gradient[:n])
        gradient[n:] = model.others(np.sum([pairs for _, pairs in sums], axis=0), *edges)
        self.proved = self.proved and all(piece.missed[0] == 0 for _, _, piece in self.pieces)
        with np.errstate(over="ignore", invalid="ignore"):
            pull = self.penalty * theta
            value = float(np.sum([value for value, _ in sums]) + np.sum(pull * theta))
            gradient += 2.0 * pull
        return value, gradient

    @cached_property
    def training(self) -> Training:
        """The tokens, laid out in groups of pieces, and the derivatives by their weights."""
        groups = np.append(self.cuts[:-1:GROUP], self.cuts[-1])
        return self.data.tokens.training(self.data.offsets[groups])

    @cached_property
    def cuts(self) -> IntArray:
        """The first sequence of each piece whose slopes stay in a cache."""
        most = max(_IN_CACHE // width_of(self.model.features.card), int(self.data.offsets[-1]) // _MOST_PIECES)
        return np.array([0, *(last for _, last in self.data.pieces(most))])

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
    def least(self) -> float:
        """What it is never below, if all maxima in it are exact."""
        return 0.0 if self.loss.facts.nonnegative else -math.inf

    @property
    def n_examples(self) -> int:
        """The number of sequences."""
        return len(self.data.offsets) - 1

    def planes(self, theta: FloatArray, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the hinges of some sequences, without penalties, and their derivatives (rows, size)."""
        if not isinstance(self.loss, HingeLoss) or self.X is None:
            expected = "a hinge ('margin'), where each sequence has a plane of its own ('bcfw')"
            raise InputError("loss", expected, repr(self.loss.name), "use optimizer 'cutting-plane'")
        sizes = np.diff(self.data.offsets)[rows]
        tokens = ranges(self.data.offsets[rows], sizes)
        weights = np.ones(len(tokens)) if self.weights is None else self.weights[tokens]
        completion = None if self.completion is None else self.completion[tokens]
        piece = Piece(0, starts(sizes), self.labels[tokens], weights, self.model.features.card, completion)
        X = csr_array(self.X[tokens])
        part = Sequences(self.model.features.compiled(X), piece.offsets)
        tables = self.model.tables(theta, part.tokens)
        scores = np.zeros((len(tokens), width_of(self.model.features.card)))
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
        """Whether `sweep` can make the steps of block-coordinate Frank-Wolfe: for margins."""
        known = self.completion is not None or bool((self.labels >= 0).all())
        return has_sweep(self.loss) and known and self.X is not None

    @cached_property
    def sweep(self) -> ChainSweep:
        """Passes of block-coordinate Frank-Wolfe; see `BlockFrankWolfe`."""
        assert isinstance(self.loss, HingeLoss)
        assert self.X is not None
        return ChainSweep(self.loss, self.piece(0, self.n_examples), self.X, self.model)

    def piece(self, first: int, last: int) -> Piece:
        """Return sequences `first` to `last` as a loss sees them."""
        offsets = self.data.offsets[first : last + 1]
        tokens = slice(int(offsets[0]), int(offsets[-1]))
        weights = np.ones(tokens.stop - tokens.start) if self.weights is None else self.weights[tokens]
        completion = None if self.completion is None else self.completion[tokens]
        return Piece(first, offsets - offsets[0], self.labels[tokens], weights, self.model.features.card, completion)

    def room(self) -> Room:
        """Return the arrays of this thread."""
        if not hasattr(self.rooms, "own"):
            self.rooms.own = Room()
        found: Room = self.rooms.own
        return found

    def _known_sums(self, tables: Tables, transition: Transition) -> Found | None:
        """Return the sums by the compiled loop from weights to derivatives, if it can do that."""
        known = self.known if self.training.entries is not None else None
        return None if known is None else known(self, tables, transition)

    def _all_sums(self, tables: Tables, transition: Transition) -> Found:
        """Return the sums of all pieces, and write the derivatives: first the slopes of all tokens, then back."""
        offsets, k = self.data.offsets, self.model.features.card
        slopes = self.slopes = self.slopes if self.slopes.size else aligned(int(offsets[-1]), width_of(k))

        def one(first: int, last: int, piece: Piece) -> Sums:
            return self.sums_of(tables, transition, first, last, piece, slopes[offsets[first] : offsets[last]])

        found = self.spread(one, self.pieces)
        self.training.transpose(slopes, self.spread)
        first, last = (slopes[tokens, :k].sum(axis=0) for tokens in ends_of(offsets))
        return found, (first, last)

    def sums_of(
        self, tables: Tables, transition: Transition, first: int, last: int, piece: Piece, slopes: FloatArray
    ) -> Sums:
        """Return the sums of sequences `first` to `last`, and write the slopes of their tokens (tokens, width)."""
        room = self.room()
        scores = room.take("scores", len(slopes), width_of(transition.card))
        self.data.scores(tables, first, last, scores)
        return self.of_piece(piece, scores, transition, slopes, room)


def has_sweep(loss: Loss) -> bool:
    """Tell whether block-coordinate Frank-Wolfe has compiled passes for a loss of chains."""
    return isinstance(loss, HingeLoss) and not (loss.by_slack or loss.by_counts)
