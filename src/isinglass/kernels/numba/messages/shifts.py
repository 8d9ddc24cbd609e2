"""Rows of log tables, each shifted so that its largest entry is zero."""

from __future__ import annotations

import numpy as np

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled


@compiled
def take_tops(rows, out, tops, first, last):
    """Write the rows ``first:last`` without their largest entries, and these; a row of -inf stays as it is.

    Returns the smallest entry that was written, at most zero, and the largest size of a shift. There is no NaN.
    """
    least, most, card = 0.0, 0.0, rows.shape[1]
    for i in range(first, last):
        top = rows[ix(i), 0]
        for k in range(1, card):
            top = max(top, rows[ix(i), ix(k)])
        tops[ix(i)] = top
        most = max(most, abs(top))
        shift = top if top > -np.inf else 0.0
        for k in range(card):
            value = rows[ix(i), ix(k)] - shift
            out[ix(i), ix(k)] = value
            least = min(least, value)
    return least, most
