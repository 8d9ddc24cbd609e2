"""
Photographs with several labels
===============================

A photograph may show a field and mountains at once, but hardly a sunset and a city. A
conditional random field over the labels learns which go together, and names more sets
of labels exactly right.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.metrics import accuracy_score, f1_score, hamming_loss

import isinglass as ig
from isinglass_experiments.data import load_scene_labels

# %%
# The data set Scene has 1211 photographs for training and 598 for the test, of which we
# take every second. Six labels may hold for each. Its 294 features of colours are
# correlated, so we take 40 principal components. Where ``ISINGLASS_DATA`` is not set,
# the example makes up data with labels that exclude each other.
names = ["beach", "sunset", "foliage", "field", "mountain", "urban"]
if os.environ.get("ISINGLASS_DATA"):
    X, Y, X_test, Y_test = load_scene_labels()
    X, Y, X_test, Y_test = X[::2], Y[::2], X_test[::2], Y_test[::2]
else:
    rng = np.random.default_rng(0)
    Y = np.eye(6, dtype=int)[rng.integers(0, 6, 900)] | (rng.random((900, 6)) < 0.02)
    X = Y @ rng.normal(size=(6, 60)) + 2.5 * rng.normal(size=(900, 60))
    X, X_test, Y, Y_test = X[:600], X[600:], Y[:600], Y[600:]
pca = PCA(40, whiten=True, random_state=0).fit(X)
X, X_test = pca.transform(X), pca.transform(X_test)
print("photographs:", len(X), "for training,", len(X_test), "for the test")
print(
    "labels of a photograph:",
    {k: int(n) for k, n in enumerate(np.bincount(Y.sum(axis=1))) if n},
)

# %%
# Two models, two decisions
# -------------------------
#
# ``graph="none"`` treats the labels one by one: six logistic regressions.
# ``graph="full"`` adds a table for each pair of labels. A decoder turns the joint
# distribution into a set: ``"mpm"`` decides label by label and makes few wrong labels,
# ``"map"`` takes the most probable set and gets more whole sets right. Each is best for
# its own measure.
alone = ig.MultiLabelCRF(graph="none", tol=0.1).fit(X, Y)
pairs = ig.MultiLabelCRF(graph="full", tol=0.1).fit(X, Y)
rows = {}
for title, crf in {"labels alone": alone, "all pairs": pairs}.items():
    for decoder in ("mpm", "map"):
        P = crf.set_params(decoder=decoder).predict(X_test)
        rows[title, decoder] = {
            "hamming_loss": hamming_loss(Y_test, P),
            "subset_accuracy": accuracy_score(Y_test, P),
            "micro_f1": f1_score(Y_test, P, average="micro"),
            "macro_f1": f1_score(Y_test, P, average="macro"),
        }
table = pd.DataFrame(rows).T.round(3)
table

# %%
# What the pairs say
# ------------------
#
# The log-odds ratio of a table, t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0], is positive
# where two labels attract each other. Nearly all of them are negative: most photographs
# have one label.
ratio = np.full((6, 6), np.nan)
for (i, j), t in zip(pairs.edges_, pairs.parameters_["edge"], strict=True):
    ratio[i, j] = ratio[j, i] = t[0, 0] + t[1, 1] - t[0, 1] - t[1, 0]
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
largest = np.nanmax(np.abs(ratio))
image = left.imshow(ratio, cmap="RdBu", vmin=-largest, vmax=largest)
left.set_xticks(range(6), names, rotation=40, ha="right")
left.set_yticks(range(6), names)
left.spines[:].set_visible(False)
left.set_title("log-odds ratio of two labels")
fig.colorbar(image, ax=left)
bars = table["subset_accuracy"]
right.barh(
    [f"{a}, {b}" for a, b in bars.index],
    bars,
    color=["#b8c4d3", "#b8c4d3", "#1f5fa8", "#1f5fa8"],
)
right.bar_label(right.containers[0], fmt="%.3f", padding=3)
right.invert_yaxis()
right.set(title="share of photographs with all labels right", xlim=(0, 0.8))

# %%
# One photograph
# --------------
#
# The model also lists the most probable sets, with their probabilities.
shown = int(
    np.argmax(Y_test.sum(axis=1) * (pairs.predict(X_test) == Y_test).all(axis=1))
)
print("truth:", [names[k] for k in np.flatnonzero(Y_test[shown])])
for labels, log_probability in pairs.predict_n_best(X_test[[shown]], 4)[0]:
    print(f"{np.exp(log_probability):.3f}", [names[k] for k in np.flatnonzero(labels)])
