"""How an optimisation went: objective and gradient norm against iterations, one line for each method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isinglass.errors import InputError, require
from isinglass.typing import FloatArray, JsonObject
from isinglass.validation import number, real_numbers
from isinglass.viz.pictures import figure_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_KEYS = {"objective": ("objective", "value", "values", "objectives"), "gradient": ("gradient_norm", "gradient_norms")}
_STYLES = ("-", "--", "-.", ":")


def convergence(
    histories: Mapping[str, object], *, reference: float | str | None = None, title: str = "", log: bool = True
) -> Figure:
    """Draw objective and gradient norm against the number of iterations.

    Parameters
    ----------
    histories : mapping from the name of a method to its history
        A history is a sequence of objectives; or a mapping, or an object with attributes, that has ``objective``
        and, if known, ``gradient_norm``, each a sequence; or a sequence of records that have them as numbers.
        ``value`` is understood as ``objective``.
    reference : float, "best" or None
        What is subtracted from every objective: a known minimum, or the lowest that any method has reached. The
        points that are not above it are left out of a logarithmic axis.
    title : str
    log : bool
        Logarithmic axes where all values are above 0.

    Returns
    -------
    matplotlib.figure.Figure
        With one axes, or with two if any history has gradient norms.

    Examples
    --------
    >>> runs = {"descent": [4.0, 2.0, 1.0], "newton": {"objective": [4.0, 0.5], "gradient_norm": [3.0, 1e-3]}}
    >>> figure = convergence(runs, reference="best")
    >>> [axes.get_ylabel() for axes in figure.axes]
    ['objective - lowest', 'gradient norm']
    """
    runs = _runs(histories)
    objectives, label = _shifted({name: columns["objective"] for name, columns in runs.items()}, reference)
    gradients = {name: columns["gradient"] for name, columns in runs.items() if len(columns["gradient"])}
    drawn = [(objectives, label)] + ([(gradients, "gradient norm")] if gradients else [])
    figure = figure_of((4.2 * len(drawn), 3.0))
    looks = {name: _look(i) for i, name in enumerate(runs)}
    for axes, (curves, text) in zip(figure.subplots(1, len(drawn), squeeze=False)[0], drawn, strict=True):
        _curves(axes, curves, text, looks, log)
    return _titled(figure, title)


def lines(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    xlabel: str = "",
    ylabel: str = "",
    *,
    title: str = "",
    log: bool = False,
) -> Figure:
    """Draw named lines.

    Parameters
    ----------
    curves : mapping from a name to places and heights
    xlabel, ylabel, title : str
    log : bool
        Logarithmic axes.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> lines({"squares": ([1, 2, 3], [1, 4, 9])}, "n", "n²").axes[0].get_xlabel()
    'n'
    """
    if not isinstance(curves, Mapping) or not curves:
        raise InputError("curves", "a mapping from a name to places and heights", repr(curves)[:80])
    figure = figure_of((4.2, 3.0))
    axes = figure.subplots()
    for i, (name, (places, heights)) in enumerate(curves.items()):
        argument = f"curves[{name!r}]"
        x, y = _numbers(places, argument), _numbers(heights, argument)
        require(len(x) == len(y), argument, "as many places as heights", f"{len(x)} and {len(y)}")
        axes.plot(x, y, label=str(name), marker=".", **_look(i))
    if log:
        axes.set_xscale("log")
        axes.set_yscale("log")
    _dress(axes, xlabel, ylabel)
    return _titled(figure, title)


def _titled(figure: Figure, title: str) -> Figure:
    """Add the legend, and the title if there is one."""
    figure.axes[0].legend(fontsize=8, frameon=False)
    if title:
        figure.suptitle(title, fontsize=10)
    return figure


def _runs(histories: Mapping[str, object]) -> dict[str, dict[str, FloatArray]]:
    if not isinstance(histories, Mapping) or not histories:
        raise InputError("histories", "a mapping from the name of a method to its history", repr(histories)[:80])
    return {str(name): _columns(history, f"histories[{name!r}]") for name, history in histories.items()}


def _columns(history: object, argument: str) -> dict[str, FloatArray]:
    """Return the objectives, and the gradient norms or nothing, of a history in any of its forms."""
    found = {what: _entry(history, keys) for what, keys in _KEYS.items()}
    if found["objective"] is None and isinstance(history, Sequence | np.ndarray):
        records = [{what: _entry(item, keys) for what, keys in _KEYS.items()} for item in history]
        if records and all(record["objective"] is not None for record in records):
            found = {what: [record[what] for record in records] for what in _KEYS}
            found["gradient"] = None if None in found["gradient"] else found["gradient"]
        else:
            found["objective"] = history
    if found["objective"] is None:
        raise InputError(argument, "objectives, or something with 'objective'", type(history).__name__)
    gradient = [] if found["gradient"] is None else found["gradient"]
    return {"objective": _numbers(found["objective"], argument), "gradient": _numbers(gradient, argument)}


def _entry(history: object, keys: Sequence[str]) -> Any:
    """Return the first entry, or attribute, of these names; None if there is none."""
    for key in keys:
        value = history.get(key) if isinstance(history, Mapping) else getattr(history, key, None)
        if value is not None and not callable(value):
            return value
    return None


def _numbers(values: object, argument: str) -> FloatArray:
    array = real_numbers(values, argument, "a sequence of real numbers")
    require(array.ndim == 1, argument, "a sequence of real numbers", f"shape {array.shape}")
    return array


def _shifted(objectives: dict[str, FloatArray], reference: float | str | None) -> tuple[dict[str, FloatArray], str]:
    """Subtract the reference; return the label of the axis, too."""
    if reference is None:
        return objectives, "objective"
    if reference == "best":
        values = np.concatenate(list(objectives.values()))
        finite = values[np.isfinite(values)]
        lowest = float(finite.min()) if finite.size else 0.0
        return {name: curve - lowest for name, curve in objectives.items()}, "objective - lowest"
    require(not isinstance(reference, str), "reference", "a number, 'best' or None", repr(reference))
    level = number(reference, "reference", -np.inf, np.inf)
    return {name: curve - level for name, curve in objectives.items()}, f"objective - {level:g}"


def _look(i: int) -> JsonObject:
    return {"color": f"C{i % 10}", "linestyle": _STYLES[i // 10 % len(_STYLES)], "linewidth": 1.3}


def _curves(axes: Axes, curves: dict[str, FloatArray], text: str, looks: dict[str, JsonObject], log: bool) -> None:
    """Draw the curves; a logarithmic axis leaves out what is not above 0, unless that is the objective itself."""
    values = np.concatenate([curve[np.isfinite(curve)] for curve in curves.values()])
    above = values[values > 0]
    logarithmic = log and above.size > 0 and (above.size == values.size or text != "objective")
    for name, curve in curves.items():
        visible = np.where(np.isfinite(curve) & ((curve > 0) | (not logarithmic)), curve, np.nan)
        axes.plot(np.arange(len(curve)), visible, label=name, **looks[name])
    if logarithmic:
        axes.set_yscale("log")
    _dress(axes, "iteration", text)


def _dress(axes: Axes, across: str, upwards: str) -> None:
    axes.set_xlabel(across, fontsize=9)
    axes.set_ylabel(upwards, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(True, which="major", color="0.9", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
