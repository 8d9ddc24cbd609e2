"""The page of a trace: a slider through the iterations, and at each the beliefs, and the messages that changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.grids import grid_shape
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.graph.names import variable_keys
from isinglass.pages import Part, Pictures, Steps, Table
from isinglass.pages import page_of as html_page
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from isinglass.inference.tracing.trace import Trace

MOST_VARIABLES = 300
MOST_ROWS = 24  # variables, and messages, in a table


def page_of(trace: Trace, ends: tuple[IntArray, IntArray]) -> str:
    """Return the page of a trace; `ends` are the factor and the variable of each message."""
    graph = trace.potentials.graph
    if graph.n_variables > MOST_VARIABLES:
        raise InputError("potentials", f"at most {MOST_VARIABLES} variables on a page", f"{graph.n_variables}")
    steps = range(trace.iterations + 1)
    contents = [[*_picture(trace, t), _beliefs(trace, t), *_messages(trace, t, ends)] for t in steps]
    rows = [[t, trace.residuals[t - 1] if t else None, f"{trace.log_z[t]:.6g}"] for t in steps]
    title = f"{trace.algorithm}: {trace.iterations} iterations, step by step"
    shown = Steps("iteration", [_said(trace, t) for t in steps], contents)
    return html_page(title, [("", [shown]), ("All iterations", [Table(["iteration", "residual", "log Z"], rows)])])


def _said(trace: Trace, t: int) -> str:
    residual = f" · residual {trace.residuals[t - 1]:.3g}" if t else " · start"
    return f"iteration {t} of {trace.iterations}{residual} · log Z {trace.log_z[t]:.6g}"


def _picture(trace: Trace, t: int) -> list[Part]:
    """Return the beliefs as a picture, where the variables are a grid and have as many states each."""
    graph, cards = trace.potentials.graph, trace.potentials.graph.cards
    shape = grid_shape(graph) if graph.n_components == 1 else None
    if shape is None or min(shape) == 1 or (cards != cards[0]).any():
        return []
    beliefs = trace.beliefs[t].reshape(1, *shape, int(cards[0]))
    return [Pictures([("P(state 1)", beliefs[..., 1])] if cards[0] == 2 else [("beliefs, pale where unsure", beliefs)])]


def _beliefs(trace: Trace, t: int) -> Table:
    first, keys = first_states(trace.potentials.graph), variable_keys(trace.potentials.graph)
    rows = [
        [_name(key), _values(trace, i, trace.beliefs[t, first[i] : first[i + 1]])]
        for i, key in enumerate(keys[:MOST_ROWS])
    ]
    return Table(["variable", "belief"], rows)


def _messages(trace: Trace, t: int, ends: tuple[IntArray, IntArray]) -> list[Table]:
    """Return the messages that changed most in an iteration."""
    if trace.messages is None or not t or not len(ends[0]):
        return []
    graph = trace.potentials.graph
    starts, keys = edges_of(graph).start, variable_keys(graph)
    change = np.maximum.reduceat(np.abs(trace.messages[t] - trace.messages[t - 1]), starts[:-1])
    rows = []
    for e in np.argsort(-change, kind="stable")[:MOST_ROWS].tolist():
        if change[e] > 1e-6:
            i = int(ends[1][e])
            values = _values(trace, i, trace.messages[t, starts[e] : starts[e + 1]])
            rows.append([f"factor {ends[0][e]} to {_name(keys[i])}", values, change[e]])
    return [Table(["message", "values", "change"], rows)]


def _name(key: object) -> str:
    return " ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _values(trace: Trace, i: int, values: FloatArray) -> str:
    """Return the values of the states of a variable, with the names of the states if they have some."""
    names = trace.potentials.graph.names
    states = [""] * len(values) if names is None else names.state_names(i, len(values))
    return ", ".join(f"{state} {value:.3f}".strip() for state, value in zip(states, values.tolist(), strict=True))
