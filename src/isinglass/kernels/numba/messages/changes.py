"""What a change of messages can do to a probability.

A message that goes from m to m' multiplies beliefs by r(x) = m'(x) / m(x). Whatever the belief, no probability moves by
more than

    tanh(osc / 4),      osc  =  max_x log r(x) - min_x log r(x)

(half of osc is the logarithm of the *dynamic range* of Ihler, Fisher and Willsky 2005). Unlike the change of a
normalised message itself, which is never larger, it does not vanish where a message is nearly certain: at tables of
tens of nats the small entries of messages decide, and they may move by many nats while all probabilities seem to stand
still. An entry that becomes a hard zero, or is none any more, counts as the largest change there is, one.

Damping d leaves 1 - d of the change of a logarithm, so that the change without damping is known from the damped one; it
is known to so many units of rounding as d leaves.
"""

from __future__ import annotations

from math import inf, log, sqrt, tanh

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.semiring import is_zero
from isinglass.runtime.compilation.jit import apart, compiled, inner

ROUNDING = 2.0**-52
SURELY = 1 - 2.0**-48  # below one by more than the rounding of a comparison


@inner
def widest_ratio(old, at, new, to, card, ring):
    """Return exp(osc), from the entry `at` of the old message and `to` of the new one; infinite if a zero changes."""
    if len(ring) == 0 and card == 2:
        one = new[ix(to)].real * old[ix(at + 1)].real
        two = new[ix(to + 1)].real * old[ix(at)].real
        most, least = one if one > two else two, two if one > two else one  # selections: which is larger is a toss
        if 0 < least <= most:  # neither zeros nor too small
            return most / least
    high, low = 0.0, inf
    if len(ring) > 0:
        high = -inf
    for k in range(card):
        before, after = old[ix(at + k)], new[ix(to + k)]
        if is_zero(before, ring) or is_zero(after, ring):
            if is_zero(before, ring) and is_zero(after, ring):
                continue
            return inf
        ratio = after.real / before.real if len(ring) == 0 else after.real - before.real
        if ratio != ratio:
            return inf
        high, low = max(high, ratio), min(low, ratio)
    if low == inf:  # nothing but zeros
        return 1.0
    return high / low if len(ring) == 0 else np.exp(high - low)


@inner
def wider_ratio(widest, old, new, at, card, ring):
    """Return the widest ratio, or that so far; where it is clearly no wider, nothing is divided."""
    if len(ring) == 0 and card == 2:
        one, two = new[ix(at)].real * old[ix(at + 1)].real, new[ix(at + 1)].real * old[ix(at)].real
        most, least = one if one > two else two, two if one > two else one
        if least > 0 and most < SURELY * widest * least:
            return widest
    ratio = widest_ratio(old, at, new, at, card, ring)
    return ratio if not ratio <= widest else widest


@inner
def effect(ratio, damping):
    """Return tanh(osc / 4) of the change without damping."""
    if damping == 0:
        return 1 - 2 / (sqrt(ratio) + 1)
    return tanh((log(ratio) + 4 * ROUNDING) / (1 - damping) / 4)


@compiled
def effects(edges, span, old, new, damping, active, out, ring):
    """Write the largest effect of a message's change, for each active component."""
    for c in range(span.first_component, span.last_component):
        if active[c]:
            out[c] = 1.0
    for i in range(span.first_variable, span.last_variable):
        c = edges.variable_component[ix(i)]
        if active[ix(c)]:
            widest, card = out[ix(c)], edges.cards[ix(i)]
            for e in range(edges.first_edge[ix(i)], edges.first_edge[ix(i + 1)]):
                widest = wider_ratio(widest, old, new, edges.start[ix(e)], card, ring)
            out[ix(c)] = widest
    for c in range(span.first_component, span.last_component):
        if active[c]:
            out[c] = effect(out[c], damping)


@compiled
def imaginary_effects(edges, old, new, damping, active, moved, size, ring):
    """Write the largest change, without damping, and size of an imaginary part of a log message of each component."""
    for i in range(len(edges.cards)):
        c = edges.variable_component[ix(i)]
        if active[ix(c)]:
            for s in range(edges.start[edges.first_edge[ix(i)]], edges.start[edges.first_edge[ix(i + 1)]]):
                before, after = old[ix(s)], new[ix(s)]
                if is_zero(before, ring) or is_zero(after, ring):
                    continue
                one = before.imag / before.real if len(ring) == 0 else before.imag
                two = after.imag / after.real if len(ring) == 0 else after.imag
                moved[c] = max(moved[c], abs(two - one) / (1 - damping))
                size[c] = max(size[c], abs(two))


@inner
def widest_of_pairs(old, at, new, to, d, size, ratios):
    """Return the same as `widest_of_sites`, if there are two states, by the arithmetic of `widest_ratio`."""
    low, high = old[d, 0, at : at + size], old[d, 1, at : at + size]
    new_low, new_high = new[d, 0, to : to + size], new[d, 1, to : to + size]
    for x in range(len(low)):
        one = new_low[ix(x)] * high[ix(x)]
        two = new_high[ix(x)] * low[ix(x)]
        most, least = one if one > two else two, two if one > two else one
        ratios[ix(0), ix(x)] = most / least
    widest = 1.0
    for x in range(size):
        widest = ratios[ix(0), ix(x)] if ratios[ix(0), ix(x)] > widest else widest
    return widest


@inner
def widest_of_sites(old, at, new, to, d, size, ratios):
    """Return the largest ratio of ratios of positive messages from a direction to some sites."""
    high, low = ratios[0], ratios[1]
    for k in range(old.shape[1]):
        before, after = old[d, k, at : at + size], new[d, k, to : to + size]
        if k == 0:
            for x in range(len(before)):
                high[ix(x)] = np.float64(after[ix(x)]) / np.float64(before[ix(x)])
                low[ix(x)] = high[ix(x)]
        else:
            for x in range(len(before)):
                ratio = np.float64(after[ix(x)]) / np.float64(before[ix(x)])
                high[ix(x)] = ratio if ratio > high[ix(x)] else high[ix(x)]
                low[ix(x)] = ratio if ratio < low[ix(x)] else low[ix(x)]
    widest = 1.0
    for x in range(size):
        ratio = high[ix(x)] / low[ix(x)]
        widest = ratio if ratio > widest else widest
    return widest


@apart
def effect_in_planes(old, at, new, to, begin, end, ratios):
    """Return the largest effect of a message's change in the planes of a grid, without damping.

    Its sites from `begin` to before `end` are looked at: what lies beyond the first and the last row is never written.
    They are counted from its corners `at` and `to` in both planes; `ratios` is scratch, (2, sites).
    """
    widest, most = 1.0, ratios.shape[1]
    for d in range(old.shape[0]):
        for start in range(begin, end, most):
            size = min(most, end - start)
            if old.shape[1] == 2:
                widest = max(widest, widest_of_pairs(old, at + start, new, to + start, d, size, ratios))
            else:
                widest = max(widest, widest_of_sites(old, at + start, new, to + start, d, size, ratios))
    return effect(widest, 0.0)


@compiled
def effects_in_planes(old, new, plane, begin, end, active, first, last, ratios, out):
    """Write it for the active ones of some grids; planes that have room for one grid serve all of them."""
    for c in range(first, last):
        if active[c]:
            at = c * plane if old.shape[2] > plane else 0
            out[c] = effect_in_planes(old, at, new, c * plane, begin, end, ratios)
