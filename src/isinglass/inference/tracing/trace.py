"""Inference step by step: messages, beliefs and residuals after each iteration, as arrays, tables and a page."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from html import escape
from typing import Any

import numpy as np

from isinglass.errors import InputError, no_convergence_warnings
from isinglass.graph.layout import first_states
from isinglass.graph.message_graph import edges_of
from isinglass.graph.names import EvidenceLike, VariableLike, variable_keys, variable_number
from isinglass.inference.algorithm import Algorithm, make
from isinglass.inference.evidence import checked
from isinglass.inference.result import Result
from isinglass.inference.tracing.page import page_of
from isinglass.io.files import PathLike
from isinglass.pages import write_page
from isinglass.potentials import Potentials
from isinglass.runtime.pandas import pandas_for
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import whole_number


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """The messages, beliefs and residuals of each iteration of an inference.

    Attributes
    ----------
    potentials : Potentials
        The model, with the evidence.
    algorithm : str
    beliefs : array (iterations + 1, states of all variables)
        Before the first iteration, and after each.
    messages : array (iterations + 1, states of all messages) or None
        From factors of two or more variables to their variables, normalised; None for algorithms without messages.
    log_z : array (iterations + 1,)
    residuals : array (iterations,)
        The largest change of a message, or belief, in each iteration.
    """

    potentials: Potentials
    algorithm: str
    beliefs: FloatArray
    messages: FloatArray | None
    log_z: FloatArray
    residuals: FloatArray

    @property
    def iterations(self) -> int:
        """The number of iterations."""
        return len(self.residuals)

    def variable(self, i: VariableLike) -> FloatArray:
        """Return the belief of a variable after each iteration, an array (iterations + 1, states)."""
        first = first_states(self.potentials.graph)
        k = variable_number(self.potentials.graph, i, "i")
        found: FloatArray = self.beliefs[:, first[k] : first[k + 1]]
        return found

    def message(self, factor: int, variable: VariableLike) -> FloatArray:
        """Return the message from a factor to one of its variables, an array (iterations + 1, states)."""
        if self.messages is None:
            raise InputError("factor", "an algorithm with messages, such as 'bp'", repr(self.algorithm))
        graph, edges = self.potentials.graph, edges_of(self.potentials.graph)
        i = variable_number(graph, variable, "variable")
        factors, variables = _ends(self.potentials)
        found = np.flatnonzero((factors == factor) & (variables == i))
        if not len(found):
            expected = "a factor of two or more variables, and one of these"
            raise InputError("factor", expected, f"factor {factor!r} and variable {variable!r}")
        e = int(found[0])
        return self.messages[:, edges.start[e] : edges.start[e + 1]]

    def to_frame(self) -> Any:
        """Return the beliefs as a pandas DataFrame: iteration, variable, state, belief."""
        pd, graph = pandas_for("to_frame"), self.potentials.graph
        keys, cards = variable_keys(graph), graph.cards.tolist()
        names = [key for key, card in zip(keys, cards, strict=True) for _ in range(card)]
        return self._frame(pd, {"variable": names, "state": _state_names(self.potentials)}, "belief", self.beliefs)

    def messages_frame(self) -> Any:
        """Return the messages as a pandas DataFrame: iteration, factor, variable, state, message."""
        if self.messages is None:
            raise InputError("result", "an algorithm with messages, such as 'bp'", repr(self.algorithm))
        pd, graph = pandas_for("messages_frame"), self.potentials.graph
        factors, variables = _ends(self.potentials)
        keys, cards = variable_keys(graph), graph.cards[variables].tolist()
        states, first = _state_names(self.potentials), first_states(graph)
        columns = {
            "factor": np.repeat(factors, cards),
            "variable": [keys[i] for i, card in zip(variables.tolist(), cards, strict=True) for _ in range(card)],
            "state": [s for i in variables.tolist() for s in states[first[i] : first[i + 1]]],
        }
        return self._frame(pd, columns, "message", self.messages)

    def _frame(self, pd: Any, columns: dict[str, Any], name: str, values: FloatArray) -> Any:
        steps = range(len(values))
        whole = [pd.DataFrame({"iteration": t, **columns, name: values[t]}) for t in steps]
        return pd.concat(whole, ignore_index=True)

    def to_html(self, path: PathLike | None = None) -> str:
        """Return an HTML page with a slider that shows each iteration; if a path is given, also write it to a file.

        It shows beliefs, and the messages that changed most. The file may be a page of ours, which is replaced, and no
        other.
        """
        page = page_of(self, _ends(self.potentials))
        if path is not None:
            write_page(page, path)
        return page

    def _repr_html_(self) -> str:
        fit = "this.height = this.contentDocument.body.scrollHeight + 32"  # as high as its content
        page = escape(self.to_html())
        return f'<iframe srcdoc="{page}" width="100%" height="780" style="border:0" onload="{fit}"></iframe>'

    def __repr__(self) -> str:
        last = f", residual {self.residuals[-1]:.3g}" if self.iterations else ""
        return f"Trace: {self.iterations} iterations of {self.algorithm!r}, log_z = {self.log_z[-1]:.10g}{last}"


def _ends(potentials: Potentials) -> tuple[IntArray, IntArray]:
    """Return the factor and the variable of each message."""
    edges = edges_of(potentials.graph)
    degree = np.diff(edges.first_edge)
    return edges.link_factor[edges.edge_link], np.repeat(np.arange(len(degree)), degree)


def _state_names(potentials: Potentials) -> list[Any]:
    graph = potentials.graph
    if graph.names is None:
        return [s for k in graph.cards.tolist() for s in range(k)]
    return [s for i, k in enumerate(graph.cards.tolist()) for s in graph.names.state_names(i, k)]


def trace(
    potentials: Potentials,
    algorithm: str | Algorithm = "bp",
    *,
    iterations: int = 10,
    evidence: EvidenceLike | None = None,
    **options: Any,
) -> Trace:
    """Run inference step by step, and keep the messages, beliefs and residuals of each iteration.

    Iteration t is the result of `infer` with ``iterations=t``, so the work grows with the square of the number of
    iterations. Use it for small models.

    Parameters
    ----------
    potentials : Potentials
    algorithm : str or Algorithm
        An iterative algorithm: "bp", "trw", "mf", ...
    iterations : int
        The number of iterations.
    evidence : mapping, optional
        Additional observed variables and their states.
    **options
        Options of the algorithm, such as ``schedule="flooding"`` or ``damping=0.5``.

    Returns
    -------
    Trace

    Examples
    --------
    >>> import isinglass as ig
    >>> p = ig.Potentials.from_groups(ig.chain_graph(4, 2), [[[0.0, 1.0]] + 3 * [[0.0, 0.0]], np.eye(2)[None]])
    >>> t = ig.trace(p, "bp", iterations=4, schedule="flooding")
    >>> t.variable(3)[:, 1].round(3).tolist()  # the information needs three steps to the other end
    [0.5, 0.5, 0.5, 0.523, 0.523]
    >>> t.message(4, 1)[1].round(3).tolist()  # from factor 4, of variables 0 and 1, in the first iteration
    [0.393, 0.607]
    """
    clamped = checked(potentials, evidence)
    count = whole_number(iterations, "iterations")
    for name in ("tol", "max_iter"):
        if name in options:
            remedy = f"iterations={options[name]!r:.12}" if name == "max_iter" else "raise iterations instead"
            raise InputError(name, "no limit beside iterations, which a trace runs exactly", f"{options[name]}", remedy)
    chosen = make(algorithm, options)
    countable = "iterations" in {f.name for f in fields(chosen)}  # type: ignore[arg-type]
    if not countable or not chosen.facts.iterative or chosen.facts.stochastic:
        expected = "an algorithm that iterates, such as 'bp', 'trw' or 'mf'"
        raise InputError("algorithm", expected, repr(chosen.name))
    with no_convergence_warnings():
        results: list[Result] = [
            replace(chosen, iterations=t).run(clamped)  # type: ignore[type-var]
            for t in range(count + 1)
        ]
    messages = [r.messages for r in results]
    return Trace(
        clamped,
        chosen.name,
        np.stack([np.asarray(r.variables.flat, np.float64) for r in results]),
        None if messages[0] is None else np.stack([np.exp(np.asarray(m, np.float64)) for m in messages]),
        np.array([float(r.log_z) for r in results]),
        np.array([r.info.residual for r in results[1:]]),
    )
