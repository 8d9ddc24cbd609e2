"""The page of a trace: a drawing for each iteration, a slider, the residuals, and the beliefs in numbers."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from isinglass.errors import InputError
from isinglass.graph.drawing.positions import positions
from isinglass.graph.drawing.scene import RADIUS, scene
from isinglass.graph.drawing.svg import svg_of
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.graph.names import variable_keys
from isinglass.pages import Lines, Note, Steps, Table
from isinglass.pages import page_of as html_page
from isinglass.pages.part import framed
from isinglass.pages.steps import at_step
from isinglass.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from isinglass.inference.tracing.trace import Trace

STEP = 105.0  # pixels between neighbours
MOST_VARIABLES = 300
MOST_ROWS = 24  # variables in the table
CHANGED = "#e8820c"

_NOTE = """Circles are beliefs, squares are factors. Arrows are messages into variables: orange where they changed in
this iteration, the stronger the more. Hover over a circle or an arrow for its numbers."""


def page_of(trace: Trace, ends: tuple[IntArray, IntArray]) -> str:
    """Return the page of a trace; `ends` are the factor and the variable of each message."""
    graph = trace.potentials.graph
    if graph.n_variables > MOST_VARIABLES:
        raise InputError("potentials", f"at most {MOST_VARIABLES} variables on a page", f"{graph.n_variables}")
    steps = range(trace.iterations + 1)
    curve = {"residual": (range(1, trace.iterations + 1), trace.residuals.tolist())}
    residuals = Lines(curve, "iteration", "residual", "How far it has come", log_y=True, steps="residual")
    beliefs = framed("Beliefs", "".join(at_step(t, _table(trace, t).html()) for t in steps))
    shown = Steps(
        "iteration",
        [_said(trace, t) for t in steps],
        [_frame(trace, t, ends) for t in steps],
        f'{Note(_NOTE).html()}<div class="figures">{residuals.html()}{beliefs}</div>',
    )
    return html_page(f"{trace.algorithm}: {trace.iterations} iterations, step by step", [("", [shown])])


def _said(trace: Trace, t: int) -> str:
    residual = f" · residual {trace.residuals[t - 1]:.3g}" if t else " · start"
    return f"iteration {t} of {trace.iterations}{residual} · log Z {trace.log_z[t]:.6g}"


def _frame(trace: Trace, t: int, ends: tuple[IntArray, IntArray]) -> str:
    p = trace.potentials
    first = first_states(p.graph)
    beliefs = [trace.beliefs[t, first[i] : first[i + 1]] for i in range(p.graph.n_variables)]
    drawn = scene(p.graph, None, beliefs, list(p.evidence))
    return svg_of(drawn, _arrows(trace, t, ends), STEP)


def _arrows(trace: Trace, t: int, ends: tuple[IntArray, IntArray]) -> list[str]:
    """Return the arrows of messages."""
    if trace.messages is None:
        return []
    graph, places = trace.potentials.graph, positions(trace.potentials.graph)
    starts = edges_of(graph).start
    change = np.abs(np.diff(trace.messages, axis=0))
    most = np.maximum.reduceat(change, starts[:-1], axis=1) if len(starts) > 1 else np.zeros((trace.iterations, 0))
    largest = float(most.max(initial=0.0)) or 1.0
    moved = most[t - 1] / largest if t else np.zeros(len(ends[0]))
    keys, found = variable_keys(graph), []
    for e, (a, i) in enumerate(zip(*(end.tolist() for end in ends), strict=True)):
        message = trace.messages[t, starts[e] : starts[e + 1]]
        tip = f"factor {a} to {keys[i]}: " + ", ".join(f"{m:.3f}" for m in message.tolist())
        others = [j for j in graph.scopes[a] if j != i]
        start, gap = (places.variables[others[0]], RADIUS) if len(others) == 1 else (places.factors[a], 0.1)
        found.append(_arrow(start, places.variables[i], gap, float(moved[e]), tip))
    return found


def _arrow(start: FloatArray, end: FloatArray, gap: float, moved: float, tip: str) -> str:
    """Return an arrow to a variable, beside the line between the two, that leaves a gap at its start."""
    along = end - start
    length = float(np.hypot(*along)) or 1.0
    unit = along / length
    side = np.array([-unit[1], unit[0]])
    tail, head = start + (gap + 0.03) * unit + 0.09 * side, end - (RADIUS + 0.03) * unit + 0.09 * side
    wings = [head - 0.11 * unit + s * 0.06 * side for s in (1, -1)]
    if moved > 1e-6:
        look = f'stroke="{CHANGED}" fill="{CHANGED}" stroke-width="{0.02 + 0.03 * moved**0.5:.3f}" opacity="{0.45 + 0.55 * moved**0.5:.2f}"'  # fmt: skip  # noqa: E501
    else:
        look = 'stroke="#8a8f98" fill="#8a8f98" stroke-width="0.012" opacity="0.6"'
    points = " ".join(f"{x:.3f},{y:.3f}" for x, y in (head, *wings))
    shaft = f'<line x1="{tail[0]:.3f}" y1="{tail[1]:.3f}" x2="{head[0]:.3f}" y2="{head[1]:.3f}"/>'
    return f'<g {look}><title>{escape(tip)}</title>{shaft}<polygon points="{points}" stroke="none"/></g>'


def _table(trace: Trace, t: int) -> Table:
    graph = trace.potentials.graph
    first, keys = first_states(graph), variable_keys(graph)
    rows = []
    for i, key in enumerate(keys[:MOST_ROWS]):
        belief = trace.beliefs[t, first[i] : first[i + 1]].tolist()
        states = ["" for _ in belief] if graph.names is None else graph.names.state_names(i, len(belief))
        values = ", ".join(f"{state} {b:.3f}".strip() for state, b in zip(states, belief, strict=True))
        rows.append([f"{key[0]} {key[1]}" if isinstance(key, tuple) else str(key), values])
    return Table(["variable", "belief"], rows)
