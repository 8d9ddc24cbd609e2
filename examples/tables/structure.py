"""
Which graph? Structure learned from samples
===========================================

The edges of a graph are learned from complete samples: as a tree of maximum likelihood,
or by sparse regressions. First with a known truth, then on measurements of tumours.
"""

# %%
# **A known truth.** Twelve binary variables on a ring with three chords, couplings of
# either sign. Two variables may be strongly correlated without an edge, because of a
# path between them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

import isinglass as ig

edges = [(i, (i + 1) % 12) for i in range(12)] + [(0, 6), (2, 9), (4, 11)]
rng = np.random.default_rng(0)
truth = ig.pairwise_graph(12, edges, 2)
couplings = rng.choice([-1, 1], len(edges)) * rng.uniform(0.4, 0.8, len(edges))
p = ig.models.Ising(truth).potentials(coupling=couplings)
X = ig.sample(p, 1000, random_state=0)


def pairs(graph):
    return {tuple(sorted(scope)) for scope in graph.scopes if len(scope) == 2}


found = {
    "truth": truth,
    "chow-liu": ig.learn_structure(X, "chow-liu"),
    "neighbourhood": ig.learn_structure(X, "neighbourhood", strength=0.08),
    "group-l1": ig.learn_structure(X, "group-l1", strength=0.08),
}
correlation = np.abs(np.corrcoef(X.T))
rows = np.triu_indices(12, 1)
strongest = sorted(zip(correlation[rows], *(r.tolist() for r in rows), strict=True))[
    ::-1
][:15]
found["15 strongest correlations"] = ig.pairwise_graph(
    12, [(i, j) for _, i, j in strongest], 2
)
for name, graph in found.items():
    right, wrong = len(pairs(graph) & pairs(truth)), len(pairs(graph) - pairs(truth))
    print(f"{name:26} {right} of 15 edges, {wrong} that are not there")

# %%
# Chow-Liu's tree has no more than 11 edges, and no wrong one. The regressions find all
# edges; how many others they find depends on the strength of their penalty. Edges that
# are not there are red.
angle = 2 * np.pi * np.arange(12) / 12
x, y = np.sin(angle), np.cos(angle)
figure, axes = plt.subplots(1, 4, figsize=(9, 2.6), layout="constrained")
for ax, name in zip(axes, list(found)[1:], strict=True):
    for i, j in pairs(truth) - pairs(found[name]):
        ax.plot(x[[i, j]], y[[i, j]], color="0.75", linestyle=":", zorder=0)
    for i, j in pairs(found[name]):
        colour = "#1f5fa8" if (i, j) in pairs(truth) else "#c8443c"
        ax.plot(x[[i, j]], y[[i, j]], color=colour, zorder=1)
    ax.plot(x, y, "o", color="0.2", markersize=5)
    ax.set_title(name, fontsize=9)
    ax.set_aspect("equal")
    ax.axis("off")

# %%
# **How many samples?** Theory says that the strength should fall as (log of variables /
# samples)^(1/2); the factor is ours. The share of ten draws whose graph is exactly
# right:
for n in (100, 200, 400, 800, 1600):
    draws = [ig.sample(p, n, random_state=seed) for seed in range(10)]
    exact = [
        pairs(
            ig.learn_structure(
                one, "neighbourhood", strength=2 * (np.log(12) / n) ** 0.5
            )
        )
        for one in draws
    ]
    print(f"{n:5} samples: {np.mean([one == pairs(truth) for one in exact]):.1f}")

# %%
# **Measurements of tumours.** scikit-learn's breast cancer data: ten mean features of
# 569 tumours and the diagnosis, each made binary at its median. Which of them depend on
# each other directly, given all others? An edge must be found on at least 8 of 10
# random halves of the data.
data = load_breast_cancer()
names = [
    str(name).removeprefix("mean ").replace("dimension", "dim.").replace(" ", "\n")
    for name in data.feature_names[:10]
] + ["malignant"]
binary = np.c_[
    data.data[:, :10] > np.median(data.data[:, :10], axis=0), data.target == 0
].astype(int)
graph = ig.learn_structure(
    binary, "neighbourhood", strength=0.06, stability=0.8, repeats=10, random_state=0
)
mrf = ig.MRF(graph, l2=0.5).fit(binary)
print(len(pairs(graph)), "edges of", 11 * 10 // 2)
blanket = [names[i].replace("\n", " ") for i in ig.markov_blanket(graph, 10)]
print("the diagnosis depends directly on:", ", ".join(blanket))

# %%
# The graph with the couplings that maximum likelihood gives: blue attracts, red repels,
# wide is strong.
ig.viz.draw(ig.Potentials(graph.with_names(names), mrf.potentials_.log_tables))
