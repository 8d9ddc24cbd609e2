"""One link of a convex free energy, eliminated: pairs by additions only, others by an orthogonal factorisation.

The equations stand in `isinglass.kernels.numba.free_energy.newton`.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import cold, inner

DEPENDENT = 1e-26  # the share of a column's squared norm below which nothing of it is left


@inner
def reduced(a, ref):
    """Return the a-th state that is not the reference."""
    return a if a < ref else a + 1


@inner
def pair_factor(entry, rows, columns, ref, work, step, room):
    """Write 1 / (row sums of Q), then the factor of the columns' Laplacian without the reference.

    It is L D L' with D on the diagonal and -L above it: K of (columns - 1)².
    """
    inverse, factor, n = step.inverse, step.work, columns - 1
    for r in range(rows):
        total = inverse[entry + r * columns]
        for s in range(1, columns):
            total += inverse[entry + r * columns + s]
        factor[work + r] = 1 / total
    at, ground = work + rows, room.one
    for p in range(n):
        one = reduced(p, ref)
        ground[p] = conductance(entry, rows, columns, one, ref, work, inverse, factor)
        for q in range(p + 1, n):
            c = conductance(entry, rows, columns, one, reduced(q, ref), work, inverse, factor)
            room.matrix[p * n + q] = c
            room.matrix[q * n + p] = c
    for p in range(n):
        d = ground[p]
        for q in range(p + 1, n):
            d += room.matrix[p * n + q]
        factor[at + p * n + p] = d
        for q in range(p + 1, n):
            f = room.matrix[p * n + q] / d
            factor[at + p * n + q] = f
            ground[q] += f * ground[p]
            for u in range(p + 1, n):
                if u != q:
                    room.matrix[q * n + u] += f * room.matrix[p * n + u]


@inner
def conductance(entry, rows, columns, s, t, work, inverse, factor):
    """Return sum_r Q_rs Q_rt / Q_r."""
    total = inverse[entry] * 0
    for r in range(rows):
        k = entry + r * columns
        total += (inverse[k + s] * factor[work + r]) * inverse[k + t]
    return total


@inner
def solve_columns(columns, ref, at, factor, right, out):
    """Solve the Laplacian system of the columns, zero at the reference."""
    n = columns - 1
    out[ref] = right[ref] * 0
    for p in range(n):
        out[reduced(p, ref)] = right[reduced(p, ref)]
    for p in range(n):
        for q in range(p + 1, n):
            out[reduced(q, ref)] += factor[at + p * n + q] * out[reduced(p, ref)]
    for p in range(n - 1, -1, -1):
        value = out[reduced(p, ref)] / factor[at + p * n + p]
        for q in range(p + 1, n):
            value += factor[at + p * n + q] * out[reduced(q, ref)]
        out[reduced(p, ref)] = value


@inner
def pair_step(entry, rows, columns, ref, work, step, room):
    """Solve for alpha (three) and beta (four) with the marginals one and two, to which those of Q g are added."""
    inverse, factor = step.inverse, step.work
    for r in range(rows):
        for s in range(columns):
            k = entry + r * columns + s
            room.one[r] += inverse[k] * step.by_q[k]
            room.two[s] += inverse[k] * step.by_q[k]
    for r in range(rows):
        scaled = room.one[r] * factor[work + r]
        for s in range(columns):
            room.two[s] -= inverse[entry + r * columns + s] * scaled
    solve_columns(columns, ref, work + rows, factor, room.two, room.four)
    for r in range(rows):
        rest = room.one[r]
        for s in range(columns):
            rest -= inverse[entry + r * columns + s] * room.four[s]
        room.three[r] = rest * factor[work + r]


@inner
def two_block(entry, alike, work, step, room):
    """Write K of a link of two variables with two states each (its sign depends on the references), and its factor."""
    k, at = ix(entry), ix(work)
    qa, qb, qc, qd = step.inverse[k], step.inverse[k + ix(1)], step.inverse[k + ix(2)], step.inverse[k + ix(3)]
    step.work[at], step.work[at + ix(1)] = 1 / (qa + qb), 1 / (qc + qd)
    step.work[at + ix(2)] = (qa * step.work[at]) * qb + (qc * step.work[at + ix(1)]) * qd
    a, b, c, d = 1 / qa, 1 / qb, 1 / qc, 1 / qd
    s = a + b + c + d
    both = (a / s) * d - (b / s) * c
    room.block[0] = ((a + c) / s) * (b + d)
    room.block[2] = both if alike else -both
    room.block[1] = room.block[2]
    room.block[3] = ((a + b) / s) * (c + d)


@inner
def two_step(entry, row_ref, column_ref, places, work, step, final):
    """Solve for alpha and beta, zero at the references, of such a link; write dq if `final`."""
    k, at, one, two = ix(entry), ix(work), ix(places[0]), ix(places[1])
    i, j, n1, n2, n3 = ix(places[2]), ix(places[3]), ix(1), ix(2), ix(3)
    a, b, c, d = step.inverse[k], step.inverse[k + n1], step.inverse[k + n2], step.inverse[k + n3]
    ga, gb, gc, gd = step.by_q[k], step.by_q[k + n1], step.by_q[k + n2], step.by_q[k + n3]
    top = step.e[one] + step.dp[i] + (a * ga + b * gb)
    low = step.e[one + n1] + step.dp[i + n1] + (c * gc + d * gd)
    f, g, s = step.work[at], step.work[at + n1], step.work[at + n2]
    if column_ref == 0:
        rest = step.e[two + n1] + step.dp[j + n1] + (b * gb + d * gd)
        beta = (rest - b * (top * f) - d * (low * g)) / s
        over, under, left, right = (top - b * beta) * f, (low - d * beta) * g, beta * 0, beta
    else:
        rest = step.e[two] + step.dp[j] + (a * ga + c * gc)
        beta = (rest - a * (top * f) - c * (low * g)) / s
        over, under, left, right = (top - a * beta) * f, (low - c * beta) * g, beta, beta * 0
    if final:
        step.dq[k], step.dq[k + n1] = a * (over + left - ga), b * (over + right - gb)
        step.dq[k + n2], step.dq[k + n3] = c * (under + left - gc), d * (under + right - gd)
    return (under - over if row_ref == 0 else over - under), beta


@cold
def pair_block(entry, rows, columns, row_ref, column_ref, work, step, room):
    """Write K of a pair, column by column: y of unit steps of the variables."""
    inverse, factor = step.inverse, step.work
    n, m = rows + columns - 2, rows - 1
    for u in range(n):
        at_row = reduced(u, row_ref) if u < m else -1
        for s in range(columns):
            room.two[s] = inverse[entry] * 0
        if u < m:
            for s in range(columns):
                room.two[s] = (
                    inverse[entry + row_ref * columns + s] * factor[work + row_ref]
                    - inverse[entry + at_row * columns + s] * factor[work + at_row]
                )
        else:
            room.two[reduced(u - m, column_ref)] += 1
            room.two[column_ref] -= 1
        solve_columns(columns, column_ref, work + rows, factor, room.two, room.four)
        for r in range(rows):
            rest = inverse[entry] * 0
            if u < m:
                rest += 1 if r == at_row else (-1 if r == row_ref else 0)
            for s in range(columns):
                rest -= inverse[entry + r * columns + s] * room.four[s]
            room.three[r] = rest * factor[work + r]
        for a in range(m):
            room.block[a * n + u] = room.three[reduced(a, row_ref)] - room.three[row_ref]
        for a in range(columns - 1):
            room.block[(m + a) * n + u] = room.four[reduced(a, column_ref)]


@inner
def column_of(j, state, slot, blocks, step):
    """Return the column of B for a state of slot j, or -1 for its reference."""
    ref = step.ref[blocks.slot_variable[slot + j]]
    if state == ref:
        return -1
    before = blocks.slot_first[slot + j] - blocks.slot_first[slot] - j  # unknowns of the slots before
    return 1 + before + (state if state < ref else state - 1)


@cold
def general_factor(slot, arity, count, digit, entry, blocks, step, work, room):
    """Write R, of R'R = B'QB, by orthogonalising the columns of Q^1/2 B; return how many there are."""
    columns = 1 + blocks.slot_first[slot + arity] - blocks.slot_first[slot] - arity
    matrix, factor = room.matrix, step.work
    for k in range(count):
        root = np.sqrt(step.inverse[entry + k])
        for u in range(columns):
            matrix[u * count + k] = root * 0
        matrix[k] = root
        for j in range(arity):
            u = column_of(j, blocks.digits[digit + k * arity + j], slot, blocks, step)
            if u >= 0:
                matrix[u * count + k] = root
    for u in range(columns):
        room.one[u] = product(matrix, u, u, count)
    for u in range(columns):
        square = product(matrix, u, u, count)
        if square.real <= DEPENDENT * room.one[u].real:
            for t in range(u, columns):
                factor[work + u * columns + t] = square * 0
            continue
        norm = np.sqrt(square)
        factor[work + u * columns + u] = norm
        for k in range(count):
            matrix[u * count + k] /= norm
        for t in range(u + 1, columns):
            shared = product(matrix, u, t, count)
            factor[work + u * columns + t] = shared
            for k in range(count):
                matrix[t * count + k] -= shared * matrix[u * count + k]
    return columns


@inner
def product(matrix, u, t, count):
    """Return the inner product of two columns."""
    total = matrix[0] * 0
    for k in range(count):
        total += matrix[u * count + k] * matrix[t * count + k]
    return total


@inner
def solve_general(columns, work, factor, y):
    """Solve R'R y = y in place; what belongs to dependent columns is zero."""
    for u in range(columns):
        d = factor[work + u * columns + u]
        if d.real == 0:
            y[u] = d * 0
            continue
        y[u] /= d
        for t in range(u + 1, columns):
            y[t] -= factor[work + u * columns + t] * y[u]
    for u in range(columns - 1, -1, -1):
        d = factor[work + u * columns + u]
        if d.real == 0:
            continue
        for t in range(u + 1, columns):
            y[u] -= factor[work + u * columns + t] * y[t]
        y[u] /= d


@cold
def general_block(columns, work, factor, room):
    """Write K of a general link: the inverse of R'R without the row and column of one."""
    n = columns - 1
    for u in range(n):
        for t in range(columns):
            room.one[t] = factor[work] * 0
        room.one[u + 1] += 1
        solve_general(columns, work, factor, room.one)
        for t in range(n):
            room.block[t * n + u] = room.one[t + 1]


@cold
def general_step(slot, arity, count, digit, entry, blocks, step, work, out, final, room):
    """Solve for y of a general link; write dq if `final`, else subtract y from `out`."""
    y, columns = room.one, 1
    y[0] = step.inverse[entry] * 0
    leading = blocks.slot_variable[slot]
    for a in range(blocks.cards[leading]):
        y[0] += step.e[blocks.slot_first[slot] + a] + step.dp[blocks.first_state[leading] + a]
    for j in range(arity):
        i = blocks.slot_variable[slot + j]
        for a in range(blocks.cards[i] - 1):
            state = reduced(a, step.ref[i])
            y[columns + a] = step.e[blocks.slot_first[slot + j] + state] + step.dp[blocks.first_state[i] + state]
        columns += blocks.cards[i] - 1
    for k in range(count):
        weighted = step.inverse[entry + k] * step.by_q[entry + k]
        y[0] += weighted
        for j in range(arity):
            u = column_of(j, blocks.digits[digit + k * arity + j], slot, blocks, step)
            if u >= 0:
                y[u] += weighted
    solve_general(columns, work, step.work, y)
    if not final:
        u = 1
        for j in range(arity):
            i = blocks.slot_variable[slot + j]
            for a in range(blocks.cards[i] - 1):
                out[blocks.first_unknown[i] + a] -= y[u]
                u += 1
        return
    for k in range(count):
        value = y[0] - step.by_q[entry + k]
        for j in range(arity):
            u = column_of(j, blocks.digits[digit + k * arity + j], slot, blocks, step)
            if u >= 0:
                value += y[u]
        step.dq[entry + k] = step.inverse[entry + k] * value
