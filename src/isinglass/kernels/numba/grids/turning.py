"""Parts of planes (states, rows, columns): copied, set, compared, and with rows and columns exchanged.

A *strip* holds some rows of a plane, turned: ``strip[state, column, row - top]``.
"""

from __future__ import annotations

from isinglass.kernels.layout import LANES
from isinglass.kernels.numba.arithmetic.indexing import ix
from isinglass.kernels.numba.arithmetic.parts import part
from isinglass.kernels.numba.arithmetic.runs import copy_run
from isinglass.kernels.numba.arithmetic.squares import turn_square
from isinglass.runtime.compilation.jit import inner, prepared

_BLOCK = 16


@inner
def turn_block(out, k, y, x, planes, top, left, rows, columns):
    """Exchange rows and columns of a block of a plane."""
    for i in range(rows):
        for j in range(columns):
            out[ix(k), ix(y + j), ix(x + i)] = planes[ix(k), ix(top + i), ix(left + j)]


@prepared
def turn(out, planes, y, x, top, left, height, width, lanes):
    """Write ``out[k, y + j, x + i] = planes[k, top + i, left + j]`` for i < height, j < width and all planes k.

    With `lanes`, which is empty or not, both are eight at least. The last squares may overlap those before.
    """
    for k in range(len(planes)):
        if len(lanes) > 0:
            for row in range(0, height, LANES):
                i = min(row, height - LANES)
                for column in range(0, width, LANES):
                    j = min(column, width - LANES)
                    turn_square(out, k, y + j, x + i, planes, top + i, left + j)
        else:
            for i in range(0, height, _BLOCK):
                for j in range(0, width, _BLOCK):
                    rows, columns = min(_BLOCK, height - i), min(_BLOCK, width - j)
                    turn_block(out, k, y + j, x + i, planes, top + i, left + j, rows, columns)


@inner
def into_strip(strip, planes, top, bottom, lanes):
    """Turn some rows of planes."""
    turn(strip, planes, 0, 0, top, 0, bottom - top, planes.shape[2], lanes)


@inner
def from_strip(planes, strip, top, bottom, lanes):
    """Turn some rows back."""
    turn(planes, strip, top, 0, 0, 0, planes.shape[2], bottom - top, lanes)


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
def set_run(run, value):
    """Set a run to a number."""
    for x in range(len(run)):
        run[ix(x)] = value


@inner
def set_columns(out, begin, end, value):
    """Set some columns of planes to a number."""
    for k in range(out.shape[0]):
        for y in range(out.shape[1]):
            set_run(part(out, (k, y), begin, end), value)


@inner
def set_line(out, line, begin, end, value):
    """Set some places of a line of each plane to a number."""
    for k in range(out.shape[0]):
        set_run(part(out, (k, line), begin, end), value)
