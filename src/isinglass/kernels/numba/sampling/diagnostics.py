"""Diagnostics of Markov chains, one quantity after the other.

The equations are in `isinglass.inference.sampling.convergence.diagnostics`.

Values are ranked by a radix sort of their bits: 8 at a time if they are few, so that there are not many more buckets
than values, and 11 if they are many. Conditional probabilities in small models take a few different values only: up to
`KINDS` of them are counted, which is faster. Autocovariances are summed lag by lag, up to the lag where Geyer's
sequence ends; where that is beyond `LAGS`, the effective size is left to the caller, who has Fourier transforms.
"""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.jit import cold, inner, unrolled

LAGS = 1024
BUCKETS = 2048  # at the most
FEW = 4096  # values
KINDS = 16  # different values, at the most, that are counted
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
def sort_kinds(found, keys, places, kinds, kind, counts):
    """Sort keys of few kinds: put each one after those of smaller kinds."""
    for k in range(found):
        counts[KINDS + k] = 0
        for j in range(found):
            if kinds[j] < kinds[k]:
                counts[KINDS + k] += counts[j]
    for i in range(len(keys)):
        k = ix(kind[ix(i)])
        to = counts[k + ix(KINDS)]
        counts[k + ix(KINDS)] = to + 1
        keys[ix(to)], places[ix(to)] = kinds[k], i


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


@cold
def sort_with_places(values, keys, places, other_keys, other_places, counts):
    """Sort values: write their keys in order, and their places in `values`."""
    for i in range(len(values)):
        keys[ix(i)] = sort_key(values[ix(i)] + 0.0)
    found = find_kinds(keys, other_keys, other_places, counts)
    if found < 0:
        sort_by_digits(keys, places, other_keys, other_places, counts)
    else:
        sort_kinds(found, keys, places, other_keys, other_places, counts)


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


@inner
def quantile(values, places, share):
    """Return a quantile of values whose places are sorted, with linear interpolation."""
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    one, two = values[places[low]], values[places[high]]
    return one + (at - low) * (two - one)


@inner
def median(values, places):
    """Return the median of values whose places are sorted; of two in the middle, their mean as NumPy rounds it."""
    n = len(values)
    one, two = values[places[(n - 1) // 2]], values[places[n // 2]]
    return one if n % 2 else (one + two) / 2


@inner
def dot(values, one, two, count):
    """Return the sum of products of two stretches of an array; four running sums, added up at the end."""
    a = b = c = d = 0.0
    x, y = ix(one), ix(two)
    end = count - count % 4
    for _ in range(0, end, 4):
        a += values[x] * values[y]
        b += values[x + ix(1)] * values[y + ix(1)]
        c += values[x + ix(2)] * values[y + ix(2)]
        d += values[x + ix(3)] * values[y + ix(3)]
        x, y = x + ix(4), y + ix(4)
    for _ in range(end, count):
        a += values[x] * values[y]
        x, y = x + ix(1), y + ix(1)
    return (a + b) + (c + d)


@inner
def centre(values, m, n, work):
    """Subtract from each chain its mean; return W and the variance of the means."""
    grand = 0.0
    for k in range(m):
        mean = 0.0  # from the first value on, so that chains that do not move have exact means
        for i in range(k * n, k * n + n):
            mean += values[i] - values[k * n]
        mean = values[k * n] + mean / n
        grand += mean
        for i in range(k * n, k * n + n):
            work[i] = values[i] - mean
    grand /= m
    within = between = 0.0
    for k in range(m):
        within += dot(work, k * n, k * n, n) / (n - 1)
        between += (values[k * n] - work[k * n] - grand) ** 2
    return within / m, between / (m - 1)


@inner
def r_hat_of(within, between, n):
    """Return R-hat, given W and the variance of the means."""
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return np.sqrt((n - 1) / n + between / within)


@inner
def covariance_at(lag, work, m, n):
    """Return the mean autocovariance of centred chains."""
    total = 0.0
    for k in range(m):
        total += dot(work, k * n, k * n + lag, n - lag)
    return total / (m * n)


@inner
def effective_size(work, m, n, within, between):
    """Return the effective size of centred chains; -1 if more than LAGS lags are needed."""
    size = float(m * n)
    total = within * (n - 1) / n + between
    if total <= 0:
        return size
    tau, least = -1.0, np.inf
    for lag in range(0, min(n - n % 2, LAGS), 2):
        one = 1.0 if lag == 0 else 1 - (within - covariance_at(lag, work, m, n)) / total
        pair = one + 1 - (within - covariance_at(lag + 1, work, m, n)) / total
        if pair <= 0:
            return size / max(tau, 1 / np.log10(size))
        least = min(least, pair)
        tau += 2 * least
    return size / max(tau, 1 / np.log10(size)) if n - n % 2 <= LAGS else -1.0


@unrolled
def diagnose_all(trace, table, out, values, scores, work, keys, places, other_keys, other_places, counts):
    """Write R-hat, bulk and tail effective size and standard error of each quantity into the rows of `out`.

    `trace` is (quantities, chains, draws). out[q, 4:8] are the effective sizes of the scores, of the indicators of the
    two tails and of the values; -1 where they are left to the caller.
    """
    draws = trace.shape[2]
    m, n = 2 * trace.shape[1], draws // 2
    for q in range(trace.shape[0]):
        least = most = trace[q, 0, 0]
        for k in range(m):
            first = 0 if k % 2 == 0 else draws - n
            for i in range(n):
                x = trace[q, k // 2, first + i]
                values[k * n + i] = x
                least, most = min(least, x), max(most, x)
        if least == most:
            out[q, 0], out[q, 3] = 1.0, 0.0
            out[q, 1] = out[q, 2] = out[q, 4] = out[q, 5] = out[q, 6] = out[q, 7] = m * n
            continue
        sort_with_places(values, keys, places, other_keys, other_places, counts)
        low, middle, high = (
            quantile(values, places, 0.05),
            median(values, places),
            quantile(values, places, 0.95),
        )
        write_scores(keys, places, table, scores)
        within, between = centre(scores, m, n, work)
        out[q, 0] = r_hat_of(within, between, n)
        out[q, 4] = effective_size(work, m, n, within, between)
        for side in range(2):
            limit = low if side == 0 else high
            for i in range(m * n):
                scores[i] = 1.0 if values[i] <= limit else 0.0
            within, between = centre(scores, m, n, work)
            out[q, 5 + side] = effective_size(work, m, n, within, between)
        within, between = centre(values, m, n, work)
        out[q, 7] = effective_size(work, m, n, within, between)
        out[q, 3] = np.sqrt((within * m * (n - 1) + between * (m - 1) * n) / (m * n - 1))  # the standard deviation
        for i in range(m * n):
            values[i] = abs(values[i] - middle)
        sort_with_places(values, keys, places, other_keys, other_places, counts)
        write_scores(keys, places, table, scores)
        within, between = centre(scores, m, n, work)
        out[q, 0] = max(out[q, 0], r_hat_of(within, between, n))
