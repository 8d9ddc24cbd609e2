"""The page of a trace: a drawing for each iteration, a slider, the residuals, and the beliefs in numbers.

It is one file that loads nothing; a short script shows the iteration that the slider stands at. Light and dark follow
the reader's system.
"""

from __future__ import annotations

import json
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
from isinglass.typing import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from isinglass.inference.tracing.trace import Trace

STEP = 105.0  # pixels between neighbours
MOST_VARIABLES = 300
MOST_ROWS = 24  # variables in the table
CHANGED = "#e8820c"

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; \
script-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --paper: #fff; --ink: #1d2530; --faint: #8a8f98; }}
@media (prefers-color-scheme: dark) {{ :root {{ --paper: #16191e; --ink: #e6e9ee; --faint: #8a8f98; }} }}
body {{ font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 58rem;
  margin: 1rem auto; padding: 0 1rem; }}
h1 {{ font-size: 1.25rem; font-weight: 600; margin: .2rem 0 .6rem; }}
.controls {{ display: flex; gap: .6rem; align-items: center; flex-wrap: wrap; }}
.controls input {{ flex: 1 1 10rem; min-width: 8rem; }}
button {{ font: inherit; padding: .15rem .7rem; }}
.frame {{ display: none; overflow-x: auto; }} .frame.shown {{ display: block; }}
.columns {{ display: flex; gap: 2rem; flex-wrap: wrap; align-items: flex-start; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9rem; }}
td, th {{ padding: .1rem .8rem .1rem 0; text-align: left; border-bottom: 1px solid rgba(128,128,128,.25); }}
.note {{ color: var(--faint); font-size: .85rem; }}
</style></head>
<body>
<h1>{title}</h1>
<div class="controls"><button id="play" type="button">play</button>
<input id="slider" type="range" min="0" max="{last}" value="0" aria-label="iteration">
<span id="said"></span></div>
<div id="frames">{frames}</div>
<p class="note">Circles are beliefs, squares are factors. Arrows are messages into variables: orange where they changed
in this iteration, the stronger the more. Hover over a circle for its numbers.</p>
<div class="columns"><div>{curve}</div><div>{tables}</div></div>
<script>
const said = {said}, marks = {marks};
const slider = document.getElementById("slider"), dot = document.getElementById("dot");
const frames = document.querySelectorAll("#frames .frame"), tables = document.querySelectorAll(".numbers");
let timer = null;
function show(t) {{
  slider.value = t;
  frames.forEach((f, i) => f.classList.toggle("shown", i === t));
  tables.forEach((f, i) => f.style.display = i === t ? "" : "none");
  document.getElementById("said").textContent = said[t];
  if (dot) {{ dot.setAttribute("cx", marks[t][0]); dot.setAttribute("cy", marks[t][1]); }}
}}
function stop() {{ clearInterval(timer); timer = null; document.getElementById("play").textContent = "play"; }}
slider.addEventListener("input", () => {{ stop(); show(Number(slider.value)); }});
document.getElementById("play").addEventListener("click", () => {{
  if (timer) return stop();
  document.getElementById("play").textContent = "pause";
  if (Number(slider.value) === {last}) show(0);
  timer = setInterval(() => {{
    const t = Number(slider.value);
    if (t >= {last}) stop(); else show(t + 1);
  }}, 700);
}});
show(0);
</script>
</body></html>
"""


def page_of(trace: Trace, ends: tuple[IntArray, IntArray]) -> str:
    """Return the page of a trace; `ends` are the factor and the variable of each message."""
    graph = trace.potentials.graph
    if graph.n_variables > MOST_VARIABLES:
        raise InputError("potentials", f"at most {MOST_VARIABLES} variables on a page", f"{graph.n_variables}")
    steps = range(trace.iterations + 1)
    frames = [f'<div class="frame{" shown" if t == 0 else ""}">{_frame(trace, t, ends)}</div>' for t in steps]
    curve, marks = _curve(trace.residuals)
    said = [_said(trace, t) for t in steps]
    return _PAGE.format(
        title=escape(f"{trace.algorithm}: {trace.iterations} iterations, step by step"),
        last=trace.iterations,
        frames="\n".join(frames),
        curve=curve,
        tables="".join(_table(trace, t) for t in steps),
        said=json.dumps(said),
        marks=json.dumps(marks),
    )


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


def _curve(residuals: Array) -> tuple[str, list[tuple[float, float]]]:
    """Return the residuals as a curve on a logarithmic scale, and where its mark is in each iteration."""
    if not len(residuals):
        return "", [(0.0, 0.0)]
    floor = max(float(residuals.max()), 1e-300) * 1e-12
    logs = np.log10(np.maximum(residuals, floor))
    low, high = float(np.floor(logs.min())), float(np.ceil(logs.max())) + 1e-9
    x = 44 + 246 * np.arange(1, len(logs) + 1) / max(len(logs), 1)
    y = 16 + 124 * (high - logs) / max(high - low, 1.0)
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True))
    ticks = "".join(
        f'<text x="38" y="{16 + 124 * (high - v) / max(high - low, 1.0) + 4:.1f}" text-anchor="end">1e{v:.0f}</text>'
        for v in sorted({low, round(high)})
    )
    drawn = (
        '<svg width="310" height="172" viewBox="0 0 310 172" font-size="11" fill="currentColor">'
        f'<text x="44" y="11">residual</text>{ticks}'
        '<line x1="44" y1="140" x2="292" y2="140" stroke="currentColor" stroke-width=".6"/>'
        f'<text x="290" y="156" text-anchor="end">iteration {len(logs)}</text>'
        f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-width="1.8"/>'
        f'<circle id="dot" r="4" fill="{CHANGED}" cx="44" cy="{y[0]:.1f}"/></svg>'
    )
    places = [(44.0, float(y[0])), *zip(x.tolist(), y.tolist(), strict=True)]
    return drawn, [(round(a, 1), round(b, 1)) for a, b in places]


def _table(trace: Trace, t: int) -> str:
    graph = trace.potentials.graph
    first, keys = first_states(graph), variable_keys(graph)
    rows = []
    for i, key in enumerate(keys[:MOST_ROWS]):
        values = ", ".join(f"{b:.3f}" for b in trace.beliefs[t, first[i] : first[i + 1]].tolist())
        name = f"{key[0]} {key[1]}" if isinstance(key, tuple) else str(key)
        rows.append(f"<tr><td>{escape(name)}</td><td>{values}</td></tr>")
    hidden = "" if t == 0 else ' style="display:none"'
    return f'<table class="numbers"{hidden}><tr><th>variable</th><th>belief</th></tr>{"".join(rows)}</table>'
