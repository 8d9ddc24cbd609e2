"""What a loss keeps of each example between evaluations, such as Markov chains, and how a checkpoint holds it.

An evaluation reads what is kept of its examples, and hands back what is to be kept. That is put in place when the whole
evaluation is done: one that Ctrl-C ends has changed nothing. A checkpoint may be of the state before the last
evaluation, so that what it replaced is kept, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from isinglass.errors import InputError
from isinglass.losses.loss import Memory
from isinglass.typing import Array, IntArray

EXAMPLE = "example"


class Keeping:
    """Named arrays of each example.

    Examples
    --------
    >>> kept = Keeping()
    >>> [int(one["example"]) for one in kept.of(np.array([3, 5]))]
    [3, 5]
    >>> kept.put(np.array([3]), [{"x": np.zeros(2)}])
    >>> kept.of(np.array([3]))[0]["x"].tolist(), kept.evaluations
    ([0.0, 0.0], 1)
    """

    def __init__(self) -> None:
        self.evaluations = 0
        self.now: dict[int, Memory] = {}
        self.replaced: dict[int, Memory] = {}  # by the last evaluation; empty where there was nothing

    def of(self, examples: IntArray) -> list[Memory]:
        """Return what is kept of some examples; at first that is their number."""
        return [{EXAMPLE: np.asarray(i), **self.now.get(i, {})} for i in examples.tolist()]

    def put(self, examples: IntArray, memory: Sequence[Memory]) -> None:
        """Keep arrays of some examples, after one more evaluation."""
        numbers = examples.tolist()
        before = {i: self.now.get(i, {}) for i in numbers}
        after = {i: {**before[i], **new} for i, new in zip(numbers, memory, strict=True)}
        self.now, self.replaced, self.evaluations = {**self.now, **after}, before, self.evaluations + 1

    def arrays(self, evaluations: int) -> dict[str, Array]:
        """Return all that is kept, as it was after so many evaluations: after the last one, or before it."""
        if evaluations not in (self.evaluations, self.evaluations - 1):
            raise RuntimeError(f"what was kept after {evaluations} evaluations is no longer there")
        found = self.now if evaluations == self.evaluations else {**self.now, **self.replaced}
        named: dict[str, list[tuple[int, Array]]] = {}
        for i in sorted(found):
            for name, array in found[i].items():
                named.setdefault(name, []).append((i, array))
        return {key: array for name, parts in named.items() for key, array in _packed(name, parts)}

    def restore(self, evaluations: int, arrays: Mapping[str, Array], n_examples: int) -> None:
        """Go on with what `arrays` returned."""
        self.evaluations, self.replaced, self.now = evaluations, {}, {}
        found: dict[int, dict[str, Array]] = {}
        for name in sorted(key.removesuffix(".values") for key in arrays if key.endswith(".values")):
            for i, array in _unpacked(name, arrays, n_examples):
                found.setdefault(i, {})[name] = array
        self.now = dict(found)


def _packed(name: str, parts: list[tuple[int, Array]]) -> list[tuple[str, Array]]:
    """Return arrays of examples, which differ in the length of their first axis alone, as three arrays."""
    rows = [np.atleast_1d(array) for _, array in parts]
    lengths = [-1 if array.ndim == 0 else len(array) for _, array in parts]  # -1: a single number
    return [
        (f"{name}.examples", np.array([i for i, _ in parts], np.int64)),
        (f"{name}.lengths", np.array(lengths, np.int64)),
        (f"{name}.values", np.concatenate(rows)),
    ]


def _unpacked(name: str, arrays: Mapping[str, Array], n_examples: int) -> list[tuple[int, Array]]:
    """Return the arrays of each example; a file is checked before it is believed."""
    examples, lengths = (arrays.get(f"{name}.{what}") for what in ("examples", "lengths"))
    values = arrays[f"{name}.values"]
    fine = examples is not None and lengths is not None and examples.shape == lengths.shape and examples.ndim == 1
    if examples is None or lengths is None or not fine or {examples.dtype.kind, lengths.dtype.kind} - {"i"}:
        raise InputError("checkpoint", f"what is kept of each example ({name})", "something else", "remove the file")
    counts = np.abs(lengths)
    inside = ((examples >= 0) & (examples < n_examples) & (lengths >= -1)).all()
    if not inside or len(np.unique(examples)) < len(examples) or values.ndim < 1 or counts.sum() != len(values):
        raise InputError("checkpoint", f"what is kept of {n_examples} examples ({name})", "others", "remove the file")
    parts = np.split(values, np.cumsum(counts)[:-1])
    single = lengths.tolist()
    return [(i, part[0] if n < 0 else part) for i, n, part in zip(examples.tolist(), single, parts, strict=True)]
