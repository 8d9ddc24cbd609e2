"""Draw docs/overview.svg, the picture of the README: what is computed, and where the gradient goes.

The images are real: a grid CRF is trained on noisy digits for four sweeps of belief propagation, and the picture shows
its beliefs after one, two and four of them. Run it from the repository: python tools/make_overview.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

import isinglass as ig

OUT = Path(__file__).parent.parent / "docs" / "overview.svg"
INK, FAINT, BLUE, ORANGE = "#1d2530", "#8a8f98", "#1f5fa8", "#d9730d"
SHOWN = 6  # the digit of the test set
SWEEPS = (1, 2, 4)


def images() -> tuple[Any, dict[int, Any], Any, Any]:
    """Return a noisy digit, the beliefs of its pixels after some sweeps, the decision and the truth."""
    X, Y, X_test, Y_test = ig.datasets.noisy_digits(noise=0.5, random_state=0)
    with ig.errors.no_convergence_warnings():
        crf = ig.GridCRF(iterations=4, l2=1e-2, max_iter=40).fit(X, Y)
    one = X_test[[SHOWN]]
    decision = crf.predict(one)[0]
    beliefs = {t: crf.set_params(iterations=t).predict_marginals(one)[0, ..., 1] for t in SWEEPS}
    return one[0, ..., 1], beliefs, decision, Y_test[SHOWN]


def picture(ax: Any, image: Any, left: float, bottom: float, size: float) -> None:
    inside = ax.inset_axes((left, bottom, size, size), transform=ax.transData)
    inside.imshow(image, cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    inside.set(xticks=[], yticks=[])
    for spine in inside.spines.values():
        spine.set_color(FAINT)


def grid(ax: Any, left: float, bottom: float, size: float) -> None:
    """Draw a small factor graph of a grid: circles, squares between them, and observed pixels."""
    places = np.linspace(0.12, 0.88, 4) * size
    for i, y in enumerate(places):
        for j, x in enumerate(places):
            for dx, dy in ((1, 0), (0, 1)):
                if j + dx < 4 and i + dy < 4:
                    end = left + places[j + dx], bottom + places[i + dy]
                    start = left + x, bottom + y
                    ax.plot(*zip(start, end, strict=True), color=BLUE, linewidth=1.6, zorder=1)
                    middle = [(a + b) / 2 for a, b in zip(start, end, strict=True)]
                    ax.plot(*middle, "s", color=INK, markersize=3.4, zorder=2)
            ax.plot(left + x, bottom + y, "o", color="white", markeredgecolor=INK, markersize=10, zorder=3)


def arrow(ax: Any, start: tuple[float, float], end: tuple[float, float], colour: str = INK, bend: float = 0.0) -> None:
    style = f"arc3,rad={bend}"
    made = FancyArrowPatch(start, end, connectionstyle=style, arrowstyle="-|>", mutation_scale=16, linewidth=1.8)
    made.set_color(colour)
    ax.add_patch(made)


def heading(ax: Any, x: float, title: str, text: str) -> None:
    ax.text(x, 3.72, title, ha="center", fontsize=13, fontweight="bold", color=INK)
    ax.text(x, 3.4, text, ha="center", fontsize=10, color="#4c5562")


def draw() -> Any:
    noisy, beliefs, decision, truth = images()
    fig, ax = plt.subplots(figsize=(12.4, 4.5))
    ax.set(xlim=(0, 12.4), ylim=(-0.5, 4.1))
    ax.axis("off")
    heading(ax, 1.15, "Data", "images, text, tables, graphs")
    picture(ax, noisy, 0.25, 1.35, 1.8)
    heading(ax, 4.05, "Model", "log-potentials of a graph")
    grid(ax, 3.15, 1.35, 1.8)
    heading(ax, 7.35, "Inference", "beliefs, log Z, optima, samples")
    for k, t in enumerate(SWEEPS):
        left = 5.95 + 1.0 * k
        picture(ax, beliefs[t], left, 1.8, 0.9)
        ax.text(left + 0.45, 1.52, f"{t} sweep{'s' * (t > 1)}", ha="center", fontsize=9, color="#4c5562")
    heading(ax, 11.2, "Decision", "for the loss that counts")
    picture(ax, decision, 10.3, 1.35, 1.8)
    for start, end in ((2.2, 3.0), (5.0, 5.8), (9.0, 10.15)):
        arrow(ax, (start, 2.25), (end, 2.25))
    box = FancyBboxPatch((9.62, -0.02), 2.6, 0.82, boxstyle="round,pad=0.08", facecolor="#fdf3e7", edgecolor=ORANGE)
    ax.add_patch(box)
    picture(ax, truth, 9.72, 0.04, 0.7)
    ax.text(10.6, 0.38, "loss against\nthe truth", fontsize=10, color=INK, va="center")
    arrow(ax, (11.2, 1.28), (11.2, 0.95), ORANGE)
    arrow(ax, (9.45, 0.4), (4.1, 1.28), ORANGE, -0.15)
    words = (
        "the gradient goes back through every step of the inference:\nlearned for the inference that will really be run"
    )
    ax.text(6.6, -0.12, words, ha="center", fontsize=10.5, color=ORANGE, style="italic")
    return fig


def main() -> None:
    mpl.use("Agg")
    mpl.rcParams.update({"svg.hashsalt": "isinglass", "font.family": "DejaVu Sans"})
    draw().savefig(OUT, bbox_inches="tight", facecolor="white", metadata={"Date": None})


if __name__ == "__main__":
    main()
