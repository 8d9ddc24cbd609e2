"""
Can the marginals be believed?
==============================

A marginal of 0.9 should be right nine times out of ten. Whether it is depends on how
the model was learned and on the inference that computes it: both together make the
probabilities. Reliability diagrams show it.
"""

# %%
# **Data.** Digits of 14 x 14 pixels; half of the pixels are set at random. The model is
# a grid: each pixel sees its noisy value and its four neighbours.
import matplotlib.pyplot as plt

# sphinx_gallery_thumbnail_number = 2
import numpy as np
from sklearn.model_selection import GridSearchCV, KFold

import isinglass as ig

images, _ = ig.datasets.binary_digits()
coarse = (images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)) > 0.5).astype(int)
rng = np.random.default_rng(0)
Y = coarse[rng.permutation(len(coarse))[:80]]
noisy = np.where(rng.random(Y.shape) < 0.5, rng.integers(0, 2, Y.shape), Y)
X = np.stack([1.0 - noisy, noisy], axis=-1)
X, Y, X_test, Y_test = X[:40], Y[:40], X[40:], Y[40:]

# %%
# **Two ways to learn.** Pseudolikelihood needs no inference in training. ``"ucl"``, the
# likelihood of each label by itself, is trained through the inference that will be run:
# four sweeps of belief propagation, or five of mean field. Each pair of a loss and an
# inference gets the penalty ``l2`` that is best in cross-validation on the training
# images, by the mean log of the marginal of the true label. Thirty steps of training
# are enough here; the warning that they were all used is left out.


def log_marginal(crf, X, Y):
    """Return the mean log of the marginal of the true label."""
    P = crf.predict_marginals(X)
    return -ig.metrics.report(Y, P.argmax(axis=-1), proba=P).log_loss


inferences = {
    "belief propagation": {"inference": "bp", "iterations": 4},
    "mean field": {"inference": "mf", "schedule": "flooding", "iterations": 5},
}
crfs, systems = {}, {}
for inference, options in inferences.items():
    for title, loss in (("pseudolikelihood,", "pseudo"), ("trained for", "ucl")):
        crf = ig.GridCRF(loss=loss, max_iter=30, **options)
        penalties = {"l2": [0.01, 1, 10, 100]}
        search = GridSearchCV(crf, penalties, scoring=log_marginal, cv=KFold(3))
        with ig.errors.no_convergence_warnings():
            name = f"{title}\n{inference}"
            crfs[name] = search.fit(X, Y).best_estimator_
        systems[name] = crfs[name].predict_marginals(X_test)

reports = {
    name: ig.metrics.report(Y_test, P.argmax(axis=-1), proba=P)
    for name, P in systems.items()
}
print(f"{'':38} l2     wrong   calibration error   log loss")
for name, r in reports.items():
    wrong, title = 1 - r.accuracy, name.replace("\n", " ")
    print(f"{title:38} {crfs[name].l2:<6g} {wrong:.3f}", end="   ")
    print(f"{r.calibration_error:17.3f}   {r.log_loss:8.3f}")

# %%
# Is inference the cause? With the parameters of the pseudolikelihood exact marginals
# are hardly better: they were learned as if all neighbours were known. (For 10 of the
# 40 test images, because exact inference takes longer.)
exact = crfs["pseudolikelihood,\nbelief propagation"].set_params(inference="exact")
few = exact.set_params(iterations=None).predict_marginals(X_test[:10])
r = ig.metrics.report(Y_test[:10], few.argmax(axis=-1), proba=few)
print(f"exact: wrong {1 - r.accuracy:.3f}, calibration error {r.calibration_error:.3f}")

# %%
# **Reliability.** Predictions are put into bins by their confidence; the height of a
# bar is the share of them that is right. Bars of less than 20 predictions are left out.
# Bars on the diagonal are well calibrated; bars below it are overconfident.
figure, axes = plt.subplots(1, 4, figsize=(9.5, 2.7), layout="constrained", sharey=True)
axes[0].set_ylabel("share right")
for ax, (name, r) in zip(axes, reports.items(), strict=True):
    bins = r.reliability
    some = bins.counts > 20
    middle = (bins.edges[1:] + bins.edges[:-1]) / 2
    ax.plot([0.5, 1], [0.5, 1], color="0.5", linestyle="--", linewidth=1)
    ax.bar(middle[some], bins.accuracy[some], 0.9 * np.diff(bins.edges)[some])
    ax.set_title(f"{name}\ncalibration error {r.calibration_error:.3f}", fontsize=8)
    ax.set(xlim=(0.5, 1), ylim=(0.4, 1), xlabel="confidence")

# %%
# The same with the library's own diagram, for one of them; the lower part shows how
# many predictions each bin has.
ig.viz.reliability_diagram(reports["trained for\nbelief propagation"])

# %%
# **What it looks like.** Belief propagation with the parameters of the pseudolikelihood
# says, and is sure of it, that the page is nearly blank. Trained beliefs are grey where
# the input leaves doubts.
shown = [
    X_test[:4, :, :, 1],
    Y_test[:4],
    *(systems[name][:4, :, :, 1] for name in list(systems)[:2]),
]
ig.viz.panel(shown, ["input", "truth", "pseudo", "trained"])
