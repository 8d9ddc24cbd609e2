"""One way to compile an inner loop: Numba with a cache on disk and plain IEEE arithmetic.

No fast-math: a sum is the same to the last bit however a loop was compiled, and a hard zero's -inf keeps its meaning.

No loop that Python calls returns arrays, or tuples with names, or takes a random generator: to turn these into objects
and back, Numba runs Python code that it does not expect to fail. A Ctrl-C that came while the loop ran is heard in this
code, and raises KeyboardInterrupt there: a SystemError or a segmentation fault. So loops fill arrays of their callers
and return numbers; as none of them allocates, none needs Numba's reference counts either.

Only modules that hold inner loops import this one, and they are imported when first needed, so that
``import isinglass`` neither waits for Numba nor needs it.

Where the cache lies is Numba's choice: NUMBA_CACHE_DIR, else ``__pycache__`` beside the source, else the user's cache
folder, the first of these that can be written. Where none can, every process compiles anew. Off the first two, a
`CacheWarning` says so when something is really compiled, once in a process. A cached loop is taken only while its
source, the sources of the loops it calls and this file are unchanged (Numba by itself looks at the first only).
"""

from __future__ import annotations

import gc
import hashlib
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from glob import escape
from pathlib import Path
from typing import Any, Literal

from isinglass.errors import CacheWarning, MissingDependencyError
from isinglass.runtime.compilation import parts
from isinglass.runtime.compilation.shortcuts import shortcuts
from isinglass.runtime.compilation.turns import turn
from isinglass.runtime.interrupts import not_lost

Function = Callable[..., Any]
Passes = Literal["full", "joined", "light"]

PATIENCE = 2.0  # seconds of compilation without a word
LINE = "isinglass: compiling inner loops, once on this machine; later runs load them"

_NO_ENTRY = {"no_cpython_wrapper": True}  # for functions that loops call
_KERNELS: list[Any] = []
_under_way: list[None] = []  # one for a loop that is compiled or loaded, and for each part within


class Count:
    """Loops of this process: those that it compiled, and all that it got ready, compiled or loaded; without parts.

    Also the seconds of compilation, and whether the line about them was said.
    """

    compiled = ready = 0
    seconds, announced = 0.0, False


def compiled(function: Function) -> Function:
    """Compile a loop; later processes find it in the cache.

    It allocates no arrays, and runs without Numba's reference counts, whose atomic operations at every call would take
    most of the time.
    """
    return _jit(function)


def unrolled(function: Function) -> Function:
    """Compile a loop as `compiled` does, whose steps are written out for several numbers: they become vectors.

    That is LLVM's pass for straight-line code, which Numba leaves out by default. It changes no result.
    """
    return _jit(function, "joined")


def inner(function: Function) -> Function:
    """Compile a loop into the compiled ones that call it: no entry from Python, no call with dozens of arguments.

    By itself it is not optimised: that is done once, together with the loop that it becomes a part of.
    """
    return _jit(function, "light", "part", **_NO_ENTRY, forceinline=True)


def cold(function: Function) -> Function:
    """Compile a function that others call, but seldom."""
    return _jit(function, "full", "part", **_NO_ENTRY)


def apart(function: Function) -> Function:
    """Compile a function that others call and do not get a copy of: it is compiled once, however deep the calls are.

    Worth it for what is long, or has several callers. It must not raise errors: these would need Python objects, which
    are kept for the loops that Python calls alone.
    """
    return _jit(function, "full", "apart", **_NO_ENTRY)


def prepared(function: Function) -> Function:
    """Compile a short loop as `apart` does, in twice the time: loops that copy or turn planes are quicker then."""
    return _jit(function, "full", "prepared", **_NO_ENTRY)


def unrolled_apart(function: Function) -> Function:
    """Compile a loop whose steps are written out, as `unrolled` and `apart` do."""
    return _jit(function, "joined", "apart", **_NO_ENTRY)


def relay(function: Function) -> Function:
    """Compile a function that others call and that has no loops to speak of: it calls `cold` ones, or hardly ever runs.

    Numba optimises what a loop calls once more, at every level of calls. So this is optimised with its caller only, and
    deep calls take half the time to compile. Loops of its own might not become vectors.
    """
    return _jit(function, "light", "whole", **_NO_ENTRY)


def require_numba() -> Any:
    """Return Numba; say how to get it, where it is not installed."""
    try:
        import numba
    except ImportError as error:
        raise MissingDependencyError(
            "this calculation needs Numba, which is not installed: pip install numba"
        ) from error
    return numba


def kernels() -> tuple[Any, ...]:
    """Return the Numba dispatchers of all inner loops that were imported so far."""
    return tuple(_KERNELS)


def cache_folders() -> list[Path]:
    """Return the folders that hold the compiled loops imported so far; none where nothing can be written."""
    return sorted({Path(k.stats.cache_path) for k in _KERNELS if k.stats.cache_path is not None})


def _jit(function: Function, passes: Passes = "full", kind: parts.Kind = "whole", **options: bool) -> Function:
    njit: Any = require_numba().njit
    kernel = njit(error_model="numpy", nogil=True, _nrt=False, no_cfunc_wrapper=True, **options)(function)
    kernel.compile = partial(_compile, kernel.compile, kernel, passes, kind)
    kernel.get_call_template = partial(_for_any_number, kernel.get_call_template)
    if _has_cache(kernel):
        file = kernel._cache._cache_file
        file._source_stamp = (file._source_stamp, _stamp(function.__module__))
        file.save = partial(_save, file)
        file._load_index = partial(_known, file._load_index)
        kernel._cache.load_overload = partial(_load, kernel._cache)
    if not _KERNELS:
        _announce_first_compilation()
    _KERNELS.append(kernel)
    return kernel  # type: ignore[no-any-return]


def _for_any_number(find: Function, arguments: Any, named: Any) -> Any:
    """Find the compiled code for a call in another loop: the same whether a number is written there or computed.

    Numba would compile what is called once more for each number, or truth value, that is written out.
    """
    from numba.core import types

    unliteral: Any = types.unliteral

    def plain(kind: Any) -> Any:
        return unliteral(kind) if isinstance(kind, types.IntegerLiteral | types.BooleanLiteral) else kind

    return find(tuple(map(plain, arguments)), {name: plain(kind) for name, kind in named.items()})


def _compile(compile_plainly: Function, kernel: Any, passes: Passes, kind: parts.Kind, signature: Any) -> Any:
    """Compile with the passes of LLVM that a loop wants; those that it calls are compiled meanwhile, with their own."""
    import numba
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.registry import cpu_target

    config: Any = numba.config
    with global_compiler_lock, _counted(kernel), _undisturbed(kernel, signature):  # no other thread compiles meanwhile
        codegen: Any = cpu_target.target_context.codegen()
        full = type(codegen)._module_pass_manager
        changed = "_module_pass_manager", "create_library", "unserialize_library"
        before, joined = {name: getattr(codegen, name) for name in changed}, config.SLP_VECTORIZE
        try:
            codegen._module_pass_manager = partial(_passes_for(passes, signature, full), codegen)
            codegen.create_library = parts.library_of(codegen, kind, kernel.__qualname__)
            codegen.unserialize_library = partial(parts.unserialize, codegen)
            config.SLP_VECTORIZE = int(passes == "joined")
            return compile_plainly(signature)
        finally:
            vars(codegen).update(before)
            config.SLP_VECTORIZE = joined


@contextmanager
def _counted(kernel: Any) -> Iterator[None]:
    """Count a loop that is compiled or loaded, but not its parts, nor one that another thread has got ready."""
    before = len(kernel.overloads)
    _under_way.append(None)
    try:
        yield
        Count.ready += len(_under_way) == 1 and len(kernel.overloads) > before
    finally:
        _under_way.pop()


@contextmanager
def _undisturbed(kernel: Any, signature: Any) -> Iterator[None]:
    """Wait for processes that compile the same loop into the same cache; collect no garbage, as Numba makes hardly any.

    Only for the loop that Python calls: those that it calls in turn are its parts.
    """
    if not gc.isenabled():  # this is a part, or the user has no collection at all
        yield
        return
    folder, name = kernel.stats.cache_path, f"{kernel.__qualname__}{signature}"
    gc.disable()
    try:
        with not_lost(), nullcontext() if folder is None else turn(folder, name), shortcuts():
            yield
    finally:
        gc.enable()


def _passes_for(passes: Passes, signature: Any, full: Function) -> Function:
    """Return what makes the passes of LLVM.

    Complex numbers have few: vectors of them gain nothing, and the loops are quicker without (flooding 1.5 times).
    """
    if passes == "light":
        return _light_passes
    is_complex = "complex" in str(signature)
    return partial(full, opt=1, loop_vectorize=False, slp_vectorize=False) if is_complex else full


def _light_passes(codegen: Any, **options: Any) -> Any:
    """Return the passes that Numba runs first, which inline, and remove what is not used; none for those that follow.

    The first ones are asked for with options.
    """
    plain = {"loop_vectorize": False, "slp_vectorize": False, "opt": 0}
    if options or not hasattr(codegen, "_pass_builder"):  # as in older versions of Numba
        return type(codegen)._module_pass_manager(codegen, **plain, cost="cheap")
    from llvmlite.binding import create_new_module_pass_manager

    return create_new_module_pass_manager(), codegen._pass_builder(**plain)


def _has_cache(kernel: Any) -> bool:
    """Turn the cache on; False where no folder can be written."""
    try:
        kernel.enable_caching()
    except RuntimeError:  # Numba found no place for the file
        return False
    return True


def _known(load: Callable[[], dict[Any, str]]) -> dict[Any, str]:
    """Return what an index points to; nothing if it is damaged, or names types that have moved since."""
    try:
        return load()
    except Exception:  # unpickling may raise anything
        return {}


def _load(cache: Any, signature: Any, target: Any) -> Any:
    """Load a compiled loop, or None.

    Numba would first import all that it can compile, which takes half a second, in each process. That is needed where
    nothing is found, and done there. Machine code needs the functions of Numba's runtime alone.
    """
    from numba.core.runtime.nrt import rtsys

    runtime: Any = rtsys
    runtime.initialize(target)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, target)


def _save(file: Any, key: Any, data: Any) -> None:
    """Keep a compiled loop: its file, named after source and types, before the index that points to it.

    Numba counts its files from one, and writes the index first. Of two processes that compile at the same time, one
    could then find what the other had compiled from other types, or from a source that has changed since.
    """
    base = file._index_name.removesuffix(".nbi")
    name = f"{base}.{hashlib.sha256(repr((file._source_stamp, key)).encode()).hexdigest()[:16]}.nbc"
    file._save_data(name, data)
    known = file._load_index()
    if not known:  # what is left was compiled from another source
        for path in Path(file._cache_path).glob(f"{escape(base)}.*.nbc"):
            if path.name != name:
                path.unlink(missing_ok=True)
    file._save_index({**known, key: name})


@cache
def _stamp(module: str) -> bytes:
    """Hash the source of a module, of the modules with loops that it imports, and of those that compile."""
    source = _source(module)
    used = re.findall(rb"^from (isinglass\.kernels[\w.]*) import", source, re.MULTILINE)
    read = [source, *map(_source, (__name__, parts.__name__)), *(_stamp(name.decode()) for name in used)]
    return hashlib.sha256(b"".join(hashlib.sha256(text).digest() for text in read)).digest()


def _source(module: str) -> bytes:
    """Read a module's file; nothing for what was typed in or lies in an archive."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file).read_bytes() if file is not None and Path(file).is_file() else b""


def _announce_first_compilation() -> None:
    """Say, when the first loop is compiled and not loaded, where it goes if that is not beside the source.

    Count this loop and all further ones, and the seconds that they take.
    """
    from numba.core import event

    class Listener(event.Listener):
        began = 0.0

        def on_start(self, happened: Any) -> None:
            kernel = happened.data["dispatcher"]
            if kernel not in _KERNELS or len(_under_way) > 1:  # a part of another one
                return
            if Count.compiled == 0:
                _say_where(kernel)
            Count.compiled += 1
            self.began = time.monotonic()

        def on_end(self, happened: Any) -> None:
            if happened.data["dispatcher"] in _KERNELS and len(_under_way) == 1:
                _announce_compiling(time.monotonic() - self.began)

    register: Any = event.register
    register("numba:compile", Listener())


def _announce_compiling(seconds: float) -> None:
    """Say one line on stderr after some seconds of compilation, where somebody looks: a terminal, a notebook."""
    Count.seconds += seconds
    watched = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
    if Count.seconds > PATIENCE and watched and not Count.announced:
        Count.announced = True
        print(LINE, file=sys.stderr, flush=True)


def _say_where(kernel: Any) -> None:
    import numba

    config: Any = numba.config
    code, folder = kernel.py_func.__code__, kernel.stats.cache_path
    beside = Path(code.co_filename).parent / "__pycache__"
    if folder is not None and (Path(folder) == beside or config.CACHE_DIR):
        return
    if folder is None:
        text = f"compiled anew in every process: neither {beside} nor the user's cache folder can be written"
        remedy = "set NUMBA_CACHE_DIR to a folder that can"
    else:
        text = f"compiled once, into {folder}, because {beside} cannot be written"
        remedy = "set NUMBA_CACHE_DIR to keep them elsewhere"
    warnings.warn_explicit(f"inner loops are {text}; {remedy}", CacheWarning, code.co_filename, code.co_firstlineno)
