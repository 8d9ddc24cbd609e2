"""Diagnostics of Markov chains, one quantity after the other.

The equations are in `isinglass.inference.sampling.convergence.diagnostics`.

Values are ranked by a radix sort of their bits: 8 at a time if they are few, so that there are not many more buckets
than values, and 11 if they are many. Conditional probabilities in small models take a few different values only: up to
`KINDS` of them are counted, and ranked by these counts, which is faster. Autocovariances are summed two lags at a time,
up to the lag where Geyer's sequence ends; where that is beyond `LAGS`, the effective size is left to the caller, who
has Fourier transforms.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import cold, inner, unrolled

LAGS = 1024
BUCKETS = 2048  # at the most
FEW = 4096  # values
KINDS = 16  # different values, at the most, that are counted
PAD = 4  # zeros after each centred chain
_SIGN = np.uint64(1) << np.uint64(63)
_63 = np.uint64(63)


@inner
def sort_key(value):
    """Return bits that are in the order of the values."""
    bits = np.float64(value).view(np.uint64)
    return ~bits if bits >> _63 else bits | _SIGN


@inner
def find_kinds(keys, kinds, kind, counts):
    """Write the different keys, how many there are of each, and which one each key is.

    Returns the number of different keys; -1 if there are more than `KINDS`.
    """
    found, k = 0, 0
    for i in range(len(keys)):
        key = keys[ix(i)]
        if found == 0 or kinds[ix(k)] != key:  # often it is the same as before
            k = 0
            while k < found and kinds[ix(k)] != key:
                k += 1
            if k == found:
                if found == KINDS:
                    return -1
                kinds[ix(k)], counts[ix(k)], found = key, 0, found + 1
        kind[ix(i)] = k
        counts[ix(k)] += 1
    return found


@inner
def rank_kinds(found, levels, counts, below, table, kind, scores):
    """Write the normal scores of values of few kinds, as `write_scores` does; kind k has the value ``levels[k]``.

    Write how many values are below each kind, too.
    """
    for k in range(found):
        less, equal = 0, 0
        for j in range(found):
            less += counts[ix(j)] if levels[j] < levels[k] else 0
            equal += counts[ix(j)] if levels[j] == levels[k] else 0
        below[ix(k)] = less
        levels[ix(KINDS + k)] = table[ix(2 * less + equal - 1)]
    for i in range(len(scores)):
        scores[ix(i)] = levels[ix(KINDS + kind[ix(i)])]


@inner
def level_at(place, found, levels, counts, below):
    """Return the value at a place in the order of values of few kinds."""
    k = 0
    while k < found - 1 and not below[ix(k)] <= place < below[ix(k)] + counts[ix(k)]:
        k += 1
    return levels[ix(k)]


@inner
def sort_by_digits(keys, places, other_keys, other_places, counts):
    """Sort keys, with their places, digit by digit."""
    n = len(keys)
    for i in range(n):
        places[ix(i)] = i
    digit = 8 if n < FEW else 11
    buckets = 1 << digit
    mask = np.uint64(buckets - 1)
    for first in range(0, 64, digit):
        shift = np.uint64(first)
        counts[:buckets] = 0
        for i in range(n):
            counts[(keys[ix(i)] >> shift) & mask] += 1
        if counts[(keys[0] >> shift) & mask] == n:
            continue
        total = 0
        for b in range(buckets):
            total, counts[b] = total + counts[b], total
        for i in range(n):
            bucket = (keys[ix(i)] >> shift) & mask
            to = counts[bucket]
            counts[bucket] = to + 1
            other_keys[ix(to)], other_places[ix(to)] = keys[ix(i)], places[ix(i)]
        for i in range(n):
            keys[ix(i)], places[ix(i)] = other_keys[ix(i)], other_places[ix(i)]


@inner
def write_scores(keys, places, table, scores):
    """Write the normal scores of sorted values; equal ones have the mean of their ranks, in halves, in `table`."""
    n, first = len(keys), 0
    while first < n:
        last = first
        while last + 1 < n and keys[last + 1] == keys[first]:
            last += 1
        score = table[first + last]
        for i in range(first, last + 1):
            scores[places[i]] = score
        first = last + 1


@cold
def rank(values, table, scores, marks, levels, keys, places, other_keys, kind, counts):
    """Write the normal scores of values; write their quantiles of 5 %, 50 % and 95 % into `marks`.

    Returns the number of kinds, of which `levels`, `kind` and `counts` tell; -1 if there are many. Quantiles are
    interpolated, and the median is rounded, as NumPy does it.
    """
    n = len(values)
    for i in range(n):
        keys[ix(i)] = sort_key(values[ix(i)] + 0.0)
    found = find_kinds(keys, other_keys, kind, counts)
    if found < 0:
        sort_by_digits(keys, places, other_keys, kind, counts)
        write_scores(keys, places, table, scores)
    else:
        for i in range(n):
            levels[ix(kind[ix(i)])] = values[ix(i)]
        rank_kinds(found, levels, counts, places, table, kind, scores)
    for q in range(3):
        at = (0.05, 0.5, 0.95)[q] * (n - 1)
        low = int(at)
        high = min(low + 1, n - 1)
        if found < 0:
            one, two = values[ix(places[ix(low)])], values[ix(places[ix(high)])]
        else:
            one = level_at(low, found, levels, counts, places)
            two = level_at(high, found, levels, counts, places)
        marks[q] = one + (at - low) * (two - one) if q != 1 else one if n % 2 else (one + two) / 2
    return found


@inner
def dots(work, at, lag, count):
    """Return the sums of products of a chain's numbers and those `lag` and `lag + 1` later.

    Four running sums each, added up at the end: they become vectors. Zeros follow the chain.
    """
    a = b = c = d = e = f = g = h = 0.0
    x, y = ix(at), ix(at + lag)
    for _ in range(0, count, 4):
        a += work[x] * work[y]
        b += work[x + ix(1)] * work[y + ix(1)]
        c += work[x + ix(2)] * work[y + ix(2)]
        d += work[x + ix(3)] * work[y + ix(3)]
        e += work[x] * work[y + ix(1)]
        f += work[x + ix(1)] * work[y + ix(2)]
        g += work[x + ix(2)] * work[y + ix(3)]
        h += work[x + ix(3)] * work[y + ix(4)]
        x, y = x + ix(4), y + ix(4)
    return (a + b) + (c + d), (e + f) + (g + h)


@inner
def mean_of(values, at, n):
    """Return the mean of a chain, from its first value on: chains that do not move have exact means."""
    first = values[ix(at)]
    a = b = c = d = 0.0
    x, whole = ix(at), n - n % 4
    for _ in range(0, whole, 4):
        a += values[x] - first
        b += values[x + ix(1)] - first
        c += values[x + ix(2)] - first
        d += values[x + ix(3)] - first
        x += ix(4)
    for _ in range(whole, n):
        a += values[x] - first
        x += ix(1)
    return first + ((a + b) + (c + d)) / n


@inner
def centre(values, m, n, work, squares):
    """Subtract from each chain its mean; return W and the variance of the means. Write each sum of squares."""
    grand = 0.0
    for k in range(m):
        mean, to = mean_of(values, k * n, n), k * (n + PAD)
        grand += mean
        for i in range(n):
            work[ix(to + i)] = values[ix(k * n + i)] - mean
    grand /= m
    within = between = 0.0
    for k in range(m):
        squares[ix(k)] = dots(work, k * (n + PAD), 0, n)[0]
        within += squares[ix(k)] / (n - 1)
        between += (values[k * n] - work[k * (n + PAD)] - grand) ** 2
    return within / m, between / (m - 1)


@inner
def r_hat_of(within, between, n):
    """Return R-hat, given W and the variance of the means."""
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return np.sqrt((n - 1) / n + between / within)


@inner
def covariances_at(lag, work, squares, m, n):
    """Return the mean autocovariances of centred chains, at a lag and the next; chains that do not move have none."""
    one = two = 0.0
    for k in range(m):
        if squares[ix(k)] > 0:
            here, there = dots(work, k * (n + PAD), lag, n - lag)
            one, two = one + here, two + there
    return one / (m * n), two / (m * n)


@inner
def effective_size(work, squares, m, n, within, between):
    """Return the effective size of centred chains; -1 if more than LAGS lags are needed."""
    size = float(m * n)
    total = within * (n - 1) / n + between
    if total <= 0:
        return size
    tau, least = -1.0, np.inf
    for lag in range(0, min(n - n % 2, LAGS), 2):
        here, there = covariances_at(lag, work, squares, m, n)
        one = 1.0 if lag == 0 else 1 - (within - here) / total
        pair = one + 1 - (within - there) / total
        if pair <= 0:
            return size / max(tau, 1 / np.log10(size))
        least = min(least, pair)
        tau += 2 * least
    return size / max(tau, 1 / np.log10(size)) if n - n % 2 <= LAGS else -1.0


@inner
def split_chains(trace, values):
    """Write the halves of the chains of one quantity; return whether any value differs from the first."""
    draws = trace.shape[1]
    n, moves = draws // 2, False
    for k in range(2 * trace.shape[0]):
        first = 0 if k % 2 == 0 else draws - n
        for i in range(n):
            x = trace[ix(k // 2), ix(first + i)]
            values[ix(k * n + i)] = x
            moves |= x != trace[0, 0]
    return moves


@unrolled
def diagnose_all(trace, table, out, values, scores, work, squares, marks, levels, keys, places, others, kind, counts):
    """Write R-hat, bulk and tail effective size and standard error of each quantity into the rows of `out`.

    `trace` is (quantities, chains, draws). out[q, 4:8] are the effective sizes of the scores, of the indicators of the
    two tails and of the values; -1 where they are left to the caller.
    """
    m, n = 2 * trace.shape[1], trace.shape[2] // 2
    for q in range(trace.shape[0]):
        if not split_chains(trace[q], values):
            out[q, 0], out[q, 3] = 1.0, 0.0
            out[q, 1] = out[q, 2] = out[q, 4] = out[q, 5] = out[q, 6] = out[q, 7] = m * n
            continue
        found = rank(values, table, scores, marks, levels, keys, places, others, kind, counts)
        low, middle, high = marks[0], marks[1], marks[2]
        within, between = centre(scores, m, n, work, squares)
        out[q, 0] = r_hat_of(within, between, n)
        out[q, 4] = effective_size(work, squares, m, n, within, between)
        for side in range(2):
            limit = low if side == 0 else high
            for i in range(m * n):
                scores[i] = 1.0 if values[i] <= limit else 0.0
            within, between = centre(scores, m, n, work, squares)
            out[q, 5 + side] = effective_size(work, squares, m, n, within, between)
        within, between = centre(values, m, n, work, squares)
        out[q, 7] = effective_size(work, squares, m, n, within, between)
        out[q, 3] = np.sqrt((within * m * (n - 1) + between * (m - 1) * n) / (m * n - 1))  # the standard deviation
        if found < 0:
            for i in range(m * n):
                values[i] = abs(values[i] - middle)
            rank(values, table, scores, marks, levels, keys, places, others, kind, counts)
        else:
            for k in range(found):
                levels[k] = abs(levels[k] - middle)
            rank_kinds(found, levels, counts, places, table, kind, scores)
        within, between = centre(scores, m, n, work, squares)
        out[q, 0] = max(out[q, 0], r_hat_of(within, between, n))
