"""``isinglass info``: what a model is, and what each algorithm would need for it."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING

from isinglass.cli.options import Commands, add_command, add_json, add_model
from isinglass.cli.report import json_text, print_table, to_stdout
from isinglass.errors import InputError

if TYPE_CHECKING:
    from isinglass.inference import Algorithm, Cost
    from isinglass.potentials import Potentials
    from isinglass.typing import JsonObject

_SUMMARY = "say what a model is and what inference would cost"
_TEXT = """Describe a model: variables, factors, zeros, evidence, structure, the width of the elimination order that
was found, and what each inference algorithm would need. Nothing is inferred.

Of a fitted estimator (a file that `isinglass fit` or `save` wrote): its class, options, labels, features, how training
ended, and its strongest weights."""
_EXAMPLES = """  isinglass info model.uai
  isinglass info chunk.isg
  isinglass info model.uai.gz --evidence model.uai.evid --json"""


def add_parser(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = add_command(commands, "info", run, _SUMMARY, _TEXT, _EXAMPLES)
    add_model(parser)
    add_json(parser, "the description")


def run(arguments: argparse.Namespace) -> None:
    """Read and describe."""
    from isinglass.io import read_model

    if _is_archive(arguments.model):
        _describe_estimator(arguments.model, arguments.json)
        return
    potentials = read_model(arguments.model, arguments.evidence)
    facts = {"model": arguments.model, **describe_model(potentials)}
    if arguments.json:
        to_stdout(json_text(facts, 2))
    else:
        _print(facts)


def describe_model(potentials: Potentials) -> JsonObject:
    """Gather the facts about a model.

    Examples
    --------
    >>> import isinglass as ig
    >>> facts = describe_model(ig.datasets.misconception())
    >>> facts["n_variables"], facts["width"], facts["factors"][0]["shape"]
    (4, 2, [2, 2])
    """
    graph = potentials.graph
    cards = graph.cards
    return {
        "n_variables": graph.n_variables,
        "states": [int(cards.min()), int(cards.max())] if len(cards) else [],
        "n_observed": len(potentials.evidence),
        "n_factors": graph.n_factors,
        "factors": _factors(potentials),
        "n_connected_parts": int(graph.connected_components.max(initial=-1)) + 1,
        "forest": graph.is_forest,
        **_elimination(potentials),
        **_algorithms(potentials),
    }


def _factors(potentials: Potentials) -> list[JsonObject]:
    """Count factors, entries and zeros for each shape of table."""
    import numpy as np

    rows: dict[tuple[int, ...], JsonObject] = {}
    for group, tables, ids in zip(potentials.graph.groups, potentials.groups, potentials.table_ids, strict=True):
        zeros = np.isneginf(tables.real).reshape(len(tables), group.table_size).sum(axis=1)
        empty = {"shape": list(group.shape), "arity": group.arity, "factors": 0, "entries": 0, "zeros": 0}
        row = rows.setdefault(group.shape, empty)
        row["factors"] += len(group)
        row["entries"] += len(group) * group.table_size
        row["zeros"] += int(zeros[ids].sum())
    return sorted((r for r in rows.values() if r["factors"]), key=lambda r: (r["arity"], r["shape"]))


def _elimination(potentials: Potentials) -> JsonObject:
    from isinglass.graph import elimination_order

    order = elimination_order(potentials.graph, clamped=tuple(potentials.evidence))
    return {
        "width": order.width,
        "largest_table_entries": 2.0**order.log2_largest,
        "table_entries": order.entries,
        "order_complete": order.complete,
    }


def _algorithms(potentials: Potentials) -> JsonObject:
    from isinglass.inference import ALGORITHMS
    from isinglass.runtime.memory import available_memory, memory_limit_bytes

    limit = memory_limit_bytes(None)
    rows = []
    for name, cls in ALGORITHMS.items():
        cost = _cost(cls(), potentials)
        refused = _refusal(cls(), potentials) if cost.bytes <= limit else ""
        fits = cost.bytes <= limit and not refused
        needs = f"not for this model, but for {refused}" if refused else cost.text
        rows.append({"name": name, "bytes": cost.bytes, "fits": fits, "needs": needs})
    return {"memory_available": available_memory(), "memory_limit": limit, "algorithms": rows}


def _cost(algorithm: Algorithm, potentials: Potentials) -> Cost:
    """Ask for the cost; one that no double can hold is infinite."""
    from isinglass.inference import Cost

    try:
        cost: Cost = algorithm.cost(potentials)
    except OverflowError:
        return Cost(math.inf, math.inf, "more than any machine has")
    return cost


def _refusal(algorithm: Algorithm, potentials: Potentials) -> str:
    """Return which models an algorithm needs, where it is not for this one."""
    try:
        algorithm.check(potentials.graph)
        if hasattr(algorithm, "sampler"):  # of Ising or Potts models alone, some of them
            algorithm.sampler(potentials)
    except InputError as error:
        return error.expected
    return ""


def _print(facts: JsonObject) -> None:
    print_table(facts["model"], ["", ""], _structure_rows(facts), left=2)
    columns = ["arity", "factors", "tables", "entries", "zeros"]
    print_table("Factors", columns, _arity_rows(facts["factors"]), left=0)
    rows = [[a["name"], a["needs"], "yes" if a["fits"] else "no"] for a in facts["algorithms"]]
    print_table("Algorithms", ["name", "needs", "fits"], rows, left=3, caption=_memory_line(facts))


def _structure_rows(facts: JsonObject) -> list[list[object]]:
    states, more = facts["states"], "" if facts["order_complete"] else "more than "
    largest = f"{more}{facts['largest_table_entries']:.6g} entries"
    return [
        ["variables", f"{facts['n_variables']:,}"],
        ["states", " to ".join(map(str, dict.fromkeys(states))) or "-"],
        ["observed", f"{facts['n_observed']:,}"],
        ["factors", f"{facts['n_factors']:,}"],
        ["connected parts", f"{facts['n_connected_parts']:,}"],
        ["forest", "yes" if facts["forest"] else "no"],
        ["elimination width", f"{more}{facts['width']}"],
        ["largest table", largest],
    ]


def _arity_rows(factors: list[JsonObject]) -> list[list[object]]:
    """Sum the shapes up by arity."""
    rows: list[list[object]] = []
    for arity in sorted({f["arity"] for f in factors}):
        some = [f for f in factors if f["arity"] == arity]
        totals = [sum(f[key] for f in some) for key in ("factors", "entries", "zeros")]
        shapes = [" x ".join(map(str, f["shape"])) or "constant" for f in some]
        tables = shapes[0] if len(some) == 1 else f"{shapes[0]} to {shapes[-1]} ({len(some)} shapes)"
        rows.append([arity, f"{totals[0]:,}", tables, f"{totals[1]:,}", f"{totals[2]:,}"])
    return rows


def _memory_line(facts: JsonObject) -> str:
    from isinglass.validation import bytes_text

    free, limit = bytes_text(facts["memory_available"]), bytes_text(facts["memory_limit"])
    return f"{free} of memory are free; without --memory, inference may take {limit}"


def _is_archive(path: str) -> bool:
    """Tell whether a file is an archive, as fitted estimators are; a file that cannot be read is none."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"PK"
    except OSError:
        return False


def _describe_estimator(path: str, as_json: bool) -> None:
    """Print the facts about a fitted estimator, and the weights of most effect."""
    from isinglass.estimators import load, notes_of

    found, notes = load(path), notes_of(path)
    classes = getattr(found, "classes_", None)
    facts: JsonObject = {
        "model": path,
        "estimator": f"{found!r}",
        "labels": None if classes is None else [str(label) for label in classes],
        "n_features": getattr(found, "n_features_in_", None),
        "n_parameters": len(found.theta_),
        "parameters": {name: list(array.shape) for name, array in getattr(found, "parameters_", {}).items()},
        "iterations": found.n_iter_,
        "objective": found.objective_,
        "ended": found.message_,
    }
    if as_json:
        to_stdout(json_text(facts | notes, 2))
        return
    print_table(path, ["", ""], [[name, str(value)] for name, value in facts.items() if value is not None], left=2)
    if hasattr(found, "explain"):
        to_stdout(f"Strongest weights\n\n{found.explain(top=3)}\n")
