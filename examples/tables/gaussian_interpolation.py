"""
A map from scattered readings: a Gaussian field
===============================================

Sixty weather stations measure a temperature, with errors. A Gaussian Markov random
field on a grid turns them into a map, and says how sure it is of every point. All of it
is one sparse linear system.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import sparse

import isinglass as ig

# %%
# The field
# ---------
#
# On a grid of 50 x 70 points neighbours are alike: p(u) is proportional to
# exp(-strength / 2 Σ (second differences)²). That is a Gaussian field whose precision
# matrix has entries for points at most two steps apart, and zeros elsewhere. A small
# number on the diagonal keeps the level near zero.
height, width = 50, 70
n = height * width


def second_differences(size):
    """Return the matrix of second differences of a line of points."""
    return sparse.diags_array(
        [1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(size - 2, size)
    )


def precision(strength):
    """Return the precision matrix of the field."""
    rows = sparse.kron(sparse.eye_array(height), second_differences(width))
    columns = sparse.kron(second_differences(height), sparse.eye_array(width))
    return strength * (rows.T @ rows + columns.T @ columns) + 0.002 * sparse.eye_array(
        n
    )


# %%
# The weather is made up: the truth is a draw from such a field, so that we know what
# can be known. Stations are at random places. Their errors have a standard deviation of
# 0.3 °C.
level = 12.0
truth = level + ig.GaussianField(precision(30.0)).sample(1, random_state=4)[0]
rng = np.random.default_rng(1)
stations = rng.choice(n, 60, replace=False)
readings = truth[stations] + rng.normal(0, 0.3, 60)

# %%
# A reading adds 1 / variance to the diagonal of the precision matrix, and reading /
# variance to the linear term.
seen = sparse.coo_array((np.ones(60), (stations, stations)), shape=(n, n)) / 0.3**2
linear = np.zeros(n)
linear[stations] = (readings - level) / 0.3**2

# %%
# How smooth?
# -----------
#
# The evidence decides: the probability of the readings for a given strength, with the
# whole field integrated out. It is the difference of the log Z of two fields, one with
# the readings and one without them.
strengths = 30.0 * 2.0 ** np.arange(-4, 5)
with_readings = [ig.GaussianField(precision(s) + seen, linear).log_z for s in strengths]
evidence = np.array(with_readings) - [
    ig.GaussianField(precision(s)).log_z for s in strengths
]
strength = strengths[np.argmax(evidence)]
field = ig.GaussianField(precision(strength) + seen, linear)
print(
    f"strength {strength:g}, the truth was drawn with 30; "
    f"{field.n_variables} variables, {len(field.edges())} edges"
)

# %%
# The map, and how sure it is
# ---------------------------
#
# The mean is the map. Variances come from the sparse factor (selected inversion); the
# full covariance matrix, with twelve million entries, is never made.
mean, deviation = field.mean + level, np.sqrt(field.variances())
fig, axes = plt.subplots(2, 2, figsize=(9.5, 6.2), layout="constrained")
scale = {"vmin": truth.min(), "vmax": truth.max(), "cmap": "coolwarm"}
for ax, picture, title in zip(
    axes.flat[:2], (truth, mean), ("truth, and the stations", "map"), strict=True
):
    image = ax.imshow(picture.reshape(height, width), **scale)
    ax.plot(stations % width, stations // width, "k.", markersize=4)
    ax.set(title=title, xticks=[], yticks=[])
fig.colorbar(image, ax=axes[0], label="°C")
image = axes[1, 0].imshow(
    deviation.reshape(height, width),
    cmap="magma_r",
    vmin=0,
    vmax=np.quantile(deviation, 0.98),
)
axes[1, 0].plot(stations % width, stations // width, "k.", markersize=4)
axes[1, 0].set(title="standard deviation", xticks=[], yticks=[])
fig.colorbar(image, ax=axes[1, 0], label="°C")
axes[1, 1].semilogx(strengths, evidence - evidence.max(), "o-", color="#1f5fa8")
axes[1, 1].set(
    title="log evidence", xlabel="strength of smoothing", ylabel="nats below the best"
)

# %%
# Is it as sure as it says? Of all points, 95 % should be within 1.96 standard
# deviations, and the map should be much nearer to the truth than the nearest station.
error = np.abs(mean - truth)
y, x = np.divmod(np.arange(n)[:, None], width)
nearest = np.argmin(np.hypot(y - stations // width, x - stations % width), axis=1)
print(f"within 1.96 standard deviations: {np.mean(error < 1.96 * deviation):.1%}")
print(f"mean error by the field: {error.mean():.2f} °C")
by_station = np.abs(readings[nearest] - truth).mean()
print(f"mean error by the nearest station: {by_station:.2f} °C")

# %%
# Samples of the field are maps as the truth might be. They answer questions that a mean
# cannot: how warm is it at the warmest point?
warmest = field.sample(500, random_state=0).max(axis=1) + level
low, high = np.quantile(warmest, [0.05, 0.95])
print(f"90 % of the samples: {low:.1f} to {high:.1f} °C; truth {truth.max():.1f} °C")
