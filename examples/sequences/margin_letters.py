"""
Handwritten words: a margin against a likelihood
================================================

A chain of letters is learned in two ways, by the conditional likelihood and by a
structured support vector machine, from few words and with several strengths of the
penalty. The second needs a best labelling of each word, no probabilities; the first
gives probabilities.
"""

# %%
# **Data.** Words of Kassel's handwritten letters, 16 x 8 pixels each, from the folder
# that the environment variable ``ISINGLASS_DATA`` names. Where it is not set,
# scikit-learn's digits are put together to years from 1900 to 2029: a small set of the
# same kind.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass_experiments.data import load_letters


def years(n, seed):
    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    Y = [np.array([int(c) for c in str(year)]) for year in rng.integers(1900, 2030, n)]
    noisy = (pixels > 7) ^ (rng.random(pixels.shape) < 0.2)
    return [
        np.array([noisy[rng.choice(np.flatnonzero(digits == d))] for d in y], float)
        for y in Y
    ], Y


try:
    words = load_letters()
    (X, Y), (X_test, Y_test) = words.part(0), words.part(1)
    alphabet, shape = "abcdefghijklmnopqrstuvwxyz", (16, 8)
except ig.InputError:
    (X, Y), (X_test, Y_test) = years(100, 0), years(300, 1)
    alphabet, shape = "0123456789", (8, 8)
rng = np.random.default_rng(0)
some, others = rng.permutation(len(X))[:100], rng.permutation(len(X_test))[:300]
X, Y, X_test, Y_test = (
    [X[i] for i in some],
    [Y[i] for i in some],
    [X_test[i] for i in others],
    [Y_test[i] for i in others],
)
print(
    f"{len(X)} words to train on, {len(X_test)} to test; "
    f"{len(alphabet)} letters of {shape[0]} x {shape[1]} pixels"
)

# %%
# **Two losses, four penalties.** ``"cl"`` is the conditional likelihood, minimised by
# L-BFGS; ``"margin"`` asks that the right word outscores every other one by the number
# of its wrong letters, and ``"bcfw"`` (block-coordinate Frank-Wolfe) minimises that
# with a duality gap. Everything else is the same. Few iterations suffice here, so that
# warnings about the last digits are left out.
methods = {
    "likelihood": {"loss": "cl", "max_iter": 40},
    "margin": {"loss": "margin", "optimizer": "bcfw", "tol": 0.1, "max_iter": 40},
}
penalties = [0.05, 0.5, 5.0, 50.0]
fitted, right = {}, {}
for name, options in methods.items():
    for l2 in penalties:
        with no_convergence_warnings():
            crf = ig.ChainCRF(l2=l2, state_features="all", **options).fit(X, Y)
        fitted[name, l2], right[name, l2] = crf, crf.score(X_test, Y_test)
    print(
        f"{name:10}",
        "letters right:",
        " ".join(f"l2={l2:g}: {right[name, l2]:.3f} " for l2 in penalties),
    )
alone = ig.ChainCRF(l2=0.5, state_features="all", max_iter=40)
with no_convergence_warnings():
    alone.fit(
        [x[i : i + 1] for x in X for i in range(len(x))],
        [y[i : i + 1] for y in Y for i in range(len(y))],
    )
single = np.mean(
    np.concatenate(alone.predict([x[i : i + 1] for x in X_test for i in range(len(x))]))
    == np.concatenate(Y_test)
)
print(f"each letter by itself, likelihood, l2=0.5: {single:.3f}")
print("with l2 = 5:", fitted["margin", 5.0].message_)

# %%
# On the letters the two are about as good, each with its best penalty; the margin
# depends less on the penalty. Either reads better than letter by letter: the neighbours
# help.
figure, ax = plt.subplots(figsize=(5, 2.8), layout="constrained")
for name, colour in zip(methods, ["#1f5fa8", "#e8820c"], strict=True):
    ax.plot(
        penalties, [right[name, l2] for l2 in penalties], "o-", color=colour, label=name
    )
ax.axhline(
    single, color="0.5", linestyle="--", linewidth=1, label="each letter by itself"
)
ax.set(xscale="log", xlabel="l2", ylabel="letters right")
ax.legend(frameon=False)

# %%
# **Some words**, and what the two read; wrong letters are in brackets.
best = {
    name: max(penalties, key=lambda l2, name=name: right[name, l2]) for name in methods
}
read = {name: fitted[name, best[name]].predict(X_test) for name in methods}


def spelled(found, true):
    return "".join(
        alphabet[a] if a == b else f"[{alphabet[a]}]"
        for a, b in zip(found, true, strict=True)
    )


figure, axes = plt.subplots(3, 2, figsize=(8, 3.2), layout="constrained")
for i, ax in enumerate(axes.ravel()):
    ax.imshow(
        np.hstack([letter.reshape(shape) for letter in X_test[i]]),
        cmap="gray_r",
        aspect="equal",
    )
    texts = [f"{name}: {spelled(read[name][i], Y_test[i])}" for name in methods]
    ax.set_title("   ".join(texts), fontsize=8)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set(visible=True, linewidth=0.5)
