"""Flooding on regular grids, and its reverse: a strip of sites at a time, in loops that the compiler vectorises.

Messages lie in planes ``inbox[direction, state, site]``, the message that arrives from a direction. Every grid has a
border of one site, and grids of a batch follow each other, so that a plane is one run of sites and a neighbour is the
site +- 1 or +- pitch. Border sites hold ones (for derivatives: zeros) and are computed like any other, but `seal` makes
ones of what they send. A strip is some whole rows. Each loop writes one run and reads few.

``weights[axis, x, y]`` are the tables of the links to the right (axis 0) or downwards (axis 1), states of the left or
upper site first: one for each grid, or (`own`) planes that hold the table of each site's own link.

Binary grids with one table for each axis have loops of their own (`binary`), with the same messages: `lanes`, which is
empty or not, tells which ones serve. It is a type, so that only those are compiled.

The arithmetic is that of `pairs`, in the same sequence (edges of a site: left, right, up, down): the same bits.
Inputs are positive; where a product comes near to an underflow, a component is *suspect* and left to the other loops.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.runs import (
    add,
    add_four,
    add_product,
    add_scaled,
    any_product_below,
    combine,
    combine_runs,
    copy_run,
    dot,
    largest,
    multiply,
    product_from_left,
    product_from_right,
    product_of_two_pairs,
    reciprocals_of_sums,
    slopes_of,
    store,
    subtract,
)
from isinglass.kernels.numba.grids.binary import (
    begin_sums,
    end_sums,
    flood_binary,
    mirror,
    reverse_binary,
    settle,
)
from isinglass.runtime.jit import compiled, inner

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3


@inner
def step(direction, pitch):
    """Return how far the neighbour in a direction is."""
    if direction == LEFT:
        return -1
    if direction == RIGHT:
        return 1
    return -pitch if direction == UP else pitch


@inner
def seal(message, scale, rows, top, height, pitch, direction):
    """Let what border sites send towards a direction, or would receive, be ones."""
    size = len(scale)
    for k in range(len(message) + 1):
        run = scale if k == len(message) else message[k, :size]
        for row in range(rows):
            run[row * pitch] = 1
            run[(row + 1) * pitch - 1] = 1
            if direction == RIGHT:
                run[(row + 1) * pitch - 2] = 1
            elif direction == LEFT:
                run[row * pitch + 1] = 1
        if direction == UP and top == 1:
            run[:pitch] = 1
        if direction == DOWN and top + rows > height:
            run[size - pitch : size] = 1


@inner
def silence(bars, c, height, pitch, top, bottom):
    """Set the derivatives by messages from or to the border of grid c to zero, in the rows ``top:bottom``."""
    plane = (height + 2) * pitch
    above, below = c * plane, c * plane + (height + 1) * pitch
    for k in range(bars.shape[1]):
        for row in range(top, bottom):
            at = c * plane + row * pitch
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
def products(phi, inbox, start, stop, strip):
    """Write the messages n from the sites of a strip to their four links: strip[direction, k]."""
    size = stop - start
    for k in range(len(phi)):
        own, left, right = phi[k, start:stop], inbox[LEFT, k, start:stop], inbox[RIGHT, k, start:stop]
        up, down = inbox[UP, k, start:stop], inbox[DOWN, k, start:stop]
        product_from_right(strip[LEFT, k, :size], own, down, up, right)
        product_of_two_pairs(strip[RIGHT, k, :size], own, left, down, up)
        product_from_left(strip[UP, k, :size], own, left, right, down)
        product_from_left(strip[DOWN, k, :size], own, left, right, up)


@inner
def weigh(out, weights, c, axis, reverse, y, first, source, own):
    """Write the sums over x of entry (x, y) of the tables of an axis, or (y, x) in reverse, and the runs source[x]."""
    size, card = len(out), len(source)
    tables = weights[axis, y] if reverse else weights[axis, :, y]
    if len(own) == 0:
        combine(out, tables[0, c], source[0, :size], tables[1, c], source[1, :size])
        for x in range(2, card):
            add_scaled(out, tables[x, c], source[x, :size])
    else:
        last = first + size
        combine_runs(out, tables[0, first:last], source[0, :size], tables[1, first:last], source[1, :size])
        for x in range(2, card):
            add_product(out, tables[x, first:last], source[x, :size])


@inner
def link_place(start, direction, pitch):
    """Return where the tables of the links from a strip towards a direction start."""
    if direction == LEFT:
        return start - 1
    return start - pitch if direction == UP else start


@inner
def send_on(weights, c, direction, start, pitch, strip, message, scale, own):
    """Write the messages towards a direction, unnormalised, from strip[direction], and one over their sums."""
    size, reverse = len(scale), direction in (LEFT, UP)
    first = link_place(start, direction, pitch)
    for y in range(len(message)):
        weigh(message[y, :size], weights, c, direction // 2, reverse, y, first, strip[direction], own)
    if len(message) == 2:
        reciprocals_of_sums(scale, message[0, :size], message[1, :size])
        return
    add(scale, message[0, :size], message[1, :size])
    for y in range(2, len(message) - 1):
        add(scale, scale, message[y, :size])
    reciprocals_of_sums(scale, scale, message[len(message) - 1, :size])


@inner
def copy_rows(out, planes, c, height, pitch, top, bottom):
    """Copy the rows ``top:bottom`` of grid c, with the border beside them."""
    plane = (height + 2) * pitch
    start = c * plane + (0 if top == 1 else top) * pitch
    stop = (c + 1) * plane if bottom > height else c * plane + bottom * pitch
    for d in range(4):
        for k in range(out.shape[1]):
            copy_run(out[d, k, start:stop], planes[d, k, start:stop])


@compiled
def flood_grid(phi, source, stack, iterations, weights, height, pitch, rows, top, bottom, active, suspect, residual,
               watched, strip, message, run, limit, first, last, own, lanes):  # fmt: skip
    """Some iterations of flooding, grid after grid, from `source` to the planes of `stack` in turn.

    The residual is that of the last iteration, if it is `watched`. A grid in which a product is below its `limit` is
    suspect. Strips have `rows` rows. Only the rows ``top:bottom`` send (the first is 1); for several iterations, these
    must be all.
    """
    plane, end = (height + 2) * pitch, (iterations - 1) % len(stack)
    for c in range(first, last):
        if not active[c]:
            copy_rows(stack[end], source, c, height, pitch, top, bottom)
            continue
        for t in range(iterations):
            inbox = source if t == 0 else stack[(t - 1) % len(stack)]
            new = stack[t % len(stack)]
            close(new, c * plane + pitch, c * plane + height * pitch, pitch, top == 1, bottom > height)
            residual[c] = 0
            if len(lanes) > 0:
                suspect[c] |= flood_rows(phi, inbox, new, weights, c, height, pitch, top, bottom) < limit[ix(c)]
                if watched and t == iterations - 1:
                    residual[c] = change_of_rows(inbox, new, c, height, pitch, rows, top, bottom, run)
                continue
            for row in range(top, bottom, rows):
                count = min(rows, bottom - row)
                start = c * plane + row * pitch
                residual[c] = max(residual[c], flood_strip(
                    phi, inbox, new, weights, start, count, row, height, pitch, suspect, c,
                    watched and t == iterations - 1, strip, message, run, limit[ix(c)], own,
                ))  # fmt: skip


@inner
def flood_rows(phi, inbox, new, weights, c, height, pitch, top, bottom):
    """Send all messages of some rows of a binary grid. Returns the smallest product of a belief."""
    plane = (height + 2) * pitch
    start, stop = c * plane + top * pitch, c * plane + bottom * pitch
    least = flood_binary(phi, inbox, new, weights, c, start, stop, pitch)
    for k in range(2):
        for first in range(start, stop, pitch):
            for s in (first, first + pitch - 1):
                new[RIGHT, k, s - 1] = 1
                new[LEFT, k, s + 1] = 1
                new[DOWN, k, s - pitch] = 1
                new[UP, k, s + pitch] = 1
            new[RIGHT, k, first] = 1
            new[LEFT, k, first + pitch - 1] = 1
        if top == 1:
            new[DOWN, k, start - pitch : start] = 1
        if bottom > height:
            new[UP, k, stop : stop + pitch] = 1
    return least


@inner
def change_of_rows(inbox, new, c, height, pitch, rows, top, bottom, run):
    """Return the largest change of a message that some rows of a grid have sent."""
    most = 0.0
    for row in range(top, bottom, rows):
        start, size = (c * (height + 2) + row) * pitch, min(rows, bottom - row) * pitch
        change = run[1, :size]
        change[:] = 0
        for direction in range(4):
            to = start + step(direction, pitch)
            for k in range(new.shape[1]):
                side = direction ^ 1
                raise_to_distance(change, new[side, k, to : to + size], inbox[side, k, to : to + size])
        most = max(most, largest(change))
    return most


@inner
def raise_to_distance(change, one, two):
    """Raise `change` to the distance of two runs."""
    for x in range(len(change)):
        moved = abs(one[ix(x)] - two[ix(x)])
        change[ix(x)] = moved if moved > change[ix(x)] else change[ix(x)]


@inner
def close(new, first, last, pitch, above, below):
    """Write what no site of a grid sends: the messages from beyond its first and its last row."""
    for k in range(new.shape[1]):
        if above:
            new[UP, k, first : first + pitch] = 1
            new[LEFT, k, first] = 1
        if below:
            new[DOWN, k, last : last + pitch] = 1
            new[RIGHT, k, last + pitch - 1] = 1


@inner
def flood_strip(phi, inbox, new, weights, start, count, top, height, pitch, suspect, c, watched, strip, message, run,
                limit, own):  # fmt: skip
    """Send all messages of the sites of a strip. Returns the largest change, if it is watched."""
    card, stop = len(phi), start + count * pitch
    size = stop - start
    products(phi, inbox, start, stop, strip)
    for k in range(card):
        suspect[c] |= any_product_below(strip[DOWN, k, :size], inbox[DOWN, k, start:stop], limit)
    scale, change = run[0, :size], run[1, :size]
    if watched:
        change[:] = 0
    for direction in range(4):
        send_on(weights, c, direction, start, pitch, strip, message, scale, own)
        seal(message, scale, count, top, height, pitch, direction)
        to, side = start + step(direction, pitch), direction ^ 1
        for k in range(card):
            out, old = new[side, k, to : to + size], inbox[side, k, to : to + size]
            if watched:
                store(out, change, message[k, :size], scale, old)
            else:
                multiply(out, message[k, :size], scale)
    return largest(change) if watched else 0.0


@compiled
def flood_grid_back(phi, source, stack, iterations, one, two, settled, phi_bar, weights, weights_bar, height, pitch,
                    rows, top, bottom, active, strip, message, back, run, first, last, own, lanes):  # fmt: skip
    """Reverse iterations that began with `source`: from derivatives by the logs of the last messages.

    They come in `one`, and go to `two` and back, iteration by iteration. The equations are those of
    `pairs.flood_pairs_back`. A `stack` of `source` alone stands for iterations at a fixed point. Only what the rows
    ``top:bottom`` sent is reversed; for several iterations, these must be all. `settled`: the derivatives are those of
    an iteration that was reversed before.
    """
    plane = (height + 2) * pitch
    for c in range(first, last):
        for done in range(iterations):
            t = iterations - 1 - done
            inbox = source if t == 0 else stack[(t - 1) % len(stack)]
            bar, new_bar = (one, two) if done % 2 == 0 else (two, one)
            if not active[c]:
                copy_rows(new_bar, bar, c, height, pitch, top, bottom)
                continue
            if len(lanes) > 0:
                begin_sums(strip)
                if done == 0 and not settled:
                    settle(phi, inbox, bar, weights, c, c * plane + top * pitch, c * plane + bottom * pitch, pitch)
            for row in range(top, bottom, rows):
                start = c * plane + row * pitch
                stop = start + min(rows, bottom - row) * pitch
                if len(lanes) > 0:
                    reverse_binary(phi, inbox, bar, new_bar, phi_bar, weights, c, start, stop, pitch, back, strip,
                                   message)  # fmt: skip
                    continue
                reverse_strip(phi, inbox, bar, new_bar, phi_bar, weights, weights_bar, c, start, stop, pitch, strip,
                              message, back, run, own)  # fmt: skip
            silence(new_bar, c, height, pitch, top, bottom)
            if len(lanes) > 0:
                end_sums(strip, weights, weights_bar, c)
        if len(lanes) > 0 and active[c]:
            mirror(two if iterations % 2 else one, phi_bar, c * plane + top * pitch, c * plane + bottom * pitch)


@inner
def reverse_strip(phi, inbox, bar, new_bar, phi_bar, weights, weights_bar, c, start, stop, pitch, strip, message, back,
                  run, own):  # fmt: skip
    """Reverse the messages of the sites of a strip."""
    card, size = len(phi), stop - start
    products(phi, inbox, start, stop, strip)
    scale, mean = run[0, :size], run[1, :size]
    for direction in range(4):
        send_on(weights, c, direction, start, pitch, strip, message, scale, own)
        to, side = start + step(direction, pitch), direction ^ 1
        add(mean, bar[side, 0, to : to + size], bar[side, 1, to : to + size])
        for k in range(2, card):
            add(mean, mean, bar[side, k, to : to + size])
        multiply(mean, mean, scale)
        for k in range(card):
            slopes_of(message[k, :size], bar[side, k, to : to + size], mean)
        receive_back(weights, weights_bar, c, direction, start, pitch, strip, message, back, scale, own)
    for k in range(card):
        total = run[0, :size]
        add_four(total, back[0, k, :size], back[1, k, :size], back[2, k, :size], back[3, k, :size])
        add(phi_bar[k, start:stop], phi_bar[k, start:stop], total)
        for direction in range(4):
            subtract(new_bar[direction, k, start:stop], total, back[direction, k, :size])


@inner
def receive_back(weights, weights_bar, c, direction, start, pitch, strip, slope, back, run, own):
    """Write t = n sum_y psi slope(y) for the messages towards a direction, and add to the derivatives by psi."""
    card, size, axis = len(slope), len(run), direction // 2
    reverse = direction in (LEFT, UP)
    first = link_place(start, direction, pitch)
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


@compiled
def spread(m, planes, place, card, sites):
    """Write the messages of edges to their places in (flat) planes."""
    for e in range(len(place)):
        for k in range(card):
            planes[ix(place[ix(e)] + k * sites)] = m[ix(e * card + k)]


@compiled
def collect(planes, m, place, card, sites):
    """Write the messages in (flat) planes to their edges."""
    for e in range(len(place)):
        for k in range(card):
            m[ix(e * card + k)] = planes[ix(place[ix(e)] + k * sites)]


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
