"""
A noisy flower in six colours: MAP solvers compared
===================================================

Each pixel of a noisy photograph gets one of six colours, and neighbours like to have
the same one. To find the most probable picture is hard in general. Some solvers are
fast, some come with a bound, and one proves that it is done.
"""

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_sample_image

import isinglass as ig

# %%
# The model
# ---------
#
# A photograph that comes with scikit-learn, made small, with noise; and the six colours
# that describe it best.
photo = (
    load_sample_image("flower.jpg")[:424].reshape(53, 8, 80, 8, 3).mean(axis=(1, 3))
    / 255
)
noise = 0.25
noisy = photo + np.random.default_rng(0).normal(0, noise, photo.shape)
colours = KMeans(6, n_init=2, random_state=0).fit(photo.reshape(-1, 3)).cluster_centers_

# %%
# The log table of a pixel is the log density of its noisy colour for each of the six.
# That of two neighbours is 1.2 if they agree and 0 if not (a Potts model).
# `ig.grid_graph` has a factor for each pixel and for each pair of neighbours.
height, width = photo.shape[:2]
pixels = -((noisy[:, :, None] - colours) ** 2).sum(axis=-1).reshape(-1, 6) / (
    2 * noise**2
)
agree = 1.2 * np.eye(6)
p = ig.Potentials.from_groups(ig.grid_graph(height, width, 6), [pixels, agree[None]])
print(p.graph)

# %%
# Five solvers
# ------------
#
# ``score`` is the log of what is maximised; higher is better. ``bound`` is at least the
# score of *every* picture, so that bound - score says how much could be gained at most.
# Where both are equal, the picture is proved to be optimal.
ig.map_assignment(
    p, "icm"
)  # loads what was compiled, so that seconds are those of the search
found = {}
for name in ("icm", "annealing", "ils", "expansion", "trws"):
    began = time.process_time()
    found[name] = ig.map_assignment(p, name)
    m, seconds = found[name], time.process_time() - began
    certificate = f"bound {m.bound:9.3f}   optimal: {m.optimal!s:6}"
    print(f"{name:10} score {m.score:9.3f}   {certificate} {seconds:.2f} s")

# %%
# Iterated conditional modes (ICM) changes one pixel at a time and ends in the first
# local maximum. Expansion moves change many pixels at once, by a minimum cut. TRW-S
# passes messages whose bound falls until it meets a picture. Expansion moves have found
# the optimum here, too, but cannot know it.
fig, axes = plt.subplots(2, 2, figsize=(8.2, 5.6), layout="constrained")
pictures = {"photograph": photo, "with noise": np.clip(noisy, 0, 1)}
for name in ("icm", "trws"):
    m = found[name]
    pictures[f"{name}, score {m.score:.1f}"] = colours[m.states.reshape(height, width)]
for ax, (title, picture) in zip(axes.flat, pictures.items(), strict=True):
    ax.imshow(picture)
    ax.set_title(title)
    ax.axis("off")

# %%
# The bound closes in
# -------------------
#
# After each iteration of TRW-S there are a best picture so far and a bound. The true
# maximum lies in between.
steps = [1, 2, 3, 5, 8, 12, 20, 40, 80]
with ig.errors.no_convergence_warnings():
    runs = [ig.map_assignment(p, "trws", max_iter=k) for k in steps]
scores, bounds = [m.score for m in runs], [m.bound for m in runs]
fig, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
ax.fill_between(steps, scores, bounds, color="#d5e2f1")
ax.plot(steps, bounds, "o-", color="#b5483c", label="bound")
ax.plot(steps, scores, "o-", color="#1f5fa8", label="best picture so far")
ax.axhline(
    found["expansion"].score, color="#3b8a3e", linestyle="--", label="expansion moves"
)
ax.set(xscale="log", xlabel="iterations of TRW-S", ylabel="score")
ax.legend(frameon=False)

# %%
# In practice ask for ``"auto"``: it chooses solvers by what the model is, and stops
# when the gap is closed or the time is over.
best = ig.map_assignment(p, "auto", seconds=5)
print(best.info.did, f"gap {best.bound - best.score:.2g}")
