"""`functools.cached_property` without its lock, which Python 3.11 has and later versions do not.

That lock belongs to the class: threads that compute the property of different objects wait for each other. And a child
process, forked while another thread computes one, waits for ever.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):  # noqa: N801
        """A property that is computed once for each object; by two threads at once, if both ask first.

        Examples
        --------
        >>> class Circle:
        ...     @cached_property
        ...     def area(self):
        ...         print("now")
        ...         return 3.14
        >>> one = Circle()
        >>> one.area, one.area
        now
        (3.14, 3.14)
        """

        def __get__(self, owner, cls=None):
            if owner is None:
                return self
            held = owner.__dict__
            if self.attrname not in held:
                held[self.attrname] = self.func(owner)
            return held[self.attrname]
