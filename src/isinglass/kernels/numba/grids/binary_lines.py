"""Messages from line to line of a binary grid, and their reverse, eight sites at a time in registers.

`sweeps` says what planes and lines are, and `pass_lines` and `reverse_lines` there are the same for any variables: the
messages of `pass_binary` are theirs to the last bit. The last eight places of a range may overlap those before: what
they write is the same, and sums leave them out. A range has eight places at least.

On the way back, derivatives h by the logarithms of normalised messages are kept for state 0 only, because a common
factor of both entries of a message changes nothing (see `binary`):

    h(1) = -h(0)        for all messages but the last ones, whose derivatives `settle` makes so: with messages m
    h(0) <- h(0) m(1) - h(1) m(0)

`mirror` writes those of state 1 at the end.
"""

from __future__ import annotations

from isinglass.kernels.layout import LANES
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.lanes import (
    ONES,
    add_products,
    blended,
    crossed,
    differences,
    eight,
    mixed_eight,
    negative_eight,
    number_over,
    over_eight,
    plus_eight,
    put_eight,
    smaller_eight,
    smallest_of,
    take_products,
    times_eight,
    total_of,
)
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.runtime.compilation.jit import inner, prepared, unrolled_apart


@inner
def eight_at(planes, k, line, at):
    """Return what eight places of a line of a plane hold."""
    return eight(part(planes, (k, line), 0, planes.shape[2]), at)


@inner
def put_at(planes, k, line, at, values):
    """Write to eight places of a line of a plane."""
    put_eight(part(planes, (k, line), 0, planes.shape[2]), at, values)


@inner
def product(phi, one, two, three, k, line, at):
    """Return ((phi one) two) three at eight places, in state k."""
    first = times_eight(eight_at(phi, k, line, at), eight_at(one, k, line, at))
    return times_eight(times_eight(first, eight_at(two, k, line, at)), eight_at(three, k, line, at))


@inner
def entries(weights, c, x, y, link, at):
    """Return entry (x, y) of the tables of eight links."""
    return eight(part(weights, (c, x, y, link), 0, weights.shape[4]), at)


@inner
def messages(n0, n1, weights, c, link, at, reverse, own):
    """Return what eight links carry, before its normalisation: sums over the states n of the sites that send."""
    x = 0 if reverse else 1  # entry (x, 1 - x) is that of a site which sends 1 to one in state 0
    if len(own) == 0:
        w00, w10 = weights[0, 0, 0, 0, 0], weights[0, ix(x), ix(1 - x), 0, 0]
        w01, w11 = weights[0, ix(1 - x), ix(x), 0, 0], weights[0, 1, 1, 0, 0]
        return mixed_eight(w00, n0, w10, n1), mixed_eight(w01, n0, w11, n1)
    return (
        blended(entries(weights, c, 0, 0, link, at), n0, entries(weights, c, x, 1 - x, link, at), n1),
        blended(entries(weights, c, 1 - x, x, link, at), n0, entries(weights, c, 1, 1, link, at), n1),
    )


@inner
def slopes_of_zero(p, q, weights, c, link, at, reverse, own):
    """Return psi(0, 0) p - psi(0, 1) q, for the tables of eight links, the states that send first."""
    x = 0 if reverse else 1
    if len(own) == 0:
        return differences(weights[0, 0, 0, 0, 0], p, weights[0, ix(1 - x), ix(x), 0, 0], q)
    return crossed(entries(weights, c, 0, 0, link, at), p, entries(weights, c, 1 - x, x, link, at), q)


@unrolled_apart
def pass_binary(out, phi, one, two, three, weights, c, shift, reverse, begin, end, own):
    """Send from line to line, as `pass_lines` does. Returns the smallest product that a site sends."""
    lines, least = phi.shape[1], ONES
    for done in range(lines - 1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        at = begin
        while at < end:
            at = min(at, end - LANES)
            n0, n1 = product(phi, one, two, three, 0, line, at), product(phi, one, two, three, 1, line, at)
            least = smaller_eight(n1, smaller_eight(n0, least))
            m0, m1 = messages(n0, n1, weights, c, min(line, to), at + shift, reverse, own)
            scale = number_over(1.0, plus_eight(m0, m1))
            put_at(out, 0, to, at, times_eight(m0, scale))
            put_at(out, 1, to, at, times_eight(m1, scale))
            at += LANES
    return smallest_of(least)


@inner
def add_tables(bar, weights, c, x, y, link, at, slopes, n):
    """Add to the derivatives by entry (x, y) of the tables of eight links."""
    run = part(bar, (0, c, x, y, link), 0, bar.shape[5])
    change = times_eight(slopes, n)
    put_eight(run, at, add_products(eight(run, at), entries(weights, c, x, y, link, at), change))


@inner
def gather(planes, line, at, t, mask, fresh):
    """Add derivatives to those at eight places, or write them if there are none yet."""
    if fresh:
        put_at(planes, 0, line, at, t)
    else:
        put_at(planes, 0, line, at, add_products(eight_at(planes, 0, line, at), t, mask))


@unrolled_apart
def reverse_binary(out_bar, moving_bar, base_bar, also, further, alone, fresh, phi, one, two, three, weights,
                   weights_bar, c, shift, reverse, begin, end, chunk, sums, masks, own):  # fmt: skip
    """Reverse `pass_binary`, as `reverse_lines` does; `sums` are those of shared tables, by lanes, for each chunk."""
    lines = phi.shape[1]
    for done in range(lines - 2, -1, -1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        at = begin
        while at < end:
            place = (at + shift) // chunk
            stop, total = min(end, (place + 1) * chunk - shift), sums[ix(place)]
            s00, s10, s01, s11 = eight(total[0], 0), eight(total[1], 0), eight(total[2], 0), eight(total[3], 0)
            while at < stop:
                mask = eight(masks[ix(max(0, at + LANES - stop))], 0)  # without those that are done
                at = min(at, stop - LANES)
                n0, n1 = product(phi, one, two, three, 0, line, at), product(phi, one, two, three, 1, line, at)
                m0, m1 = messages(n0, n1, weights, c, min(line, to), at + shift, reverse, own)
                h = eight_at(out_bar, 0, to, at)
                p, q = over_eight(h, m0), over_eight(h, m1)
                t = times_eight(slopes_of_zero(p, q, weights, c, min(line, to), at + shift, reverse, own), n0)
                p, q = times_eight(p, mask), times_eight(q, mask)
                if len(own) == 0:
                    s00, s10 = add_products(s00, p, n0), add_products(s10, p, n1)
                    s01, s11 = take_products(s01, q, n0), take_products(s11, q, n1)
                else:
                    x, link, less = 0 if reverse else 1, min(line, to), negative_eight(q)
                    add_tables(weights_bar, weights, c, 0, 0, link, at + shift, p, n0)
                    add_tables(weights_bar, weights, c, x, 1 - x, link, at + shift, p, n1)
                    add_tables(weights_bar, weights, c, 1 - x, x, link, at + shift, less, n0)
                    add_tables(weights_bar, weights, c, 1, 1, link, at + shift, less, n1)
                gather(moving_bar, line, at, t, mask, False)
                gather(base_bar, line, at, t, mask, alone and fresh)
                if not alone:
                    gather(also, line, at, t, mask, fresh)
                    gather(further, line, at, t, mask, fresh)
                at += LANES
            put_eight(total[0], 0, s00)
            put_eight(total[1], 0, s10)
            put_eight(total[2], 0, s01)
            put_eight(total[3], 0, s11)


@inner
def begin_sums(sums, first, last):
    """Let no derivatives by the shared tables of some chunks be known."""
    for place in range(first, last):
        for i in range(4):
            for lane in range(LANES):
                sums[ix(place), ix(i), ix(lane)] = 0


@inner
def end_sums(sums, weights, weights_bar, c, reverse, first, last):
    """Add the derivatives by the shared tables of some chunks."""
    for place in range(first, last):
        for x in range(2):
            for y in range(2):
                total = total_of(eight(sums[ix(place), ix(2 * y + x)], 0))
                i, j = (y, x) if reverse else (x, y)
                weights_bar[ix(place), ix(c), ix(i), ix(j), 0, 0] += weights[0, ix(i), ix(j), 0, 0] * total


@prepared
def settle(bars, messages, begin, end):
    """Let the derivatives by both states of some columns of messages differ in their sign only; keep those by 0."""
    for d in range(4):
        for y in range(bars.shape[2]):
            zero, one = part(bars, (d, 0, y), begin, end), part(bars, (d, 1, y), begin, end)
            m0, m1 = part(messages, (d, 0, y), begin, end), part(messages, (d, 1, y), begin, end)
            for x in range(len(zero)):
                zero[ix(x)] = zero[ix(x)] * m1[ix(x)] - one[ix(x)] * m0[ix(x)]
                one[ix(x)] = 0


@inner
def mirror(planes):
    """Write the derivatives by state 1."""
    for y in range(planes.shape[1]):
        zero, one = part(planes, (0, y), 0, planes.shape[2]), part(planes, (1, y), 0, planes.shape[2])
        for x in range(len(one)):
            one[ix(x)] = -zero[ix(x)]
