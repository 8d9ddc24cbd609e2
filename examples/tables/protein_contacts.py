"""
Contacts in a protein: direct and indirect correlations
=======================================================

Sites of a protein that touch each other change together in evolution. Correlations
also arise through third sites. A Potts model of all pairs tells which are direct, and
so which sites touch.
"""

import os

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import rel_entr

import isinglass as ig
from isinglass_experiments.data import load_alignment

# %%
# **Data.** Aligned sequences of a family of proteins (PF00014, 53 sites, 21 letters
# with the gap), and which sites are nearer than 6 Angstrom. Where ``ISINGLASS_DATA`` is
# not set, sequences of a made-up family are drawn: a chain that touches itself.


def made_up(sites=24, letters=4):
    """Return sequences, pairs of sites and which of them touch: a chain folded once."""
    chain = [(i, i + 1) for i in range(sites - 1)]
    touching = chain + [(i, sites - 1 - i) for i in range(1, sites // 2 - 1, 2)]
    graph = ig.pairwise_graph(sites, touching, letters)
    tables = [np.zeros((sites, letters)), 1.5 * np.eye(letters)[None]]
    drawn = ig.sample(ig.Potentials.from_groups(graph, tables), 2000, random_state=0)
    pairs = np.transpose(np.triu_indices(sites, 1))
    return (
        np.asarray(drawn),
        pairs,
        np.array([tuple(pair) in touching for pair in pairs]),
    )


if os.environ.get("ISINGLASS_DATA"):
    family = load_alignment()
    X, pairs, touch = family.sequences[::9], family.pairs, family.distance < 6
else:
    X, pairs, touch = made_up()
n, sites = X.shape
letters = int(X.max()) + 1
far = pairs[:, 1] - pairs[:, 0] > 4  # neighbours in the sequence touch anyway
print(f"{n} sequences of {sites} sites; {touch[far].mean():.1%} of distant pairs touch")

# %%
# **Two scores of a pair.** Mutual information measures any correlation. The Potts model
# has a table of couplings for each pair, learned by pseudolikelihood; the score is the
# norm of the centred table. Both take off what each site has with all others, the
# product of the means of the two sites over the mean of all.


def corrected(scores):
    """Return scores of pairs without what a site has with all others."""
    square = np.zeros((sites, sites))
    square[tuple(pairs.T)] = scores
    square += square.T
    means = square.sum(axis=0)
    return (square - np.outer(means, means) / means.sum())[tuple(pairs.T)]


shown = np.eye(letters)[X].reshape(n, -1)
joint = (shown.T @ shown / n).reshape(sites, letters, sites, letters)
single = shown.mean(axis=0).reshape(sites, letters)
information = []
for i, j in pairs:
    information.append(rel_entr(joint[i, :, j], np.outer(single[i], single[j])).sum())

graph = ig.pairwise_graph(sites, pairs, letters)
potts = ig.MRF(graph, method="pseudo", l2=0.01 * n, max_iter=15, tol=1e-3)
with ig.errors.no_convergence_warnings():
    potts.fit(X)
tables = potts.parameters_["edge"]
for axis in (1, 2):
    tables = tables - tables.mean(axis=axis, keepdims=True)
couplings = np.linalg.norm(tables[:, 1:, 1:], axis=(1, 2))  # without gaps
scores = {"Potts model": corrected(couplings)}
scores["mutual information"] = corrected(information)

# %%
# **Contacts.** Left, the pairs that touch in grey and the first pairs by the couplings
# in colour: look how few lie outside of the grey. Right, the share of the first pairs
# that touch: direct couplings name more contacts than correlations.
figure, axes = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
axes[0].plot(*pairs[touch].T, "s", color="0.75", markersize=5, label="touch")
best = np.flatnonzero(far)[np.argsort(-scores["Potts model"][far])][:sites]
axes[0].plot(*pairs[best].T, "o", markersize=4, label=f"first {sites} by couplings")
axes[0].set(xlabel="site", ylabel="site", title="pairs of sites", aspect="equal")
axes[0].legend(loc="lower right")
for name, score in scores.items():
    hits = touch[far][np.argsort(-score[far])]
    share = np.cumsum(hits) / np.arange(1, len(hits) + 1)
    axes[1].plot(np.arange(1, 2 * sites), share[: 2 * sites - 1], label=name)
    print(f"{name:18} {share[sites - 1]:.0%} of the first {sites} pairs touch")
axes[1].axhline(touch[far].mean(), color="0.6", linestyle="--", label="all pairs")
axes[1].set(xlabel="first pairs", title="share that touches", ylim=(0, 1.05))
axes[1].legend()
