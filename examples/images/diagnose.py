"""
Why is it wrong? Diagnose a model
=================================

A grid CRF makes far too many mistakes. `ig.diagnose` measures what each change would
do: another inference, another decoder, more training, a larger model. We follow its
advice, and check what it says of the rest.
"""

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

# %%
# Data, and a model with a fault
# ------------------------------
#
# Labels are patches on a grid of 4 x 4 points. There are two features, and the label
# decides whether they tend to have the same sign: no single one of them tells it.


def patches(n, seed):
    """Return features (n, 4, 4, 2) and labels (n, 4, 4)."""
    p = ig.models.Ising(ig.grid_graph(4, 4, 2)).potentials(coupling=0.4)
    Y = ig.sample(p, n, random_state=seed).reshape(n, 4, 4)
    rng = np.random.default_rng(seed)
    a = rng.choice([-1.0, 1.0], size=Y.shape)
    b = (2 * Y - 1) * a + rng.normal(size=Y.shape)
    return np.stack([a, b], axis=-1), Y


X, Y = patches(60, 0)
X_test, Y_test = patches(30, 5)
first = ig.GridCRF(bias=True, l2=3.0).fit(X, Y)
print(f"wrong labels: {1 - first.score(X_test, Y_test):.1%}")

# %%
# Ask
# ---
#
# Each line is a change and the share of wrong labels that it takes away, with its
# standard error over examples.
found = ig.diagnose(first, X_test, Y_test)
print(found)

# %%
# Products of features would take away most of the errors. Nothing else helps by more
# than twice its standard error: not exact inference, nor more training, nor another
# decoder. So we add the product of our two features.


def with_product(X):
    """Return the features and their product."""
    return np.concatenate([X, X[..., :1] * X[..., 1:]], axis=-1)


second = ig.GridCRF(bias=True, l2=3.0).fit(with_product(X), Y)
again = ig.diagnose(second, with_product(X_test), Y_test)
print(again)

# %%
# Is the rest really noise?
# -------------------------
#
# These data are made up, so we know the true model. On average, no decisions are better
# than its own.
coupling = 0.4 * np.array([[1.0, -1.0], [-1.0, 1.0]])
graph, wrong = ig.grid_graph(4, 4, 2), 0
for x, y in zip(X_test, Y_test, strict=True):
    evidence = x[..., 0] * x[..., 1]
    r = ig.infer(
        ig.Potentials.from_groups(
            graph, [evidence.reshape(16, 1) * [-1.0, 1.0], coupling[None]]
        )
    )
    wrong += np.sum(np.asarray(r.variables).argmax(axis=1) != y.ravel())
best = wrong / Y_test.size
print(f"wrong labels: {again.error:.1%} by the model, {best:.1%} by the truth")

# %%
# What is left is noise, as the last line of the diagnosis says.
fig, ax = plt.subplots(figsize=(7, 2.4), layout="constrained")
errors = {"first model": found.error, "with the product": again.error, "truth": best}
bars = ax.barh(
    list(errors), list(errors.values()), color=["#b5483c", "#1f5fa8", "#8a8f98"]
)
ax.bar_label(bars, fmt="{:.1%}", padding=4)
ax.invert_yaxis()
ax.set(xlabel="share of wrong labels", xlim=(0, 0.6))
