"""Compiled code that only becomes a part of other code: no machine code is written for it.

Numba turns every function that it compiles into machine code, even where nothing can call it because callers get a copy
of it. That takes up to a quarter of the time of compiling. The library of a part ends before, and the cache keeps what
callers need: its intermediate code.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any


def library_of(codegen: Any, part: str | None) -> Callable[..., Any]:
    """Return how Numba's `codegen` makes a library for the code of a function; other than usual for that `part`."""
    usual = type(codegen).create_library

    def create_library(name: str, **options: Any) -> Any:
        return _part_library()(codegen, name) if name == part else usual(codegen, name, **options)

    return create_library


class _NoMachineCode:
    """Takes the place of Numba's `codegen` where machine code is told what belongs to it."""

    @staticmethod
    def set_env(*_: Any) -> None:
        """Do nothing: there is no machine code that could look for Python objects."""


@cache
def _part_library() -> Any:
    from numba.core.codegen import JITCodeLibrary

    base: Any = JITCodeLibrary

    class PartLibrary(base):  # type: ignore[misc]
        """A library that is copied into others, and has no address."""

        codegen = _NoMachineCode()

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, _: str) -> int:
            """Return what Numba takes for: no such function."""
            self._ensure_finalized()
            return 0

        def serialize_using_object_code(self) -> Any:
            """Return what the cache keeps."""
            return self.serialize_using_bitcode()

    return PartLibrary
