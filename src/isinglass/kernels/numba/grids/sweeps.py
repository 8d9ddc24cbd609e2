"""The grid schedule (Domke 2009, figure 5.2) on regular grids, a line of sites at a time; `sweeps_back` reverses it.

The links between two neighbouring rows share no site, and neither do those between two columns, so that a line of
them is updated at once, in loops that the compiler vectorises. With L, R, U, D the messages from the left, the right,
above and below, f and g what a line sends downwards and upwards (to the right, to the left), and phi the potentials:

    vertical links, downwards      U1[y+1] = f(phi L R U1 [y])      D1[y] = g(phi L R D [y+1])
    horizontal ones, both ways     L1[x+1] = f(phi L1 U1 D1 [x])    R1[x] = g(phi R1 U1 D1 [x+1])
    vertical links, upwards        D2[y]   = g(phi L1 R1 D2 [y+1])  U2[y+1] = f(phi L1 R1 U1 [y])

Four things need no computation. The way to the right also sends to the left, but nothing reads that before the way
back sends it anew; the way back sends to the right what is there already; and so does the way downwards of a further
iteration with the same potentials upwards (D1 = D2 of the iteration before). Only residuals look at the first. A
further iteration does not read U2 either: where one follows, U1 stays in its place, and the way back finds it there.

Planes are ``inbox[component, direction, state, row, column]``; what would come from beyond the border is one.
Horizontal links work on strips, some rows at a time with rows and columns exchanged, which stay in a cache (`turning`).
``weights[component, x, y, line]`` holds the tables of
the links from a line to the next, the state of its sites first: numbers (one component, one line), or runs if tables
are `own`. Derivatives by them are kept apart for each component.

A pass over vertical links does not mix columns, and one over horizontal links does not mix rows. So each function works
on the columns (rows) from `begin` to before `end`, and threads can share a grid; between the passes they wait.

Binary grids have loops of their own for a line (`binary_lines`), with the same messages: `lanes`, which is empty or
not, tells which ones serve. It is a type, so that only those are compiled.

The arithmetic of a message is that of `passes.update_in_sequence`, in the same sequence: the same bits. Inputs are
positive; where a product comes near to an underflow, a component is *suspect* and left to the other loops.
"""

from __future__ import annotations

from isinglass.kernels.layout import LANES, STRIP
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.kernels.numba.arithmetic.runs import (
    add,
    add_product,
    add_scaled,
    combine,
    combine_runs,
    multiply,
    product_from_left,
    reciprocals_of_sums,
)
from isinglass.kernels.numba.grids.binary_lines import pass_binary
from isinglass.kernels.numba.grids.turning import copy_planes, from_strip, into_strip, largest_difference, set_line
from isinglass.runtime.compilation.jit import apart, compiled, inner

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3
DOWNWARDS, UPWARDS = False, True  # along rows: to the right, to the left


@inner
def any_below(run, limit):
    """Tell whether an entry is below a limit."""
    count = 0
    for x in range(len(run)):
        count += run[ix(x)] < limit
    return count > 0


@inner
def products_of_line(sent, phi, one, two, three, line, begin, end):
    """Write what the sites of a line send: ((phi one) two) three."""
    for k in range(phi.shape[0]):
        own, a = part(phi, (k, line), begin, end), part(one, (k, line), begin, end)
        b, c = part(two, (k, line), begin, end), part(three, (k, line), begin, end)
        product_from_left(part(sent, (k,), 0, end - begin), own, a, b, c)


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
def pass_lines(out, phi, one, two, three, weights, c, shift, reverse, begin, end, work, limit, own, lanes):
    """Send from line to line, at some places of each; where `out` is a factor, a line sends what it just received.

    The tables of the links are `shift` places further. Returns whether a product is near to an underflow.
    """
    if len(lanes) > 0:
        return pass_binary(out, phi, one, two, three, weights, c, shift, reverse, begin, end, own) < limit
    card, lines, size = phi.shape[0], phi.shape[1], end - begin
    scale, suspect = part(work.run, (0,), 0, size), False
    for done in range(lines - 1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        products_of_line(work.sent, phi, one, two, three, line, begin, end)
        for k in range(card):
            suspect |= any_below(part(work.sent, (k,), 0, size), limit)
        send_line(weights, c, min(line, to), begin + shift, reverse, work.sent, work.message, scale, own)
        for k in range(card):
            multiply(part(out, (k, to), begin, end), part(work.message, (k,), 0, size), scale)
    return suspect


@apart
def columns_down(phi, old, up, across, c, again, watched, begin, end, work, limit, own, lanes):
    """Write U1 and, unless it is there already, D1, for some columns.

    Returns the largest change, if watched, and whether a product is near to an underflow.
    """
    residual, height, left, right, down = 0.0, phi.shape[1], old[LEFT], old[RIGHT], old[DOWN]
    set_line(up, 0, begin, end, 1)
    suspect = pass_lines(up, phi, left, right, up, across, c, 0, DOWNWARDS, begin, end, work, limit, own, lanes)
    if not again:
        set_line(work.down, height - 1, begin, end, 1)
        suspect |= pass_lines(work.down, phi, left, right, down, across, c, 0, UPWARDS, begin, end, work, limit, own,
                              lanes)  # fmt: skip
    if watched:
        residual = largest_difference(up, old[UP], 0, height, begin, end)
        if not again:
            residual = max(residual, largest_difference(work.down, down, 0, height, begin, end))
    return residual, suspect


@apart
def rows_both(old, up, down, new, along, c, watched, top, bottom, work, limit, own, lanes):
    """Write L1 and R1, for some rows, whose potentials are in a strip. Returns the same."""
    phi, above, below, left, right = work.strips[0], work.strips[1], work.strips[2], work.strips[3], work.strips[4]
    residual, suspect, width, size = 0.0, False, phi.shape[1], bottom - top
    into_strip(above, up, top, bottom, lanes)
    into_strip(below, down, top, bottom, lanes)
    if watched:
        other = work.strips[5]
        into_strip(right, old[RIGHT], top, bottom, lanes)
        set_line(other, width - 1, 0, size, 1)
        pass_lines(other, phi, right, above, below, along, c, top, UPWARDS, 0, size, work, limit, own, lanes)
        residual = largest_difference(other, right, 0, width, 0, size)
    set_line(left, 0, 0, size, 1)
    set_line(right, width - 1, 0, size, 1)
    suspect |= pass_lines(left, phi, left, above, below, along, c, top, DOWNWARDS, 0, size, work, limit, own, lanes)
    suspect |= pass_lines(right, phi, right, above, below, along, c, top, UPWARDS, 0, size, work, limit, own, lanes)
    from_strip(new[LEFT], left, top, bottom, lanes)
    from_strip(new[RIGHT], right, top, bottom, lanes)
    if watched:
        residual = max(residual, largest_difference(work.strips[5], right, 0, width, 0, size))
        residual = max(residual, largest_difference(new[LEFT], old[LEFT], top, bottom, 0, width))
    return residual, suspect


@apart
def columns_up(phi, down, new, across, c, last, watched, begin, end, work, limit, own, lanes):
    """Write D2, and U2 if it is the `last` iteration, for some columns. Returns the same."""
    residual, height, left, right = 0.0, phi.shape[1], new[LEFT], new[RIGHT]
    set_line(new[DOWN], height - 1, begin, end, 1)
    suspect = pass_lines(new[DOWN], phi, left, right, new[DOWN], across, c, 0, UPWARDS, begin, end, work, limit, own,
                         lanes)  # fmt: skip
    if last:
        set_line(new[UP], 0, begin, end, 1)
        suspect |= pass_lines(new[UP], phi, left, right, work.up, across, c, 0, DOWNWARDS, begin, end, work, limit,
                              own, lanes)  # fmt: skip
    if watched:
        residual = max(largest_difference(new[UP], work.up, 0, height, begin, end),
                       largest_difference(new[DOWN], down, 0, height, begin, end))  # fmt: skip
    return residual, suspect


@inner
def strip_after(top, bottom, chunk, strip):
    """Return the end of the strip of rows that begins at `top`: in one chunk of rows, and no strip is very short."""
    end = min(min(top + strip, (top // chunk + 1) * chunk), bottom)
    return bottom if bottom - end < LANES else end


@compiled
def sweep_stage(stage, phi, source, out, across, along, c, again, last, watched, begin, end, chunk, work, limit, own,
                lanes):  # fmt: skip
    """One of the three stages of an iteration on grid c: columns downwards, rows, columns upwards.

    Each works on the columns (rows) ``begin:end`` alone. Returns the largest change, if watched, and whether a product
    is near to an underflow.
    """
    old, new = source[c if len(source) > 1 else 0], out[c]
    up, down = work.up if last else new[UP], old[DOWN] if again else work.down
    if stage == 0:
        return columns_down(phi[c], old, up, across, c, again, watched, begin, end, work, limit, own, lanes)
    if stage == 2:
        return columns_up(phi[c], down, new, across, c, last, watched, begin, end, work, limit, own, lanes)
    residual, suspect, top = 0.0, False, begin
    while top < end:
        bottom = strip_after(top, end, chunk, STRIP)
        into_strip(work.strips[0], phi[c], top, bottom, lanes)
        moved, low = rows_both(old, up, down, new, along, c, watched, top, bottom, work, limit, own, lanes)
        residual, suspect, top = max(residual, moved), suspect or low, bottom
    return residual, suspect


@apart
def sweep_one(phi, old, new, across, along, c, again, last, watched, work, limit, own, lanes):
    """One iteration on one grid. Returns the largest change of a message, if watched, and whether it is suspect."""
    height, width = phi.shape[1], phi.shape[2]
    up, down = work.up if last else new[UP], old[DOWN] if again else work.down
    one, low = columns_down(phi, old, up, across, c, again, watched, 0, width, work, limit, own, lanes)
    two, lower = rows_both(old, up, down, new, along, c, watched, 0, height, work, limit, own, lanes)
    three, lowest = columns_up(phi, down, new, across, c, last, watched, 0, width, work, limit, own, lanes)
    return max(one, max(two, three)), low or lower or lowest


@compiled
def sweep_grids(phi, source, stack, out, iterations, again, across, along, active, suspect, residual, watched, work,
                limit, first, last, own, lanes):  # fmt: skip
    """Some iterations on the grids ``first:last``, one after the other, from `source` over those of `stack` to `out`.

    A source or a stack of planes for one grid serves all of them. `again` tells that the first iteration follows one
    with the same potentials. The residual is that of the last iteration, if it is `watched`. A grid in which a product
    is below the `limit` is suspect.
    """
    complete = iterations - 2 if watched else iterations - 1  # the first iteration whose U2 somebody reads
    for c in range(first, last):
        old = source[c if len(source) > 1 else 0]
        if not active[c]:
            for d in range(4):
                copy_planes(out[c, d], old[d], 0, phi.shape[3])
            continue
        into_strip(work.strips[0], phi[c], 0, phi.shape[2], lanes)
        for t in range(iterations):
            new = out[c] if t == iterations - 1 else stack[t % len(stack), c if stack.shape[1] > 1 else 0]
            moved, low = sweep_one(phi[c], old, new, across, along, c, again or t > 0, t >= complete,
                                   watched and t == iterations - 1, work, limit, own, lanes)  # fmt: skip
            residual[c] = moved
            suspect[c] |= low
            old = new
