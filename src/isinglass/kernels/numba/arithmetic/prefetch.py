"""Lines of a cache that are on their way before they are needed.

A loop that looks into a table at places without a pattern waits for each of them where the table is in a far cache or
in memory. The processor looks ahead over some instructions only. So a loop that knows the places to come asks for them.
That changes no result, and nothing is read.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

intrinsic: Any = extending.intrinsic


@intrinsic
def ask(typing_context, table, row, column):
    """Ask for the line of the cache that holds an entry of a table."""

    def generate(context, builder, signature, arguments):
        kind = signature.args[0]
        found = context.make_array(kind)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, kind, found, list(arguments[1:]), wraparound=False)
        byte, whole = ir.IntType(8).as_pointer(), ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [byte, whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0i8")
        read, near, data = (ir.Constant(whole, n) for n in (0, 3, 1))
        builder.call(function, [builder.bitcast(place, byte), read, near, data])
        return context.get_dummy_value()

    return types.void(table, types.uint64, types.uint64), generate
