"""
log Z: bounds, an estimate with an error bar, and the exact value
=================================================================

The partition function of a model says how probable data are, and which of two models is
better. Where it cannot be computed, mean field gives a lower bound, tree-reweighted
message passing an upper one, and annealed importance sampling an estimate with a
standard error.
"""

# %%
# **The model.** An Ising model with random couplings and fields on a grid of 8 x 8,
# weak to strong. On this size exact inference still works: it sums over 2⁶⁴ states in a
# fraction of a second, since the grid is narrow.
import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig
from isinglass.errors import no_convergence_warnings

grid = ig.grid_graph(8, 8, 2)
rng = np.random.default_rng(0)
n_edges = sum(len(g) for g in grid.groups if g.arity == 2)
couplings, fields = rng.normal(size=n_edges), 0.3 * rng.normal(size=64)
strengths = [0.2, 0.4, 0.6, 0.8, 1.0]
models = [
    ig.models.Ising(grid).potentials(coupling=s * couplings, field=fields)
    for s in strengths
]
exact = np.array([ig.infer(p).log_z for p in models])
print("exact log Z:", exact.round(2))

# %%
# **Bounds and estimates.** ``info.bound`` says what is guaranteed: belief propagation
# promises nothing, the others do. Mean field on trees (``"smf"``) keeps the rows of the
# grid whole.
methods = {
    "mean field": ("mf", {}),
    "mean field on trees": ("smf", {}),
    "belief propagation": ("bp", {"max_iter": 300, "damping": 0.3}),
    "TRW": ("trw", {}),
}
found = {}
with no_convergence_warnings():
    for name, (algorithm, more) in methods.items():
        results = [ig.infer(p, algorithm, **more) for p in models]
        found[name] = np.array([r.log_z for r in results])
        bounds = ["-" if r.info.bound is None else r.info.bound for r in results]
        print(
            f"{name:20}",
            " ".join(f"{b:>6}" for b in bounds),
            "  error",
            (found[name] - exact).round(2),
        )

# %%
# **Annealed importance sampling** goes from a simple distribution to the model in many
# small steps. Its mean weight is an estimate of Z without bias; the spread of the
# weights gives the error bar, and tells when not to believe it.
annealed = [
    ig.infer(p, "ais", temperatures=500, start="tree", random_state=0) for p in models
]
for s, r, z in zip(strengths, annealed, exact, strict=True):
    print(
        f"strength {s}: {r.log_z:8.3f} ± {r.info.stderr:.3f}   "
        f"exact {z:8.3f}   reliable: {r.info.converged}"
    )

# %%
# **All of them.** The bounds bracket the exact value; the upper ones get worse as
# couplings grow. Belief propagation is closer than any bound, but nobody knows on which
# side. The error bars of annealing (two standard errors) are shown in the lower
# picture, on a scale of their own.
figure, (ax, below) = plt.subplots(
    2, 1, figsize=(6, 5), layout="constrained", sharex=True, height_ratios=[2, 1]
)
colours = ["#1f5fa8", "#7fb0e0", "#e8820c", "#b2182b"]
for (name, values), colour in zip(found.items(), colours, strict=True):
    ax.plot(strengths, values - exact, ".-", color=colour, label=name)
ax.axhline(0, color="0.3", linewidth=0.8)
ax.set(ylabel="log Z, less the exact one")
ax.legend(frameon=False, fontsize=8)
gaps = [r.log_z - z for r, z in zip(annealed, exact, strict=True)]
below.errorbar(
    strengths,
    gaps,
    yerr=[2 * r.info.stderr for r in annealed],
    fmt="o",
    color="0.2",
    capsize=3,
)
below.axhline(0, color="0.3", linewidth=0.8)
below.set(xlabel="strength of the couplings", ylabel="annealing", xticks=strengths)
