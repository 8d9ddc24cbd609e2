"""The reverse of `flooding`, which says how planes lie: from derivatives by logs of messages.

The equations are those of `pairs.flood_pairs_back`; binary grids with shared tables have loops of their own (`binary`).
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.runs import (
    add,
    add_four,
    add_product,
    copy_run,
    dot,
    multiply,
    slopes_of,
    subtract,
)
from isinglass.kernels.numba.grids.binary import begin_sums, end_sums, mirror, reverse_binary, settle
from isinglass.kernels.numba.grids.flooding import (
    DOWN,
    LEFT,
    RIGHT,
    UP,
    copy_rows,
    corner,
    flood_one,
    link_place,
    products,
    send_on,
    step,
    weigh,
)
from isinglass.kernels.numba.grids.read_out import grid_back
from isinglass.runtime.compilation.jit import apart, compiled, inner


@inner
def silence(bars, to, height, pitch, top, bottom):
    """Set the derivatives by messages from or to the border of a grid to zero, in the rows ``top:bottom``."""
    above, below = to, to + (height + 1) * pitch
    for k in range(bars.shape[1]):
        for row in range(top, bottom):
            at = to + row * pitch
            for d in range(4):
                bars[d, k, at] = 0
                bars[d, k, at + pitch - 1] = 0
            bars[LEFT, k, at + 1] = 0
            bars[RIGHT, k, at + pitch - 2] = 0
        if top == 1:
            for d in range(4):
                bars[d, k, above : above + pitch] = 0
            bars[UP, k, above + pitch : above + 2 * pitch] = 0
        if bottom > height:
            for d in range(4):
                bars[d, k, below : below + pitch] = 0
            bars[DOWN, k, below - pitch : below] = 0


@inner
def flood_again(phi, source, stack, iterations, weights, c, height, pitch, rows, strip, message, run, own, lanes):
    """Write the messages of grid c after each iteration but the last to the planes of a stack."""
    inbox, limit = source, 0.0
    for t in range(iterations - 1):
        flood_one(phi, inbox, stack[t], weights, c, height, pitch, rows, 1, height + 1, False, strip, message, run,
                  limit, own, lanes)  # fmt: skip
        inbox = stack[t]


@compiled
def flood_grid_back(phi, source, stack, again, iterations, bars, rooms, settled, phi_bar, weights, weights_bar, height,
                    pitch, rows, top, bottom, active, strip, message, back, run, first, last, given, own,
                    lanes):  # fmt: skip
    """Reverse iterations that began with `source`: from derivatives by the logs of the last messages.

    They come in `bars`. With two `rooms`, of planes for one grid, they go from one to the other, iteration by
    iteration, and back to `bars` in the end; with one, of planes for all grids, a single iteration leaves them there.

    Where derivatives by beliefs are `given` (`layout.GridBeliefBars`), a grid begins with these, and adds those by its
    potentials to theirs; `bars` is left alone then, and `phi_bar` is room for one grid.

    The stack has the messages between the iterations; if they are to be done `again`, it is room for these. A stack of
    `source` alone stands for iterations at a fixed point. Only what the rows ``top:bottom`` sent is reversed; for
    several iterations, these must be all. `settled`: the derivatives are those of an iteration that was reversed
    before.
    """
    plane, start, stop = (height + 2) * pitch, top * pitch, bottom * pitch
    for c in range(first, last):
        if not active[c]:
            if len(rooms) == 1:
                copy_rows(rooms[0], bars, c, height, pitch, top, bottom)
            continue
        if again:
            flood_again(phi, source, stack, iterations, weights, c, height, pitch, rows, strip, message, run, own,
                        lanes)  # fmt: skip
        bar = bars
        if len(given.variables) > 0:
            begin_with(given, c, height, pitch - 2, phi_bar)
            bar = rooms[1]
        for done in range(iterations):
            t = iterations - 1 - done
            inbox, new_bar = source if t == 0 else stack[(t - 1) % len(stack)], rooms[done % len(rooms)]
            reverse_one(phi, inbox, bar, new_bar, settled or done > 0, phi_bar, weights, weights_bar, c, height, pitch,
                        rows, top, bottom, strip, message, back, run, own, lanes)  # fmt: skip
            bar = new_bar
        if len(given.variables) > 0:
            end_with(given, c, height, pitch - 2, phi_bar, lanes)
            continue
        if len(rooms) > 1:
            put_back(bars, c * plane, bar, 1 if len(lanes) > 0 else len(phi), start, stop)
            bar = bars
        if len(lanes) > 0:
            mirror(bar, c * plane, phi_bar, c * plane, start, stop)


@inner
def begin_with(given, c, height, width, phi_bar):
    """Write the derivatives by the messages of grid c, given those by beliefs; keep these, clear those by phi."""
    card = len(phi_bar)
    grid_back(given.variables, given.bars, given.phi, given.messages, given.steps, card, height, width, c, 0, height)
    first, last = c * height * width * card, (c + 1) * height * width * card
    copy_run(given.kept[first:last], given.bars[first:last])
    phi_bar[:] = 0


@inner
def end_with(given, c, height, width, phi_bar, lanes):
    """Add the derivatives by the potentials of grid c; in binary loops those by state 1 are minus those by state 0."""
    card, b = len(phi_bar), c * height * width * len(phi_bar)
    for row in range(1, height + 1):
        for s in range(row * (width + 2) + 1, row * (width + 2) + 1 + width):
            if len(lanes) > 0:
                given.phi[ix(b)] += phi_bar[0, ix(s)]
                given.phi[ix(b + 1)] += -phi_bar[0, ix(s)]
            else:
                for k in range(card):
                    given.phi[ix(b + k)] += phi_bar[ix(k), ix(s)]
            b += card


@inner
def put_back(bars, to, room, states, start, stop):
    """Copy some sites of the first states from planes for one grid."""
    for d in range(4):
        for k in range(states):
            copy_run(bars[d, k, to + start : to + stop], room[d, k, start:stop])


@inner
def reverse_one(phi, inbox, bar, new_bar, settled, phi_bar, weights, weights_bar, c, height, pitch, rows, top, bottom,
                strip, message, back, run, own, lanes):  # fmt: skip
    """Reverse one iteration of some rows of grid c."""
    plane = (height + 2) * pitch
    place, at_phi = c * plane, corner(phi_bar, c, plane)
    old, came, to = corner(inbox, c, plane), corner(bar, c, plane), corner(new_bar, c, plane)
    if len(lanes) > 0:
        begin_sums(strip)
        if not settled:
            settle(phi, place, inbox, old, bar, came, weights, c, top * pitch, bottom * pitch, pitch)
    for row in range(top, bottom, rows):
        start, stop = row * pitch, (row + min(rows, bottom - row)) * pitch
        if len(lanes) > 0:
            reverse_binary(phi, place, inbox, old, bar, came, new_bar, to, phi_bar, at_phi, weights, c, start, stop,
                           pitch, back, strip, message)  # fmt: skip
        else:
            reverse_strip(phi, inbox, old + start, bar, came + start, new_bar, to + start, phi_bar, at_phi + start,
                          weights, weights_bar, c, place + start, stop - start, pitch, strip, message, back, run,
                          own)  # fmt: skip
    silence(new_bar, to, height, pitch, top, bottom)
    if len(lanes) > 0:
        end_sums(strip, weights, weights_bar, c)


@inner
def reverse_strip(phi, inbox, at_old, bar, at_bar, new_bar, at_new, phi_bar, at_phi, weights, weights_bar, c, place,
                  size, pitch, strip, message, back, run, own):  # fmt: skip
    """Reverse the messages of the sites of a strip, which begins at `place` in planes of all grids."""
    card = len(phi)
    products(phi, place, inbox, at_old, size, strip)
    scale, mean = run[0, :size], run[1, :size]
    for direction in range(4):
        send_on(weights, c, direction, place, pitch, strip, message, scale, own)
        there, side = at_bar + step(direction, pitch), direction ^ 1
        add(mean, bar[side, 0, there : there + size], bar[side, 1, there : there + size])
        for k in range(2, card):
            add(mean, mean, bar[side, k, there : there + size])
        multiply(mean, mean, scale)
        for k in range(card):
            slopes_of(message[k, :size], bar[side, k, there : there + size], mean)
        receive_back(weights, weights_bar, c, direction, place, pitch, strip, message, back, scale, own)
    for k in range(card):
        total = run[0, :size]
        add_four(total, back[0, k, :size], back[1, k, :size], back[2, k, :size], back[3, k, :size])
        phi_run = phi_bar[k, at_phi : at_phi + size]
        add(phi_run, phi_run, total)
        for direction in range(4):
            subtract(new_bar[direction, k, at_new : at_new + size], total, back[direction, k, :size])


@apart
def receive_back(weights, weights_bar, c, direction, place, pitch, strip, slope, back, run, own):
    """Write t = n sum_y psi slope(y) for the messages towards a direction, and add to the derivatives by psi."""
    card, size, axis = len(slope), len(run), direction // 2
    reverse = direction in (LEFT, UP)
    first = link_place(place, direction, pitch)
    for x in range(card):
        out, source = back[direction, x, :size], strip[direction, x, :size]
        weigh(out, weights, c, axis, not reverse, x, first, slope, own)
        multiply(out, out, source)
        for y in range(card):
            one, two = (y, x) if reverse else (x, y)
            if len(own) == 0:
                weights_bar[axis, one, two, c] += weights[axis, one, two, c] * dot(slope[y, :size], source)
            else:
                multiply(run, slope[y, :size], source)
                add_product(weights_bar[axis, one, two, first : first + size],
                            weights[axis, one, two, first : first + size], run)  # fmt: skip
