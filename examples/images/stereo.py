"""
Stereo: depth from two pictures
===============================

A point that is near has moved further between the pictures of two eyes. The shift of
each pixel is a label; the model asks that both pictures agree and that neighbours have
equal shifts, except at a few borders.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig
from isinglass_experiments.data import load_stereo

# %%
# **Data.** A part of the pictures "Tsukuba" (Scharstein and Szeliski 2002). Where
# ``ISINGLASS_DATA`` is not set, the example makes random dots of which a square and a
# disc stand before the background: in one picture alone nobody can see them.
n_shifts = 16


def made_up(height=90, width=120):
    """Return two pictures of random dots, and the shifts."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:height, :width]
    truth = np.full((height, width), 3)
    truth[18:60, 20:60] = 8
    truth[np.hypot(y - 52, x - 86) < 20] = 13
    right = rng.integers(0, 256, (height, width + n_shifts, 1))
    return right[y, x - truth + n_shifts], right[:, n_shifts:], truth


if os.environ.get("ISINGLASS_DATA"):
    part = np.s_[90:210, 110:290]
    left, right, truth = (picture[part] for picture in load_stereo())
else:
    left, right, truth = made_up()
height, width = truth.shape
print(
    f"{height} x {width} pixels; a shift of {truth[truth >= 0].min()} to {truth.max()}"
)

# %%
# **The model.** For each shift, how much the colour of a pixel on the left differs from
# that of its partner on the right; differences of over 20 all count as 20, since some
# points are hidden in one picture. Neighbours pay for the difference of their shifts,
# at most for two: a border costs the same however deep the step is.
colours = np.stack([left, right]).astype(float)
costs = np.full((height, width, n_shifts), 20.0)
for shift in range(n_shifts):
    difference = np.abs(colours[0][:, shift:] - colours[1][:, : width - shift])
    costs[:, shift:, shift] = np.minimum(difference.mean(axis=2), 20)
steps = np.abs(np.subtract.outer(np.arange(n_shifts), np.arange(n_shifts)))
smoothness = -4.0 * np.minimum(steps, 2)
graph = ig.grid_graph(height, width, n_shifts)
tables = [-costs.reshape(-1, n_shifts), smoothness[None]]
model = ig.Potentials.from_groups(graph, tables)

# %%
# **Solve it.** Each pixel by itself; then the most probable shifts together, by
# sequential tree-reweighted message passing, which also says how far from the best its
# solution can be.
alone = costs.argmin(axis=2)
best = ig.map_assignment(model, "trws", max_iter=30)
together = np.reshape(best.states, truth.shape)
print(f"score {best.score:.0f}, at most {best.bound:.0f} is possible")
known = (truth >= 0) & (np.arange(width) >= n_shifts)  # the left edge has no partner
for name, shifts in (("alone", alone), ("together", together)):
    wrong = np.abs(shifts - truth)[known] > 1
    print(f"{name:8} {wrong.mean():.1%} of the shifts are wrong by more than one")

# %%
# Look at what is near: bright areas. Pixels by themselves are right only where the
# picture has texture; together they fill what is plain and keep the borders.
figure, axes = plt.subplots(2, 2, figsize=(8, 5.4), layout="constrained")
shown = {"left picture": left / 255, "truth": truth, "alone": alone}
shown["together"] = together
for ax, (name, picture) in zip(axes.flat, shown.items(), strict=True):
    colours = {"cmap": "gray" if name == "left picture" else "viridis"}
    ax.imshow(picture, **colours, vmin=0, vmax=1 if name == "left picture" else 15)
    ax.set(xticks=[], yticks=[], title=name)
