"""
Street scenes, block by block
=============================

Photographs from a car are cut into blocks, and each block is labelled as building, sky,
car, road or tree. Classes are of very different size: weights decide whether the small
ones count. Cross-validation measures it, by the mean IoU.
"""

# sphinx_gallery_thumbnail_number = 2
import os

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.metrics import make_scorer
from sklearn.model_selection import KFold, cross_validate

import isinglass as ig
from isinglass_experiments.data import load_street_scenes

# %%
# Data
# ----
#
# Photographs of 60 x 80 pixels (CamVid): 20 to learn from, 50 for the test. Where
# ``ISINGLASS_DATA`` is not set, the example makes up scenes of a sky, houses and trees,
# a road and cars.
classes = ["building", "sky", "car", "road", "tree"]


def made_up(n, seed):
    """Return made-up scenes: photographs and labels."""
    rng = np.random.default_rng(seed)
    Y = np.zeros((n, 60, 80), int)
    for y in Y:
        y[rng.integers(30, 40) :] = 3
        y[: rng.integers(12, 24)] = 1
        for label, low, high in ((4, 18, 30), (2, 32, 42)):
            top, left = rng.integers(low, high), rng.integers(0, 60)
            y[top : top + 10, left : left + 18] = label
    colour = np.array(
        [[120, 110, 105], [190, 200, 215], [90, 80, 85], [110, 108, 110], [90, 110, 80]]
    )
    return np.clip(colour[Y] + rng.normal(0, 25, (n, 60, 80, 3)), 0, 255).astype(
        np.uint8
    ), Y


if os.environ.get("ISINGLASS_DATA"):
    scenes = load_street_scenes()
    photos, labels = scenes.X_train[::5], scenes.Y_train[::5]
    photos_test, labels_test = scenes.X_test[::2], scenes.Y_test[::2]
else:
    (photos, labels), (photos_test, labels_test) = made_up(20, 0), made_up(50, 1)

# %%
# A block has 6 x 8 pixels, so that a photograph is a grid of 10 x 10 blocks. Its
# features are the mean colour, how colourful and how rough it is, and where it lies.
# Its label is that of most of its pixels; -1 means "not labelled".


def blocks(array):
    """Return the pixels of each block, as a last but one axis."""
    n, height, width = array.shape[:3]
    cut = array.reshape(n, height // 6, 6, width // 8, 8, -1).swapaxes(2, 3)
    return cut.reshape(n, height // 6, width // 8, 48, -1)


def features(photos):
    """Return eight features of each block."""
    pixels = blocks(photos / 255)
    mean, rough = pixels.mean(axis=3), pixels.std(axis=3).mean(axis=-1)
    y, x = np.broadcast_arrays(*np.ogrid[-1:1:10j, -1:1:10j])
    place = np.broadcast_to(np.stack([y, y**2, abs(x)], -1), (*rough.shape, 3))
    return np.concatenate(
        [mean, np.stack([np.ptp(mean, axis=-1), rough], -1), place], -1
    )


def majority(labels):
    """Return the label of most pixels of each block."""
    return (
        np.stack(
            [(blocks(labels) == k).sum(axis=(3, 4)) for k in range(-1, 5)], -1
        ).argmax(-1)
        - 1
    )


X, Y, X_test, Y_test = (
    features(photos),
    majority(labels),
    features(photos_test),
    majority(labels_test),
)
centre, scale = X.mean(axis=(0, 1, 2)), X.std(axis=(0, 1, 2))
X, X_test = (X - centre) / scale, (X_test - centre) / scale
print(
    "blocks of each class:",
    {name: int(n) for name, n in zip(classes, np.bincount(Y[Y >= 0]), strict=True)},
)

# %%
# Class weights, by cross-validation
# ----------------------------------
#
# ``class_weight="balanced"`` makes each class count as much as any other. Photographs
# are in the order of the film, and neighbours are alike, so a fold is a stretch of it,
# not a random choice. Intersection over union (IoU) of a class is the number of blocks
# that both truth and prediction give to it, over those that at least one of them does.
#
# Training ends after 40 iterations, before the optimum; more of them change little
# here.
mean_iou = make_scorer(ig.metrics.mean_iou)
recall = make_scorer(
    lambda Y, P: np.mean([c.recall for c in ig.metrics.report(Y, P).per_class.values()])
)
crf = ig.GridCRF(iterations=3, bias=True, l2=1.0, max_iter=40)
with ig.errors.no_convergence_warnings():
    for weight in (None, "balanced"):
        crf.set_params(class_weight=weight)
        found = cross_validate(
            crf, X, Y, cv=KFold(3), scoring={"iou": mean_iou, "recall": recall}
        )
        iou, recalled = found["test_iou"].mean(), found["test_recall"].mean()
        print(f"class_weight={weight}: mean IoU {iou:.3f}, mean recall {recalled:.3f}")

# %%
# On the test photographs
# -----------------------
with ig.errors.no_convergence_warnings():
    fitted = {
        w: ig.GridCRF(iterations=3, bias=True, max_iter=40, class_weight=w).fit(X, Y)
        for w in (None, "balanced")
    }
    alone = ig.GridCRF(
        iterations=3, bias=True, max_iter=40, edges="none", class_weight="balanced"
    ).fit(X, Y)
models = {
    "no weights": fitted[None],
    "balanced": fitted["balanced"],
    "balanced, blocks alone": alone,
}
reports = {
    title: ig.metrics.report(Y_test, model.predict(X_test))
    for title, model in models.items()
}
for title, report in reports.items():
    print(f"{title:23} accuracy {report.accuracy:.3f}   mean IoU {report.mean_iou:.3f}")

# %%
# On CamVid no tree is found without weights; weights find some, and take from the
# larger classes. Edges between neighbours help all classes but the sky, which is easy
# to tell by its colour.
fig, ax = plt.subplots(figsize=(8, 3.2))
for k, (title, report) in enumerate(reports.items()):
    ious = [report.per_class[c].iou for c in range(5)]
    ax.bar(
        np.arange(5) + 0.27 * (k - 1),
        ious,
        0.25,
        label=title,
        color=["#b8c4d3", "#1f5fa8", "#e8a33c"][k],
    )
ax.set_xticks(range(5), classes)
ax.set_ylabel("IoU")
ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0))

# %%
colours = ListedColormap(["#a8553a", "#9cc7ea", "#6a3d9a", "#7f7f7f", "#3b8a3e"])
rows = [i for i, y in enumerate(Y_test) if len(np.unique(y[y >= 0])) == 5][1::6][
    :3
]  # all classes are there
fig, axes = plt.subplots(3, 4, figsize=(9, 5.6), layout="constrained")
for row, i in zip(axes, rows, strict=True):
    row[0].imshow(photos_test[i])
    shown = [
        np.ma.masked_less(Y_test[i], 0),
        *(fitted[w].predict(X_test[[i]])[0] for w in (None, "balanced")),
    ]
    for ax, picture in zip(row[1:], shown, strict=True):
        ax.imshow(picture, cmap=colours, vmin=0, vmax=4, extent=(0, 80, 60, 0))
for ax, title in zip(
    axes[0], ["photograph", "truth", "no weights", "balanced"], strict=True
):
    ax.set_title(title)
for ax in axes.flat:
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
handles = [plt.Rectangle((0, 0), 1, 1, color=colours(k)) for k in range(5)]
fig.legend(handles, classes, loc="outside lower center", ncols=5, frameon=False)
