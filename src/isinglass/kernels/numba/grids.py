"""Flooding on regular grids, and its reverse: a strip of sites at a time, in loops that the compiler vectorises.

Messages lie in planes ``inbox[direction, state, site]``, the message that arrives from a direction. Every grid has a
border of one site, and grids of a batch follow each other, so that a plane is one run of sites and a neighbour is the
site +- 1 or +- pitch. Border sites hold ones (for derivatives: zeros) and are computed like any other; `seal` then
restores what they sent. A strip is some whole rows. Each loop writes one run and reads few.

``weights[axis, x, y]`` are the tables of the links to the right (axis 0) or downwards (axis 1), states of the left or
upper site first: numbers, or planes that hold the table of each site's own link.

The arithmetic is that of `pairs`, in the same sequence (edges of a site: left, right, up, down): the same bits.
Inputs are positive; where a product comes near to an underflow, a component is *suspect* and left to the other loops.
"""

from __future__ import annotations

import numpy as np

from isinglass.compilation import compiled, inner
from isinglass.kernels.numba.indexing import ix

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3


@inner
def multiply(out, one, two):
    """Write products."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] * two[ix(x)]


@inner
def add_product(out, one, two):
    """Add products."""
    for x in range(len(out)):
        out[ix(x)] += one[ix(x)] * two[ix(x)]


@inner
def scaled(out, number, one):
    """Write a multiple."""
    for x in range(len(out)):
        out[ix(x)] = number * one[ix(x)]


@inner
def add_scaled(out, number, one):
    """Add a multiple."""
    for x in range(len(out)):
        out[ix(x)] += number * one[ix(x)]


@inner
def add(out, one, two):
    """Write sums."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] + two[ix(x)]


@inner
def subtract(out, one, two):
    """Write differences."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)] - two[ix(x)]


@inner
def reciprocals(out, one):
    """Write reciprocals."""
    for x in range(len(out)):
        out[ix(x)] = 1 / one[ix(x)]


@inner
def keep_largest_change(change, one, two):
    """Raise to the absolute difference of two runs."""
    for x in range(len(change)):
        moved = abs(one[ix(x)] - two[ix(x)])
        change[ix(x)] = moved if moved > change[ix(x)] else change[ix(x)]


@inner
def copy_run(out, one):
    """Copy."""
    for x in range(len(out)):
        out[ix(x)] = one[ix(x)]


@inner
def any_below(run, limit):
    """Tell whether an entry is below a limit."""
    count = 0
    for x in range(len(run)):
        count += run[ix(x)] < limit
    return count > 0


@inner
def dot(one, two):
    """Inner product, in four parts."""
    total = np.float64(0)
    n = len(one)
    a = b = c = d = total
    for x in range(0, n - 3, 4):
        a += one[ix(x)] * two[ix(x)]
        b += one[ix(x + 1)] * two[ix(x + 1)]
        c += one[ix(x + 2)] * two[ix(x + 2)]
        d += one[ix(x + 3)] * two[ix(x + 3)]
    for x in range(n - n % 4, n):
        total += one[ix(x)] * two[ix(x)]
    return total + a + b + (c + d)


@inner
def step(direction, pitch):
    """Return how far the neighbour in a direction is."""
    if direction == LEFT:
        return -1
    if direction == RIGHT:
        return 1
    return -pitch if direction == UP else pitch


@inner
def seal(planes, to, start, rows, top, height, pitch, direction):
    """Set to one what border sites sent towards a direction, or received; the strip from `start` sent to `to`."""
    for k in range(len(planes)):
        plane = planes[k]
        for row in range(rows):
            at = row * pitch + (start if direction < UP else to)
            plane[at] = 1
            plane[at + pitch - 1] = 1
            if direction == RIGHT:
                plane[at + 1] = 1
                plane[at + pitch] = 1
            elif direction == LEFT:
                plane[at + pitch - 2] = 1
                plane[at - 1] = 1
        if direction == UP and top == 1:
            plane[to : to + pitch] = 1
        if direction == DOWN and top + rows > height:
            plane[to + (rows - 1) * pitch : to + rows * pitch] = 1


@inner
def silence(bars, c, height, pitch):
    """Set the derivatives by messages from or to the border of grid c to zero."""
    plane = (height + 2) * pitch
    for k in range(bars.shape[1]):
        for row in range(1, height + 1):
            at = c * plane + row * pitch
            for d in range(4):
                bars[d, k, at] = 0
                bars[d, k, at + pitch - 1] = 0
            bars[LEFT, k, at + 1] = 0
            bars[RIGHT, k, at + pitch - 2] = 0
        first, last = c * plane + pitch, c * plane + height * pitch
        bars[UP, k, first : first + pitch] = 0
        bars[DOWN, k, last : last + pitch] = 0


@inner
def products(phi, inbox, start, stop, strip):
    """Write the messages n from the sites of a strip to their four links: strip[direction, k]."""
    size = stop - start
    for k in range(len(phi)):
        own, left, right = phi[k, start:stop], inbox[LEFT, k, start:stop], inbox[RIGHT, k, start:stop]
        up, down = inbox[UP, k, start:stop], inbox[DOWN, k, start:stop]
        crossing, before = strip[4, k, :size], strip[5, k, :size]
        multiply(crossing, down, up)
        multiply(before, own, left)
        multiply(strip[RIGHT, k, :size], before, crossing)
        multiply(crossing, crossing, right)
        multiply(strip[LEFT, k, :size], own, crossing)
        multiply(before, before, right)
        multiply(strip[DOWN, k, :size], before, up)
        multiply(strip[UP, k, :size], before, down)


@inner
def weigh(out, weights, axis, x, y, first, source, own, fresh):
    """Write (or add to) the products of a run of messages and entry (x, y) of the tables of an axis."""
    if len(own) == 0:
        if fresh:
            scaled(out, weights[axis, x, y, 0], source)
        else:
            add_scaled(out, weights[axis, x, y, 0], source)
    elif fresh:
        multiply(out, weights[axis, x, y, first : first + len(out)], source)
    else:
        add_product(out, weights[axis, x, y, first : first + len(out)], source)


@inner
def send_on(weights, direction, start, pitch, strip, message, scale, own):
    """Write the messages towards a direction, unnormalised, from strip[direction], and one over their sums."""
    card, size, axis = len(message), len(scale), direction // 2
    back = direction in (LEFT, UP)
    first = start - (1 if axis == 0 else pitch) if back else start
    for y in range(card):
        out = message[y, :size]
        for x in range(card):
            source = strip[direction, x, :size]
            if back:
                weigh(out, weights, axis, y, x, first, source, own, x == 0)
            else:
                weigh(out, weights, axis, x, y, first, source, own, x == 0)
    add(scale, message[0, :size], message[1, :size])
    for y in range(2, card):
        add(scale, scale, message[y, :size])
    reciprocals(scale, scale)


@compiled
def flood_grid(phi, inbox, new, weights, height, pitch, rows, active, suspect, residual, strip, message, run, limit,
               span, own):  # fmt: skip
    """One iteration of flooding, from inbox to `new`. Strips have `rows` rows; `run` is scratch, (2, strip)."""
    card, plane = len(phi), (height + 2) * pitch
    for c in range(span.first_component, span.last_component):
        if not active[c]:
            for d in range(4):
                for k in range(card):
                    copy_run(new[d, k, c * plane : (c + 1) * plane], inbox[d, k, c * plane : (c + 1) * plane])
            continue
        residual[c] = 0
        for k in range(card):  # nothing arrives from beyond the first and the last row
            new[UP, k, c * plane + pitch : c * plane + 2 * pitch] = 1
            new[DOWN, k, c * plane + height * pitch : c * plane + (height + 1) * pitch] = 1
        for top in range(1, height + 1, rows):
            count = min(rows, height + 1 - top)
            start = c * plane + top * pitch
            stop = start + count * pitch
            size = stop - start
            products(phi, inbox, start, stop, strip)
            for k in range(card):
                whole = run[0, :size]
                multiply(whole, strip[DOWN, k, :size], inbox[DOWN, k, start:stop])
                suspect[c] |= any_below(whole, limit)
            scale, change = run[0, :size], run[1, :size]
            change[:] = 0
            for direction in range(4):
                send_on(weights, direction, start, pitch, strip, message, scale, own)
                to, side = start + step(direction, pitch), direction ^ 1
                for k in range(card):
                    multiply(new[side, k, to : to + size], message[k, :size], scale)
                seal(new[side], to, start, count, top, height, pitch, direction)
                for k in range(card):
                    keep_largest_change(change, new[side, k, to : to + size], inbox[side, k, to : to + size])
            for x in range(size):
                residual[c] = max(residual[c], change[x])


@compiled
def flood_grid_back(phi, inbox, bar, new_bar, phi_bar, weights, weights_bar, height, pitch, rows, active, strip,
                    message, back, run, span, own):  # fmt: skip
    """Reverse one iteration that began with `inbox`: from derivatives by the logs of the new messages, `bar`.

    The equations are those of `pairs.flood_pairs_back`.
    """
    card, plane = len(phi), (height + 2) * pitch
    for c in range(span.first_component, span.last_component):
        if not active[c]:
            for d in range(4):
                for k in range(card):
                    copy_run(new_bar[d, k, c * plane : (c + 1) * plane], bar[d, k, c * plane : (c + 1) * plane])
            continue
        for top in range(1, height + 1, rows):
            start = c * plane + top * pitch
            stop = start + min(rows, height + 1 - top) * pitch
            size = stop - start
            products(phi, inbox, start, stop, strip)
            scale, mean = run[0, :size], run[1, :size]
            for direction in range(4):
                send_on(weights, direction, start, pitch, strip, message, scale, own)
                to, side = start + step(direction, pitch), direction ^ 1
                add(mean, bar[side, 0, to : to + size], bar[side, 1, to : to + size])
                for k in range(2, card):
                    add(mean, mean, bar[side, k, to : to + size])
                multiply(mean, mean, scale)
                for k in range(card):
                    slope = message[k, :size]
                    reciprocals(slope, slope)
                    multiply(slope, slope, bar[side, k, to : to + size])
                    subtract(slope, slope, mean)
                receive_back(weights, weights_bar, direction, start, pitch, strip, message, back, scale, own)
            for k in range(card):
                total = run[0, :size]
                add(total, back[0, k, :size], back[1, k, :size])
                add(total, total, back[2, k, :size])
                add(total, total, back[3, k, :size])
                add(phi_bar[k, start:stop], phi_bar[k, start:stop], total)
                for direction in range(4):
                    subtract(new_bar[direction, k, start:stop], total, back[direction, k, :size])
        silence(new_bar, c, height, pitch)


@inner
def receive_back(weights, weights_bar, direction, start, pitch, strip, slope, back, run, own):
    """Write t = n sum_y psi slope(y) for the messages towards a direction, and add to the derivatives by psi."""
    card, size, axis = len(slope), len(run), direction // 2
    reverse = direction in (LEFT, UP)
    first = start - (1 if axis == 0 else pitch) if reverse else start
    for x in range(card):
        out, source = back[direction, x, :size], strip[direction, x, :size]
        for y in range(card):
            one, two = (y, x) if reverse else (x, y)
            weigh(out, weights, axis, one, two, first, slope[y, :size], own, y == 0)
            if len(own) == 0:
                weights_bar[axis, one, two, 0] += weights[axis, one, two, 0] * dot(slope[y, :size], source)
            else:
                multiply(run, slope[y, :size], source)
                add_product(weights_bar[axis, one, two, first : first + size],
                            weights[axis, one, two, first : first + size], run)  # fmt: skip
        multiply(out, out, source)


@compiled
def spread(m, planes, side, site):
    """Write the messages of edges to their places in planes."""
    card = planes.shape[1]
    for e in range(len(site)):
        for k in range(card):
            planes[ix(side[ix(e)]), ix(k), ix(site[ix(e)])] = m[ix(e * card + k)]


@compiled
def collect(planes, m, side, site):
    """Write the messages in planes to their edges."""
    card = planes.shape[1]
    for e in range(len(site)):
        for k in range(card):
            m[ix(e * card + k)] = planes[ix(side[ix(e)]), ix(k), ix(site[ix(e)])]


@compiled
def spread_tables(psi, planes, table, axis, site):
    """Write the tables of links to their places in planes."""
    card = planes.shape[1]
    for f in range(len(table)):
        for x in range(card):
            for y in range(card):
                planes[ix(axis[ix(f)]), ix(x), ix(y), ix(site[ix(f)])] = psi[ix(table[ix(f)] + x * card + y)]


@compiled
def add_tables(planes, psi, table, axis, site):
    """Add what planes hold for each link to its table."""
    card = planes.shape[1]
    for f in range(len(table)):
        for x in range(card):
            for y in range(card):
                psi[ix(table[ix(f)] + x * card + y)] += planes[ix(axis[ix(f)]), ix(x), ix(y), ix(site[ix(f)])]
