"""The two-loop recursion of L-BFGS, by threads that go through it together (`arithmetic.together`).

    q  =  factor v
    for the pairs (s, y) from the newest on:    a  =  sᵀq / sᵀy,     q  =  q - a y
    q  =  scale q
    for the pairs from the oldest on:           q  =  q + (a - yᵀq / sᵀy) s        (Nocedal and Wright 2006, 7.4)

Each step changes q, and multiplies it by the vector that comes next, in one pass over memory: 2 m + 2 steps for m
pairs.
A vector is cut into pieces, and these into leaves of LEAF numbers, which are added up in lanes; then leaves are added
pairwise, and pieces in order. So the bits are the same for any number of threads.

Traffic bounds it: q stays in a cache, and each of the 2 m vectors of the pairs is read twice, 32 m bytes for a number
of q: 150 MB for 474,000 numbers and 10 pairs, 7.6 ms at the 20 GB/s of memory. Measured: 7 ms, with two threads 5 ms.
"""

from __future__ import annotations

from typing import Any

from numba import extending, types

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import (
    ZEROS,
    add_eight,
    add_products,
    eight,
    put_eight,
    scaled_eight,
    total_of,
)
from isinglass.kernels.numba.arithmetic.together import (
    OVER,
    come,
    done,
    end_steps,
    finish_step,
    leave,
    next_step,
    start_step,
    take,
)
from isinglass.kernels.numba.arithmetic.vectors import LEAF, fold
from isinglass.runtime.compilation.jit import cold, compiled, inner, unrolled_apart

intrinsic: Any = extending.intrinsic


@intrinsic
def vector_at(typing_context, like, address):
    """Return the vector at an address, as long as another one."""

    def generate(context, builder, signature, arguments):
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        found.data = builder.inttoptr(arguments[1], found.data.type)
        return found._getvalue()

    return like(like, types.intp), generate


@inner
def set_leaf(first, last, factor, b, q):
    """Set numbers `first` to `last` of q to factor b."""
    p = first
    while p + 8 <= last:
        put_eight(q, p, scaled_eight(factor, eight(b, p)))
        p += 8
    while p < last:
        q[ix(p)] = factor * b[ix(p)]
        p += 1


@inner
def move_leaf(first, last, factor, b, q):
    """Add factor b to numbers `first` to `last` of q."""
    p = first
    while p + 8 <= last:
        put_eight(q, p, add_eight(eight(q, p), factor, eight(b, p)))
        p += 8
    while p < last:
        q[ix(p)] += factor * b[ix(p)]
        p += 1


@inner
def multiply_leaf(first, last, q, c):
    """Return the sum of q c over numbers `first` to `last`."""
    lanes, p = ZEROS, first
    while p + 8 <= last:
        lanes = add_products(lanes, eight(q, p), eight(c, p))
        p += 8
    total = total_of(lanes)
    while p < last:
        total += q[ix(p)] * c[ix(p)]
        p += 1
    return total


@unrolled_apart
def do_pieces(crew, step, place, order, factor, q, sums):
    """Take pieces of a step, until none is left; `order`: whether q is set, and the addresses of b and c."""
    pieces, size = sums.shape[0], sums.shape[1] * LEAF
    b, c = vector_at(q, order[ix(1)]), vector_at(q, order[ix(2)])
    while True:
        begin, end = take(crew, step, place, pieces)
        if begin == end:
            return
        for piece in range(begin, end):
            for leaf in range(sums.shape[1]):
                first = piece * size + leaf * LEAF
                last = min(first + LEAF, len(q))
                if order[ix(0)] != 0:
                    set_leaf(first, last, factor[ix(0)], b, q)
                else:
                    move_leaf(first, last, factor[ix(0)], b, q)
                sums[ix(piece), ix(leaf)] = multiply_leaf(first, last, q, c)
            fold(sums, piece)
        done(crew, place, end - begin)


@cold
def lead_step(crew, step, fresh, amount, b, c, order, factor, q, sums):
    """Do a step with all threads; return qᵀc."""
    order[ix(0)], order[ix(1)], order[ix(2)], factor[ix(0)] = fresh, b, c, amount
    start_step(crew, step, sums.shape[0])
    do_pieces(crew, step, 0, order, factor, q, sums)
    finish_step(crew, sums.shape[0])
    total = 0.0
    for piece in range(sums.shape[0]):
        total += sums[ix(piece), ix(0)]
    return total


@cold
def follow(crew, order, factor, q, sums):
    """Take part in the steps that another thread leads."""
    place = come(crew, False)
    step = next_step(crew, 0)
    while step != OVER:
        do_pieces(crew, step, place, order, factor, q, sums)
        step = next_step(crew, step)
    leave(crew)


@compiled
def two_loops(leads, crew, order, factor, q, sums, v, scale, pairs, products, shares):
    """Write factor H v to q, or follow the thread that does.

    Parameters
    ----------
    crew : int array
    order, factor : int array (3,), array (1,)
        What is done in a step, for all threads; at first, the factor of v.
    sums : array (pieces, 2^k)
    v : int
        The address of a vector.
    pairs : int array (m, 2)
        The addresses of s and y, oldest first.
    products, shares : arrays (m,)
        sᵀy; room for a.
    """
    if not leads:
        follow(crew, order, factor, q, sums)
        return
    m, step = len(pairs), 1
    along = lead_step(crew, step, 1, factor[ix(0)], v, pairs[ix(m - 1), ix(0)], order, factor, q, sums)
    for k in range(m - 1, -1, -1):
        step += 1
        shares[ix(k)] = along / products[ix(k)]
        after = pairs[ix(max(k - 1, 0)), ix(0)]
        along = lead_step(crew, step, 0, -shares[ix(k)], pairs[ix(k), ix(1)], after, order, factor, q, sums)
    step += 1
    along = lead_step(crew, step, 1, scale, q.ctypes.data, pairs[ix(0), ix(1)], order, factor, q, sums)
    for k in range(m):
        step += 1
        amount, s = shares[ix(k)] - along / products[ix(k)], pairs[ix(k), ix(0)]
        after = pairs[ix(k + 1), ix(1)] if k + 1 < m else s
        along = lead_step(crew, step, 0, amount, s, after, order, factor, q, sums)
    end_steps(crew)
