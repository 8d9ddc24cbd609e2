"""The reverse of `sweeps`, which says what the letters and planes are: from derivatives by logs of messages."""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.kernels.numba.arithmetic.runs import add, add_product, dot, multiply, slopes_of
from isinglass.kernels.numba.grids.sweeps import (
    DOWN,
    DOWNWARDS,
    HORIZONTAL,
    LEFT,
    RIGHT,
    UP,
    UPWARDS,
    VERTICAL,
    base_of,
    columns_down,
    copy_planes,
    products_of_line,
    send_line,
    set_columns,
    turn_columns,
    turn_rows,
    weigh,
)
from isinglass.runtime.jit import apart, compiled, inner, prepared


@inner
def receive_back(weights, weights_bar, c, line, begin, chunk, reverse, sent, slope, out, run, own):
    """Write t = n sum_y psi slope(y) for the messages of a line, and add to the derivatives by psi.

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
                place = begin // chunk
                for start in range(0, size, chunk):
                    stop = min(start + chunk, size)
                    total = dot(part(slope, (y,), start, stop), part(sent, (x,), start, stop))
                    weights_bar[ix(place), ix(c), ix(one), ix(two), 0, 0] += weights[0, ix(one), ix(two), 0, 0] * total
                    place += 1
            else:
                multiply(run, part(slope, (y,), 0, size), part(sent, (x,), 0, size))
                bar = part(weights_bar, (0, c, one, two, line), begin, end)
                add_product(bar, part(weights, (c, one, two, line), begin, end), run)


@apart
def reverse_lines(out_bar, moving_bar, base_bar, moving, base, one, two, weights, weights_bar, c, reverse, begin, end,
                  chunk, work, way, own):  # fmt: skip
    """Reverse `pass_lines`: from derivatives by the logs of `out` to those of `moving` and of the base."""
    card, lines, size = base.shape[0], base.shape[1], end - begin
    scale, mean = part(work.run, (0,), 0, size), part(work.run, (1,), 0, size)
    for done in range(lines - 2, -1, -1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        products_of_line(work.sent, base, moving, one, two, line, begin, end, way)
        send_line(weights, c, min(line, to), begin, reverse, work.sent, work.message, scale, own)
        add(mean, part(out_bar, (0, to), begin, end), part(out_bar, (1, to), begin, end))
        for k in range(2, card):
            add(mean, mean, part(out_bar, (k, to), begin, end))
        multiply(mean, mean, scale)
        for k in range(card):
            slopes_of(part(work.message, (k,), 0, size), part(out_bar, (k, to), begin, end), mean)
        receive_back(weights, weights_bar, c, min(line, to), begin, chunk, reverse, work.sent, work.message, work.back,
                     mean, own)  # fmt: skip
        for k in range(card):
            sent, back = part(work.sent, (k,), 0, size), part(work.back, (k,), 0, size)
            add_product(part(base_bar, (k, line), begin, end), sent, back)
            add_product(part(moving_bar, (k, line), begin, end), sent, back)


@prepared
def add_planes(out, plane, top, bottom, begin, end):
    """Add a part of planes."""
    for k in range(out.shape[0]):
        for y in range(top, bottom):
            run = part(out, (k, y), begin, end)
            add(run, run, part(plane, (k, y), begin, end))


@apart
def reverse_up(phi, new, bar, phi_bar, across, across_bar, c, begin, end, chunk, work, own):
    """Reverse some columns of the vertical links upwards; leaves the derivatives by U1 in work.up_bar."""
    height = phi.shape[1]
    base_of(phi, new[LEFT], new[RIGHT], work.base, begin, end)
    set_columns(work.base_bar, begin, end, 0)
    set_columns(work.up_bar, begin, end, 0)
    reverse_lines(bar[UP], work.up_bar, work.base_bar, work.up, work.base, phi, phi, across, across_bar, c, DOWNWARDS,
                  begin, end, chunk, work, VERTICAL, own)  # fmt: skip
    reverse_lines(bar[DOWN], bar[DOWN], work.base_bar, new[DOWN], work.base, phi, phi, across, across_bar, c, UPWARDS,
                  begin, end, chunk, work, VERTICAL, own)  # fmt: skip
    add_planes(phi_bar, work.base_bar, 0, height, begin, end)
    add_planes(bar[LEFT], work.base_bar, 0, height, begin, end)
    add_planes(bar[RIGHT], work.base_bar, 0, height, begin, end)


@apart
def reverse_rows(turned_phi, new, bar, phi_bar, along, along_bar, c, begin, end, chunk, work, own):
    """Reverse some rows; leaves the derivatives by D1 in work.down_bar, and adds those by U1."""
    up, down, left, right = work.turned[0], work.turned[1], work.turned[2], work.turned[3]
    base_bar, left_bar, right_bar = work.turned_bar[0], work.turned_bar[1], work.turned_bar[2]
    set_columns(base_bar, begin, end, 0)
    turn_rows(left, new[LEFT], begin, end)
    turn_rows(right, new[RIGHT], begin, end)
    turn_rows(left_bar, bar[LEFT], begin, end)
    turn_rows(right_bar, bar[RIGHT], begin, end)
    reverse_lines(left_bar, left_bar, base_bar, left, turned_phi, up, down, along, along_bar, c, DOWNWARDS, begin, end,
                  chunk, work, HORIZONTAL, own)  # fmt: skip
    reverse_lines(right_bar, right_bar, base_bar, right, turned_phi, up, down, along, along_bar, c, UPWARDS, begin,
                  end, chunk, work, HORIZONTAL, own)  # fmt: skip
    turn_columns(work.down_bar, base_bar, begin, end)
    add_planes(phi_bar, work.down_bar, begin, end, 0, len(base_bar[0]))
    add_planes(work.up_bar, work.down_bar, begin, end, 0, len(base_bar[0]))


@apart
def reverse_down(phi, old, bar, phi_bar, across, across_bar, c, again, begin, end, chunk, work, own):
    """Reverse some columns of the links downwards; `bar` becomes the derivatives by the messages before."""
    base_of(phi, old[LEFT], old[RIGHT], work.base, begin, end)
    set_columns(work.base_bar, begin, end, 0)
    reverse_lines(work.up_bar, work.up_bar, work.base_bar, work.up, work.base, phi, phi, across, across_bar, c,
                  DOWNWARDS, begin, end, chunk, work, VERTICAL, own)  # fmt: skip
    if again:
        copy_planes(bar[DOWN], work.down_bar, begin, end)
    else:
        set_columns(bar[DOWN], begin, end, 0)
        reverse_lines(work.down_bar, bar[DOWN], work.base_bar, old[DOWN], work.base, phi, phi, across, across_bar, c,
                      UPWARDS, begin, end, chunk, work, VERTICAL, own)  # fmt: skip
    add_planes(phi_bar, work.base_bar, 0, phi.shape[1], begin, end)
    copy_planes(bar[LEFT], work.base_bar, begin, end)
    copy_planes(bar[RIGHT], work.base_bar, begin, end)
    set_columns(bar[UP], begin, end, 0)


@compiled
def sweep_stage_back(stage, phi, turned_phi, source, out, again, bars, phi_bar, across, across_bar, along, along_bar, c,
                     begin, end, chunk, work, own):  # fmt: skip
    """Reverse one of the three stages of an iteration on grid c, for the columns (rows) ``begin:end`` alone.

    Stage 0 reverses the columns upwards, 1 the rows, 2 the columns downwards.
    """
    old, new = source[c if len(source) > 1 else 0], out[c]
    if stage == 0:
        columns_down(phi[c], old, across, c, again, False, begin, end, work, 0.0, own)
        reverse_up(phi[c], new, bars[c], phi_bar[c], across, across_bar, c, begin, end, chunk, work, own)
    elif stage == 1:
        reverse_rows(turned_phi[c], new, bars[c], phi_bar[c], along, along_bar, c, begin, end, chunk, work, own)
    else:
        reverse_down(phi[c], old, bars[c], phi_bar[c], across, across_bar, c, again, begin, end, chunk, work, own)


@compiled
def sweep_grids_back(phi, turned_phi, source, stack, iterations, again, bars, phi_bar, across, across_bar, along,
                     along_bar, active, work, first, last, own):  # fmt: skip
    """Reverse iterations that began with `source`: `bars` are derivatives by the logs of messages, after and before."""
    height, width = phi.shape[2], phi.shape[3]
    for c in range(first, last):
        if not active[c]:
            continue
        for t in range(iterations - 1, -1, -1):
            old, new = source[c if len(source) > 1 else 0] if t == 0 else stack[t - 1, c], stack[t, c]
            columns_down(phi[c], old, across, c, again or t > 0, False, 0, width, work, 0.0, own)
            reverse_up(phi[c], new, bars[c], phi_bar[c], across, across_bar, c, 0, width, width, work, own)
            reverse_rows(turned_phi[c], new, bars[c], phi_bar[c], along, along_bar, c, 0, height, height, work, own)
            reverse_down(phi[c], old, bars[c], phi_bar[c], across, across_bar, c, again or t > 0, 0, width, width, work,
                         own)  # fmt: skip
