"""The linear system of a convex free energy: unknowns, the pattern of its matrix, and how it is factorised.

The unknowns of a component are the beliefs of each variable's states but one, then one multiplier for each tie (see
`inference.support`). The matrix is [K C'; C -delta], with K positive definite where the energy is convex; components of
equal structure share one pattern, which is analysed once:

- *banded*: reverse Cuthill-McKee order and LAPACK's banded Cholesky, for large components of small bandwidth (grids);
- *sparse*: a greedy fill-reducing order and L D L' by rows, for all others;
- *iterative*, *multigrid*: conjugate gradients, for components whose factor would be too large (see
  `linear.iterative`), or where asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from isinglass.segments import ranges, starts
from isinglass.typing import Array, DType, FloatArray, IntArray

SMALL = 3e6  # steps of a banded factorisation below which the sparse one is as fast
ADVANTAGE = 8  # of a step of LAPACK over one of the sparse factorisation
LARGEST = 2**28  # bytes of a factor, by default: beyond, conjugate gradients are faster (19 times on 400 x 400)
SEARCH = 5 * 10**8  # steps in search of an order, by default: two or three seconds
STEP, ENOUGH = 1e-3, 1e-9  # largest relative residual, for a Newton step and for a derivative
SYSTEMS = ("auto", "factorised", "iterative", "multigrid")


@dataclass(frozen=True, eq=False)
class Pattern:
    """Where the entries of a component's matrix go, and in which order it is factorised."""

    order: IntArray  # (unknowns,) the one at each position
    target: IntArray  # places of all lower triangles, in the order in which they are added up
    diagonal: IntArray  # places of the diagonal entries of variables
    size: int
    negative: int  # eigenvalues, one for each tie
    bandwidth: int = -1  # -1: sparse
    sparse: tuple[IntArray, ...] = ()
    preconditioner: str = ""  # of conjugate gradients; none: factorised

    def unknowns(self) -> tuple[IntArray, IntArray]:
        """Return the row and column of each place, as unknowns; -1 in a band where it leaves the matrix."""
        n = len(self.order)
        if self.bandwidth < 0:
            first, rows = self.sparse[:2]
            return self.order[np.repeat(np.arange(n), np.diff(first))], self.order[rows]
        column, below = np.divmod(np.arange(self.size), self.bandwidth + 1)
        outside = np.append(self.order, -1)
        return outside[np.minimum(column + below, n)], self.order[column]


class Factor(Protocol):
    """A factorised matrix, or what serves as one."""

    def factorise(self, values: Array) -> bool:
        """Factorise; tell whether the matrix has the signs that it should."""

    def solve(self, right: Array) -> float:
        """Solve in place; return the relative residual."""


class SparseFactor:
    """L D L' by the compiled loops of `isinglass.kernels.numba.free_energy.ldl`."""

    def __init__(self, pattern: Pattern, dtype: DType) -> None:
        self.pattern = pattern
        n, entries = len(pattern.order), len(pattern.sparse[3])
        self.lower, self.where = np.empty(entries, dtype), np.empty(entries, np.int64)
        self.filled, self.diagonal = np.empty(n, np.int64), np.empty(n, dtype)
        self.row, self.x = np.zeros(n, dtype), np.empty(n, dtype)

    def factorise(self, values: Array) -> bool:
        """Factorise; the number of negative entries of D must be that of ties."""
        from isinglass.kernels.numba.free_energy.ldl import PIECE, factorise

        room = (self.lower, self.where, self.filled, self.diagonal, self.row)
        k = 0
        while 0 <= k < len(self.diagonal):
            k = factorise(*self.pattern.sparse, values, *room, k, PIECE)
        return k >= 0 and int((self.diagonal.real < 0).sum()) == self.pattern.negative

    def solve(self, right: Array) -> float:
        """Solve in place."""
        from isinglass.kernels.numba.free_energy.ldl import substitute

        starts = self.pattern.sparse[4]
        substitute(starts, self.lower, self.where, self.diagonal, self.pattern.order, right, self.x)
        return 0.0


class BandedFactor:
    """Cholesky by LAPACK."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.factor = np.empty((len(pattern.order), pattern.bandwidth + 1))

    def factorise(self, values: FloatArray) -> bool:
        """Factorise; fails unless positive definite."""
        from isinglass.runtime.lapack import factorise_band

        self.factor[:] = values.reshape(self.factor.shape)
        return factorise_band(self.factor)

    def solve(self, right: FloatArray) -> float:
        """Solve in place."""
        from isinglass.runtime.lapack import solve_band

        x = right[self.pattern.order]
        solve_band(self.factor, x)
        right[self.pattern.order] = x
        return 0.0


def factor_for(pattern: Pattern, dtype: DType, sure: bool = True) -> Factor:
    """Return an empty factor for a pattern; `sure` if its matrices are known to be positive definite."""
    if pattern.preconditioner:
        from isinglass.inference.free_energy.linear.iterative import IterativeFactor

        return IterativeFactor(pattern, dtype, sure)
    return SparseFactor(pattern, dtype) if pattern.bandwidth < 0 else BandedFactor(pattern)


@dataclass(frozen=True, eq=False)
class Local:
    """The structure of one component, numbered from zero."""

    cards: IntArray
    slot_variable: IntArray
    arity: IntArray
    ties: list[IntArray]  # the variables of each

    def key(self) -> bytes:
        """Return what the pattern depends on."""
        arrays = (self.cards, self.slot_variable, self.arity, *self.ties)
        return b"/".join(a.tobytes() for a in arrays)

    def pattern(self, banded: bool, system: str = "auto") -> Pattern:
        """Find the pairs of unknowns that meet, an order, and the place of each pair."""
        pairs, n = self._pairs(), int((self.cards - 1).sum()) + len(self.ties)
        if system in ("iterative", "multigrid") and not self.ties:
            return _iterative(*pairs, n, system)
        limited = system == "auto" and not self.ties
        weight = np.concatenate([self.cards - 1, np.ones(len(self.ties), np.int64)])
        first, near = self._neighbours(len(weight))
        order, sparse, band = _fill_order(first, near, weight, limited), None, None
        if order is not None:
            sparse = _sparse(_expanded(order, weight), *pairs, n, len(self.ties))
        if banded and n and not self.ties:
            band = _banded(_expanded(_band_order(first, near), weight), *pairs, n)
            band = None if limited and 16 * band.size > LARGEST else band
        if sparse is not None and band is not None:
            steps = n * float(band.bandwidth) ** 2
            fill = float((np.diff(sparse.sparse[4]).astype(float) ** 2).sum())
            return band if SMALL < steps < ADVANTAGE * fill else sparse
        return sparse or band or _iterative(*pairs, n, "iterative")

    def _pairs(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the two unknowns of every entry that is added up, in that order, and which entries are diagonal."""
        first = starts(self.cards - 1)
        one, two = _triangles(first[:-1], self.cards - 1, first[-1:], np.arange(first[-1]))
        diagonal = np.flatnonzero(one == two)
        first_slot = starts(self.arity)
        counts = (self.cards - 1)[self.slot_variable]
        m = starts(counts)[first_slot]
        members = ranges(first[self.slot_variable], counts)
        more = _triangles(m[:-1], np.diff(m), m[-1:], members)
        pairs = [(one, two), more]
        for t, scope in enumerate(self.ties):
            columns = ranges(first[scope], (self.cards - 1)[scope])
            me = first[-1] + t
            pairs.append((np.full(len(columns) + 1, me), np.concatenate([columns, [me]])))
        return (*(np.concatenate(side).astype(np.int64) for side in zip(*pairs, strict=True)), diagonal)  # type: ignore[return-value]

    def _neighbours(self, nodes: int) -> tuple[IntArray, IntArray]:
        """Return the adjacency of variables with more than one state, and ties."""
        first_slot, sides = starts(self.arity), [np.zeros((2, 0), np.int64)]
        for r in np.unique(self.arity).tolist():
            slots = self.slot_variable[first_slot[:-1][self.arity == r] + np.arange(r)[:, None]]
            one, two = np.tril_indices(r, -1)
            sides.append(np.stack([slots[one].ravel(), slots[two].ravel()]))
        sides += [np.stack([np.full(len(s), len(self.cards) + t), s]) for t, s in enumerate(self.ties)]
        a, b = np.concatenate(sides, axis=1)
        free = np.concatenate([self.cards > 1, np.ones(len(self.ties), bool)])
        keep = free[a] & free[b]
        a, b = np.concatenate([a[keep], b[keep]]), np.concatenate([b[keep], a[keep]])
        keys = np.unique(a * nodes + b)
        return np.searchsorted(keys, np.arange(nodes + 1) * nodes).astype(np.int64), keys % max(nodes, 1)


def _triangles(first: IntArray, sizes: IntArray, end: IntArray, members: IntArray) -> tuple[IntArray, IntArray]:
    """Return row and column of the lower triangles over the members ``first:first + size``, row by row."""
    lengths = sizes * (sizes + 1) // 2
    at = starts(lengths)
    one, two = np.empty(at[-1], np.int64), np.empty(at[-1], np.int64)
    for m in np.unique(sizes).tolist():
        which = np.flatnonzero(sizes == m)
        rows, columns = np.tril_indices(m)
        places = at[which][:, None] + np.arange(len(rows))
        one[places] = members[first[which][:, None] + rows]
        two[places] = members[first[which][:, None] + columns]
    return one, two


def _expanded(order: IntArray, weight: IntArray) -> IntArray:
    """Turn an order of blocks into one of unknowns."""
    return ranges(starts(weight)[order], weight[order])


def _band_order(first: IntArray, near: IntArray) -> IntArray:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    n = len(first) - 1
    if n == 0:
        return np.zeros(0, np.int64)
    rows = np.repeat(np.arange(n), np.diff(first))
    matrix = coo_array((np.ones(len(near), np.int8), (rows, near)), (n, n)).tocsr()
    return np.asarray(reverse_cuthill_mckee(matrix, symmetric_mode=True), np.int64)


def _fill_order(first: IntArray, near: IntArray, weight: IntArray, limited: bool) -> IntArray | None:
    """Eliminate, again and again, the block whose elimination joins the fewest unknowns.

    If `limited`, there is none where the search takes too long, or the factor, 24 bytes an entry, is too large.
    """
    from isinglass.graph.elimination.greedy import eliminate

    size = weight.astype(np.float64)
    work = SEARCH if limited else 2**62
    order, bounds, separators = eliminate(first, near, size, np.ones(len(size)), size, False, np.inf, work)[:3]
    if len(order) < len(weight):
        return None
    below = np.concatenate([[0.0], np.cumsum(size[separators])])
    entries = float(size[order] @ (np.diff(below[bounds]) + (size[order] - 1) / 2))
    found: IntArray = order
    return None if limited and 24 * entries > LARGEST else found


def _banded(order: IntArray, one: IntArray, two: IntArray, diagonal: IntArray, n: int) -> Pattern:
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    high, low = np.maximum(position[one], position[two]), np.minimum(position[one], position[two])
    width = int((high - low).max(initial=0))
    target = low * (width + 1) + high - low
    return Pattern(order, target, target[diagonal], n * (width + 1), 0, width)


def _iterative(one: IntArray, two: IntArray, diagonal: IntArray, n: int, preconditioner: str) -> Pattern:
    target, first, rows = _lower(np.arange(n), one, two, n)
    return Pattern(np.arange(n), target, target[diagonal], len(rows), 0, -1, (first, rows), preconditioner)


def _sparse(order: IntArray, one: IntArray, two: IntArray, diagonal: IntArray, n: int, negative: int) -> Pattern:
    from isinglass.kernels.numba.free_energy.ldl import row_patterns

    target, first, rows = _lower(order, one, two, n)
    bounds, columns = row_patterns(first, rows, n)
    lower = starts(np.bincount(columns, minlength=n))
    return Pattern(order, target, target[diagonal], len(rows), negative, -1, (first, rows, bounds, columns, lower))


def _lower(order: IntArray, one: IntArray, two: IntArray, n: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the place of each pair in the lower triangle, row by row; where rows begin; and the columns."""
    position = np.empty(n, np.int64)
    position[order] = np.arange(n)
    high, low = np.maximum(position[one], position[two]), np.minimum(position[one], position[two])
    keys, target = np.unique(high * max(n, 1) + low, return_inverse=True)
    first = np.searchsorted(keys, np.arange(n + 1) * max(n, 1)).astype(np.int64)
    return target.astype(np.int64).ravel(), first, keys % max(n, 1)
