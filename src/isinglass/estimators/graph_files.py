"""Fitted conditional random fields in files: beside what every estimator keeps, the shapes of named parameters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isinglass.estimators.persistence import Saved
from isinglass.learning.training.choices import entropy_of
from isinglass.learning.training.problem import cut
from isinglass.learning.training.stages import stages_of

_FACTS: dict[str, type] = {"n_states": int, "n_features_in": int}
_OPTIONAL: dict[str, type] = {"iterations": int, "tape": str, "started_from": str}  # or None, as in older files


def graph_contents(crf: Any) -> dict[str, Any]:
    """Return the metadata of a fitted field."""
    return {
        "shapes": {name: list(array.shape) for name, array in crf.parameters_.items()},
        **{name: kind(getattr(crf, f"{name}_")) for name, kind in _FACTS.items()},
        "stage": int(crf.stage_),
        "classes": crf.classes_.tolist(),
        **{name: getattr(crf, f"{name}_") for name in _OPTIONAL},
    }


def restore_graph(crf: Any, saved: Saved) -> None:
    """Set what a field learned, once it is checked."""
    for key, kind in _FACTS.items():
        setattr(crf, f"{key}_", saved.entry(key, kind))
    for key, kind in _OPTIONAL.items():
        setattr(crf, f"{key}_", saved.optional(key, kind))
    if crf.iterations_ is not None and not 1 <= crf.iterations_ < 2**40:
        raise saved.error("a number of iterations of inference", f"{crf.iterations_}")
    saved.require(0 < crf.n_states_ < 2**20, "a number of states", f"{crf.n_states_}")
    crf._labels = _classes(saved, crf.n_states_)
    crf.classes_ = np.array(crf._labels)
    stages = stages_of(crf)
    crf.stage_ = saved.entry("stage", int) if saved.version > 1 else 0
    saved.require(0 <= crf.stage_ < len(stages), "the number of a stage", f"{crf.stage_}")
    stage, shapes = stages[crf.stage_], _shapes(saved)
    size = sum(map(math.prod, shapes.values()))
    saved.require(len(crf.theta_) == size, f"{size} parameters in theta", f"{len(crf.theta_)}")
    stage.n_features_in_ = crf.n_features_in_
    node, axes = (stage._node_rows(), crf.n_states_), shapes.get("node", ())[:-2]
    if shapes.get("node") != (*axes, *node) or len(axes) > 1:
        raise saved.error(f"node parameters of shape {node}", f"{shapes.get('node')}")
    if any(shape[: len(axes)] != axes for shape in shapes.values()) or 0 in axes:
        raise saved.error("as many iterations in all parameters", f"{shapes}")
    crf.parameters_ = cut(crf.theta_, shapes)
    try:
        crf.entropy_ = entropy_of(stage, crf.parameters_, crf.n_states_)
    except (KeyError, ValueError):
        raise saved.error("parameters of the entropy", f"{shapes}") from None


def _classes(saved: Saved, n_states: int) -> tuple[Any, ...]:
    """Return the labels: strings, or integers from 0; in older files None stands for 0, 1, ..."""
    found = saved.optional("classes", list)
    if found is None:
        return tuple(range(n_states))
    kinds = {type(label) for label in found}
    fine = kinds == {str} or (kinds == {int} and min(found) >= 0 and max(found) < 2**63)
    if not fine or len(found) != n_states or sorted(set(found)) != found:
        raise saved.error(f"{n_states} different labels, sorted", f"{found!a:.60}")
    return tuple(found)


def _shapes(saved: Saved) -> dict[str, tuple[int, ...]]:
    found = saved.entry("shapes", dict)
    for value in found.values():
        if not isinstance(value, list) or not all(type(n) is int and 0 <= n < 2**40 for n in value) or len(value) > 8:
            raise saved.error("shapes of parameters", f"{value!a:.60}")
    return {name: tuple(value) for name, value in found.items()}
