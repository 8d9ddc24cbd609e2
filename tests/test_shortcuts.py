"""Shortcuts through Numba: they lead where the long way leads, and are taken by the library's own loops alone."""

import operator
from functools import reduce

import numba
import pytest
from numba.core import errors, event, types
from numba.core.compiler import run_frontend
from numba.core.ir import Inst
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.core.types.functions import BaseFunction

from isinglass.runtime.compilation import shortcuts as module
from isinglass.runtime.compilation.jit import compiled
from isinglass.runtime.compilation.shortcuts import shortcuts

NUMBERS = types.int64, types.uint8, types.float64, types.float32, types.complex128, types.boolean, types.literal(3)


def places():
    return [vars(owner)[name] for (owner, name), *_ in module._shortcuts()]


def compiled_anew(function):
    """Return a loop that is not looked for in a cache."""
    loop = compiled(function)
    loop._cache.load_overload = lambda *_: None
    return loop


def branching(x, y):
    total = 0.0
    for i in range(len(x)):
        if x[i] > y and x[i] != 3:
            total += max(x[i], y) * x[0 : i + 1].sum()
    return total, (x, y), [total]


def test_numba_is_as_before_afterwards():
    before = places()
    assert len(before) >= 5
    with shortcuts():
        assert all(here is not there for here, there in zip(before, places(), strict=True))
    assert all(here is there for here, there in zip(before, places(), strict=True))
    with pytest.raises(ZeroDivisionError), shortcuts():
        raise ZeroDivisionError
    assert all(here is there for here, there in zip(before, places(), strict=True))


def test_loops_of_others_are_compiled_without():
    before = places()
    seen = []

    @numba.extending.overload(branching)
    def _(x, y):
        seen.append(places())
        return lambda x, y: x + y

    numba.njit(lambda x: branching(x, x))(1)
    assert all(here is there for here, there in zip(before, seen[-1], strict=True))
    compiled_anew(lambda x: branching(x, x))(2.0)
    assert all(here is not there for here, there in zip(before, seen[-1], strict=True))


@pytest.mark.long
@pytest.mark.parametrize("operation", [operator.add, operator.truediv, operator.lt, operator.and_, operator.pow, max])
def test_types_are_those_of_the_long_way(operation):
    context = cpu_target.typing_context
    context.refresh()
    function = context.resolve_value_type(operation)
    for args in [(a, b) for a in NUMBERS for b in NUMBERS]:
        found = []
        for _ in range(2):
            with shortcuts():
                found.append(signature(function, context, args))
        found.append(signature(function, context, args))
        assert found[0] == found[1] == found[2]


def signature(function, context, args):
    """Return how a function is called, and what will be compiled for it."""
    try:
        found = function.get_call_type(context, args, {})
    except (errors.TypingError, NotImplementedError):
        return None
    key = function.get_impl_key(found)
    return found, key if key is function.typing_key else None


def test_variables_are_those_of_the_long_way():
    plain = vars(Inst)["_rec_list_vars"]
    lines = [line for block in run_frontend(branching).blocks.values() for line in block.body]
    with shortcuts():
        assert vars(Inst)["_rec_list_vars"] is not plain
        quick = [[v.name for v in line.list_vars()] for line in lines]
    assert quick == [[v.name for v in line.list_vars()] for line in lines]
    assert sum(map(len, quick)) > 20


def test_options_are_compared_by_what_they_say():
    flags = numba.core.compiler.Flags
    same, other = flags(), flags()
    other.nrt = flags().nrt  # set, to what it is by default
    different = flags()
    different.nrt = not flags().nrt
    for _ in range(2):
        assert same == other
        assert same != different
        assert other != different
        with shortcuts():
            assert TargetConfig.__eq__(same, other)
            assert not TargetConfig.__eq__(same, different)
            assert not TargetConfig.__eq__(other, different)


@pytest.mark.parametrize("kind", ["i8", "i64", "double", "double*", "{i8*, i64, {double, i1}}", "[3 x i32]"])
def test_sizes_are_those_of_the_long_way(kind):
    from llvmlite import ir

    i64, i32, i8, i1, double = (*map(ir.IntType, (64, 32, 8, 1)), ir.DoubleType())
    struct = ir.LiteralStructType
    made = {
        "i8": i8,
        "i64": i64,
        "double": double,
        "double*": double.as_pointer(),
        "{i8*, i64, {double, i1}}": struct([i8.as_pointer(), i64, struct([double, i1])]),
        "[3 x i32]": ir.ArrayType(i32, 3),
    }[kind]
    context = cpu_target.target_context
    with shortcuts():
        found = [context.get_abi_sizeof(made) for _ in range(2)]
    assert found == [context.get_abi_sizeof(made)] * 2


def test_functions_that_become_known_later_are_found():
    @numba.extending.intrinsic
    def seven(context):
        def generate(context, builder, signature, arguments):
            return context.get_constant(types.int64, 7)

        return types.int64(), generate

    assert compiled_anew(lambda: seven())() == 7


def test_functions_within_functions_are_found():
    def outer(x):
        def square(y):
            return y * y

        total = 0.0
        for i in range(3):
            total += square(x + i)
        return total + reduce(lambda a, b: a * b, (x, x, 2.0))

    assert compiled_anew(outer)(1.0) == 1 + 4 + 9 + 2


def test_events_that_somebody_may_wait_for_are_told():
    with event.install_recorder("numba:compile") as told, shortcuts():
        event.start_event("numba:compile", data={"dispatcher": None})
        event.end_event("numba:compile", data={"dispatcher": None})
    assert len(told.buffer) == 2


def test_an_error_in_a_loop_says_what_is_wrong():
    with pytest.raises(errors.TypingError, match="No implementation of function"):
        compiled_anew(lambda x: x + "a")(1)


def test_what_is_not_there_is_left_alone(monkeypatch):
    module._shortcuts.cache_clear()
    monkeypatch.delattr(BaseFunction, "get_call_type")
    assert all(name != "get_call_type" for (_, name), *_ in module._shortcuts())
    module._shortcuts.cache_clear()
