"""Can the marginals be believed?

A marginal of 0.9 should be right nine times out of ten. Whether it is depends on how the model was learned and on the
inference that computes it: both together make the probabilities. Reliability diagrams show it.
"""

# %%
# **Data.** Digits of 14 x 14 pixels; half of the pixels are set at random. The model is a grid: each pixel sees its
# noisy value and its four neighbours.
import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig
from isinglass.errors import no_convergence_warnings

images, _ = ig.datasets.binary_digits()
coarse = (images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)) > 0.5).astype(int)
rng = np.random.default_rng(0)
Y = coarse[rng.permutation(len(coarse))[:80]]
noisy = np.where(rng.random(Y.shape) < 0.5, rng.integers(0, 2, Y.shape), Y)
X = np.stack([1.0 - noisy, noisy], axis=-1)
X, Y, X_test, Y_test = X[:40], Y[:40], X[40:], Y[40:]

# %%
# **Two ways to learn.** Pseudolikelihood needs no inference in training. `"ucl"`, the likelihood of each label by
# itself, is trained through the inference that will be run: four sweeps of belief propagation, or five of mean field.
# Thirty steps of training are enough here; the warning that they were all used is left out.
with no_convergence_warnings():
    plain = ig.GridCRF(loss="pseudo", l2=0.01, max_iter=30).fit(X, Y)
    for_bp = ig.GridCRF(inference="bp", iterations=4, loss="ucl", l2=0.01, max_iter=30).fit(X, Y)
    for_mf = ig.GridCRF(inference="mf", schedule="flooding", iterations=5, loss="ucl", l2=0.01, max_iter=30).fit(X, Y)
systems = {
    "pseudolikelihood,\nbelief propagation": plain.predict_marginals(X_test),
    "trained for\nbelief propagation": for_bp.predict_marginals(X_test),
}
plain.set_params(inference="mf", iterations=None)
systems["pseudolikelihood,\nmean field"] = plain.predict_marginals(X_test)
systems["trained for\nmean field"] = for_mf.predict_marginals(X_test)
plain.set_params(inference="exact")
few = plain.predict_marginals(X_test[:10])

reports = {name: ig.metrics.report(Y_test, P.argmax(axis=-1), proba=P) for name, P in systems.items()}
reports["pseudolikelihood,\nexact inference"] = ig.metrics.report(Y_test[:10], few.argmax(axis=-1), proba=few)
print("                                       wrong   calibration error   log loss")
for name, r in reports.items():
    text = name.replace("\n", " ")
    print(f"{text:38} {1 - r.accuracy:.3f}   {r.calibration_error:.3f}               {r.log_loss:.3f}")

# %%
# **Reliability.** Predictions are put into bins by their confidence; the height of a bar is the share of them that is
# right. Bars of less than 20 predictions are left out. Bars on the diagonal are well calibrated; bars below it are
# overconfident. (The last row of the table is for 10 of the 40 test images, because exact inference takes longer. It
# shows that the parameters are also a cause: they were learned as if all neighbours were known.)
figure, axes = plt.subplots(1, 4, figsize=(9.5, 2.7), layout="constrained", sharey=True)
axes[0].set_ylabel("share right")
for ax, (name, r) in zip(axes, reports.items(), strict=False):
    bins = r.reliability
    some = bins.counts > 20
    middle = (bins.edges[1:] + bins.edges[:-1]) / 2
    ax.plot([0.5, 1], [0.5, 1], color="0.5", linestyle="--", linewidth=1)
    ax.bar(middle[some], bins.accuracy[some], 0.9 * np.diff(bins.edges)[some], color="#1f5fa8", alpha=0.85)
    ax.set_title(f"{name}\ncalibration error {r.calibration_error:.3f}", fontsize=8)
    ax.set(xlim=(0.5, 1), ylim=(0.4, 1), xlabel="confidence")

# %%
# The same with the library's own diagram, for one of them; the lower part shows how many predictions each bin has.
ig.viz.reliability_diagram(reports["trained for\nbelief propagation"])

# %%
# **What it looks like.** Belief propagation with the parameters of the pseudolikelihood says, and is sure of it, that
# the page is nearly blank. Trained beliefs are grey where the input leaves doubts.
shown = [X_test[:4, :, :, 1], Y_test[:4], *(systems[name][:4, :, :, 1] for name in list(systems)[:2])]
ig.viz.panel(shown, ["input", "truth", "pseudo", "trained"])
