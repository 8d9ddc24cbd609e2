"""No search for garbage while millions of objects are made that all stay.

Python looks for cycles among all lists and tuples whenever their number has grown by a quarter. Where text becomes
lists of lists of strings, that takes as long as the rest.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collection() -> Iterator[None]:
    """Meanwhile, collect no garbage; not for what may compile loops, which look whether it is on."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
