"""The grid schedule (Domke 2009, figure 5.2) on regular grids, a line of sites at a time; `sweeps_back` reverses it.

The links between two neighbouring rows share no site, and neither do those between two columns, so that a line of
them is updated at once, in loops that the compiler vectorises. With L, R, U, D the messages from the left, the right,
above and below, f and g what a line sends downwards and upwards (to the right, to the left), and phi the potentials:

    vertical links, downwards      U1[y+1] = f(phi L R U1 [y])      D1[y] = g(phi L R D [y+1])
    horizontal ones, both ways     L1[x+1] = f(phi L1 U1 D1 [x])    R1[x] = g(phi R1 U1 D1 [x+1])
    vertical links, upwards        D2[y]   = g(phi L1 R1 D2 [y+1])  U2[y+1] = f(phi L1 R1 U1 [y])

Three things need no computation. The way to the right also sends to the left, but nothing reads that before the way
back sends it anew; the way back sends to the right what is there already; and so does the way downwards of a further
iteration with the same potentials upwards (D1 = D2 of the iteration before). Only residuals look at the first.

Planes are ``inbox[component, direction, state, row, column]``; what would come from beyond the border is one.
Horizontal links work on planes with rows and columns exchanged. ``weights[component, x, y, line]`` holds the tables of
the links from a line to the next, the state of its sites first: numbers (one component, one line), or runs if tables
are `own`. Derivatives by them are kept apart for each component.

A pass over vertical links does not mix columns, and one over horizontal links does not mix rows. So each function works
on the columns (rows) from `begin` to before `end`, and threads can share a grid; between the passes they wait.

The arithmetic of a message is that of `passes.update_in_sequence`, in the same sequence: the same bits. Inputs are
positive; where a product comes near to an underflow, a component is *suspect* and left to the other loops.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.kernels.numba.arithmetic.runs import (
    add,
    add_product,
    add_scaled,
    combine,
    combine_runs,
    copy_run,
    multiply,
    product_from_left,
    reciprocals_of_sums,
)
from isinglass.runtime.jit import apart, compiled, inner, prepared

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3
DOWNWARDS, UPWARDS = False, True  # along rows: to the right, to the left
VERTICAL, HORIZONTAL = (), (0,)  # which products a line sends: a type, so that loops have no branches
_BLOCK = 16


@prepared
def turn(out, plane, top, bottom, left, right):
    """Exchange rows and columns of a part of a plane, block by block."""
    for up in range(top, bottom, _BLOCK):
        for start in range(left, right, _BLOCK):
            for y in range(up, min(up + _BLOCK, bottom)):
                for x in range(start, min(start + _BLOCK, right)):
                    out[ix(x), ix(y)] = plane[ix(y), ix(x)]


@inner
def turn_columns(out, planes, begin, end):
    """Exchange rows and columns, for some columns of each plane."""
    for k in range(len(planes)):
        turn(out[k], planes[k], 0, planes.shape[1], begin, end)


@inner
def turn_rows(out, planes, begin, end):
    """Exchange rows and columns, for some rows of each plane."""
    for k in range(len(planes)):
        turn(out[k], planes[k], begin, end, 0, planes.shape[2])


@prepared
def largest_difference(one, two, top, bottom, begin, end):
    """Return the largest difference between a part of two stacks of planes."""
    most = 0.0
    for k in range(one.shape[0]):
        for y in range(top, bottom):
            for x in range(begin, end):
                moved = abs(one[ix(k), ix(y), ix(x)] - two[ix(k), ix(y), ix(x)])
                most = moved if moved > most else most
    return most


@prepared
def copy_planes(out, planes, begin, end):
    """Copy some columns of planes."""
    for k in range(out.shape[0]):
        for y in range(out.shape[1]):
            copy_run(part(out, (k, y), begin, end), part(planes, (k, y), begin, end))


@inner
def set_columns(out, begin, end, value):
    """Set some columns of planes to a number."""
    for k in range(out.shape[0]):
        for y in range(out.shape[1]):
            run = part(out, (k, y), begin, end)
            for x in range(len(run)):
                run[ix(x)] = value


@inner
def any_below(run, limit):
    """Tell whether an entry is below a limit."""
    count = 0
    for x in range(len(run)):
        count += run[ix(x)] < limit
    return count > 0


@prepared
def base_of(phi, one, two, out, begin, end):
    """Write phi one two, for some columns."""
    for k in range(phi.shape[0]):
        for y in range(phi.shape[1]):
            a, b = part(phi, (k, y), begin, end), part(one, (k, y), begin, end)
            c, d = part(two, (k, y), begin, end), part(out, (k, y), begin, end)
            for x in range(len(d)):
                d[ix(x)] = a[ix(x)] * b[ix(x)] * c[ix(x)]


@inner
def products_of_line(sent, base, moving, one, two, line, begin, end, way):
    """Write what the sites of a line send: base times the message that moves, then, along rows, times one and two."""
    for k in range(base.shape[0]):
        out = part(sent, (k,), 0, end - begin)
        own, came = part(base, (k, line), begin, end), part(moving, (k, line), begin, end)
        if len(way) == 0:
            multiply(out, own, came)
        else:
            first, second = part(one, (k, line), begin, end), part(two, (k, line), begin, end)
            product_from_left(out, own, came, first, second)


@inner
def weigh(out, weights, c, line, begin, reverse, y, source, own):
    """Write the sums over x of entry (x, y) of the tables of a line, or (y, x) in reverse, and the runs source[x]."""
    size, card = len(out), len(source)
    end = begin + size
    if len(own) == 0:
        first = weights[0, y, 0, 0, 0] if reverse else weights[0, 0, y, 0, 0]
        second = weights[0, y, 1, 0, 0] if reverse else weights[0, 1, y, 0, 0]
        combine(out, first, part(source, (0,), 0, size), second, part(source, (1,), 0, size))
        for x in range(2, card):
            add_scaled(out, weights[0, y, x, 0, 0] if reverse else weights[0, x, y, 0, 0], part(source, (x,), 0, size))
    else:
        one = part(weights, (c, y, 0, line) if reverse else (c, 0, y, line), begin, end)
        two = part(weights, (c, y, 1, line) if reverse else (c, 1, y, line), begin, end)
        combine_runs(out, one, part(source, (0,), 0, size), two, part(source, (1,), 0, size))
        for x in range(2, card):
            table = part(weights, (c, y, x, line) if reverse else (c, x, y, line), begin, end)
            add_product(out, table, part(source, (x,), 0, size))


@inner
def send_line(weights, c, line, begin, reverse, sent, message, scale, own):
    """Write the messages along the links of a line, unnormalised, and one over their sums."""
    size, card = len(scale), len(message)
    for y in range(card):
        weigh(part(message, (y,), 0, size), weights, c, line, begin, reverse, y, sent, own)
    if card == 2:
        reciprocals_of_sums(scale, part(message, (0,), 0, size), part(message, (1,), 0, size))
        return
    add(scale, part(message, (0,), 0, size), part(message, (1,), 0, size))
    for y in range(2, card - 1):
        add(scale, scale, part(message, (y,), 0, size))
    reciprocals_of_sums(scale, scale, part(message, (card - 1,), 0, size))


@apart
def pass_lines(out, moving, base, one, two, weights, c, reverse, begin, end, work, limit, way, own):
    """Send from line to line, at some places of each; where `out` is `moving`, a line sends what it just received.

    Returns whether a product is near to an underflow.
    """
    card, lines, size = base.shape[0], base.shape[1], end - begin
    scale, suspect = part(work.run, (0,), 0, size), False
    for done in range(lines - 1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        products_of_line(work.sent, base, moving, one, two, line, begin, end, way)
        for k in range(card):
            suspect |= any_below(part(work.sent, (k,), 0, size), limit)
        send_line(weights, c, min(line, to), begin, reverse, work.sent, work.message, scale, own)
        for k in range(card):
            multiply(part(out, (k, to), begin, end), part(work.message, (k,), 0, size), scale)
    return suspect


@apart
def columns_down(phi, old, across, c, again, watched, begin, end, work, limit, own):
    """Write U1 and D1, and both turned, for some columns.

    Returns the largest change, if watched, and whether a product is near to an underflow.
    """
    residual, height = 0.0, phi.shape[1]
    base_of(phi, old[LEFT], old[RIGHT], work.base, begin, end)
    work.up[:, 0, begin:end] = 1
    suspect = pass_lines(work.up, work.up, work.base, phi, phi, across, c, DOWNWARDS, begin, end, work, limit,
                         VERTICAL, own)  # fmt: skip
    copy_planes(work.down, old[DOWN], begin, end)
    if not again:
        suspect |= pass_lines(work.down, old[DOWN], work.base, phi, phi, across, c, UPWARDS, begin, end, work, limit,
                              VERTICAL, own)  # fmt: skip
    turn_columns(work.turned[0], work.up, begin, end)
    turn_columns(work.turned[1], work.down, begin, end)
    if watched:
        residual = max(largest_difference(work.up, old[UP], 0, height, begin, end),
                       largest_difference(work.down, old[DOWN], 0, height, begin, end))  # fmt: skip
    return residual, suspect


@apart
def rows_both(turned_phi, old, new, along, c, watched, begin, end, work, limit, own):
    """Write L1 and R1, for some rows. Returns the same."""
    up, down, left, right, other = work.turned[0], work.turned[1], work.turned[2], work.turned[3], work.turned[4]
    residual, suspect, width = 0.0, False, turned_phi.shape[1]
    if watched:
        turn_rows(right, old[RIGHT], begin, end)
        turn_rows(other, old[RIGHT], begin, end)
        pass_lines(other, right, turned_phi, up, down, along, c, UPWARDS, begin, end, work, limit, HORIZONTAL, own)
        residual = largest_difference(other, right, 0, width, begin, end)
    left[:, 0, begin:end] = 1
    right[:, width - 1, begin:end] = 1
    suspect |= pass_lines(left, left, turned_phi, up, down, along, c, DOWNWARDS, begin, end, work, limit, HORIZONTAL,
                          own)  # fmt: skip
    suspect |= pass_lines(right, right, turned_phi, up, down, along, c, UPWARDS, begin, end, work, limit, HORIZONTAL,
                          own)  # fmt: skip
    turn_columns(new[LEFT], left, begin, end)
    turn_columns(new[RIGHT], right, begin, end)
    if watched:
        residual = max(residual, largest_difference(other, right, 0, width, begin, end))
        residual = max(residual, largest_difference(new[LEFT], old[LEFT], begin, end, 0, width))
    return residual, suspect


@apart
def columns_up(phi, new, across, c, watched, begin, end, work, limit, own):
    """Write U2 and D2, for some columns. Returns the same."""
    residual, height = 0.0, phi.shape[1]
    base_of(phi, new[LEFT], new[RIGHT], work.base, begin, end)
    new[UP, :, 0, begin:end] = 1
    new[DOWN, :, height - 1, begin:end] = 1
    suspect = pass_lines(new[DOWN], new[DOWN], work.base, phi, phi, across, c, UPWARDS, begin, end, work, limit,
                         VERTICAL, own)  # fmt: skip
    suspect |= pass_lines(new[UP], work.up, work.base, phi, phi, across, c, DOWNWARDS, begin, end, work, limit,
                          VERTICAL, own)  # fmt: skip
    if watched:
        residual = max(largest_difference(new[UP], work.up, 0, height, begin, end),
                       largest_difference(new[DOWN], work.down, 0, height, begin, end))  # fmt: skip
    return residual, suspect


@compiled
def sweep_stage(stage, phi, turned_phi, source, out, across, along, c, again, watched, begin, end, work, limit, own):
    """One of the three stages of an iteration on grid c: columns downwards, rows, columns upwards.

    Each works on the columns (rows) ``begin:end`` alone. Returns the largest change, if watched, and whether a product
    is near to an underflow.
    """
    old, new = source[c if len(source) > 1 else 0], out[c]
    if stage == 0:
        return columns_down(phi[c], old, across, c, again, watched, begin, end, work, limit, own)
    if stage == 1:
        return rows_both(turned_phi[c], old, new, along, c, watched, begin, end, work, limit, own)
    return columns_up(phi[c], new, across, c, watched, begin, end, work, limit, own)


@apart
def sweep_one(phi, turned_phi, old, new, across, along, c, again, watched, work, limit, own):
    """One iteration on one grid. Returns the largest change of a message, if watched, and whether it is suspect."""
    height, width = phi.shape[1], phi.shape[2]
    one, low = columns_down(phi, old, across, c, again, watched, 0, width, work, limit, own)
    two, lower = rows_both(turned_phi, old, new, along, c, watched, 0, height, work, limit, own)
    three, lowest = columns_up(phi, new, across, c, watched, 0, width, work, limit, own)
    return max(one, max(two, three)), low or lower or lowest


@compiled
def sweep_grids(phi, turned_phi, source, stack, out, iterations, again, across, along, active, suspect, residual,
                watched, work, limit, first, last, own):  # fmt: skip
    """Some iterations on the grids ``first:last``, one after the other, from `source` over those of `stack` to `out`.

    A source or a stack of planes for one grid serves all of them. `again` tells that the first iteration follows one
    with the same potentials. The residual is that of the last iteration, if it is `watched`. A grid in which a product
    is below its `limit` is suspect.
    """
    for c in range(first, last):
        old = source[c if len(source) > 1 else 0]
        if not active[c]:
            for d in range(4):
                copy_planes(out[c, d], old[d], 0, phi.shape[3])
            continue
        for t in range(iterations):
            new = out[c] if t == iterations - 1 else stack[t % len(stack), c if stack.shape[1] > 1 else 0]
            moved, low = sweep_one(phi[c], turned_phi[c], old, new, across, along, c, again or t > 0,
                                   watched and t == iterations - 1, work, limit[ix(c)], own)  # fmt: skip
            residual[c] = moved
            suspect[c] |= low
            old = new
