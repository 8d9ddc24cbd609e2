"""Addresses in flat arrays.

Numba counts negative indices from the end of an array, which costs a test at every access; an unsigned index has none.
``states`` is a tuple as long as every variable has states, a constant to the compiler, or () if they differ.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic

from isinglass.runtime.compilation.jit import inner


def _unsigned(_typing: Any, place: Any) -> Any:
    """Return an index that is known not to be negative; loops are full of them, and calls take time to compile."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.cast(builder, arguments[0], signature.args[0], types.uint64)

    return types.uint64(types.unliteral(place)), generate


ix: Any = intrinsic(_unsigned)


@inner
def card_of(i, cards, states):
    """Return the number of states of variable i."""
    return len(states) if len(states) > 0 else cards[ix(i)]


@inner
def first_of(i, first, states):
    """Return where the entries of variable (or edge) i start."""
    return i * len(states) if len(states) > 0 else first[ix(i)]
