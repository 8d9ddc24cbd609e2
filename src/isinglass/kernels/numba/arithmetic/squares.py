"""Eight by eight numbers with rows and columns exchanged, in registers.

The compiler makes single moves of a loop that does this. Here it gets vectors: eight rows are loaded, and in three
rounds rows that are 1, 2 and 4 apart exchange squares of this size that lie across the diagonal.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

_SIDE = 8


def _turn_square(_typing: Any, out: Any, k: Any, y: Any, x: Any, planes: Any, top: Any, left: Any) -> Any:
    """Write ``out[k, y + j, x + i] = planes[k, top + i, left + j]`` for i, j < 8, which must lie within the arrays."""
    if not all(isinstance(one, types.Array) and one.ndim == 3 and one.layout == "C" for one in (out, planes)):
        return None

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        to, at = (make_array(kind)(context, builder, arguments[i]) for kind, i in ((out, 0), (planes, 4)))
        vector = ir.VectorType(context.get_value_type(planes.dtype), _SIDE)
        first = _places(builder, at, vector, arguments[1], arguments[5], arguments[6])
        rows = [builder.load(place, align=planes.dtype.bitwidth // 8) for place in first]
        for apart in (1, 2, 4):
            rows = _exchanged(builder, rows, apart)
        for place, row in zip(_places(builder, to, vector, *arguments[1:4]), rows, strict=True):
            builder.store(row, place, align=out.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(out, types.intp, types.intp, types.intp, planes, types.intp, types.intp), generate


def _places(builder: Any, array: Any, vector: Any, k: Any, y: Any, x: Any) -> list[Any]:
    """Return where eight rows from y on begin, at column x."""
    strides, byte = cgutils.unpack_tuple(builder, array.strides), ir.IntType(8).as_pointer()
    start = builder.bitcast(array.data, byte)
    for place, stride in zip((k, y, x), strides, strict=True):
        start = builder.gep(start, [builder.mul(place, stride)])
    steps = (builder.mul(ir.Constant(ir.IntType(64), i), strides[1]) for i in range(_SIDE))
    return [builder.bitcast(builder.gep(start, [step]), vector.as_pointer()) for step in steps]


def _exchanged(builder: Any, rows: list[Any], apart: int) -> list[Any]:
    """Let rows that are so far apart exchange the half of their squares that lies across the diagonal."""

    def mixed(one: Any, two: Any, upper: bool) -> Any:
        places = [j + apart * (upper - bool(j & apart)) + (_SIDE if j & apart else 0) for j in range(_SIDE)]
        return builder.shuffle_vector(one, two, ir.Constant(ir.VectorType(ir.IntType(32), _SIDE), places))

    return [mixed(rows[i & ~apart], rows[i | apart], bool(i & apart)) for i in range(_SIDE)]


turn_square: Any = intrinsic(_turn_square)
