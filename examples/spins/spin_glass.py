"""
Ground states of a spin glass
=============================

Couplings of random sign on a square lattice cannot all be satisfied. Simple descent
ends far above the ground state; relaxations give a bound; exact inference finds the
ground state of a narrow lattice, and shows how far the others are from it.
"""

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

# %%
# **The model.** 16 x 16 spins. A coupling of +1 asks two neighbours to be equal, one of
# -1 to be opposite. Round a square with an odd number of -1 at least one coupling is
# not satisfied: the square is *frustrated*.
size = 16
rng = np.random.default_rng(0)
graph = ig.grid_graph(size, size, 2)
pairs = np.array([scope for scope in graph.scopes if len(scope) == 2])
coupling = rng.choice([-1.0, 1.0], len(pairs))
model = ig.models.Ising(graph).potentials(coupling=coupling)

# %%
# **Ground states.** The most probable assignment is the one of least energy. ``score``
# is minus the energy; ``bound`` is what no assignment exceeds. Dynamic programming
# (``"exact"``) sums over 2¹⁶ states of a row at a time. Iterated conditional modes
# (``"icm"``) flip one spin after the other while that helps.
found = {}
for name in ("icm", "annealing", "ils", "trws", "exact"):
    options = {} if name in ("trws", "exact") else {"random_state": 0}
    found[name] = m = ig.map_assignment(model, name, **options)
    energy, least = -m.score / size**2, -m.bound / size**2
    print(f"{name:10} energy of a spin {energy:.4f}   at least {least:7.4f}")

# %%
# **Where they differ.** Orange lines are couplings that are not satisfied. Look at the
# number of them: descent leaves some that a better assignment avoids. The background
# shows spins relative to the ground state: regions that are flipped as a whole cost
# little, and no single flip leads out of them.
figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained")
ground = np.asarray(found["exact"].states)
for ax, name in zip(axes, ("icm", "ils", "exact"), strict=True):
    state = np.asarray(found[name].states)
    ax.imshow((state == ground).reshape(size, size), cmap="Blues", vmin=-1, vmax=2)
    wrong = (2 * state[pairs[:, 0]] - 1) * (2 * state[pairs[:, 1]] - 1) != coupling
    for i, j in pairs[wrong]:
        (y, x), (below, right) = divmod(i, size), divmod(j, size)
        middle, along = ((y + below) / 2, (x + right) / 2), (below - y, right - x)
        ys = [middle[0] - along[1] / 2, middle[0] + along[1] / 2]
        ax.plot([middle[1] - along[0] / 2, middle[1] + along[0] / 2], ys, "C1", lw=1.5)
    ax.set(xticks=[], yticks=[], title=f"{name}: {wrong.sum()} not satisfied")
    ax.spines[:].set_visible(False)
