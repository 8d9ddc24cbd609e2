"""
Hair, eyes and sex: a log-linear analysis
=========================================

Which characteristics of 592 students depend on each other? Log-linear models of a table
of counts are fitted and tested against each other. The best one answers questions, and
fills in what is missing.
"""

# sphinx_gallery_thumbnail_number = 2
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import isinglass as ig

# %%
# Data
# ----
#
# Counts of students by the colour of their hair, that of their eyes, and sex (Snee
# 1974; ``HairEyeColor`` in R).
hair, eyes, sex = (
    ["black", "brown", "red", "blond"],
    ["brown", "blue", "hazel", "green"],
    ["male", "female"],
)
counts = np.array(
    [
        [[32, 36], [11, 9], [10, 5], [3, 2]],
        [[53, 66], [50, 34], [25, 29], [15, 14]],
        [[10, 16], [10, 7], [7, 7], [7, 7]],
        [[3, 4], [30, 64], [5, 5], [8, 8]],
    ]
)
pd.DataFrame(counts.sum(axis=2), hair, eyes)

# %%
# Models
# ------
#
# A log-linear model has a table for each of some sets of variables; what has no common
# table is independent, given the rest. ``method="ipf"`` is iterative proportional
# fitting, the classical way to the maximum of the likelihood.
variables = {"hair": hair, "eyes": eyes, "sex": sex}
models = {
    "all independent": [("hair",), ("eyes",), ("sex",)],
    "hair-eyes, sex alone": [("hair", "eyes"), ("sex",)],
    "hair-eyes, hair-sex": [("hair", "eyes"), ("hair", "sex")],
    "all pairs": [("hair", "eyes"), ("hair", "sex"), ("eyes", "sex")],
}
fitted = {}
for title, scopes in models.items():
    fitted[title] = ig.MRF(ig.FactorGraph(variables, scopes), method="ipf").fit(
        counts=counts
    )
rows = {}
for title, mrf in fitted.items():
    test = mrf.goodness_of_fit()
    rows[title] = {
        "G²": test.g2,
        "df": test.df,
        "p": test.p_g2,
        "AIC": mrf.aic(),
        "BIC": mrf.bic(),
    }
pd.DataFrame(rows).T.astype({"df": int}).round(3)

# %%
# G² compares a model with the table itself: a small p says that the model misses
# something. Independence is refuted, the others are not. AIC takes the third: eyes and
# sex are independent, given the hair. Does hair depend on sex at all? The difference of
# two models' G² is a test of what only the larger one has.
smaller, mrf = fitted["hair-eyes, sex alone"], fitted["hair-eyes, hair-sex"]
test = smaller.compare(mrf)
print(f"G² falls by {test.g2:.2f} for {test.df} parameters, p = {test.p_g2:.3f}")

# %%
# The model as a graph: the wider a line, the stronger the dependence.
ig.viz.draw(mrf.potentials_)

# %%
# Its coefficients are contrasts with black hair, brown eyes and male.
print(mrf.summary())

# %%
# Questions
# ---------
#
# The model is a joint distribution, so it answers in every direction, by name.
r = ig.infer(mrf.potentials_)
blond = ig.infer(mrf.potentials_, evidence={"hair": "blond"}).variable("eyes")
blue = ig.infer(mrf.potentials_, evidence={"eyes": "blue"})
tops = blue.variable("hair")
print(
    "eyes of the blond:",
    ", ".join(f"{name} {b:.3f}" for name, b in zip(eyes, blond, strict=True)),
)
print(
    "hair of the blue-eyed:",
    ", ".join(
        f"{name} {b:.3f}" for name, b in zip(hair, blue.variable("hair"), strict=True)
    ),
)
print(
    f"female are {blue.variable('sex')[1]:.3f} of the blue-eyed, "
    f"{r.variable('sex')[1]:.3f} of all"
)
for pair in (("hair", "eyes"), ("hair", "sex"), ("eyes", "sex")):
    shared = r.mutual_information(*pair)
    print(f"mutual information of {' and '.join(pair)}: {shared:.4f} nats")

# %%
# p(eyes | hair), and where the table differs from independence: Pearson residuals,
# (seen - expected) / √expected.
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
given = mrf.conditional(["eyes"], given=["hair"])
bottom = np.zeros(4)
for k, colour in enumerate(["#7a4b2a", "#5b8fc9", "#b59a57", "#5f9a5b"]):
    left.barh(hair, given[:, k], left=bottom, color=colour, label=eyes[k])
    bottom += given[:, k]
left.invert_yaxis()
left.set(title="p(eyes | hair)", xlim=(0, 1))
left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=4, frameon=False)
pairs = counts.sum(axis=2)
expected = np.outer(pairs.sum(axis=1), pairs.sum(axis=0)) / pairs.sum()
image = right.imshow(
    (pairs - expected) / np.sqrt(expected), cmap="RdBu", vmin=-8, vmax=8
)
right.set_xticks(range(4), eyes)
right.set_yticks(range(4), hair)
right.set_title("hair and eyes against independence")
right.spines[:].set_visible(False)
fig.colorbar(image, ax=right)

# %%
# Missing values
# --------------
#
# Now the same students as a data frame, one a row. We lose the eyes of a third of them,
# learn from what is left by expectation maximisation, and fill them in.
cells = pd.DataFrame(
    [(h, e, s) for h in hair for e in eyes for s in sex],
    columns=["hair", "eyes", "sex"],
)
people = cells.loc[np.repeat(np.arange(len(cells)), counts.ravel())].reset_index(
    drop=True
)
lost = np.random.default_rng(0).random(len(people)) < 1 / 3
seen = people.astype(object)
seen.loc[lost, "eyes"] = None
em = ig.MRF(edges=[("hair", "eyes"), ("hair", "sex")], method="em").fit(seen)
filled = em.impute(seen)
right_ones = (filled["eyes"] == people["eyes"])[lost].mean()
most_common = (people["eyes"] == seen["eyes"].mode()[0])[lost].mean()
print(
    f"{lost.sum()} lost; right: {right_ones:.1%} by the model, "
    f"{most_common:.1%} by the most common colour"
)

# %%
# The most probable colour makes every red-haired student brown-eyed. A table of
# filled-in counts needs draws (``how="sample"``), which keep the shares of all colours.
drawn = em.impute(seen, how="sample", random_state=0)
shares = {
    "truth": people.loc[lost, "eyes"].value_counts(normalize=True),
    "most probable": filled.loc[lost, "eyes"].value_counts(normalize=True),
    "drawn": drawn.loc[lost, "eyes"].value_counts(normalize=True),
}
pd.DataFrame(shares).reindex(eyes).fillna(0).round(3)
