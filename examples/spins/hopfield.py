"""
Hopfield networks recall digits
===============================

An associative memory stores pictures in the couplings of an Ising model and completes
them from a part. Hebb's rule fails on digits, because they are too much alike; two
other rules work.
"""

# %%
# **Store.** Ten digits of 14 x 14 pixels, one coupling for each pair of pixels. A
# pattern is remembered if it is a minimum of the energy. Hebb's rule makes minima of
# patterns that have nothing in common. Digits have most of their white pixels in
# common.
import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

images, digits = ig.datasets.binary_digits()
rows = [np.flatnonzero(digits == d)[7] for d in range(10)]
coarse = images[rows].reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)) > 0.5
patterns = coarse.reshape(len(rows), -1).astype(int)
spins = 2.0 * patterns - 1
overlap = spins @ spins.T / spins.shape[1]
print(
    "mean correlation of two patterns:",
    overlap[np.triu_indices(len(rows), 1)].mean().round(2),
)

rules = ("hebb", "pseudo-inverse", "pseudolikelihood")
memories = {rule: ig.models.Hopfield.store(patterns, rule) for rule in rules}
for rule, memory in memories.items():
    kept = sum((memory.recall(pattern).states == pattern).all() for pattern in patterns)
    print(f"{rule:17} keeps {kept} of {len(patterns)} patterns")

# %%
# **Recall.** The upper half of each digit is shown and clamped; the lower half starts
# at random. Pixel after pixel takes the state of lower energy, until none changes.
rng = np.random.default_rng(0)
shown = np.zeros((14, 14), bool)
shown[:7] = True
starts = np.where(shown.ravel(), patterns, rng.integers(0, 2, patterns.shape))
recalls = {
    rule: [memory.recall(s, clamped=shown.ravel()) for s in starts]
    for rule, memory in memories.items()
}
for rule, found in recalls.items():
    wrong = [
        int((r.states != pattern).sum())
        for r, pattern in zip(found, patterns, strict=True)
    ]
    print(f"{rule:17} wrong pixels of 98: {wrong}")

columns = [
    patterns,
    starts,
    *(np.array([r.states for r in found]) for found in recalls.values()),
]
figure, axes = plt.subplots(5, 10, figsize=(7.5, 4), layout="constrained")
for row, (title, pictures) in enumerate(
    zip(["stored", "start", *rules], columns, strict=True)
):
    for ax, picture in zip(axes[row], pictures.reshape(-1, 14, 14), strict=True):
        ax.imshow(picture, cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, linewidth=0.5)
    axes[row, 0].set_ylabel(
        title.replace("pseudo", "pseudo-\n").replace("\n-", "\n"), fontsize=8
    )

# %%
# **Energies.** The energy never rises, sweep after sweep; that is why recall ends. With
# the pseudo-inverse rule all stored patterns have the same energy (dashed), and every
# recall ends there.
figure, ax = plt.subplots(figsize=(5, 2.8), layout="constrained")
for d, found in zip(digits[rows], recalls["pseudo-inverse"], strict=True):
    ax.plot(found.energies, ".-", label=f"{d}")
ax.axhline(
    memories["pseudo-inverse"].energy(patterns[0]),
    color="0.3",
    linewidth=0.8,
    linestyle="--",
)
ax.set(xlabel="sweep", ylabel="energy", xticks=range(4))
ax.legend(title="digit", frameon=False, ncols=2, fontsize=8)
print(
    "energies of the patterns:",
    memories["pseudo-inverse"].energy(patterns).round(1).tolist(),
)

# %%
# **Noise.** The same memories take noise off: a share of the pixels is set at random,
# nothing is clamped. The table has the mean number of digits (of ten, over five draws)
# that come back in every pixel.
print("noise            ", *(f"{noise:5.0%}" for noise in (0.2, 0.4, 0.6, 0.8)))
for rule in rules:
    counts = []
    for noise in (0.2, 0.4, 0.6, 0.8):
        draws = []
        for seed in range(5):
            draw = np.random.default_rng(seed)
            noisy = np.where(
                draw.random(patterns.shape) < noise,
                draw.integers(0, 2, patterns.shape),
                patterns,
            )
            states = np.array([memories[rule].recall(s).states for s in noisy])
            draws.append((states == patterns).all(axis=1).sum())
        counts.append(np.mean(draws))
    print(f"{rule:17}", *(f"{count:5.1f}" for count in counts))
