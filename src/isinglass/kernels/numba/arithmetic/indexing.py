"""Addresses in flat arrays.

Numba counts negative indices from the end of an array, which costs a test at every access; an unsigned index has none.
``states`` is a tuple as long as every variable has states, a constant to the compiler, or () if they differ.
"""

from __future__ import annotations

import numpy as np

from isinglass.runtime.jit import inner


@inner
def ix(place):
    """Return an index that is known not to be negative."""
    return np.uint64(place)


@inner
def card_of(i, cards, states):
    """Return the number of states of variable i."""
    return len(states) if len(states) > 0 else cards[ix(i)]


@inner
def first_of(i, first, states):
    """Return where the entries of variable (or edge) i start."""
    return i * len(states) if len(states) > 0 else first[ix(i)]
