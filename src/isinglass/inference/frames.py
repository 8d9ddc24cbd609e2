"""Beliefs as tables for people: pandas frames with the names of variables and states."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from isinglass.runtime.pandas import pandas_for

if TYPE_CHECKING:
    from isinglass.inference.result import Result


def beliefs_frame(result: Result) -> Any:
    """Return the beliefs of all variables, one row for each state; see `Result.to_frame`."""
    pandas, graph = pandas_for("to_frame"), result.potentials.graph
    cards, names = graph.cards, graph.names
    variable = np.repeat(np.arange(graph.n_variables), cards)
    state = np.concatenate([np.zeros(0, np.int64), *(np.arange(k) for k in cards.tolist())])
    columns: dict[str, object] = {"variable": variable, "state": state}
    if names is not None:
        columns["variable"] = [names.variables[i] for i in variable.tolist()]
        columns["state"] = [s for i, k in enumerate(cards.tolist()) for s in names.state_names(i, k)]
    if graph.n_components > 1:
        columns = {"component": graph.variable_component[variable], **columns}
    return pandas.DataFrame({**columns, "belief": result.variables.flat})
