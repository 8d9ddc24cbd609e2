"""Run the cells of a script one after the other, and keep what each of them shows.

A cell shows what it prints, its warnings, the value of its last expression (as HTML where it has `_repr_html_`) and
the Matplotlib figures that are open at its end. A failure ends the script; its traceback is shown.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from gallery.script import Cell, Script

LARGEST_SVG = 150_000  # bytes; larger drawings become PNG
THUMBNAIL = (400, 280)  # pixels
STYLE: dict[str, Any] = {
    "figure.dpi": 100,
    "savefig.bbox": "tight",
    "savefig.facecolor": "white",
    "svg.hashsalt": "isinglass",
    "font.size": 10,
}


@dataclass(frozen=True)
class Output:
    """One thing that a cell shows: `kind` is "text", "html", "svg", "png" or "error"."""

    kind: str
    content: str | bytes


@dataclass(frozen=True)
class Run:
    """What the cells of a script show, a list for each; a small picture of each figure; and how long it took."""

    outputs: list[list[Output]]
    thumbnails: list[bytes]
    seconds: float
    failed: bool


def prepare_worker() -> None:
    """Import what all scripts use, so that the first of them is not charged for it; one thread for each process."""
    import matplotlib.pyplot  # noqa: F401, ICN001
    import pandas  # noqa: F401, ICN001
    import sklearn.model_selection  # noqa: F401
    from threadpoolctl import threadpool_limits

    import isinglass.viz

    threadpool_limits(1)
    assert isinglass.viz.draw  # loads it, and what it needs


def run_script(script: Script) -> Run:
    """Run a script in a namespace of its own."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    plt.close("all")
    mpl.rcdefaults()
    mpl.rcParams.update(STYLE)
    np.random.seed(0)
    module = ModuleType(f"gallery_{script.name}")
    sys.modules[module.__name__] = module  # where dataclasses and pickles look for classes of the script
    names = vars(module)
    outputs: list[list[Output]] = [[] for _ in script.cells]
    thumbnails: list[bytes] = []
    failed, began = False, time.process_time()
    for k, cell in enumerate(script.cells):
        outputs[k], failed = _run_cell(script, cell, names, thumbnails)
        if failed:
            break
    return Run(outputs, thumbnails, time.process_time() - began, failed)


def _run_cell(script: Script, cell: Cell, names: dict[str, Any], thumbnails: list[bytes]) -> tuple[list[Output], bool]:
    said, value, failed, problem = io.StringIO(), None, False, ""
    with contextlib.redirect_stdout(said), _warnings_to(said):
        try:
            value = _execute(cell, f"{script.name}.py", names)
        except Exception:
            failed, problem = True, _traceback(script)
    shown = [Output("text", said.getvalue().rstrip())] if said.getvalue().strip() else []
    shown += _displayed(value, thumbnails)
    return shown + ([Output("error", problem)] if failed else []), failed


def _execute(cell: Cell, filename: str, names: dict[str, Any]) -> Any:
    """Run the code of a cell and return the value of its last expression, if it ends with one."""
    source = "\n" * (cell.line - 1) + cell.code  # tracebacks have the lines of the script
    tree = ast.parse(source, filename)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, filename, "exec", dont_inherit=True), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), filename, "exec", dont_inherit=True), names)
    return eval(compile(ast.Expression(last.value), filename, "eval", dont_inherit=True), names)


@contextlib.contextmanager
def _warnings_to(stream: io.StringIO) -> Iterator[None]:
    """Print warnings where the cell prints, without file names, which differ between machines."""

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        stream.write(f"{category.__name__}: {message}\n")

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show
        yield


def _traceback(script: Script) -> str:
    """Return the traceback of what was raised, from the first line of the script on."""
    filename = f"{script.name}.py"
    linecache.cache[filename] = (len(script.source), None, script.source.splitlines(True), filename)
    found = traceback.TracebackException(*_raised(filename))
    return "".join(found.format()).rstrip()


def _raised(filename: str) -> tuple[Any, Any, Any]:
    kind, error, trace = sys.exc_info()
    inside = trace
    while inside is not None and inside.tb_frame.f_code.co_filename != filename:
        inside = inside.tb_next
    return kind, error, inside or trace


def _displayed(value: Any, thumbnails: list[bytes]) -> list[Output]:
    """Return the value of the last expression, then the open figures, which are closed."""
    from matplotlib import pyplot as plt
    from matplotlib.figure import Figure

    figures = [plt.figure(number) for number in plt.get_fignums()]
    if isinstance(value, Figure) and value not in figures:
        figures.append(value)
    shown = [] if value is None or _drawn(value) else [_value(value)]
    for figure in figures:
        shown.append(_picture(figure))
        thumbnails.append(_thumbnail(figure))
    plt.close("all")
    return shown


def _drawn(value: Any) -> bool:
    """Whether a value is a part of a figure, or a list with one (of `ax.set`), which nobody wants to see printed."""
    if isinstance(value, list | tuple) or type(value).__name__ == "ndarray":
        return any(_drawn(part) for part in value)
    return any(kind.__module__.startswith(("matplotlib.", "mpl_toolkits.")) for kind in type(value).__mro__)


def _value(value: Any) -> Output:
    html: Callable[[], str | None] | None = getattr(value, "_repr_html_", None)
    found = html() if html is not None and not isinstance(value, type) else None
    return Output("text", repr(value)) if found is None else Output("html", found)


def _picture(figure: Any) -> Output:
    """Return a figure as SVG, or as PNG where that would be large."""
    drawing = io.BytesIO()
    figure.savefig(drawing, format="svg", metadata={"Date": None})
    if len(drawing.getvalue()) <= LARGEST_SVG:
        return Output("svg", drawing.getvalue())
    drawing = io.BytesIO()
    figure.savefig(drawing, format="png", dpi=160, metadata={"Software": None})
    return Output("png", drawing.getvalue())


def _thumbnail(figure: Any) -> bytes:
    """Return a small picture of a figure, as PNG, at most as large as THUMBNAIL."""
    width, height = figure.get_size_inches()
    drawing = io.BytesIO()
    dpi = min(THUMBNAIL[0] / width, THUMBNAIL[1] / height)
    figure.savefig(drawing, format="png", dpi=dpi, metadata={"Software": None})
    return drawing.getvalue()
