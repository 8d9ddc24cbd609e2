"""A restricted Boltzmann machine on digits, beside scikit-learn's

A restricted Boltzmann machine learns what digits look like, and draws new ones. `ig.RBM` has the interface of
scikit-learn's `BernoulliRBM`; it also has an exact score and log Z, so that two machines can be compared by what
matters: the likelihood of pictures that they have not seen.
"""

# %%
# **Data.** scikit-learn's 1,797 digits of 8 x 8 pixels, made black and white.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.neural_network import BernoulliRBM

import isinglass as ig
from isinglass.errors import no_convergence_warnings

X, y = load_digits(return_X_y=True)
X = (X > 7).astype(int)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
print(X.shape, X_test.shape)

# %%
# **Two machines of 16 hidden units**, trained alike: persistent chains, batches of 32, 20 epochs, a learning rate of
# 0.1. With so few hidden units log Z is a sum over 2¹⁶ states, so that the likelihood of pictures is exact. There is
# no test of convergence in training, and `fit` would warn of that.
with no_convergence_warnings():
    ours = ig.RBM(n_components=16, method="pcd", learning_rate=0.1, batch_size=32, max_iter=20, random_state=0).fit(X)
theirs = BernoulliRBM(n_components=16, learning_rate=0.1, batch_size=32, n_iter=20, random_state=0).fit(X)
same = ig.models.RestrictedBoltzmannMachine(theirs.components_.T, theirs.intercept_visible_, theirs.intercept_hidden_)

share = np.clip(X.mean(axis=0), 0.5 / len(X), 1 - 0.5 / len(X))
independent = (X_test * np.log(share) + (1 - X_test) * np.log(1 - share)).sum(axis=1).mean()
print(f"independent pixels: {independent:7.2f} nats a picture")
print(f"scikit-learn:       {(-same.free_energy(X_test) - same.log_z()).mean():7.2f}")
print(f"isinglass:          {ours.log_likelihood(X_test) / len(X_test):7.2f}")

# %%
# The two differ in details: ours starts with the biases of independent pixels, and its learning rate falls. Neither
# is near the end of training. `score` is the mean log-pseudolikelihood, here exact; scikit-learn's flips one random
# pixel of each picture.
print(f"scikit-learn, its own score:  {theirs.score_samples(X_test).mean():6.2f}")
print(f"scikit-learn, exactly:        {same.pseudolikelihood(X_test).mean():6.2f}")
print(f"isinglass, exactly:           {ours.score(X_test):6.2f}")

# %%
# **What was learned.** Each hidden unit votes for some pixels (blue) and against others (red). Chains of Gibbs
# sampling draw new pictures.
drawn = ours.sample(16, random_state=1, sweeps=500)
figure = plt.figure(figsize=(7.5, 2.7), layout="constrained")
parts = figure.subfigures(1, 3)
largest = np.abs(ours.components_).max()
for part, title, pictures in zip(
    parts, ["data", "drawn by the machine", "hidden units"], [X_test[:16], drawn, ours.components_], strict=True
):
    part.suptitle(title, fontsize=9)
    for ax, picture in zip(part.subplots(4, 4).ravel(), pictures, strict=True):
        if title == "hidden units":
            ax.imshow(picture.reshape(8, 8), cmap="RdBu", vmin=-largest, vmax=largest)
        else:
            ax.imshow(picture.reshape(8, 8), cmap="gray_r")
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, linewidth=0.5)

# %%
# **Features for a classifier.** The probabilities of the hidden units, `transform`, go into any estimator of
# scikit-learn. Sixteen numbers of a picture hold much of what its 64 pixels tell about the digit.
for name, train, test in [
    ("64 pixels", X, X_test),
    ("16 hidden units, isinglass", ours.transform(X), ours.transform(X_test)),
    ("16 hidden units, scikit-learn", theirs.transform(X), theirs.transform(X_test)),
]:
    classifier = LogisticRegression(max_iter=300, tol=1e-2).fit(train, y)
    print(f"{name:30} {classifier.score(test, y_test):.3f} of the digits right")
