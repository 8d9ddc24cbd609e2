"""
The Ising transition, against Onsager's solution
================================================

Spins on a square lattice that like to agree order themselves below a critical
temperature. Lars Onsager computed it in 1944. We sample it by clusters, and see where
mean field and belief propagation put the transition.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import quad
from scipy.special import ellipk

import isinglass as ig

# %%
# Onsager's solution
# ------------------
#
# The probability of spins s = ±1 is proportional to exp(K Σ s s'), with a sum over
# neighbours; K = J / (k T). For the infinite lattice the magnetisation, the energy and
# log Z for each spin are known. The transition is where sinh 2K = 1.
critical = np.log(1 + np.sqrt(2)) / 2


def magnetisation(K):
    """Return |m| (Yang 1952)."""
    return np.where(
        critical < K, np.maximum(1 - np.sinh(2 * K) ** -4.0, 0) ** 0.125, 0.0
    )


def energy(K):
    """Return the energy for each spin, in units of J."""
    k = 2 * np.sinh(2 * K) / np.cosh(2 * K) ** 2
    return -(1 + 2 / np.pi * (2 * np.tanh(2 * K) ** 2 - 1) * ellipk(k**2)) / np.tanh(
        2 * K
    )


def log_z(K):
    """Return log Z for each spin."""
    k = 2 * np.sinh(2 * K) / np.cosh(2 * K) ** 2
    inner = quad(
        lambda a: np.log((1 + np.sqrt(1 - (k * np.sin(a)) ** 2)) / 2), 0, np.pi
    )[0]
    return np.log(2 * np.cosh(2 * K)) + inner / (2 * np.pi)


print(f"critical coupling {critical:.6f}, energy there {energy(critical + 1e-9):.4f}")

# %%
# Sampling
# --------
#
# A lattice of 32 x 32 spins without a border (``periodic=True``). Near the transition
# single spins hardly move any more, because clusters of all sizes hold together.
# Wolff's and Swendsen and Wang's samplers turn whole clusters.
side = 32
graph = ig.lattice_graph((side, side), 2, periodic=True)
ising = ig.models.Ising(graph)
couplings = np.array(
    [0.2, 0.3, 0.36, 0.4, 0.42, 0.43, 0.44, 0.45, 0.46, 0.48, 0.52, 0.6]
)
measured, pictures = [], {}
for K in couplings:
    x = ig.sample(
        ising.potentials(coupling=K),
        400,
        "swendsen-wang",
        chains=4,
        burn_in=150,
        thin=4,
        random_state=0,
    )
    s = 2 * x.reshape(-1, side, side) - 1
    m = np.abs(s.mean(axis=(1, 2)))
    e = -(s * np.roll(s, 1, axis=1) + s * np.roll(s, 1, axis=2)).mean(axis=(1, 2))
    measured.append(
        (m.mean(), m.std() / np.sqrt(len(m)), e.mean(), e.std() / np.sqrt(len(e)))
    )
    pictures[float(K)] = s[-1]
m, m_error, e, e_error = np.array(measured).T
for row in zip(
    couplings, m, magnetisation(couplings), e, energy(couplings), strict=True
):
    print(
        "K = {:.2f}   |m| {:.3f}, infinite {:.3f}"
        "   energy {:.3f}, infinite {:.3f}".format(*row)
    )

# %%
# The last sample at three couplings: disorder, clusters of all sizes, order.
fig, axes = plt.subplots(1, 3, figsize=(9, 3.2), layout="constrained")
for ax, K in zip(axes, (0.3, 0.44, 0.48), strict=True):
    ax.imshow(pictures[K], cmap="Blues", vmin=-1.3, vmax=1.3)
    ax.set_title(f"K = {K}")
    ax.axis("off")

# %%
# Where approximations put the transition
# ---------------------------------------
#
# Mean field and belief propagation are exact on other graphs than this one, and order
# too early: mean field at K = 1/4, belief propagation at atanh(1/3) = 0.347, the
# transition of a tree with four neighbours for each spin (Bethe 1935). A very small
# field, 1e-5, lets them choose a side.
grid = np.sort(
    np.append(np.linspace(0.15, 0.6, 25), [0.257, 0.355, critical + 1e-4, 0.443])
)
mean_field, bethe, upper = (
    [ig.infer(ising.potentials(coupling=K, field=1e-5), name, tol=1e-6) for K in grid]
    for name in ("mf", "bp", "trw")
)
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.8), layout="constrained")
left.plot(
    grid,
    [2 * r.variable(0)[1] - 1 for r in mean_field],
    color="#e8a33c",
    label="mean field",
)
left.plot(
    grid,
    [2 * r.variable(0)[1] - 1 for r in bethe],
    color="#3b8a3e",
    label="belief propagation",
)
left.plot(grid, magnetisation(grid), color="black", label="Onsager, infinite lattice")
left.errorbar(
    couplings,
    m,
    3 * m_error,
    fmt="o",
    color="#1f5fa8",
    label="samples, 32 x 32",
    markersize=4,
)
left.set(xlabel="K", ylabel="|m|", title="Magnetisation")
right.plot(grid, [energy(K) for K in grid], color="black")
right.errorbar(couplings, e, 3 * e_error, fmt="o", color="#1f5fa8", markersize=4)
right.set(xlabel="K", ylabel="energy / J", title="Energy for each spin")
fig.legend(loc="outside lower center", ncols=4, frameon=False)

# %%
# In the ordered phase, K above its critical value, 32 x 32 spins are as good as
# infinitely many. Just below that value they are not: clusters as large as the lattice
# give a magnetisation that would vanish on a larger one.
#
# Bounds on log Z
# ---------------
#
# At every coupling mean field is a lower bound and tree-reweighting an upper bound on
# log Z. Belief propagation is neither in general; for couplings that attract it is a
# lower bound, too (Ruozzi 2012).
exact = np.array([log_z(K) for K in grid])
n = graph.n_variables
fig, ax = plt.subplots(figsize=(6.5, 3.4))
lines = {
    "tree-reweighted": (upper, "#b5483c"),
    "belief propagation": (bethe, "#3b8a3e"),
    "mean field": (mean_field, "#e8a33c"),
}
for title, (results, colour) in lines.items():
    ax.plot(grid, [r.log_z / n for r in results] - exact, color=colour, label=title)
ax.axhline(0, color="black", label="Onsager")
ax.axvline(critical, color="#8a8f98", linewidth=0.8, linestyle=":")
ax.set(xlabel="K", ylabel="error of log Z for each spin, nats")
ax.legend(frameon=False)
