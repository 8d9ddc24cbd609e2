"""Flooding on regular grids of binary variables whose links of an axis share a table, and its reverse.

The planes are those of `flooding`, and so are the messages, to the last bit. Here eight sites are updated at a time, in
registers. The last eight of a run may overlap those before: what they write is the same. Sites of a grid are counted
from its `corner`, which lies elsewhere in planes that serve one grid after the other: `old` and `to` are the corners in
planes that are read and written, `corner` is that in planes of all grids.

On the way back, let n be what a site sends towards a neighbour, m = psi n the message before its normalisation, and h
the derivative by the logarithm of the normalised message. A common factor of both entries of n changes nothing, so that

    h(1) = -h(0)        for all messages but the last ones, whose derivatives `settle` makes so:
    h(0) <- (h(0) m(1) - h(1) m(0)) / (m(0) + m(1))

Then the derivative by m(0) is h(0) / m(0), by m(1) it is -h(0) / m(1), and that by log n(0) is

    t  =  n(0) h(0) (psi(0, 0) / m(0) - psi(1, 0) / m(1)),

with the states of the neighbour first; by log n(1) it is -t. Only planes of state 0 are read and written in between.
"""

from __future__ import annotations

from isinglass.kernels.layout import LANES
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import (
    ONES,
    add_products,
    crossed,
    differences,
    eight,
    minus_eight,
    mixed_eight,
    negative_eight,
    over_eight,
    plus_eight,
    put_eight,
    reciprocals,
    smaller_eight,
    smallest_of,
    take_products,
    times_eight,
    total_of,
)
from isinglass.runtime.compilation.jit import inner, unrolled_apart

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3


@inner
def entries(weights, axis, c):
    """Return the entries of the table of an axis in grid c."""
    return weights[axis, 0, 0, c], weights[axis, 0, 1, c], weights[axis, 1, 0, c], weights[axis, 1, 1, c]


@inner
def sent(phi, place, inbox, at, k):
    """Return what eight sites send to the left, right, up and down, in state k; `place` is theirs in phi."""
    own, left, right = eight(phi[k], place), eight(inbox[LEFT, k], at), eight(inbox[RIGHT, k], at)
    up, down = eight(inbox[UP, k], at), eight(inbox[DOWN, k], at)
    across, first = times_eight(down, up), times_eight(own, left)
    both = times_eight(first, right)
    return (
        times_eight(own, times_eight(across, right)),
        times_eight(first, across),
        times_eight(both, down),
        times_eight(both, up),
    )


@inner
def put_message(zero, one, at, n0, n1, a, b, c, d):
    """Write normalised messages: (a n0 + b n1, c n0 + d n1)."""
    m0, m1 = mixed_eight(a, n0, b, n1), mixed_eight(c, n0, d, n1)
    scale = reciprocals(plus_eight(m0, m1))
    put_eight(zero, at, times_eight(m0, scale))
    put_eight(one, at, times_eight(m1, scale))


@unrolled_apart
def flood_binary(phi, corner, inbox, old, new, to, weights, c, start, stop, pitch):
    """Send all messages of the sites from `start` to before `stop`. Returns the smallest product of a belief."""
    h00, h01, h10, h11 = entries(weights, 0, c)
    v00, v01, v10, v11 = entries(weights, 1, c)
    least, at = ONES, start
    while at < stop:
        at = min(at, stop - LANES)
        left0, right0, up0, down0 = sent(phi, corner + at, inbox, old + at, 0)
        left1, right1, up1, down1 = sent(phi, corner + at, inbox, old + at, 1)
        least = smaller_eight(times_eight(down0, eight(inbox[DOWN, 0], old + at)), least)
        least = smaller_eight(times_eight(down1, eight(inbox[DOWN, 1], old + at)), least)
        put_message(new[RIGHT, 0], new[RIGHT, 1], to + at - 1, left0, left1, h00, h01, h10, h11)
        put_message(new[LEFT, 0], new[LEFT, 1], to + at + 1, right0, right1, h00, h10, h01, h11)
        put_message(new[DOWN, 0], new[DOWN, 1], to + at - pitch, up0, up1, v00, v01, v10, v11)
        put_message(new[UP, 0], new[UP, 1], to + at + pitch, down0, down1, v00, v10, v01, v11)
        at += LANES
    return smallest_of(least)


@inner
def settled(zero, one, at, n0, n1, a, b, c, d):
    """Take the normalisation of messages (a n0 + b n1, c n0 + d n1) out of the derivatives by their logarithms."""
    m0, m1 = mixed_eight(a, n0, b, n1), mixed_eight(c, n0, d, n1)
    h = over_eight(crossed(eight(zero, at), m1, eight(one, at), m0), plus_eight(m0, m1))
    put_eight(zero, at, h)
    put_eight(one, at, negative_eight(h))


@unrolled_apart
def settle(phi, corner, inbox, old, bar, to, weights, c, start, stop, pitch):
    """Let the derivatives by both states of every message that some sites sent differ in their sign only."""
    h00, h01, h10, h11 = entries(weights, 0, c)
    v00, v01, v10, v11 = entries(weights, 1, c)
    at = start
    while at < stop:
        at = min(at, stop - LANES)
        left0, right0, up0, down0 = sent(phi, corner + at, inbox, old + at, 0)
        left1, right1, up1, down1 = sent(phi, corner + at, inbox, old + at, 1)
        settled(bar[RIGHT, 0], bar[RIGHT, 1], to + at - 1, left0, left1, h00, h01, h10, h11)
        settled(bar[LEFT, 0], bar[LEFT, 1], to + at + 1, right0, right1, h00, h10, h01, h11)
        settled(bar[DOWN, 0], bar[DOWN, 1], to + at - pitch, up0, up1, v00, v01, v10, v11)
        settled(bar[UP, 0], bar[UP, 1], to + at + pitch, down0, down1, v00, v10, v01, v11)
        at += LANES


@inner
def slopes(h, n0, n1, a, b, c, d):
    """Return h over both entries of the messages (a n0 + b n1, c n0 + d n1)."""
    return over_eight(h, mixed_eight(a, n0, b, n1)), over_eight(h, mixed_eight(c, n0, d, n1))


@inner
def gather_back(phi, place, inbox, at_old, bar, at_bar, weights, c, size, pitch, back, sums, masks):
    """Write t for what the sites of a strip sent in each direction, and add up the derivatives by tables, by lanes.

    The strip begins at `place` in phi, at `at_old` in the inbox, and at `at_bar` in the derivatives.
    """
    h00, h01, h10, h11 = entries(weights, 0, c)
    v00, v01, v10, v11 = entries(weights, 1, c)
    s00, s01, s10, s11 = eight(sums[0, 0], 0), eight(sums[0, 1], 0), eight(sums[1, 0], 0), eight(sums[1, 1], 0)
    t00, t01, t10, t11 = eight(sums[2, 0], 0), eight(sums[2, 1], 0), eight(sums[3, 0], 0), eight(sums[3, 1], 0)
    j = 0
    while j < size:
        mask = eight(masks[0 if j + LANES <= size else 1], 0)
        j = min(j, size - LANES)
        at = at_bar + j
        left0, right0, up0, down0 = sent(phi, place + j, inbox, at_old + j, 0)
        left1, right1, up1, down1 = sent(phi, place + j, inbox, at_old + j, 1)

        p, q = slopes(eight(bar[RIGHT, 0], at - 1), left0, left1, h00, h01, h10, h11)
        put_eight(back[LEFT, 0], j, times_eight(differences(h00, p, h10, q), left0))
        p, q = times_eight(p, mask), times_eight(q, mask)
        s00, s01 = add_products(s00, p, left0), add_products(s01, p, left1)
        s10, s11 = take_products(s10, q, left0), take_products(s11, q, left1)

        p, q = slopes(eight(bar[LEFT, 0], at + 1), right0, right1, h00, h10, h01, h11)
        put_eight(back[RIGHT, 0], j, times_eight(differences(h00, p, h01, q), right0))
        p, q = times_eight(p, mask), times_eight(q, mask)
        s00, s10 = add_products(s00, p, right0), add_products(s10, p, right1)
        s01, s11 = take_products(s01, q, right0), take_products(s11, q, right1)

        p, q = slopes(eight(bar[DOWN, 0], at - pitch), up0, up1, v00, v01, v10, v11)
        put_eight(back[UP, 0], j, times_eight(differences(v00, p, v10, q), up0))
        p, q = times_eight(p, mask), times_eight(q, mask)
        t00, t01 = add_products(t00, p, up0), add_products(t01, p, up1)
        t10, t11 = take_products(t10, q, up0), take_products(t11, q, up1)

        p, q = slopes(eight(bar[UP, 0], at + pitch), down0, down1, v00, v10, v01, v11)
        put_eight(back[DOWN, 0], j, times_eight(differences(v00, p, v01, q), down0))
        p, q = times_eight(p, mask), times_eight(q, mask)
        t00, t10 = add_products(t00, p, down0), add_products(t10, p, down1)
        t01, t11 = take_products(t01, q, down0), take_products(t11, q, down1)
        j += LANES
    put_eight(sums[0, 0], 0, s00)
    put_eight(sums[0, 1], 0, s01)
    put_eight(sums[1, 0], 0, s10)
    put_eight(sums[1, 1], 0, s11)
    put_eight(sums[2, 0], 0, t00)
    put_eight(sums[2, 1], 0, t01)
    put_eight(sums[3, 0], 0, t10)
    put_eight(sums[3, 1], 0, t11)


@inner
def spread_back(back, new_bar, at_new, phi_bar, at_phi, size, masks):
    """Write the derivatives by the messages before the iteration, and add those by potentials."""
    j = 0
    while j < size:
        mask = eight(masks[0 if j + LANES <= size else 1], 0)
        j = min(j, size - LANES)
        left, right = eight(back[LEFT, 0], j), eight(back[RIGHT, 0], j)
        up, down = eight(back[UP, 0], j), eight(back[DOWN, 0], j)
        total = plus_eight(plus_eight(plus_eight(left, right), up), down)
        put_eight(new_bar[LEFT, 0], at_new + j, minus_eight(total, left))
        put_eight(new_bar[RIGHT, 0], at_new + j, minus_eight(total, right))
        put_eight(new_bar[UP, 0], at_new + j, minus_eight(total, up))
        put_eight(new_bar[DOWN, 0], at_new + j, minus_eight(total, down))
        put_eight(phi_bar[0], at_phi + j, add_products(eight(phi_bar[0], at_phi + j), total, mask))
        j += LANES


@unrolled_apart
def reverse_binary(phi, corner, inbox, old, bar, came, new_bar, to, phi_bar, at_phi, weights, c, start, stop, pitch,
                   back, sums, masks):  # fmt: skip
    """Reverse the messages of the sites of a strip, and add to `sums` (see `begin_sums`); `masks` is scratch.

    `old`, `came`, `to` and `at_phi` are the corners of the grid in `inbox`, `bar`, `new_bar` and `phi_bar`.
    """
    size = stop - start
    for lane in range(LANES):
        masks[0, ix(lane)] = 1
        masks[1, ix(lane)] = 1 if lane >= -size % LANES else 0  # those that no block before has done
    gather_back(phi, corner + start, inbox, old + start, bar, came + start, weights, c, size, pitch, back, sums, masks)
    spread_back(back, new_bar, to + start, phi_bar, at_phi + start, size, masks)


@inner
def begin_sums(sums):
    """Let no derivatives by tables be known."""
    for i in range(4):
        for x in range(2):
            for lane in range(LANES):
                sums[i, x, lane] = 0


@inner
def end_sums(sums, weights, weights_bar, c):
    """Add the derivatives by the tables of a grid."""
    for axis in range(2):
        for x in range(2):
            for y in range(2):
                total = total_of(eight(sums[2 * axis + x, y], 0))
                weights_bar[axis, x, y, c] += weights[axis, x, y, c] * total


@inner
def mirror(bars, to, phi_bar, corner, start, stop):
    """Write the derivatives by state 1, which are minus those by state 0."""
    for d in range(4):
        for s in range(to + start, to + stop):
            bars[d, 1, ix(s)] = -bars[d, 0, ix(s)]
    for s in range(corner + start, corner + stop):
        phi_bar[1, ix(s)] = -phi_bar[0, ix(s)]
