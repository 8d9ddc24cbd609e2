"""A part of the last axis of an array, without the tests that slices cost.

Numba moves the ends of every slice into the array, and counts negative indices from its end. In loops over short lines
that takes about a tenth of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array


def _part(_typing: Any, array: Any, index: Any, begin: Any, end: Any) -> Any:
    """Return ``array[index][begin:end]``, a contiguous run; all indices must lie within the array."""
    if not (isinstance(array, types.Array) and array.layout == "C" and len(index) == array.ndim - 1):
        return None
    run = array.copy(ndim=1)

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        whole, found = make_array(array)(context, builder, arguments[0]), make_array(run)(context, builder)
        strides = cgutils.unpack_tuple(builder, whole.strides)
        offset = builder.mul(arguments[2], strides[-1])
        for place, stride in zip(cgutils.unpack_tuple(builder, arguments[1]), strides[:-1], strict=True):
            offset = builder.add(offset, builder.mul(place, stride))
        bytes_ = builder.gep(builder.bitcast(whole.data, ir.IntType(8).as_pointer()), [offset])
        populate_array(
            found,
            data=builder.bitcast(bytes_, whole.data.type),
            shape=[builder.sub(arguments[3], arguments[2])],
            strides=[strides[-1]],
            itemsize=whole.itemsize,
            meminfo=whole.meminfo,
            parent=whole.parent,
        )
        return impl_ret_borrowed(context, builder, run, found._getvalue())

    places = types.UniTuple(types.intp, len(index))
    return run(array, places, types.intp, types.intp), generate


part: Any = intrinsic(_part)
