"""Compiled code that other compiled code uses, without work that is done twice.

Numba turns every function that it compiles into machine code, and copies it into each of its callers, where it is
optimised, and turned into machine code, once more. For most functions one of the two is enough:

    a part       becomes a part of its callers: no machine code is written for it. The cache keeps what callers need,
                 its intermediate code.
    code apart   is machine code that callers call: they do not get a copy. On disk every loop carries the machine code
                 of all that it calls, so that a file of the cache depends on no other one, whoever wrote it.
    prepared     is code apart that is optimised twice: LLVM prepares a function for machine code in place, and some
                 short loops are quicker if they are optimised again after that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

Kind = Literal["whole", "part", "apart", "prepared"]

_FORMAT = "with code apart"


class Apart(NamedTuple):
    """Machine code that others call: the name of its library, the symbols that it defines, the code."""

    name: str
    symbols: tuple[str, ...]
    code: bytes


def library_of(codegen: Any, kind: Kind, function: str) -> Callable[..., Any]:
    """Return how Numba's `codegen` makes a library for the code of a function; other than usual for that `function`."""
    usual = type(codegen).create_library

    def create_library(name: str, **options: Any) -> Any:
        return _libraries()[kind](codegen, name) if name == function else usual(codegen, name, **options)

    return create_library


def unserialize(codegen: Any, state: Any) -> Any:
    """Load a library from the cache, after the code apart that it calls."""
    usual = type(codegen).unserialize_library
    if state[1] != _FORMAT:
        return usual(codegen, state)
    plain, needs, own = state[2]
    for key, one in needs.items():
        if key != own:
            _load(codegen, one)
    library = usual(codegen, plain)
    library.needs, library.own = needs, own
    if own is not None:
        codegen._engine._defined_symbols.update(needs[own].symbols)
    return library


def _load(codegen: Any, one: Apart) -> None:
    """Make machine code known to the process, unless it is."""
    if all(map(codegen._engine.is_symbol_defined, one.symbols)):
        return
    library = type(codegen).create_library(codegen, one.name)
    library.enable_object_caching()
    library._set_compiled_object(one.code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.update(one.symbols)


class _NoMachineCode:
    """Takes the place of Numba's `codegen` where machine code is told what belongs to it."""

    @staticmethod
    def set_env(*_: Any) -> None:
        """Do nothing: there is no machine code that could look for Python objects."""


@cache
def _libraries() -> dict[Kind, Any]:
    from llvmlite import binding
    from numba.core.codegen import JITCodeLibrary

    base: Any = JITCodeLibrary

    class Library(base):  # type: ignore[misc]
        """A library that knows the code apart that is called from it, at any depth, and its own if that is apart."""

        def __init__(self, codegen: Any, name: str) -> None:
            super().__init__(codegen, name)
            self.needs: dict[str, Apart] = {}
            self.own: str | None = None

        def add_linking_library(self, library: Any) -> None:
            """Note what another library needs."""
            super().add_linking_library(library)
            self.needs.update(getattr(library, "needs", {}))

        def serialize_using_object_code(self) -> Any:
            """Return what the cache keeps."""
            plain = self._plain()
            return (self.name, _FORMAT, (plain, self.needs, self.own)) if self.needs else plain

        def _plain(self) -> Any:
            return super().serialize_using_object_code()

    class PartLibrary(Library):
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

        def _plain(self) -> Any:
            return self.serialize_using_bitcode()

    class ApartLibrary(Library):
        """A library of which others get declarations alone."""

        def _finalize_final_module(self) -> None:
            own = [f for f in self._final_module.functions if not f.is_declaration]
            for function in own:
                if function.linkage == binding.Linkage.external:
                    function.linkage = "weak_odr"  # the same may come once more, with a caller from the cache
            super()._finalize_final_module()
            if own:  # it was compiled here
                names = tuple(f.name for f in own if f.linkage == binding.Linkage.weak_odr)
                self.own = names[0]
                self.needs[self.own] = Apart(self.name, names, self._get_compiled_object())

        def _get_module_for_linking(self) -> Any:
            """Return an empty module; what calls the functions declares them."""
            return binding.parse_assembly(str(self._codegen._create_empty_module(self.name)))

    class PreparedLibrary(ApartLibrary):
        """The same, quicker."""

        def _optimize_final_module(self) -> None:
            super()._optimize_final_module()
            self._codegen._tm.emit_object(self._final_module)
            super()._optimize_final_module()

    return {"whole": Library, "part": PartLibrary, "apart": ApartLibrary, "prepared": PreparedLibrary}
