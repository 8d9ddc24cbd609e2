"""
Denoise digits: learn for the inference that will be run
========================================================

A grid CRF removes noise from digits by a few sweeps of belief propagation. Its
parameters are best when they were learned through exactly as many sweeps as are run
later. The likelihood knows nothing of that.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

import isinglass as ig

# %%
# Data
# ----
#
# Binary digits of 28 x 28 pixels, of which half got a random value: a quarter of all
# pixels are wrong. They come with the library; 23 are for training, 30 for the test.
X, Y, X_test, Y_test = ig.datasets.noisy_digits(noise=0.5, random_state=0)
X, Y, X_test, Y_test = X[::4], Y[::4], X_test[::3], Y_test[::3]
print(f"wrong pixels in the noisy images: {np.mean(X_test[..., 1] != Y_test):.3f}")
print(f"wrong pixels on a blank page:     {np.mean(Y_test != 0):.3f}")

# %%
# Training through truncated inference
# ------------------------------------
#
# ``iterations=T`` runs T sweeps of belief propagation, whether they have converged or
# not. The loss ``"ucl"`` is the negative sum of the logarithms of the beliefs of the
# true pixels after T sweeps, and its gradient goes back through all T sweeps. So
# training uses the same computation as prediction. Pseudolikelihood needs no inference
# in training. Each method gets the penalty ``l2`` that is best in cross-validation on
# the training images: they need different ones. Thirty iterations are enough here.
methods = {"1 sweep": (1, "ucl"), "2 sweeps": (2, "ucl"), "4 sweeps": (4, "ucl")}
methods["pseudolikelihood"] = (4, "pseudo")
crfs = {}
for name, (T, loss) in methods.items():
    crf = ig.GridCRF(iterations=T, loss=loss, max_iter=30)
    search = GridSearchCV(crf, {"l2": [0.01, 1, 10, 100]}, cv=KFold(3))
    with ig.errors.no_convergence_warnings():
        crfs[name] = search.fit(X, Y).best_estimator_
    print(f"{name:17} l2 = {search.best_params_['l2']}")

# %%
# Test images before and after. The marginals of the model for four sweeps are grey
# where it is not sure: look at the edges of the strokes.
ig.viz.panel(X_test[:4], crfs["4 sweeps"], Y_test[:4])

# %%
# Run them with other numbers of sweeps
# -------------------------------------
#
# Each row is a fitted model, each column a number of sweeps at test time. Look along
# the diagonal: with one, two and four sweeps the best model is the one that was learned
# for as many. More inference is not always better: the model that was learned for one
# sweep gets worse with each further one.
run = [1, 2, 4, 8, 16]
errors = np.empty((len(crfs), len(run)))
for row, crf in zip(errors, crfs.values(), strict=True):
    row[:] = [1 - crf.set_params(iterations=t).score(X_test, Y_test) for t in run]

fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
ax.imshow(errors, cmap="viridis_r", vmin=0.05, vmax=0.07, aspect="auto")
for (i, j), error in np.ndenumerate(errors):
    color = "white" if error > 0.06 else "black"
    ax.text(j, i, f"{error:.1%}", ha="center", va="center", color=color)
ax.set_xticks(range(len(run)), run)
ax.set_yticks(range(len(crfs)), crfs)
ax.set(xlabel="sweeps at test time", ylabel="learned for")
ax.set_title("wrong pixels of the test images")
ax.spines[:].set_visible(False)

# %%
# The pseudolikelihood learns to predict each pixel from its *true* neighbours. At test
# time only noisy ones are known. Its couplings are too strong for that, and even with
# the best penalty twice as many pixels are wrong.
for name, crf in crfs.items():
    horizontal = crf.parameters_["edge/horizontal"].round(2).tolist()
    print(f"{name:17} coupling of horizontal neighbours {horizontal}")
