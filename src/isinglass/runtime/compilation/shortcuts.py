"""Shortcuts through Numba's own Python code, which takes half of the time of compiling a loop.

They are taken while a loop of the library is compiled, and change nothing of what is compiled. Where a version of Numba
has no such place, there is no shortcut.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, reduce
from typing import Any

Function = Callable[..., Any]
Place = tuple[Any, str]  # an object, and the name of one of its attributes

_QUIET = "numba:llvm_lock", "numba:compiler_lock"  # events of which there are thousands, for timers that nobody reads


@contextmanager
def shortcuts() -> Iterator[None]:
    """Take all shortcuts."""
    try:
        for (owner, name), _, quicker in _shortcuts():
            setattr(owner, name, quicker)
        yield
    finally:
        for (owner, name), plain, _ in _shortcuts():
            setattr(owner, name, plain)


@cache
def _shortcuts() -> list[tuple[Place, Function, Function]]:
    """Return what is replaced, and by what."""
    found: list[tuple[Place, Function, Function]] = []
    for place, shortcut in (
        (_call_types, _known_call_type),
        (_variables, _variables_at_once),
        (_options, _same_options),
        (_context, _refresh_if_needed),
        (_sizes, _known_size),
        (_rewrites, _no_rewrites),
        (_lifetimes, _lifetimes_if_needed),
        (_closures, _no_closures),
        (_annotations, _no_annotations),
        (_starts, _without_quiet),
        (_ends, _without_quiet),
        (_colours, _without_colour),
    ):
        with suppress(ImportError, AttributeError, KeyError):
            owner, name = place()
            plain = vars(owner)[name]
            found.append(((owner, name), plain, shortcut(plain)))
    return found


def _call_types() -> Place:
    from numba.core.types.functions import BaseFunction

    return BaseFunction, "get_call_type"


def _known_call_type(plain: Function) -> Function:
    """Remember which types an operation that is built in returns; to find out, dozens of rules are tried in turn."""
    known: dict[Any, tuple[Any, Any]] = {}

    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        key = id(self), id(context), tuple(args), tuple(kws.items())
        if key in known:
            signature = known[key][1]
            self._impl_keys[signature.args] = self.typing_key
            return signature
        signature = plain(self, context, args, kws)
        if signature is not None and self._impl_keys.get(signature.args) is self.typing_key:
            known[key] = self, signature  # who is kept keeps its id
        return signature

    return get_call_type


def _variables() -> Place:
    from numba.core.ir import Inst

    return Inst, "_rec_list_vars"


def _variables_at_once(_: Function) -> Function:
    """List the variables of an instruction without a call for each of its other members."""
    from numba.core.ir import Inst, Loc, Var

    others = {str, int, float, bool, type(None), Loc}

    def variables(self: Any, value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = value.values()
        elif isinstance(value, Var):
            return [value]
        elif isinstance(value, Inst):
            return value.list_vars()  # type: ignore[no-any-return, no-untyped-call]
        elif not isinstance(value, list | tuple):
            return []
        found: list[Any] = []
        for one in value:
            if type(one) is Var:
                found.append(one)
            elif type(one) not in others:
                found += variables(self, one)
        return found

    return variables


def _options() -> Place:
    from numba.core.targetconfig import TargetConfig

    return TargetConfig, "__eq__"


def _same_options(plain: Function) -> Function:
    """Compare the options of two compilations by those that are set, if these are the same ones."""

    def same(self: Any, other: Any) -> Any:
        if type(self) is type(other) and self._values.keys() == other._values.keys():
            return self._values == other._values
        return plain(self, other)

    return same


def _context() -> Place:
    from numba.core.base import BaseContext

    return BaseContext, "refresh"


def _refresh_if_needed(plain: Function) -> Function:
    """Look for functions that became known meanwhile only if there are more of them."""
    seen: dict[int, int] = {}

    def refresh(self: Any) -> None:
        mine = id(self._registries)  # one for each target, as long as the process lives
        if seen.get(mine) != _registered(self):
            plain(self)
            seen[mine] = _registered(self)

    return refresh


def _registered(context: Any) -> int:
    """Count the functions that are known, to be called and to be compiled."""
    kinds = [*context._registries.items(), *context.typing_context._registries.items()]
    return sum(len(getattr(registry, item)) for registry, loader in kinds for item in loader.registry_items)


def _sizes() -> Place:
    from numba.core.base import BaseContext

    return BaseContext, "get_abi_sizeof"


def _known_size(plain: Function) -> Function:
    """Remember how many bytes a type takes, which LLVM is asked for by a text that it must read."""
    known: dict[tuple[int, str], int] = {}

    def size(self: Any, kind: Any) -> int:
        text = str(kind)
        if text.startswith("%"):  # its name, which does not say what it is
            return int(plain(self, kind))
        key = id(self.target_data), text
        if key not in known:
            known[key] = plain(self, kind)
        return known[key]

    return size


def _rewrites() -> Place:
    from numba.core.typed_passes import NopythonRewrites

    return NopythonRewrites, "run_pass"


def _no_rewrites(_: Function) -> Function:
    """Look for no expressions of whole arrays, nor indices that are text: loops that allocate nothing have none."""
    return lambda self, state: True


def _lifetimes() -> Place:
    from numba.core.postproc import PostProcessor

    return PostProcessor, "run"


def _lifetimes_if_needed(plain: Function) -> Function:
    """Find out how long variables live when somebody asks, which is once in the end, and not after each pass."""
    from numba.core.postproc import VariableLifetime
    from numba.core.transforms import canonicalize_cfg

    order: Function = canonicalize_cfg
    lifetime: Any = VariableLifetime

    def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
        code = self.func_ir
        if emit_dels or code.is_generator:
            plain(self, emit_dels, extend_lifetimes)
            return
        code.blocks = order(code.blocks)
        code.variable_lifetime = lifetime(code.blocks)
        code.generator_info = None

    return run


def _closures() -> Place:
    from numba.core.untyped_passes import InlineClosureLikes

    return InlineClosureLikes, "run_pass"


def _no_closures(plain: Function) -> Function:
    """Look for functions within functions only in code that makes functions or lists, or calls `functools.reduce`."""
    from numba.core import ir
    from numba.core.ir_utils import fixup_var_define_in_scope

    define: Function = fixup_var_define_in_scope

    def concerns(value: Any) -> bool:
        if isinstance(value, ir.Expr):
            return value.op in ("make_function", "build_list")
        return isinstance(value, ir.Global | ir.FreeVar) and value.value is reduce

    def run_pass(self: Any, state: Any) -> bool:
        blocks = state.func_ir.blocks
        if any(isinstance(line, ir.Assign) and concerns(line.value) for b in blocks.values() for line in b.body):
            return bool(plain(self, state))
        define(blocks)
        return True

    return run_pass


def _annotations() -> Place:
    from numba.core.typed_passes import AnnotateTypes

    return AnnotateTypes, "run_pass"


def _no_annotations(plain: Function) -> Function:
    """Keep no lines with types beside those of the source, for people, nor all the code that they are about."""
    from numba.core import config

    def run_pass(self: Any, state: Any) -> bool:
        if getattr(config, "ANNOTATE", 0) or getattr(config, "HTML", None):
            return bool(plain(self, state))
        state.type_annotation = ""
        return False

    return run_pass


def _starts() -> Place:
    from numba.core import event

    return event, "start_event"


def _ends() -> Place:
    from numba.core import event

    return event, "end_event"


def _without_quiet(plain: Function) -> Function:
    """Leave out events that nobody waits for."""

    def tell(kind: str, *arguments: Any, **named: Any) -> None:
        if kind not in _QUIET:
            plain(kind, *arguments, **named)

    return tell


def _colours() -> Place:
    from numba.core import errors

    return vars(errors)["HighlightColorScheme"], "_markup"  # where there is colorama


def _without_colour(_: Function) -> Function:
    """Write plain text: most messages are about rules that were tried, and are thrown away."""
    return lambda self, message, *_, **__: message
