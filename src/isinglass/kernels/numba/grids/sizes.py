"""The largest size of values that lie in planes, beside places that hold nothing."""

from __future__ import annotations

from math import inf

from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.runtime.compilation.jit import compiled, inner


@inner
def widen(run, used, top):
    """Raise each `top` to the size of the entry beside it, where it is used; return how many of these are no numbers.

    One by one, which becomes a loop over vectors.
    """
    strange = 0
    for x in range(len(run)):
        size = abs(run[ix(x)]) if used[ix(x)] else 0.0
        strange += size != size
        top[ix(x)] = size if size > top[ix(x)] else top[ix(x)]
    return strange


@compiled
def largest_in_planes(planes, used, first, last, top, out):
    """Write the largest size of each grid, from `first` to before `last`; infinite if something is no number.

    Planes are (runs, grids, entries), `top` is scratch of any length.
    """
    length = len(top)
    for c in range(first, last):
        strange, most = 0, 0.0
        for x in range(length):
            top[ix(x)] = 0.0
        for k in range(planes.shape[0]):
            for start in range(0, planes.shape[2], length):
                stop = min(start + length, planes.shape[2])
                strange += widen(planes[k, c, start:stop], used[k, c, start:stop], top[: stop - start])
        for x in range(length):
            most = max(most, top[ix(x)])
        out[c] = inf if strange else most
