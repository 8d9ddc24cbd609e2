"""Flooding on regular grids: a strip of sites at a time, in loops that the compiler vectorises; see `flooding_back`.

Messages lie in planes ``inbox[direction, state, site]``, the message that arrives from a direction. Every grid has a
border of one site, and grids of a batch follow each other, so that a plane is one run of sites and a neighbour is the
site +- 1 or +- pitch. Border sites hold ones (for derivatives: zeros) and are computed like any other, but `seal` makes
ones of what they send. A strip is some whole rows. Each loop writes one run and reads few.

Planes that have room for one grid serve all of them, one after the other: those from which all start alike, and those
that nobody reads when a grid is done. They stay in a cache. `corner` says where a grid begins, and sites are counted
from there.

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
    add_product,
    add_scaled,
    any_product_below,
    combine,
    combine_runs,
    copy_run,
    largest,
    multiply,
    product_from_left,
    product_from_right,
    product_of_two_pairs,
    reciprocals_of_sums,
    store,
)
from isinglass.kernels.numba.grids.binary import flood_binary
from isinglass.kernels.numba.grids.read_out import read_grid
from isinglass.kernels.numba.messages.changes import effect_in_planes
from isinglass.runtime.compilation.jit import apart, compiled, inner

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3


@inner
def corner(planes, c, plane):
    """Return where grid c begins, in planes of all grids or of one."""
    return c * plane if planes.shape[planes.ndim - 1] > plane else 0


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
def raise_to_distance(change, one, two):
    """Raise `change` to the distance of two runs."""
    for x in range(len(change)):
        moved = abs(one[ix(x)] - two[ix(x)])
        change[ix(x)] = moved if moved > change[ix(x)] else change[ix(x)]


@apart
def products(phi, place, inbox, at, size, strip):
    """Write the messages n from the sites of a strip to their four links: strip[direction, k]."""
    end = at + size
    for k in range(len(phi)):
        own, left, right = phi[k, place : place + size], inbox[LEFT, k, at:end], inbox[RIGHT, k, at:end]
        up, down = inbox[UP, k, at:end], inbox[DOWN, k, at:end]
        product_from_right(strip[LEFT, k, :size], own, down, up, right)
        product_of_two_pairs(strip[RIGHT, k, :size], own, left, down, up)
        product_from_left(strip[UP, k, :size], own, left, right, down)
        product_from_left(strip[DOWN, k, :size], own, left, right, up)


@inner
def link_place(place, direction, pitch):
    """Return where the tables of the links from a strip towards a direction start."""
    if direction == LEFT:
        return place - 1
    return place - pitch if direction == UP else place


@apart
def send_on(weights, c, direction, place, pitch, strip, message, scale, own):
    """Write the messages towards a direction, unnormalised, from strip[direction], and one over their sums.

    The strip begins at `place` in planes of all grids.
    """
    size, reverse = len(scale), direction in (LEFT, UP)
    first = link_place(place, direction, pitch)
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
    start, stop = 0 if top == 1 else top * pitch, plane if bottom > height else bottom * pitch
    to, at = corner(out, c, plane), corner(planes, c, plane)
    for d in range(4):
        for k in range(out.shape[1]):
            copy_run(out[d, k, to + start : to + stop], planes[d, k, at + start : at + stop])


@compiled
def flood_grid(phi, source, stack, out, iterations, weights, height, pitch, rows, top, bottom, active, suspect,
               residual, watched, tol, strip, message, run, ratios, limit, first, last, beliefs, own,
               lanes):  # fmt: skip
    """Some iterations of flooding, grid after grid, from `source` over the planes of `stack` in turn to `out`.

    With `beliefs` (`layout.GridBeliefs`) those of a grid's variables are read out when it is done. Returns a lower
    bound of them before their normalisation.

    The residual is that of the last iteration, if it is `watched`: the largest change of a message, or, if that is at
    most `tol`, its effect (see `changes`). A grid in which a product is below the `limit` is suspect. Strips have
    `rows` rows. Only the rows ``top:bottom`` send (the first is 1); for several iterations, these must be all.
    """
    plane, least = (height + 2) * pitch, 1.0
    for c in range(first, last):
        if not active[c]:
            copy_rows(out, source, c, height, pitch, top, bottom)
            continue
        inbox = source
        for t in range(iterations):
            new, now = out if t == iterations - 1 else stack[t % len(stack)], watched and t == iterations - 1
            moved, low = flood_one(phi, inbox, new, weights, c, height, pitch, rows, top, bottom, now, strip, message,
                                   run, limit, own, lanes)  # fmt: skip
            suspect[c] |= low
            if now and moved <= tol:
                moved = effect_in_planes(inbox, corner(inbox, c, plane), new, corner(new, c, plane), top * pitch,
                                         bottom * pitch, ratios)  # fmt: skip
            residual[c] = moved
            inbox = new
        if len(beliefs.variables) > 0:
            found = read_grid(beliefs.phi, beliefs.messages, beliefs.steps, len(phi), height, pitch - 2, c, 0, height,
                              beliefs.variables, beliefs.z)  # fmt: skip
            least = found if found < least else least
    return least


@apart
def flood_one(phi, inbox, new, weights, c, height, pitch, rows, top, bottom, watched, strip, message, run, limit, own,
              lanes):  # fmt: skip
    """One iteration of some rows. Returns the largest change of a message, if watched, and whether it is suspect."""
    plane = (height + 2) * pitch
    old, to = corner(inbox, c, plane), corner(new, c, plane)
    close(new, to + pitch, to + height * pitch, pitch, top == 1, bottom > height)
    if len(lanes) > 0:
        least = flood_rows(phi, inbox, old, new, to, weights, c, height, pitch, top, bottom)
        moved = change_of_rows(inbox, old, new, to, pitch, rows, top, bottom, run) if watched else 0.0
        return moved, least < limit
    most, suspect = 0.0, False
    for row in range(top, bottom, rows):
        moved, low = flood_strip(phi, inbox, old, new, to, weights, c, min(rows, bottom - row), row, height, pitch,
                                 watched, strip, message, run, limit, own)  # fmt: skip
        most, suspect = max(most, moved), suspect or low
    return most, suspect


@inner
def flood_rows(phi, inbox, old, new, to, weights, c, height, pitch, top, bottom):
    """Send all messages of some rows of a binary grid. Returns the smallest product of a belief."""
    start, stop = top * pitch, bottom * pitch
    least = flood_binary(phi, c * (height + 2) * pitch, inbox, old, new, to, weights, c, start, stop, pitch)
    for k in range(2):
        for first in range(to + start, to + stop, pitch):
            for s in (first, first + pitch - 1):
                new[RIGHT, k, s - 1] = 1
                new[LEFT, k, s + 1] = 1
                new[DOWN, k, s - pitch] = 1
                new[UP, k, s + pitch] = 1
            new[RIGHT, k, first] = 1
            new[LEFT, k, first + pitch - 1] = 1
        if top == 1:
            new[DOWN, k, to + start - pitch : to + start] = 1
        if bottom > height:
            new[UP, k, to + stop : to + stop + pitch] = 1
    return least


@inner
def change_of_rows(inbox, old, new, to, pitch, rows, top, bottom, run):
    """Return the largest change of a message that some rows of a grid have sent."""
    most = 0.0
    for row in range(top, bottom, rows):
        size = min(rows, bottom - row) * pitch
        change = run[1, :size]
        change[:] = 0
        for direction in range(4):
            place, side = row * pitch + step(direction, pitch), direction ^ 1
            for k in range(new.shape[1]):
                raise_to_distance(change, new[side, k, to + place : to + place + size],
                                  inbox[side, k, old + place : old + place + size])  # fmt: skip
        most = max(most, largest(change))
    return most


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
def flood_strip(phi, inbox, old, new, to, weights, c, count, top, height, pitch, watched, strip, message, run, limit,
                own):  # fmt: skip
    """Send all messages of the sites of a strip. Returns the largest change, if watched, and whether it is suspect."""
    card, start, size, place = len(phi), top * pitch, count * pitch, (c * (height + 2) + top) * pitch
    at = old + start
    products(phi, place, inbox, at, size, strip)
    low = False
    for k in range(card):
        low |= any_product_below(strip[DOWN, k, :size], inbox[DOWN, k, at : at + size], limit)
    scale, change = run[0, :size], run[1, :size]
    if watched:
        change[:] = 0
    for direction in range(4):
        send_on(weights, c, direction, place, pitch, strip, message, scale, own)
        seal(message, scale, count, top, height, pitch, direction)
        there, side = start + step(direction, pitch), direction ^ 1
        for k in range(card):
            sent = new[side, k, to + there : to + there + size]
            if watched:
                store(sent, change, message[k, :size], scale, inbox[side, k, old + there : old + there + size])
            else:
                multiply(sent, message[k, :size], scale)
    return (largest(change) if watched else 0.0), low
