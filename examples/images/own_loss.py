"""
A loss of your own, and an inference that is learned, too
=========================================================

Twenty lines make a new loss: here one that punishes missed ink more than false ink. It
trains a model whose inference has parameters of its own, the weights of the entropies
of a convex free energy, and these are learned along with everything else.
"""

# %%
# **Data.** Digits of 14 x 14 pixels, half of the pixels set at random.
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import isinglass as ig
from isinglass.errors import no_convergence_warnings
from isinglass.losses import LossFacts, UnivariateLoss, register

images, _ = ig.datasets.binary_digits()
coarse = (images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)) > 0.5).astype(int)
rng = np.random.default_rng(0)
Y = coarse[rng.permutation(len(coarse))[:60]]
noisy = np.where(rng.random(Y.shape) < 0.5, rng.integers(0, 2, Y.shape), Y)
X = np.stack([1.0 - noisy, noisy], axis=-1)
X, Y, X_test, Y_test = X[:15], Y[:15], X[15:], Y[15:]

# %%
# **The loss.** A loss that is a sum over variables supplies one method: its terms, and
# their derivatives by the beliefs. This is a squared error with a weight for ink.
# ``register`` gives it a name that estimators and files know.


@register
@dataclass(frozen=True)
class InkLoss(UnivariateLoss):
    """w(y) (1 - b(y))^2 with w(ink) = weight, w(paper) = 1."""

    weight: float = 1.0
    name: ClassVar[str] = "ink"
    facts: ClassVar[LossFacts] = LossFacts(
        "sum_i w(y_i) (1 - b_i(y_i))^2",
        convex=False,
        consistent=False,
        uses="beliefs",
        note="weighted",
    )

    def terms(self, beliefs, labels):  # (n, states), (n,) -> (n,), (n, states)
        """Return terms and derivatives."""
        rows = np.arange(len(labels))
        weights = np.where(labels == 1, self.weight, 1.0)
        wrong = 1 - beliefs[rows, labels]
        bars = np.zeros_like(beliefs)
        bars[rows, labels] = -2 * weights * wrong
        return weights * wrong**2, bars


# %%
# **Is the derivative right?** `ig.testing.check_loss` compares it with finite
# differences on random models, with all labels and with some hidden, and raises an
# error if something is wrong.
ig.testing.check_loss(InkLoss(weight=3.0))
print("all checks passed")

# %%
# **Learn with it.** Inference minimises a convex free energy: one minimum, found by
# Newton's method, with an exact derivative (``gradient="implicit"``). With
# ``entropy="fit"`` the entropy weights are parameters, too. Twenty steps are enough for
# the point; the warning that they were all used is left out.
options = {"inference": "convex", "gradient": "implicit", "l2": 0.1, "max_iter": 20}
fitted = {}
with no_convergence_warnings():
    for weight in (1.0, 3.0):
        fitted[f"ink weighs {weight:g}"] = ig.GridCRF(
            loss=InkLoss(weight), entropy="A", **options
        ).fit(X, Y)
    fitted["ink weighs 3, fitted entropies"] = ig.GridCRF(
        loss=InkLoss(3.0), entropy="fit", **options
    ).fit(X, Y)

print("                                 ink found   false ink   weighted loss (test)")
for name, crf in fitted.items():
    P = crf.predict_marginals(X_test)
    found = P.argmax(axis=-1)
    wrong = np.where(Y_test == 1, 3.0 * P[..., 0] ** 2, P[..., 1] ** 2).mean()
    ink, false = found[Y_test == 1].mean(), found[Y_test == 0].mean()
    print(f"{name:32} {ink:6.2f}      {false:6.3f}      {wrong:.4f}")

# %%
# **What was learned.** The entropy weights begin with A: 1 for pairs and 0.01 for
# single pixels. A weight for each state, and for each pair of states, comes out.
learned = fitted["ink weighs 3, fitted entropies"].entropy_
print("pixels (paper, ink):", np.round(learned["variables"], 3))
print("pairs of neighbours:")
print(np.round(learned["factors"], 2))

# %%
# Beliefs of ink, for four test images. Weighing ink makes the model call more of it.
beliefs = [crf.predict_marginals(X_test[:4])[..., 1] for crf in fitted.values()]
ig.viz.panel(
    [X_test[:4, :, :, 1], Y_test[:4], *beliefs],
    ["input", "truth", "weight 1", "weight 3", "and entropies"],
)
