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
from isinglass_experiments.data import (
    entity_attributes,
    load_conll2000,
    load_contingency,
    load_horses,
    load_letters,
    load_scene_labels,
    load_snakes,
    load_street_scenes,
    load_wnut17,
)
from isinglass_experiments.margins.tasks import block_features, block_labels

TITLE = "Defaults and other settings: score on held-out examples (MRF: nats a sample), processor seconds of fit"
COLUMNS = ("estimator", "data", "setting", "score", "seconds", "over defaults")
Settings = dict[str, dict[str, Any]]
Data = tuple[Any, Any, Any, Any]

L2: Settings = {"l2=10": {"l2": 10.0}, "l2=0.1": {"l2": 0.1}}


@cache
def letters() -> Data:
    """Return 704 words to train on, and 626 to test."""
    found = load_letters()
    return *found.part(1), *found.part(0)


@cache
def chunks(train: int = 1000, test: int = 1000) -> Data:
    """Return sentences with chunks."""
    d = load_conll2000()
    return d.X_train[:train], d.Y_train[:train], d.X_test[:test], d.Y_test[:test]


@cache
def entities(train: int = 1000, test: int = 1000) -> Data:
    """Return messages with named entities."""
    d = load_wnut17()
    X, X_test = ([entity_attributes(words) for words in part] for part in (d.words_train, d.words_test))
    return X[:train], d.Y_train[:train], X_test[:test], d.Y_test[:test]


@cache
def word_graphs() -> Data:
    """Return the words as graphs: nodes are letters, edges join neighbours."""
    X, Y, X_test, Y_test = (part[:150] for part in letters())
    made = [[(x, np.c_[: len(x) - 1, 1 : len(x)]) for x in part] for part in (X, X_test)]
    return made[0], Y, made[1], Y_test


@cache
def snakes(train: int = 20) -> Data:
    """Return snakes: images of cells as graphs, with edge features."""
    found = load_snakes()
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


@cache
def horses() -> Data:
    """Return photographs of horses and background, of a third of their size: colours from 0 to 1."""
    found = load_horses()
    X, X_test = (part[:, ::3, ::3] / 255.0 for part in (found.X_train[:40], found.X_test[:80]))
    return X, found.Y_train[:40, ::3, ::3], X_test, found.Y_test[:80, ::3, ::3]


@cache
def scenes(first: int) -> Data:
    """Return street scenes in blocks of five pixels, with five labels: colours, and where the block is."""
    found = load_street_scenes()
    X, X_test = (_placed(block_features(part / 255.0)) for part in (found.X_train[first::3], found.X_test[::2]))
    return X, block_labels(found.Y_train[first::3]), X_test, block_labels(found.Y_test[::2])


def _placed(X: Any) -> Any:
    """Append rows and columns, from 0 to 1."""
    n, height, width, _ = X.shape
    places = np.moveaxis(np.mgrid[0 : 1 : height * 1j, 0 : 1 : width * 1j], 0, -1)
    return np.concatenate([X, np.broadcast_to(places, (n, height, width, 2))], axis=-1)


@cache
def labels() -> Data:
    """Return photographs with several labels each."""
    d = load_scene_labels()
    return d.X_train, d.Y_train, d.X_test, d.Y_test


@cache
def table(name: str) -> Data:
    """Return the people of a table of counts, half of them to test."""
    counts = load_contingency(name)[0].counts
    cells = np.random.default_rng(0).permutation(np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0))
    half = len(cells) // 2
    return cells[:half], None, cells[half:], None


def pairwise_field(name: str, **options: Any) -> ig.MRF:
    """Return a field with a factor for each pair of variables of a table."""
    cards = load_contingency(name)[0].counts.shape
    pairs = [(i, j) for j in range(len(cards)) for i in range(j)]
    return ig.MRF(ig.FactorGraph(cards, pairs), **options)


ENDS: Settings = {
    "bias=False, boundary=False": {"bias": False, "boundary": False},
    'state_features="all"': {"state_features": "all"},
}
TABLES = ("HairEyeColor", "Titanic", "Rochdale", "housing")
Case = tuple[str, str, Callable[..., Any], list[Callable[[], Data]], Settings]
CASES: list[Case] = [
    *(
        (cls.__name__, data.__name__, cls, [data], ENDS | L2)
        for cls in (ig.ChainCRF, ig.MEMM)
        for data in (letters, chunks, entities)
    ),
    *(
        ("GridCRF", name, ig.GridCRF, data, {"bias=False": {"bias": False}} | L2)
        for name, data in (
            ("digits", [digits]),
            ("horses", [horses]),
            ("scenes", [partial(scenes, k) for k in range(3)]),
        )
    ),
    *(
        ("GraphCRF", name, ig.GraphCRF, [data], {"bias=False": {"bias": False}} | more | L2)
        for name, data, more in (
            ("letters", word_graphs, {}),
            ("snakes", snakes, {"edge_bias=True": {"edge_bias": True}}),
            ("snakes, plain", plain_snakes, {"symmetric=True": {"symmetric": True}}),
        )
    ),
    ("MultiLabelCRF", "labels", ig.MultiLabelCRF, [labels], {'graph="tree"': {"graph": "tree"}} | L2),
    *(("MRF", name, partial(pairwise_field, name), [partial(table, name)], L2) for name in TABLES),
]


def rows() -> Rows:
    """Name the rows."""
    return {
        f"{estimator} {data} {setting}": partial(_row, estimator, data, make, loads, setting, options)
        for estimator, data, make, loads, settings in CASES
        for setting, options in ({"defaults": {}} | settings).items()
    }


_plain: dict[tuple[str, str], float] = {}  # the seconds of the defaults
_warm: set[str] = set()


def _fitted(estimator: Any, data: tuple[Any, ...]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(*data[:2])


def _row(
    estimator: str,
    data: str,
    make: Callable[..., Any],
    loads: list[Callable[[], Data]],
    setting: str,
    options: dict[str, Any],
) -> Row:
    """Train and test on each draw of the data; scores are means over draws, seconds are sums."""
    scores, seconds = [], 0.0
    if estimator not in _warm:  # what is loaded and compiled once
        _warm.add(estimator)
        _fitted(make(max_iter=2), loads[0]())
    for X, Y, X_test, Y_test in [load() for load in loads]:
        start = time.process_time()
        crf = _fitted(make(**options), (X, Y))
        seconds += time.process_time() - start
        scores.append(crf.score(X_test, Y_test))
    plain = _plain.setdefault((estimator, data), seconds) if setting == "defaults" else _plain.get((estimator, data))
    ratio = "-" if plain is None else f"{seconds / plain:.1f}"
    return [estimator, data, setting, f"{np.mean(scores):.4f}", f"{seconds:.1f}", ratio]
