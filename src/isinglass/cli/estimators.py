"""What `isinglass info` says of a fitted estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isinglass.cli.report import print_table

if TYPE_CHECKING:
    from isinglass.typing import JsonObject

TOP = 5  # weights of each sign that are shown for each label
MOST_LABELS = 12  # labels whose weights are shown
_MAGIC = b"PK"


def is_archive(path: str) -> bool:
    """Tell whether a file is an archive, as fitted estimators are; a file that cannot be read is none."""
    try:
        with open(path, "rb") as file:
            return file.read(2) == _MAGIC
    except OSError:
        return False


def describe_estimator(path: str) -> JsonObject:
    """Gather the facts about a fitted estimator."""
    from isinglass.estimators import load, notes_of

    found, notes = load(path), notes_of(path)
    classes = getattr(found, "classes_", None)
    plain = type(found)().get_params(deep=False) if type(found).__name__ != "MRF" else {}
    given = {k: v for k, v in found.get_params(deep=False).items() if k not in plain or plain[k] != v}
    facts: JsonObject = {
        "model": path,
        "estimator": type(found).__name__,
        "options": {name: _shown(value) for name, value in given.items()},
        "labels": None if classes is None else [str(label) for label in classes],
        "n_features": getattr(found, "n_features_in_", None),
        "n_parameters": len(found.theta_),
        "parameters": {name: list(array.shape) for name, array in getattr(found, "parameters_", {}).items()},
        "iterations": found.n_iter_,
        "objective": found.objective_,
        "converged": found.converged_,
        "ended": found.message_,
    }
    if "recipe" in notes:
        facts["recipe"] = notes["recipe"]
    if hasattr(found, "explain"):
        facts["weights"] = _weights(found)
    return facts


def _shown(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | type(None)) else f"{value!r:.80}"


def _weights(found: Any) -> list[JsonObject]:
    shown = found.explain(top=TOP)
    rows = [w for label in list(shown.features)[:MOST_LABELS] for w in shown.features[label]]
    return [
        {"kind": w.kind, "feature": str(w.feature), "label": str(w.label), "weight": w.weight}
        for w in [*rows, *shown.transitions]
    ]


def print_estimator(facts: JsonObject) -> None:
    """Print the facts as tables."""
    labels = facts["labels"]
    rows: list[list[object]] = [["estimator", facts["estimator"]]]
    rows += [["option " + name, value] for name, value in facts["options"].items()]
    if labels is not None:
        more = ", ..." if len(labels) > MOST_LABELS else ""
        rows.append(["labels", f"{len(labels)}: {', '.join(labels[:MOST_LABELS])}{more}"])
    rows += [["features", facts["n_features"]]] if facts["n_features"] is not None else []
    shapes = ", ".join(f"{name} {tuple(shape)}" for name, shape in facts["parameters"].items())
    rows += [["parameters", f"{facts['n_parameters']:,}: {shapes}"], ["iterations", facts["iterations"]]]
    rows += [["objective", f"{facts['objective']:.8g}"], ["ended", facts["ended"]]]
    print_table(facts["model"], ["", ""], rows, left=2)
    if facts.get("weights"):
        table = [[w["label"], w["kind"], w["feature"], f"{w['weight']:+.4f}"] for w in facts["weights"]]
        few = labels is not None and len(labels) > MOST_LABELS
        title = "Strongest weights" + f" (of the first {MOST_LABELS} of {len(labels)} labels)" * few
        print_table(title, ["label", "kind", "feature or neighbour", "weight"], table, left=3)
