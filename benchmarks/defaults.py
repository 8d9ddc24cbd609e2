"""How well the defaults of each estimator do on the shared data, and what other settings would give.

A row trains one estimator with one setting on one data set, and tests it on examples that were held out. Settings name
what they change; "defaults" changes nothing. The page docs/defaults.md says which data these are, and has the rule by
which defaults were chosen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

import isinglass as ig
from benchmarks.timing import Row, Rows

TITLE = "Defaults and other settings: score on held-out examples (MRF: nats a sample), processor seconds of fit"
COLUMNS = ("estimator", "data", "setting", "score", "seconds", "over defaults", "l2")
Settings = dict[str, dict[str, Any]]
Data = tuple[Any, Any, Any, Any]

L2: Settings = {f"l2={l2:g}": {"l2": l2} for l2 in (10.0, 1.0, 0.1, 0.01)} | {'l2="auto"': {"l2": "auto"}}


@cache
def letters() -> Data:
    """Return 704 words to train on, and 626 to test."""
    found = ig.datasets.load_letters()
    return *found.part(1), *found.part(0)


@cache
def chunks(train: int = 1000, test: int = 1000) -> Data:
    """Return sentences with chunks."""
    d = ig.datasets.load_conll2000()
    return d.X_train[:train], d.Y_train[:train], d.X_test[:test], d.Y_test[:test]


@cache
def entities(train: int = 1000, test: int = 1000) -> Data:
    """Return messages with named entities."""
    d = ig.datasets.load_wnut17()
    X, X_test = ([ig.datasets.entity_attributes(words) for words in part] for part in (d.words_train, d.words_test))
    return X[:train], d.Y_train[:train], X_test[:test], d.Y_test[:test]


@cache
def word_graphs() -> Data:
    """Return the words as graphs: nodes are letters, edges join neighbours."""
    X, Y, X_test, Y_test = letters()
    made = [[(x, np.c_[: len(x) - 1, 1 : len(x)]) for x in part] for part in (X, X_test)]
    return made[0], Y, made[1], Y_test


@cache
def snakes(train: int = 40) -> Data:
    """Return snakes: images of cells as graphs, with edge features."""
    found = ig.datasets.load_snakes()
    X, Y = found.graphs("train")
    return X[:train], Y[:train], *found.graphs("test")


@cache
def plain_snakes() -> Data:
    """Return snakes without edge features."""
    X, Y, X_test, Y_test = snakes()
    return [x[:2] for x in X], Y, [x[:2] for x in X_test], Y_test


@cache
def digits() -> Data:
    """Return noisy digits."""
    X, Y, X_test, Y_test = ig.datasets.noisy_digits(noise=0.5, random_state=0)
    return X[:40], Y[:40], X_test, Y_test


def _small(photographs: Any, train: int, test: int) -> Data:
    """Return photographs of a third of their size: colours from 0 to 1."""
    X, X_test = (part[:, ::3, ::3] / 255.0 for part in (photographs.X_train[:train], photographs.X_test[:test]))
    Y, Y_test = (part[:, ::3, ::3] for part in (photographs.Y_train[:train], photographs.Y_test[:test]))
    return X, Y, X_test, Y_test


@cache
def horses() -> Data:
    """Return horses and background."""
    return _small(ig.datasets.load_horses(), 40, 80)


@cache
def scenes() -> Data:
    """Return street scenes with five labels."""
    return _small(ig.datasets.load_street_scenes(), 30, 60)


@cache
def labels() -> Data:
    """Return photographs with several labels each."""
    d = ig.datasets.load_scene_labels()
    return d.X_train, d.Y_train, d.X_test, d.Y_test


@cache
def table(name: str) -> Data:
    """Return the people of a table of counts, half of them to test."""
    counts = ig.datasets.load_contingency(name)[0].counts
    cells = np.random.default_rng(0).permutation(np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0))
    half = len(cells) // 2
    return cells[:half], None, cells[half:], None


def pairwise_field(name: str, **options: Any) -> ig.MRF:
    """Return a field with a factor for each pair of variables of a table."""
    cards = ig.datasets.load_contingency(name)[0].counts.shape
    pairs = [(i, j) for j in range(len(cards)) for i in range(j)]
    return ig.MRF(ig.FactorGraph(cards, pairs), **options)


BIASES: Settings = {"bias=False": {"bias": False}, "bias=True": {"bias": True}}
ENDS: Settings = {
    f'state_features="{which}"' + (", bias, boundary" if more else ""): {
        "state_features": which, "bias": more, "boundary": more,
    }
    for which in ("seen", "all")
    for more in (False, True)
}  # fmt: skip
TABLES = ("HairEyeColor", "Titanic", "Rochdale", "housing")
CASES: list[tuple[str, str, Callable[..., Any], Callable[[], Data], Settings]] = [
    *(
        (cls.__name__, data.__name__, cls, data, ENDS | L2)
        for cls in (ig.ChainCRF, ig.MEMM)
        for data in (letters, chunks, entities)
    ),
    *(("GridCRF", data.__name__, ig.GridCRF, data, BIASES | L2) for data in (digits, horses, scenes)),
    *(
        ("GraphCRF", name, ig.GraphCRF, data, BIASES | more | L2)
        for name, data, more in (
            ("letters", word_graphs, {}),
            ("snakes", snakes, {"bias, edge_bias": {"bias": True, "edge_bias": True}}),
            ("snakes, plain", plain_snakes, {"symmetric": {"symmetric": True}}),
        )
    ),
    (
        "MultiLabelCRF",
        "labels",
        ig.MultiLabelCRF,
        labels,
        {f'graph="{g}"': {"graph": g} for g in ("full", "tree")} | L2,
    ),
    *(
        ("MRF", name, partial(pairwise_field, name), partial(table, name), {"l2=0": {"l2": 0.0}} | L2)
        for name in TABLES
    ),
]


def rows() -> Rows:
    """Name the rows."""
    return {
        f"{estimator} {data} {setting}": partial(_row, estimator, data, make, load, setting, options)
        for estimator, data, make, load, settings in CASES
        for setting, options in ({"defaults": {}} | settings).items()
    }


_seconds: dict[tuple[str, str], float] = {}  # of the defaults


def _row(
    estimator: str, data: str, make: Callable[..., Any], load: Callable[[], Data], setting: str, options: dict[str, Any]
) -> Row:
    X, Y, X_test, Y_test = load()
    crf, start = make(**options), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        crf.fit(X, Y)
    seconds = time.process_time() - start
    plain = (
        _seconds.setdefault((estimator, data), seconds) if setting == "defaults" else _seconds.get((estimator, data))
    )
    ratio = "-" if plain is None else f"{seconds / plain:.2f}"
    score = crf.score(X_test, Y_test)
    return [estimator, data, setting, f"{score:.4f}", f"{seconds:.2f}", ratio, f"{getattr(crf, 'l2_', crf.l2):g}"]
