"""Strings of Python in lists, read where they lie: nothing is copied, and no object is made.

Lists and strings are read by functions of Python's C interface, all of its stable part. An object is the number that
`id` returns. What such a function hands out is valid as long as nobody changes the list: loops that call them keep
Python's lock meanwhile (`isinglass.runtime.compilation.jit.holding`). None of these functions runs code of Python.

The text of a string is its UTF-8 bytes. Python has them for what is ASCII; for others it makes them once, and keeps
them with the string.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core import cgutils

from isinglass.runtime.compilation.jit import inner

intrinsic: Any = extending.intrinsic
_ADDRESS, _BYTE = ir.IntType(64), ir.IntType(8)

list_size: Any = types.ExternalFunction("PyList_Size", types.intp(types.intp))
list_item: Any = types.ExternalFunction("PyList_GetItem", types.intp(types.intp, types.intp))
forget_error: Any = types.ExternalFunction("PyErr_Clear", types.void())
_new_type: Any = types.ExternalFunction("PyObject_Type", types.intp(types.intp))
_let_go: Any = types.ExternalFunction("Py_DecRef", types.void(types.intp))


@inner
def type_of(one):
    """Return the type of an object."""
    kind = _new_type(one)
    _let_go(kind)
    return kind


@intrinsic
def text_of(typing_context, string):
    """Return the address of a string's text, and its bytes; the address is 0 where it has none: an error of Python."""
    pair = types.UniTuple(types.intp, 2)

    def generate(context, builder, signature, arguments):
        size = cgutils.alloca_once(builder, _ADDRESS)
        function_type = ir.FunctionType(_ADDRESS, [_ADDRESS, _ADDRESS.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, function_type, "PyUnicode_AsUTF8AndSize")
        address = builder.call(function, [arguments[0], size])
        return context.make_tuple(builder, pair, [address, builder.load(size)])

    return pair(types.intp), generate


@intrinsic
def ask_at(typing_context, address):
    """Ask for the line of the cache at an address; see `isinglass.kernels.numba.arithmetic.prefetch`."""

    def generate(context, builder, signature, arguments):
        whole = ir.IntType(32)
        function_type = ir.FunctionType(ir.VoidType(), [_BYTE.as_pointer(), whole, whole, whole])
        function = cgutils.get_or_insert_function(builder.module, function_type, "llvm.prefetch.p0i8")
        read, near, data = (ir.Constant(whole, n) for n in (0, 3, 1))
        builder.call(function, [builder.inttoptr(arguments[0], _BYTE.as_pointer()), read, near, data])
        return context.get_dummy_value()

    return types.void(types.intp), generate


def _number_of(bits: int) -> Any:
    """Return a function that reads so many bits at an address."""

    @intrinsic
    def read(typing_context, address):
        def generate(context, builder, signature, arguments):
            place = builder.inttoptr(arguments[0], ir.IntType(bits).as_pointer())
            found = builder.load(place, align=1)
            return found if bits == 64 else builder.zext(found, _ADDRESS)

        return types.uint64(types.intp), generate

    return read


byte_at, half_at, word_at = map(_number_of, (8, 32, 64))


@inner
def short_word(p, n):
    """Return the first of n bytes, at most eight of them, as a number, filled up with zeros; no other byte is read."""
    if n >= 8:
        return word_at(p)
    if n >= 4:
        return half_at(p) | half_at(p + n - 4) << np.uint64(8 * (n - 4))
    if n == 0:
        return np.uint64(0)
    middle = n >> 1
    return byte_at(p) | byte_at(p + middle) << np.uint64(8 * middle) | byte_at(p + n - 1) << np.uint64(8 * (n - 1))
