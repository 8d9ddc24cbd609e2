"""The grid schedule (Domke 2009, figure 5.2) on regular grids, and its reverse, a line of sites at a time.

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

The arithmetic of a message is that of `passes.update_in_sequence`, in the same sequence: the same bits. Inputs are
positive; where a product comes near to an underflow, a component is *suspect* and left to the other loops.
"""

from __future__ import annotations

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.runs import (
    add,
    add_product,
    add_scaled,
    combine,
    combine_runs,
    copy_run,
    dot,
    multiply,
    product_from_left,
    reciprocals_of_sums,
    slopes_of,
)
from isinglass.runtime.jit import cold, compiled, inner

LEFT, RIGHT, UP, DOWN = 0, 1, 2, 3
DOWNWARDS, UPWARDS = False, True  # along rows: to the right, to the left
VERTICAL, HORIZONTAL = (), (0,)  # which products a line sends: a type, so that loops have no branches
_BLOCK = 16


@cold
def turn(out, plane):
    """Exchange rows and columns, block by block."""
    height, width = plane.shape
    for top in range(0, height, _BLOCK):
        for left in range(0, width, _BLOCK):
            for y in range(top, min(top + _BLOCK, height)):
                for x in range(left, min(left + _BLOCK, width)):
                    out[ix(x), ix(y)] = plane[ix(y), ix(x)]


@cold
def largest_difference(one, two):
    """Return the largest difference between two stacks of planes."""
    most = 0.0
    for k in range(one.shape[0]):
        for y in range(one.shape[1]):
            for x in range(one.shape[2]):
                moved = abs(one[ix(k), ix(y), ix(x)] - two[ix(k), ix(y), ix(x)])
                most = moved if moved > most else most
    return most


@cold
def copy_planes(out, planes):
    """Copy planes."""
    for k in range(out.shape[0]):
        for y in range(out.shape[1]):
            copy_run(out[k, y], planes[k, y])


@inner
def any_below(run, limit):
    """Tell whether an entry is below a limit."""
    count = 0
    for x in range(len(run)):
        count += run[ix(x)] < limit
    return count > 0


@cold
def base_of(phi, one, two, out):
    """Write phi one two."""
    for k in range(phi.shape[0]):
        for y in range(phi.shape[1]):
            a, b, c, d = phi[k, y], one[k, y], two[k, y], out[k, y]
            for x in range(len(d)):
                d[ix(x)] = a[ix(x)] * b[ix(x)] * c[ix(x)]


@inner
def products_of_line(sent, base, moving, one, two, line, way):
    """Write what the sites of a line send: base times the message that moves, then, along rows, times one and two."""
    for k in range(base.shape[0]):
        out = sent[k, : base.shape[2]]
        if len(way) == 0:
            multiply(out, base[k, line], moving[k, line])
        else:
            product_from_left(out, base[k, line], moving[k, line], one[k, line], two[k, line])


@inner
def weigh(out, weights, c, line, reverse, y, source, own):
    """Write the sums over x of entry (x, y) of the tables of a line, or (y, x) in reverse, and the runs source[x]."""
    size, card = len(out), len(source)
    if len(own) == 0:
        first = weights[0, y, 0, 0, 0] if reverse else weights[0, 0, y, 0, 0]
        second = weights[0, y, 1, 0, 0] if reverse else weights[0, 1, y, 0, 0]
        combine(out, first, source[0, :size], second, source[1, :size])
        for x in range(2, card):
            add_scaled(out, weights[0, y, x, 0, 0] if reverse else weights[0, x, y, 0, 0], source[x, :size])
    elif reverse:
        combine_runs(out, weights[c, y, 0, line], source[0, :size], weights[c, y, 1, line], source[1, :size])
        for x in range(2, card):
            add_product(out, weights[c, y, x, line], source[x, :size])
    else:
        combine_runs(out, weights[c, 0, y, line], source[0, :size], weights[c, 1, y, line], source[1, :size])
        for x in range(2, card):
            add_product(out, weights[c, x, y, line], source[x, :size])


@inner
def send_line(weights, c, line, reverse, sent, message, scale, own):
    """Write the messages along the links of a line, unnormalised, and one over their sums."""
    size, card = len(scale), len(message)
    for y in range(card):
        weigh(message[y, :size], weights, c, line, reverse, y, sent, own)
    if card == 2:
        reciprocals_of_sums(scale, message[0, :size], message[1, :size])
        return
    add(scale, message[0, :size], message[1, :size])
    for y in range(2, card - 1):
        add(scale, scale, message[y, :size])
    reciprocals_of_sums(scale, scale, message[card - 1, :size])


@cold
def pass_lines(out, moving, base, one, two, weights, c, reverse, work, limit, way, own):
    """Send from line to line; where `out` is `moving`, each line sends what it has just received.

    Returns whether a product is near to an underflow.
    """
    card, lines, size = base.shape
    scale, suspect = work.run[0, :size], False
    for done in range(lines - 1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        products_of_line(work.sent, base, moving, one, two, line, way)
        for k in range(card):
            suspect |= any_below(work.sent[k, :size], limit)
        send_line(weights, c, min(line, to), reverse, work.sent, work.message, scale, own)
        for k in range(card):
            multiply(out[k, to], work.message[k, :size], scale)
    return suspect


@cold
def vertical_then_turned(phi, old, across, c, again, work, limit, own):
    """Write U1 and D1, and both turned. Returns whether a product is near to an underflow."""
    base_of(phi, old[LEFT], old[RIGHT], work.base)
    work.up[:, 0] = 1
    suspect = pass_lines(work.up, work.up, work.base, phi, phi, across, c, DOWNWARDS, work, limit, VERTICAL, own)
    copy_planes(work.down, old[DOWN])
    if not again:
        suspect |= pass_lines(work.down, old[DOWN], work.base, phi, phi, across, c, UPWARDS, work, limit, VERTICAL,
                              own)  # fmt: skip
    for k in range(len(phi)):
        turn(work.turned[0, k], work.up[k])
        turn(work.turned[1, k], work.down[k])
    return suspect


@cold
def sweep_one(phi, turned_phi, old, new, across, along, c, again, watched, work, limit, own):
    """One iteration on one grid. Returns the largest change of a message, if watched, and whether it is suspect."""
    card, residual = len(phi), 0.0
    up, down, left, right, other = work.turned[0], work.turned[1], work.turned[2], work.turned[3], work.turned[4]
    suspect = vertical_then_turned(phi, old, across, c, again, work, limit, own)
    if watched:
        for k in range(card):
            turn(right[k], old[RIGHT, k])
            turn(other[k], old[RIGHT, k])
        pass_lines(other, right, turned_phi, up, down, along, c, UPWARDS, work, limit, HORIZONTAL, own)
        residual = max(largest_difference(work.up, old[UP]), largest_difference(work.down, old[DOWN]))
        residual = max(residual, largest_difference(other, right))
    left[:, 0] = 1
    right[:, len(right[0]) - 1] = 1
    suspect |= pass_lines(left, left, turned_phi, up, down, along, c, DOWNWARDS, work, limit, HORIZONTAL, own)
    suspect |= pass_lines(right, right, turned_phi, up, down, along, c, UPWARDS, work, limit, HORIZONTAL, own)
    for k in range(card):
        turn(new[LEFT, k], left[k])
        turn(new[RIGHT, k], right[k])
    if watched:
        residual = max(residual, max(largest_difference(new[LEFT], old[LEFT]), largest_difference(other, right)))
    base_of(phi, new[LEFT], new[RIGHT], work.base)
    new[UP, :, 0] = 1
    new[DOWN, :, phi.shape[1] - 1] = 1
    suspect |= pass_lines(new[DOWN], new[DOWN], work.base, phi, phi, across, c, UPWARDS, work, limit, VERTICAL, own)
    suspect |= pass_lines(new[UP], work.up, work.base, phi, phi, across, c, DOWNWARDS, work, limit, VERTICAL, own)
    if watched:
        residual = max(residual, largest_difference(new[UP], work.up), largest_difference(new[DOWN], work.down))
    return residual, suspect


@compiled
def sweep_grids(phi, turned_phi, source, stack, iterations, again, across, along, active, suspect, residual, watched,
                work, limit, first, last, own):  # fmt: skip
    """Some iterations on the grids ``first:last``, one after the other, from `source` to the planes of `stack` in turn.

    `again` tells that the first of them follows one with the same potentials. The residual is that of the last
    iteration, if it is `watched`.
    """
    end = (iterations - 1) % len(stack)
    for c in range(first, last):
        if not active[c]:
            for d in range(4):
                copy_planes(stack[end, c, d], source[c, d])
            continue
        for t in range(iterations):
            old = source[c] if t == 0 else stack[(t - 1) % len(stack), c]
            moved, low = sweep_one(phi[c], turned_phi[c], old, stack[t % len(stack), c], across, along, c,
                                   again or t > 0, watched and t == iterations - 1, work, limit, own)  # fmt: skip
            residual[c] = moved
            suspect[c] |= low


@inner
def receive_back(weights, weights_bar, c, line, reverse, sent, slope, out, run, own):
    """Write t = n sum_y psi slope(y) for the messages of a line, and add to the derivatives by psi."""
    card, size = len(slope), len(run)
    for x in range(card):
        weigh(out[x, :size], weights, c, line, not reverse, x, slope, own)
    for x in range(card):
        for y in range(card):
            one, two = (y, x) if reverse else (x, y)
            if len(own) == 0:
                total = dot(slope[y, :size], sent[x, :size])
                weights_bar[c, one, two, 0, 0] += weights[0, one, two, 0, 0] * total
            else:
                multiply(run, slope[y, :size], sent[x, :size])
                add_product(weights_bar[c, one, two, line], weights[c, one, two, line], run)


@cold
def reverse_lines(out_bar, moving_bar, base_bar, moving, base, one, two, weights, weights_bar, c, reverse, work, way,
                  own):  # fmt: skip
    """Reverse `pass_lines`: from derivatives by the logs of `out` to those of `moving` and of the base."""
    card, lines, size = base.shape
    scale, mean = work.run[0, :size], work.run[1, :size]
    for done in range(lines - 2, -1, -1):
        line = lines - 1 - done if reverse else done
        to = line - 1 if reverse else line + 1
        products_of_line(work.sent, base, moving, one, two, line, way)
        send_line(weights, c, min(line, to), reverse, work.sent, work.message, scale, own)
        add(mean, out_bar[0, to], out_bar[1, to])
        for k in range(2, card):
            add(mean, mean, out_bar[k, to])
        multiply(mean, mean, scale)
        for k in range(card):
            slopes_of(work.message[k, :size], out_bar[k, to], mean)
        receive_back(weights, weights_bar, c, min(line, to), reverse, work.sent, work.message, work.back, mean, own)
        for k in range(card):
            add_product(base_bar[k, line], work.sent[k, :size], work.back[k, :size])
            add_product(moving_bar[k, line], work.sent[k, :size], work.back[k, :size])


@cold
def add_planes(out, plane):
    """Add planes."""
    for k in range(out.shape[0]):
        for y in range(out.shape[1]):
            add(out[k, y], out[k, y], plane[k, y])


@cold
def reverse_up(phi, new, bar, phi_bar, across, across_bar, c, work, own):
    """Reverse the vertical links upwards; leaves the derivatives by U1 in work.up_bar."""
    base_of(phi, new[LEFT], new[RIGHT], work.base)
    work.base_bar[:] = 0
    work.up_bar[:] = 0
    reverse_lines(bar[UP], work.up_bar, work.base_bar, work.up, work.base, phi, phi, across, across_bar, c, DOWNWARDS,
                  work, VERTICAL, own)  # fmt: skip
    reverse_lines(bar[DOWN], bar[DOWN], work.base_bar, new[DOWN], work.base, phi, phi, across, across_bar, c, UPWARDS,
                  work, VERTICAL, own)  # fmt: skip
    add_planes(phi_bar, work.base_bar)
    add_planes(bar[LEFT], work.base_bar)
    add_planes(bar[RIGHT], work.base_bar)


@cold
def reverse_rows(turned_phi, new, bar, phi_bar, along, along_bar, c, work, own):
    """Reverse the horizontal links; leaves the derivatives by D1 in work.down_bar, and adds those by U1."""
    up, down, left, right = work.turned[0], work.turned[1], work.turned[2], work.turned[3]
    base_bar, left_bar, right_bar = work.turned_bar[0], work.turned_bar[1], work.turned_bar[2]
    base_bar[:] = 0
    for k in range(len(turned_phi)):
        turn(left[k], new[LEFT, k])
        turn(right[k], new[RIGHT, k])
        turn(left_bar[k], bar[LEFT, k])
        turn(right_bar[k], bar[RIGHT, k])
    reverse_lines(left_bar, left_bar, base_bar, left, turned_phi, up, down, along, along_bar, c, DOWNWARDS, work,
                  HORIZONTAL, own)  # fmt: skip
    reverse_lines(right_bar, right_bar, base_bar, right, turned_phi, up, down, along, along_bar, c, UPWARDS, work,
                  HORIZONTAL, own)  # fmt: skip
    for k in range(len(turned_phi)):
        turn(work.down_bar[k], base_bar[k])
    add_planes(phi_bar, work.down_bar)
    add_planes(work.up_bar, work.down_bar)


@cold
def reverse_down(phi, old, bar, phi_bar, across, across_bar, c, again, work, own):
    """Reverse the vertical links downwards; `bar` becomes the derivatives by the messages before the iteration."""
    base_of(phi, old[LEFT], old[RIGHT], work.base)
    work.base_bar[:] = 0
    reverse_lines(work.up_bar, work.up_bar, work.base_bar, work.up, work.base, phi, phi, across, across_bar, c,
                  DOWNWARDS, work, VERTICAL, own)  # fmt: skip
    if again:
        copy_planes(bar[DOWN], work.down_bar)
    else:
        bar[DOWN] = 0
        reverse_lines(work.down_bar, bar[DOWN], work.base_bar, old[DOWN], work.base, phi, phi, across, across_bar, c,
                      UPWARDS, work, VERTICAL, own)  # fmt: skip
    add_planes(phi_bar, work.base_bar)
    copy_planes(bar[LEFT], work.base_bar)
    copy_planes(bar[RIGHT], work.base_bar)
    bar[UP] = 0


@compiled
def sweep_grids_back(phi, turned_phi, source, stack, iterations, again, bars, phi_bar, across, across_bar, along,
                     along_bar, active, work, first, last, own):  # fmt: skip
    """Reverse iterations that began with `source`: `bars` are derivatives by the logs of messages, after and before."""
    for c in range(first, last):
        if not active[c]:
            continue
        for t in range(iterations - 1, -1, -1):
            old, new = source[c] if t == 0 else stack[t - 1, c], stack[t, c]
            vertical_then_turned(phi[c], old, across, c, again or t > 0, work, 0.0, own)
            reverse_up(phi[c], new, bars[c], phi_bar[c], across, across_bar, c, work, own)
            reverse_rows(turned_phi[c], new, bars[c], phi_bar[c], along, along_bar, c, work, own)
            reverse_down(phi[c], old, bars[c], phi_bar[c], across, across_bar, c, again or t > 0, work, own)
