"""The reverse of `sweeps`, which says what the letters and planes are: from derivatives by logs of messages.

What a site sends is a product of its potential and three messages, so that t, the derivative by the logarithm of the
product, belongs to that of each factor. U2 of an iteration is read by nobody after it: its derivatives are zero but
where the way back begins, which `fresh` tells. Binary grids keep derivatives by state 0 only (see `binary_lines`).
"""

from __future__ import annotations

from isinglass.kernels.layout import STRIP
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.kernels.numba.arithmetic.runs import add, add_product, copy_run, dot, multiply, slopes_of
from isinglass.kernels.numba.grids.binary_lines import begin_sums, end_sums, mirror, reverse_binary, settle
from isinglass.kernels.numba.grids.sweeps import (
    DOWN,
    DOWNWARDS,
    LEFT,
    RIGHT,
    UP,
    UPWARDS,
    columns_down,
    products_of_line,
    send_line,
    strip_after,
    weigh,
)
from isinglass.kernels.numba.grids.turning import copy_planes, into_strip, set_columns, set_line
from isinglass.runtime.compilation.jit import apart, compiled, inner, prepared


@inner
def kept(planes, lanes):
    """Return for how many states derivatives are kept."""
    return 1 if len(lanes) > 0 else len(planes)


@inner
def receive_back(weights, weights_bar, c, line, begin, chunk, reverse, sent, slope, out, run, own):
    """Write sum_y psi slope(y) for the messages of a line, and add to the derivatives by psi.

    Those by shared tables are kept apart for each `chunk` of places: then their bits do not depend on `begin`.
    """
    card, size = len(slope), len(run)
    end = begin + size
    for x in range(card):
        weigh(part(out, (x,), 0, size), weights, c, line, begin, not reverse, x, slope, own)
    for x in range(card):
        for y in range(card):
            one, two = (y, x) if reverse else (x, y)
            if len(own) == 0:
                start = 0
                while start < size:
                    place = (begin + start) // chunk
                    stop = min((place + 1) * chunk - begin, size)
                    total = dot(part(slope, (y,), start, stop), part(sent, (x,), start, stop))
                    weights_bar[ix(place), ix(c), ix(one), ix(two), 0, 0] += weights[0, ix(one), ix(two), 0, 0] * total
                    start = stop
            else:
                multiply(run, part(slope, (y,), 0, size), part(sent, (x,), 0, size))
                bar = part(weights_bar, (0, c, one, two, line), begin, end)
                add_product(bar, part(weights, (c, one, two, line), begin, end), run)


@inner
def gather_line(planes, k, line, begin, end, t, fresh):
    """Add derivatives to those at some places of a line, or write them if there are none yet."""
    run = part(planes, (k, line), begin, end)
    if fresh:
        copy_run(run, t)
    else:
        add(run, run, t)


@apart
def reverse_lines(out_bar, moving_bar, base_bar, also, further, alone, fresh, phi, one, two, three, weights,
                  weights_bar, c, shift, reverse, begin, end, chunk, work, own, lanes):  # fmt: skip
    """Reverse `pass_lines`: from derivatives by the logs of `out` to t.

    It is added to `moving_bar` and `base_bar` and, unless that is `alone`, to two `also` and `further`. If it is
    `fresh`, the one, or the other two, hold nothing yet.
    """
    card, lines, size = phi.shape[0], phi.shape[1], end - begin
    if fresh:
        silent = 0 if reverse else lines - 1
        set_line(base_bar if alone else also, silent, begin, end, 0)
        set_line(base_bar if alone else further, silent, begin, end, 0)
    if len(lanes) > 0:
        first, last = (begin + shift) // chunk, (end + shift - 1) // chunk + 1
        begin_sums(work.sums, first, last)
        reverse_binary(out_bar, moving_bar, base_bar, also, further, alone, fresh, phi, one, two, three, weights,
                       weights_bar, c, shift, reverse, begin, end, chunk, work.sums, work.masks, own)  # fmt: skip
        if len(own) == 0:
            end_sums(work.sums, weights, weights_bar, c, reverse, first, last)
        return
    scale, mean = part(work.run, (0,), 0, size), part(work.run, (1,), 0, size)
    for done in range(lines - 2, -1, -1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        link = min(line, to)
        products_of_line(work.sent, phi, one, two, three, line, begin, end)
        send_line(weights, c, link, begin + shift, reverse, work.sent, work.message, scale, own)
        add(mean, part(out_bar, (0, to), begin, end), part(out_bar, (1, to), begin, end))
        for k in range(2, card):
            add(mean, mean, part(out_bar, (k, to), begin, end))
        multiply(mean, mean, scale)
        for k in range(card):
            slopes_of(part(work.message, (k,), 0, size), part(out_bar, (k, to), begin, end), mean)
        receive_back(weights, weights_bar, c, link, begin + shift, chunk, reverse, work.sent, work.message, work.back,
                     mean, own)  # fmt: skip
        for k in range(card):
            t = part(work.back, (k,), 0, size)
            multiply(t, t, part(work.sent, (k,), 0, size))
            gather_line(moving_bar, k, line, begin, end, t, False)
            gather_line(base_bar, k, line, begin, end, t, alone and fresh)
            if not alone:
                gather_line(also, k, line, begin, end, t, fresh)
                gather_line(further, k, line, begin, end, t, fresh)


@prepared
def spread_strip(strip, phi_bar, up_bar, down_bar, top, bottom, fresh):
    """Turn derivatives by phi U1 D1 back: add them to those by phi and, if there are some, by U1; write those by D1."""
    for k in range(len(strip)):
        for y in range(top, bottom):
            to_phi, to_up = part(phi_bar, (k, y), 0, strip.shape[1]), part(up_bar, (k, y), 0, strip.shape[1])
            to_down = part(down_bar, (k, y), 0, strip.shape[1])
            for x in range(strip.shape[1]):
                t = strip[ix(k), ix(x), ix(y - top)]
                to_phi[ix(x)] += t
                to_up[ix(x)] = to_up[ix(x)] + t if fresh else t
                to_down[ix(x)] = t


@apart
def reverse_up(phi, up, new, bar, phi_bar, across, across_bar, c, fresh, begin, end, chunk, work, own, lanes):
    """Reverse some columns of the vertical links upwards; leaves the derivatives by U1 in work.up_bar, if `fresh`."""
    k = kept(phi, lanes)
    left, right, left_bar, right_bar = new[LEFT], new[RIGHT], bar[LEFT][:k], bar[RIGHT][:k]
    bar_up, bar_down, up_bar = bar[UP][:k], bar[DOWN][:k], work.up_bar[:k]
    if fresh:
        set_columns(up_bar, begin, end, 0)
        reverse_lines(bar_up, up_bar, phi_bar, left_bar, right_bar, False, False, phi, left, right, up, across,
                      across_bar, c, 0, DOWNWARDS, begin, end, chunk, work, own, lanes)  # fmt: skip
        set_columns(bar_up, begin, end, 0)
    reverse_lines(bar_down, bar_down, phi_bar, left_bar, right_bar, False, False, phi, left, right, new[DOWN], across,
                  across_bar, c, 0, UPWARDS, begin, end, chunk, work, own, lanes)  # fmt: skip


@apart
def reverse_rows(up, down, new, bar, phi_bar, along, along_bar, c, fresh, top, bottom, chunk, work, own, lanes):
    """Reverse some rows, whose potentials are in a strip; leaves the derivatives by D1 in those of D."""
    phi, above, below, left, right = work.strips[0], work.strips[1], work.strips[2], work.strips[3], work.strips[4]
    k = kept(phi, lanes)
    base_bar, left_bar, right_bar = work.strip_bars[0][:k], work.strip_bars[1][:k], work.strip_bars[2][:k]
    into_strip(above, up, top, bottom, lanes)
    into_strip(below, down, top, bottom, lanes)
    into_strip(left, new[LEFT], top, bottom, lanes)
    into_strip(right, new[RIGHT], top, bottom, lanes)
    into_strip(left_bar, bar[LEFT][:k], top, bottom, lanes)
    into_strip(right_bar, bar[RIGHT][:k], top, bottom, lanes)
    reverse_lines(left_bar, left_bar, base_bar, base_bar, base_bar, True, True, phi, left, above, below, along,
                  along_bar, c, top, DOWNWARDS, 0, bottom - top, chunk, work, own, lanes)  # fmt: skip
    reverse_lines(right_bar, right_bar, base_bar, base_bar, base_bar, True, False, phi, right, above, below, along,
                  along_bar, c, top, UPWARDS, 0, bottom - top, chunk, work, own, lanes)  # fmt: skip
    spread_strip(base_bar, phi_bar, work.up_bar[:k], bar[DOWN][:k], top, bottom, fresh)


@apart
def reverse_down(phi, up, old, bar, phi_bar, across, across_bar, c, again, begin, end, chunk, work, own, lanes):
    """Reverse some columns of the links downwards; `bar` becomes the derivatives by the messages before."""
    k = kept(phi, lanes)
    left, right, left_bar, right_bar = old[LEFT], old[RIGHT], bar[LEFT][:k], bar[RIGHT][:k]
    bar_down, up_bar, down_bar = bar[DOWN][:k], work.up_bar[:k], work.down_bar[:k]
    reverse_lines(up_bar, up_bar, phi_bar, left_bar, right_bar, False, True, phi, left, right, up, across, across_bar,
                  c, 0, DOWNWARDS, begin, end, chunk, work, own, lanes)  # fmt: skip
    if not again:
        copy_planes(down_bar, bar_down, begin, end)
        set_columns(bar_down, begin, end, 0)
        reverse_lines(down_bar, bar_down, phi_bar, left_bar, right_bar, False, False, phi, left, right, old[DOWN],
                      across, across_bar, c, 0, UPWARDS, begin, end, chunk, work, own, lanes)  # fmt: skip


@compiled
def sweep_stage_back(stage, phi, source, out, again, known, fresh, bars, phi_bar, across, across_bar, along, along_bar,
                     c, begin, end, chunk, work, own, lanes):  # fmt: skip
    """Reverse one of the three stages of an iteration on grid c, for the columns (rows) ``begin:end`` alone.

    Stage 0 reverses the columns upwards, 1 the rows, 2 the columns downwards. U1 is in the place of U2 if `known`.
    Derivatives by state 1 of a binary grid are not written.
    """
    old, new, bar = source[c if len(source) > 1 else 0], out[c], bars[c]
    own_bar = phi_bar[c][: kept(phi[c], lanes)]
    up, down = new[UP] if known else work.up, old[DOWN] if again else work.down
    limit = 0.0
    if stage == 0:
        if len(lanes) > 0 and fresh:
            settle(bar, new, begin, end)
        if not known:
            columns_down(phi[c], old, up, across, c, again, False, begin, end, work, limit, own, lanes)
        reverse_up(phi[c], up, new, bar, own_bar, across, across_bar, c, fresh, begin, end, chunk, work, own, lanes)
    elif stage == 1:
        top = begin
        while top < end:
            bottom = strip_after(top, end, chunk, STRIP)
            into_strip(work.strips[0], phi[c], top, bottom, lanes)
            reverse_rows(up, down, new, bar, own_bar, along, along_bar, c, fresh, top, bottom, chunk, work, own,
                         lanes)  # fmt: skip
            top = bottom
    else:
        reverse_down(phi[c], up, old, bar, own_bar, across, across_bar, c, again, begin, end, chunk, work, own,
                     lanes)  # fmt: skip


@compiled
def sweep_grids_back(phi, source, stack, iterations, again, fresh, bars, phi_bar, across, across_bar, along, along_bar,
                     active, work, first, last, own, lanes):  # fmt: skip
    """Reverse iterations that began with `source`: `bars` are derivatives by the logs of messages, after and before."""
    height, width, limit = phi.shape[2], phi.shape[3], 0.0
    for c in range(first, last):
        if not active[c]:
            continue
        into_strip(work.strips[0], phi[c], 0, height, lanes)
        bar, own_bar = bars[c], phi_bar[c][: kept(phi[c], lanes)]
        if len(lanes) > 0 and fresh[c]:
            settle(bar, stack[iterations - 1, c], 0, width)
        for t in range(iterations - 1, -1, -1):
            old, new = source[c if len(source) > 1 else 0] if t == 0 else stack[t - 1, c], stack[t, c]
            more = again or t > 0
            known = more and t < iterations - 2
            up, down = new[UP] if known else work.up, old[DOWN] if more else work.down
            if not known:
                columns_down(phi[c], old, up, across, c, more, False, 0, width, work, limit, own, lanes)
            reverse_up(phi[c], up, new, bar, own_bar, across, across_bar, c, fresh[c], 0, width, width, work, own,
                       lanes)  # fmt: skip
            reverse_rows(up, down, new, bar, own_bar, along, along_bar, c, fresh[c], 0, height, height, work, own,
                         lanes)  # fmt: skip
            reverse_down(phi[c], up, old, bar, own_bar, across, across_bar, c, more, 0, width, width, work, own,
                         lanes)  # fmt: skip
            fresh[c] = False
        if len(lanes) > 0:
            for d in range(4):
                mirror(bar[d])
            mirror(phi_bar[c])
