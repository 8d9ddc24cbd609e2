"""
HMM or CRF? Evidence that comes twice
=====================================

A hidden Markov model takes the attributes of a token for independent, given its label.
A conditional random field does not need that. Copies of the same attribute mislead the
first and leave the second as it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

# %%
# **Data.** A hidden chain of two weathers that last for about five days, and three
# things that depend on the weather of the day, each right in 70 % of the days.
rng = np.random.default_rng(0)


def days(n, length=30):
    """Return observations and weathers of some sequences."""
    stay = rng.random((n, length)) < 0.8
    Y = (np.cumsum(~stay, axis=1) + rng.integers(0, 2, (n, 1))) % 2
    right = rng.random((n, length, 3)) < 0.7
    return np.where(right, Y[..., None], 1 - Y[..., None]), Y


def attributes(seen, copies):
    """Return lists of attributes; the first of the three things comes several times."""
    first = [("first", k) for k in range(copies)]
    names = [*first, ("second", 0), ("third", 0)]
    order = [0] * copies + [1, 2]
    return [
        [
            [f"{name}{k}={day[j]}" for (name, k), j in zip(names, order, strict=True)]
            for day in one
        ]
        for one in seen
    ]


(seen, Y), (seen_test, Y_test) = days(100), days(200)

# %%
# **Copies.** The first attribute is repeated: think of a word, its lower-case form and
# its stem. Nothing new is said, but the HMM multiplies the probabilities of all copies
# and believes the first thing more and more. The CRF learns weights that share the
# evidence among the copies.
copies = [1, 2, 4, 8]
systems = {"HMM": ig.HMM(), "CRF": ig.ChainCRF(l2=1.0)}
wrong = {name: [] for name in systems}
losses = {name: [] for name in systems}
for count in copies:
    X, X_test = attributes(seen, count), attributes(seen_test, count)
    for name, model in systems.items():
        model.fit(X, Y.tolist())
        P = np.array(model.predict_marginals(X_test))
        wrong[name].append(np.mean(np.array(model.predict(X_test)) != Y_test))
        losses[name].append(-np.log(np.take_along_axis(P, Y_test[..., None], 2)).mean())
        print(f"{count} copies, {name}: {wrong[name][-1]:.1%} wrong", end=", ")
        print(f"log loss {losses[name][-1]:.3f}")

# %%
# Look at the right panel first: the probabilities of the HMM suffer more than its
# decisions. With one copy its assumption is true, and it is as good as the CRF.
figure, axes = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
for ax, values, title in zip(
    axes, (wrong, losses), ("share of wrong days", "log loss of a day"), strict=True
):
    for name in systems:
        ax.plot(copies, values[name], "o-", label=name)
    ax.set(xlabel="copies of the first attribute", title=title, xscale="log")
    ax.set_xticks(copies, copies)
axes[0].legend()
