"""Four tasks for max-margin learning: their data, their estimators, and one decoder for all methods of a task.

    letters    handwritten words, chains (Taskar, Guestrin and Koller 2003); decoded by Viterbi
    snakes     cells of snakes, grids with edge features; belief propagation in training (TRW for the likelihood),
               decoded by TRW-S
    labels     pictures with several of six labels, complete graphs of labels; exact
    blocks     street scenes in blocks of 5 x 5 pixels, grids; belief propagation in training, decoded by TRW-S

A block has the label of most of its labelled pixels, and none where no pixel has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from isinglass import TRWS, BeliefPropagation, ChainCRF, GraphCRF, GridCRF, TreeReweighted, map_assignment
from isinglass.learning.optimizers import AveragedPerceptron, BlockFrankWolfe, Cccp
from isinglass.losses import Margin
from isinglass.typing import Array, FloatArray, IntArray
from isinglass_experiments.data import (
    N_LABELS,
    SCENE_LABELS,
    ImageFeatures,
    label_graph,
    load_letters,
    load_scene_labels,
    load_snakes,
    load_street_scenes,
)

SIDE = 5  # pixels of a block
ROUGH = TRWS(max_iter=30)  # what decodes in training where exact inference does not fit
FINAL = TRWS(max_iter=200)
MARGINALS = ("cl", "ucl", "uquad")

Data = tuple[Any, Any]
Options = dict[str, Any]


class Task(ABC):
    """One task: its data, its methods, and how labels are decoded."""

    name: ClassVar[str]
    l2: ClassVar[float]
    methods: ClassVar[dict[str, Options]]
    choices: ClassVar[dict[str, tuple[Options, ...]]] = {}  # of which examples that are held out choose
    most: ClassVar[int] = 100  # iterations of methods that have no limit of their own

    @abstractmethod
    def load(self, data: str | None, quick: bool) -> tuple[Data, Data]:
        """Return examples and labels to train on, and to test."""

    @abstractmethod
    def estimator(self, **options: Any) -> Any:
        """Return an estimator with the options of a method."""

    def predict(self, crf: Any, X: Any) -> Sequence[Array]:
        """Return the most probable labels of each example."""
        p = crf.infer(X).potentials
        states = map_assignment(p, FINAL).states
        sizes = np.bincount(p.graph.variable_component, minlength=p.graph.n_components)
        return np.split(states, np.cumsum(sizes)[:-1])

    def counted(self, truth: Array) -> Array:
        """Tell which labels of an example count in the accuracy."""
        return np.asarray(truth).ravel() >= 0


class LetterTask(Task):
    """Handwritten words."""

    name: ClassVar[str] = "letters"
    l2: ClassVar[float] = 0.5
    methods: ClassVar[dict[str, Options]] = {
        **{loss: {"loss": loss} for loss in MARGINALS},
        "perceptron": {"loss": "perceptron", "optimizer": AveragedPerceptron(epochs=5, random_state=0), "l2": 0.0},
        "margin-1e-1": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-1)},
        "margin-1e-2": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-2)},
        "margin-1e-3": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-3)},
    }

    def load(self, data: str | None, quick: bool) -> tuple[Data, Data]:
        """Train on folds 1 to 7, or on the first of them, and test on fold 0."""
        letters = load_letters(data)
        return letters.part(*((1,) if quick else range(1, 8))), letters.part(0)

    def estimator(self, **options: Any) -> ChainCRF:
        """Return a chain with all weights, and parameters of first and last letters."""
        return ChainCRF(state_features="all", bias=True, boundary=True, decoder="map", **options)

    def predict(self, crf: Any, X: Any) -> Sequence[Array]:
        """Decode by Viterbi."""
        return [np.asarray(word) for word in crf.predict(X)]


class SnakeTask(Task):
    """Cells of snakes; the background does not count."""

    name: ClassVar[str] = "snakes"
    l2: ClassVar[float] = 0.01
    methods: ClassVar[dict[str, Options]] = {
        "cl": {"loss": "cl", "gradient": "envelope", "inference": TreeReweighted(tol=1e-3, max_iter=100)},
        **{loss: {"loss": loss} for loss in ("ucl", "uquad")},
        "margin": {"loss": Margin(solver=ROUGH)},
    }
    choices: ClassVar[dict[str, tuple[Options, ...]]] = {
        "margin": tuple({"optimizer": BlockFrankWolfe(tol=1e-2, max_iter=passes)} for passes in (5, 10, 20, 40)),
    }

    def load(self, data: str | None, quick: bool) -> tuple[Data, Data]:
        """Return 200 images, or 20, and 50 to test."""
        snakes = load_snakes(data)
        X, Y = snakes.graphs("train")
        n = 20 if quick else len(X)
        return (X[:n], Y[:n]), snakes.graphs("test")

    def estimator(self, **options: Any) -> GraphCRF:
        """Return a grid with edge features, and ten iterations of belief propagation, one for each cell.

        The likelihood has no minimum with them: training makes log Z of ten iterations as wrong as it likes. With
        TRW, whose log Z is an upper bound, it has one.
        """
        inference = BeliefPropagation(schedule="flooding", iterations=10)
        chosen: Options = {"inference": inference, "bias": False, **options}
        return GraphCRF(n_states=N_LABELS, **chosen)

    def counted(self, truth: Array) -> Array:
        """Count the cells of snakes."""
        return np.asarray(truth).ravel() > 0


class LabelTask(Task):
    """Pictures with several labels."""

    name: ClassVar[str] = "labels"
    l2: ClassVar[float] = 0.1
    methods: ClassVar[dict[str, Options]] = {
        **{loss: {"loss": loss} for loss in MARGINALS},
        "margin": {"loss": "margin", "optimizer": BlockFrankWolfe(tol=1e-2, max_iter=20)},
    }

    def load(self, data: str | None, quick: bool) -> tuple[Data, Data]:
        """Return all pictures, or every eighth to train on."""
        found = load_scene_labels(data)
        step = 8 if quick else 1
        X, Y = found.X_train[::step], found.Y_train[::step]
        return (_graphs(X), list(Y)), (_graphs(found.X_test), list(found.Y_test))

    def estimator(self, **options: Any) -> GraphCRF:
        """Return a complete graph of the labels, each and each pair of them with weights of its own."""
        return GraphCRF("exact", iterations=None, bias=False, n_states=2, **options)

    def predict(self, crf: Any, X: Any) -> Sequence[Array]:
        """Decode exactly."""
        return list(map_assignment(crf.infer(X).potentials).states.reshape(len(X), -1))


class BlockTask(Task):
    """Street scenes in blocks."""

    name: ClassVar[str] = "blocks"
    l2: ClassVar[float] = 0.1
    methods: ClassVar[dict[str, Options]] = {
        **{loss: {"loss": loss} for loss in MARGINALS},
        "margin": {
            "loss": Margin(solver=ROUGH),
            "optimizer": Cccp(tol=1e-2, max_iter=3, inner="cutting-plane", inner_iter=60),
        },
    }

    def load(self, data: str | None, quick: bool) -> tuple[Data, Data]:
        """Return 100 scenes, or 15, and 100 to test; features are means over blocks."""
        photographs = load_street_scenes(data)
        n = 15 if quick else len(photographs.X_train)
        features = ImageFeatures(clusters=10 if quick else 50, whiten=True)
        X = features.fit_transform(photographs.X_train[:n])
        test = block_features(features.transform(photographs.X_test)), block_labels(photographs.Y_test)
        return (block_features(X), block_labels(photographs.Y_train[:n])), test

    def estimator(self, **options: Any) -> GridCRF:
        """Return a grid with tables of its own for each direction, and five sweeps of belief propagation."""
        return GridCRF(iterations=5, n_states=len(SCENE_LABELS), bias=True, **options)


TASKS: dict[str, Task] = {task.name: task for task in (LetterTask(), SnakeTask(), LabelTask(), BlockTask())}


def _graphs(X: FloatArray) -> list[tuple[Array, ...]]:
    return [label_graph(x, 6) for x in X]


def block_features(X: FloatArray) -> FloatArray:
    """Return the means of features (n, height, width, features) over blocks of `SIDE` pixels each way.

    Examples
    --------
    >>> block_features(np.arange(50.0).reshape(1, 5, 10, 1))[0, 0, :, 0].tolist()
    [22.0, 27.0]
    """
    n, height, width, count = X.shape
    found: FloatArray = X.reshape(n, height // SIDE, SIDE, width // SIDE, SIDE, count).mean(axis=(2, 4))
    return found


def block_labels(Y: IntArray) -> IntArray:
    """Return the label that most labelled pixels of each block have; -1 where none has one.

    Examples
    --------
    >>> Y = np.full((1, 5, 10), -1)
    >>> Y[0, 0, :3], Y[0, 1, 0] = 2, 0
    >>> block_labels(Y).tolist()
    [[[2, -1]]]
    """
    n, height, width = Y.shape
    blocks = Y.reshape(n, height // SIDE, SIDE, width // SIDE, SIDE)
    counts = np.stack([(blocks == label).sum(axis=(2, 4)) for label in range(max(int(Y.max()) + 1, 1))], axis=-1)
    return np.where(counts.max(axis=-1) > 0, counts.argmax(axis=-1), -1)
