"""Convex free energies: the minimum and the implicit gradient of a loss of the beliefs, one core."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.ndimage import gaussian_filter

import isinglass as ig
from benchmarks.timing import Row, Rows, paired, seconds

TITLE = "Convex free energy, entropy A (w = 1 and .01), to 1e-8: minimum and implicit gradient"
COLUMNS = ("what", "minimum", "minimum + gradient", "at most", "iterations", "KKT residual")


def rows() -> Rows:
    """Name the rows."""
    made: dict[str, tuple[Callable[[], ig.Potentials], str]] = {
        "90 binary grids 28 x 28": (partial(patches, 90, 28, 28, 2), "0.6 s"),
        "the same, potentials x 3": (partial(patches, 90, 28, 28, 2, 3.0), "-"),
        "grid 60 x 80, 5 labels": (partial(patches, 1, 60, 80, 5), "1.2 s"),
        "binary grid 200 x 200": (partial(patches, 1, 200, 200, 2), "2 s"),
    }
    return {name: partial(_row, name, make, most) for name, (make, most) in made.items()}


def patches(copies: int, height: int, width: int, card: int, scale: float = 1.0) -> ig.Potentials:
    """Return grids with smooth random label maps seen through noise, and attractive pairs."""
    rng, unary = np.random.default_rng(0), []
    for _ in range(copies):
        fields = [gaussian_filter(rng.standard_normal((height, width)), 2.5) for _ in range(card)]
        labels = np.argmax(fields, axis=0)
        unary.append(1.5 * np.eye(card)[labels] + 0.9 * rng.standard_normal((height, width, card)))
    graph = ig.grid_graph(height, width, card)
    tables = [scale * np.reshape(unary, (-1, card)), scale * np.eye(card)[None]]
    return ig.Potentials.from_groups(graph.repeat(copies) if copies > 1 else graph, tables)


def _row(name: str, make: Callable[[], ig.Potentials], most: str) -> Row:
    p, algorithm = make(), ig.ConvexFreeEnergy(tol=1e-8)
    labels = np.random.default_rng(1).integers(0, p.graph.cards)
    every = np.arange(len(labels))

    def both() -> None:
        result = ig.infer(p, algorithm, tape=True)
        beliefs = np.asarray(result.variables)
        bars = np.zeros_like(beliefs)
        bars[every, labels] = -1 / beliefs[every, labels]
        result.backward(variables=bars)

    times = paired({"minimum": lambda: ig.infer(p, algorithm), "both": both})
    info = ig.infer(p, algorithm).info
    return [name, seconds(times["minimum"]), seconds(times["both"]), most, str(info.iterations), f"{info.residual:.0e}"]
