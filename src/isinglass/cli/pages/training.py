"""The page of ``isinglass fit``: how training went, and what the fitted model looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isinglass.cli.examples import Examples, Images
from isinglass.cli.pages.images import image_panel
from isinglass.pages import Code, Facts, Heat, Lines, Note, Part, Table

if TYPE_CHECKING:
    from isinglass.pages.page import Section

MOST_LABELS = 60  # rows of a table in colours
TOP = 8  # strongest weights of each sign for each label


def training_sections(crf: Any, facts: dict[str, object], data: Examples, recipe: str) -> list[Section]:
    """Return the sections of the page of a fitted estimator; `recipe` is the text of its file."""
    sections: list[Section] = [("", [Facts(facts)]), ("How training went", _curves(crf))]
    if isinstance(data, Images):
        panel = image_panel(crf, data)
        sections.append(("What it makes of examples that it was trained on", [panel]))
    sections.append(("What it looks at", _weights(crf)))
    return [*sections, ("Recipe", [Code(recipe)])]


def _curves(crf: Any) -> list[Part | str]:
    """Return objective, gradient and, where there are some, validation losses by iteration."""
    history = crf.history_
    steps = [epoch.iteration for epoch in history]
    objective = [epoch.value for epoch in history]
    gradient = [epoch.gradient_norm for epoch in history]
    above = min(objective, default=0.0) > 0
    parts: list[Part | str] = [
        Lines({"objective": (steps, objective)}, "iteration", "objective", "Objective", log_y=above),
        Lines({"gradient": (steps, gradient)}, "iteration", "length", "Gradient", log_y=True),
    ]
    seen = {epoch.iteration: epoch.validation for epoch in history if epoch.validation is not None}
    if seen:
        parts.append(Lines({"validation": ([*seen], [*seen.values()])}, "iteration", "loss", "Validation"))
    late = sum(not epoch.converged for epoch in history)
    if late:
        some = f"In {late} of {len(history)} iterations, inference stopped before it converged on all examples"
        parts.append(Note(f"{some}; that is meant to be, where the model is trained for few iterations."))
    return parts


def _weights(crf: Any) -> list[Part | str]:
    """Return tables of neighbours in colours, and the strongest weights of features."""
    found = crf.explain(top=TOP)
    parts: list[Part | str] = [
        Heat(matrix.values, matrix.rows, matrix.columns, f"Weights of neighbours: {name}")
        for name, matrix in found.matrices.items()
        if 0 < max(matrix.values.shape) <= MOST_LABELS and min(matrix.values.shape) > 0
    ]
    rows = [[str(label), str(w.feature), w.weight, w.kind] for label, listed in found.features.items() for w in listed]
    if rows:
        caption = f"The {TOP} strongest weights of each sign for each label, in nats"
        parts.append(Table(["label", "feature", "weight", "kind"], rows, caption))
    return parts
