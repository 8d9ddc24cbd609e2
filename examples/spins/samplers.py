"""
Samplers on a frozen ferromagnet
================================

Below its critical temperature an Ising model has two faces: nearly all spins up, or
nearly all down. Gibbs sampling moves one spin at a time and does not get from one to
the other. Swendsen-Wang moves clusters, parallel tempering takes a detour through high
temperatures. The report of each run tells them apart.
"""

# %%
# **The model.** 8 x 8 spins with couplings of 0.6 (the transition of a large lattice is
# at 0.44), and a weak field on one corner. It is small enough for an exact answer.
# Without the field both states of the corner would be equally probable.
import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig
from isinglass.errors import no_convergence_warnings

field = np.zeros(64)
field[0] = 0.1
p = ig.models.Ising(ig.grid_graph(8, 8, 2)).potentials(coupling=0.6, field=field)
exact = ig.infer(p).variable(0)[1]
print(f"P(corner is up) = {exact:.3f}")

# %%
# **Three samplers.** Each runs eight chains. ``converged`` is true if R-hat is below
# 1.01 and the effective sample size is at least 400 for every belief. A run that has
# not converged also warns; the warnings are left out here because the table says it.
options = {
    "gibbs": {"sweeps": 600},
    "swendsen-wang": {"sweeps": 600},
    "tempering": {"sweeps": 3000, "thin": 2, "replicas": 10, "hottest": 0.4},
}
with no_convergence_warnings():
    results = {
        name: ig.infer(p, name, random_state=0, **more)
        for name, more in options.items()
    }

print("sampler        P(up)   error bar   R-hat   effective size   converged")
for name, r in results.items():
    error = r.info.details["stderr_variables"][1]
    print(
        f"{name:13}  {r.variable(0)[1]:.3f}   {error:.3f}      "
        f"{r.info.r_hat:6.3f}   {r.info.ess:8.0f}         {r.info.converged}"
    )

# %%
# The number of Gibbs sampling may look good; but that is luck: it is the share of
# chains that happened to start on each side. R-hat compares the chains with each other,
# and is far from 1. Here is the magnetisation of four chains over the first 200 sweeps
# that were kept:
figure, axes = plt.subplots(3, 1, figsize=(7, 4.6), layout="constrained", sharey=True)
for ax, (name, r) in zip(axes, results.items(), strict=True):
    magnetisation = 2 * r.traces.states[:4].mean(axis=2) - 1
    ax.plot(magnetisation[:, :200].T, linewidth=0.8)
    ax.set_title(
        f"{name}: {'converged' if r.info.converged else 'not converged'}",
        fontsize=9,
        loc="left",
    )
    ax.set(ylim=(-1.1, 1.1), yticks=[-1, 0, 1], xlim=(0, 200))
    ax.set_ylabel("magnetisation", fontsize=8)

# %%
# **Why tempering works.** Its replicas have temperatures from 1 to 1 / 0.4, and
# neighbours exchange their states. A chain that is hot loses its magnetisation, and is
# cold again later, on either side. Rates far below 0.2 would ask for more replicas.
print(
    "share of exchanges that were accepted:",
    results["tempering"].info.details["exchange_rates"].ravel().round(2),
)

# %%
# **Error bars.** Beliefs of the corner with two standard errors, beside the exact one.
# Only Swendsen-Wang and tempering may be trusted, and they say so.
figure, ax = plt.subplots(figsize=(5, 2), layout="constrained")
for k, r in enumerate(results.values()):
    bar = 2 * r.info.details["stderr_variables"][1]
    colour = "C0" if r.info.converged else "0.6"
    ax.errorbar(r.variable(0)[1], -k, xerr=bar, fmt="o", color=colour, capsize=3)
ax.axvline(exact, color="C3", linewidth=1, label="exact")
ax.set(
    yticks=[0, -1, -2],
    yticklabels=list(results),
    ylim=(-2.6, 0.6),
    xlabel="P(corner is up)",
)
ax.legend(frameon=False, fontsize=8)
