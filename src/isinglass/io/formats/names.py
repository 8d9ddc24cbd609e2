"""Names of variables and states beside a model file, whose format has none.

    model.uai  ->  model.uai.names.json
    {"format": "isinglass-names", "version": 1, "variables": [{"name": "rain", "states": ["no", "yes"]}, ...]}

A variable whose states have no names gives their number, ``{"name": "wet", "states": 2}``. The file is written with a
model that has names, read with the model if it is there, and removed when a model without names takes its place.
"""

from __future__ import annotations

import contextlib
import json
import os

from isinglass.errors import FileFormatError
from isinglass.graph.names import Names
from isinglass.io.files import PathLike, checked_path, read_text, shown_path, write_text_atomically
from isinglass.potentials import Potentials

FORMAT, VERSION = "isinglass-names", 1
_LIMIT = 2**28


def names_path(path: PathLike) -> str:
    """Return the name of the file that has the names for a model file.

    Examples
    --------
    >>> names_path("model.uai.gz")
    'model.uai.names.json'
    """
    return checked_path(path).removesuffix(".gz") + ".names.json"


def write_names(potentials: Potentials, path: PathLike) -> None:
    """Write the names beside a model file; without names, remove those of an older model."""
    names, target = potentials.graph.names, names_path(path)
    if names is None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(target)
        return
    known = zip(names.variables, names.states, potentials.graph.cards.tolist(), strict=True)
    variables = [{"name": name, "states": card if states is None else list(states)} for name, states, card in known]
    lines = ",\n".join(json.dumps(variable, ensure_ascii=False) for variable in variables)
    write_text_atomically(target, f'{{"format": "{FORMAT}", "version": {VERSION}, "variables": [\n{lines}\n]}}\n')


def with_names_of(potentials: Potentials, path: PathLike) -> Potentials:
    """Return potentials with the names beside their file, if there are some."""
    target = names_path(path)
    if not os.path.exists(target):
        return potentials
    names = _read(target, potentials.graph.cards.tolist())
    graph = potentials.graph.with_names(names)
    return Potentials._build(graph, potentials.groups, potentials.table_ids, potentials.evidence)


def _read(target: str, cards: list[int]) -> Names:
    shown = shown_path(target)
    remedy = "remove the file to read the model without names"
    try:
        found = json.loads(read_text(target, _LIMIT))
    except (json.JSONDecodeError, RecursionError) as error:
        raise FileFormatError(shown, None, "names in JSON", f"{error!s:.80}", remedy) from None
    if not isinstance(found, dict) or (found.get("format"), found.get("version")) != (FORMAT, VERSION):
        raise FileFormatError(shown, None, f"the format {FORMAT!r}, version {VERSION}", "something else", remedy)
    variables = found.get("variables")
    if not isinstance(variables, list) or len(variables) != len(cards):
        got = f"{len(variables)}" if isinstance(variables, list) else "something else"
        raise FileFormatError(shown, None, f"the names of {len(cards)} variables", got, remedy)
    names: list[str] = []
    states: list[tuple[str, ...] | None] = []
    for i, (entry, card) in enumerate(zip(variables, cards, strict=True)):
        name, labels = (entry.get("name"), entry.get("states")) if isinstance(entry, dict) else (None, None)
        fits = labels == card if type(labels) is int else _are_names(labels, card)
        if not isinstance(name, str) or not fits:
            expected = f"a name of variable {i}, and its number of states, {card}, or their names"
            raise FileFormatError(shown, None, expected, f"{entry!r:.60}", remedy)
        names.append(name)
        states.append(tuple(labels) if isinstance(labels, list) else None)
    return Names(names, states)


def _are_names(labels: object, card: int) -> bool:
    return (
        isinstance(labels, list)
        and all(isinstance(label, str) for label in labels)
        and len(set(labels)) == len(labels) == card
    )
