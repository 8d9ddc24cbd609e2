"""Shortcuts through Numba: they lead where the long way leads, and are taken by the library's own loops alone."""

import operator
from functools import reduce

import numba
import pytest
from numba.core import errors, types
from numba.core.registry import cpu_target
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


def called(x, y):
    return x + y


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

    @numba.extending.overload(called)
    def _(x, y):
        seen.append(places())
        return lambda x, y: x + y

    numba.njit(lambda x: called(x, x))(1)
    assert all(here is there for here, there in zip(before, seen[-1], strict=True))
    compiled_anew(lambda x: called(x, x))(2.0)
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


def test_functions_that_become_known_later_and_those_within_functions_are_found():
    @numba.extending.intrinsic
    def seven(context):
        def generate(context, builder, signature, arguments):
            return context.get_constant(types.int64, 7)

        return types.int64(), generate

    def outer(x):
        def square(y):
            return y * y

        total = 0.0
        for i in range(3):
            total += square(x + i)
        return total + reduce(lambda a, b: a * b, (x, x, 2.0))

    assert compiled_anew(lambda: seven())() == 7
    assert compiled_anew(outer)(1.0) == 1 + 4 + 9 + 2


def test_an_error_in_a_loop_says_what_is_wrong():
    with pytest.raises(errors.TypingError, match="No implementation of function"):
        compiled_anew(lambda x: x + "a")(1)


def test_what_is_not_there_is_left_alone(monkeypatch):
    module._shortcuts.cache_clear()
    monkeypatch.delattr(BaseFunction, "get_call_type")
    assert all(name != "get_call_type" for (_, name), *_ in module._shortcuts())
    module._shortcuts.cache_clear()
