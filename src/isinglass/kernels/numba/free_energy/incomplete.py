"""Incomplete Cholesky factors without fill: L L' equals A where A has entries (Meijerink and van der Vorst 1977).

A is symmetric, given by the rows of its lower triangle, columns rising, the diagonal last. L has the same places.
"""

from __future__ import annotations

import numpy as np

from isinglass.runtime.compilation.jit import compiled, inner

LEAST_PIVOT = 1e-14  # relative to the diagonal: what is less may be rounding


@inner
def row_product(columns, lower, one, last, two, end):
    """Return the product of two rows of L over the columns that both have, in front of given places."""
    total = 0.0
    while one < last and two < end:
        if columns[one] == columns[two]:
            total += lower[one] * lower[two]
            one += 1
            two += 1
        elif columns[one] < columns[two]:
            one += 1
        else:
            two += 1
    return total


@compiled
def incomplete(first, columns, values, shift, lower):
    """Write the factor of A with its diagonal multiplied by 1 + `shift`; tell whether all pivots are positive."""
    for i in range(len(first) - 1):
        last = first[i + 1] - 1
        pivot = values[last] * (1 + shift)
        for at in range(first[i], last):
            j = columns[at]
            end = first[j + 1] - 1
            entry = (values[at] - row_product(columns, lower, first[i], at, first[j], end)) / lower[end]
            lower[at] = entry
            pivot -= entry * entry
        if not pivot > LEAST_PIVOT * values[last]:
            return False
        lower[last] = np.sqrt(pivot)
    return True


@compiled
def apply_incomplete(first, columns, lower, right, out):
    """Solve L L' out = right."""
    n = len(first) - 1
    for i in range(n):
        last, value = first[i + 1] - 1, right[i]
        for at in range(first[i], last):
            value -= lower[at] * out[columns[at]]
        out[i] = value / lower[last]
    for i in range(n - 1, -1, -1):
        last = first[i + 1] - 1
        value = out[i] / lower[last]
        out[i] = value
        for at in range(first[i], last):
            out[columns[at]] -= lower[at] * value
