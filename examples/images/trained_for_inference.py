"""Denoise digits: learn for the inference that will be run

A grid CRF removes noise from digits by a few sweeps of belief propagation. Its parameters are best when they were
learned through exactly as many sweeps as are run later. The likelihood knows nothing of that.
"""

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig

# %%
# ## Data
#
# Binary digits of 28 x 28 pixels, of which half got a random value: a quarter of all pixels are wrong. They come with
# the library; 23 are for training, 30 for the test.
X, Y, X_test, Y_test = ig.datasets.noisy_digits(noise=0.5, random_state=0)
X, Y, X_test, Y_test = X[::4], Y[::4], X_test[::3], Y_test[::3]
print("wrong pixels in the noisy images:", round(float(np.mean(X_test[..., 1] != Y_test)), 3))
print("wrong pixels on a blank page:    ", round(float(np.mean(Y_test != 0)), 3))

# %%
# ## Training through truncated inference
#
# `iterations=T` runs T sweeps of belief propagation, whether they have converged or not. The loss `"ucl"` is the
# negative sum of the logarithms of the beliefs of the true pixels after T sweeps, and its gradient goes back through
# all T sweeps. So training uses the same computation as prediction. Thirty iterations of training are enough here.
crfs = {}
with ig.errors.no_convergence_warnings():
    for T in (1, 2, 4):
        crfs[f"{T} sweep{'s' * (T > 1)}"] = ig.GridCRF(iterations=T, loss="ucl", l2=1e-2, max_iter=30).fit(X, Y)
    crfs["pseudolikelihood"] = ig.GridCRF(iterations=4, loss="pseudo", l2=1e-2, max_iter=30).fit(X, Y)
ig.viz.panel(X_test[:4], crfs["4 sweeps"], Y_test[:4])

# %%
# ## Run them with other numbers of sweeps
#
# Each row is a fitted model, each column a number of sweeps at test time. With one, two and four sweeps the best model
# is the one that was learned for as many. More inference is not always better: the model that was learned for one sweep
# gets worse with each further one.
run = [1, 2, 4, 8, 16]
errors = np.array([[1 - crf.set_params(iterations=t).score(X_test, Y_test) for t in run] for crf in crfs.values()])
fig, ax = plt.subplots(figsize=(6.5, 3.2), layout="constrained")
image = ax.imshow(errors, cmap="viridis_r", vmin=0.05, vmax=0.07)
for (i, j), error in np.ndenumerate(errors):
    ax.text(j, i, f"{error:.4f}", ha="center", va="center", color="white" if error > 0.06 else "black")
ax.set_xticks(range(len(run)), run)
ax.set_yticks(range(len(crfs)), crfs)
ax.set(xlabel="sweeps at test time", ylabel="learned for", title="share of wrong pixels on the test images")
ax.spines[:].set_visible(False)

# %%
# The pseudolikelihood learns to predict each pixel from its *true* neighbours. At test time only noisy ones are known,
# and the couplings are so strong that every pixel becomes blank.
for name, crf in crfs.items():
    print(f"{name:17} coupling of horizontal neighbours", crf.parameters_["edge/horizontal"].round(2).tolist())
