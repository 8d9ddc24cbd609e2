"""
When it is hard: names in tweets
================================

Most names in the test were never met in training: a chain CRF finds few of them. How to
search for penalties, explain the weights, count the errors span by span, and see
whether the probabilities are right.
"""

# sphinx_gallery_thumbnail_number = 2
import os

import numpy as np
import pandas as pd
from scipy.stats import loguniform
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV

import isinglass as ig
from isinglass_experiments.data import entity_attributes, load_wnut17

# %%
# Data
# ----
#
# WNUT 2017 has 3394 tweets for training, of which we take 1500, and 1287 comments for
# the test. It is hard on purpose: most names in the test do not occur in training.
# Where ``ISINGLASS_DATA`` is not set, the example makes up sentences from a few
# patterns.


def made_up(n, seed):
    """Return made-up sentences and their labels."""
    rng = np.random.default_rng(seed)
    people, places = (
        ["Ann Lee", "Bo", "Cleo Marsh", "Dan Poe"],
        ["Paris", "Oslo", "New Delhi", "Lima"],
    )
    patterns = [
        "{p} flew to {l}",
        "I met {p} in {l} today",
        "{l} is far away",
        "call {p} now",
        "it rains again",
    ]
    words, labels = [], []
    for _ in range(n):
        sentence, tags = [], []
        for part in rng.choice(patterns).split():
            kind = {"{p}": "person", "{l}": "location"}.get(part)
            found = (
                str(rng.choice({"person": people, "location": places}[kind])).split()
                if kind
                else [part]
            )
            sentence += found
            tags += [
                f"{'BI'[k > 0]}-{kind}" if kind else "O" for k in range(len(found))
            ]
        words.append(sentence)
        labels.append(tags)
    return words, labels


if os.environ.get("ISINGLASS_DATA"):
    words, Y, words_test, Y_test = load_wnut17()
    words, Y = words[:1500], Y[:1500]
else:
    (words, Y), (words_test, Y_test) = made_up(1500, 0), made_up(300, 1)
X = [entity_attributes(sentence) for sentence in words]
X_test = [entity_attributes(sentence) for sentence in words_test]
print(len(X), "sentences for training,", len(X_test), "for the test")

# %%
# A token has a list of attributes: the words around it, their shapes ("Aa" is a
# capitalised word), beginnings and ends.
print(words[0][1], *X[0][1], sep="  ")

# %%
# Random search
# -------------
#
# ``l1`` makes weights exactly zero, ``l2`` keeps them small. Five pairs are tried on
# 600 of the sentences, each with two folds and 20 iterations of training. The score is
# the F1 of whole spans: a name counts if both its ends and its type are right.
search = RandomizedSearchCV(
    ig.ChainCRF(max_iter=20),
    {"l1": loguniform(1e-2, 3.0), "l2": loguniform(1e-2, 3.0)},
    n_iter=5,
    scoring=make_scorer(ig.metrics.span_f1),
    cv=2,
    random_state=0,
    refit=False,
)
with ig.errors.no_convergence_warnings():
    search.fit(X[:600], Y[:600])
tried = pd.DataFrame(search.cv_results_)[["param_l1", "param_l2", "mean_test_score"]]
tried.sort_values("mean_test_score", ascending=False).round(4)

# %%
# The best pair, on all sentences:
crf = ig.ChainCRF(max_iter=30, **search.best_params_)
with ig.errors.no_convergence_warnings():
    crf.fit(X, Y)
weights = crf.weights_frame()
print(f"{len(weights)} weights, {np.mean(weights['weight'] != 0):.0%} of them not zero")

# %%
# What the model looks at
# -----------------------
#
# The strongest attributes for the first word of a place and of a person, for and
# against it. ``w-1=at`` means that the word before is "at", ``s0=A.A.`` is the shape of
# "U.S."; weights are in nats.
found = crf.explain(top=6)
for label in ("B-location", "B-person"):
    weights = [f"{one.feature} {one.weight:+.2f}" for one in found.features[label]]
    print(label, *weights, sep="\n    ")

# %%
# Transitions: after B- comes I- of the same type, or O.
ig.viz.heat_map(found)

# %%
# Span by span
# ------------
#
# Of what the model names, nearly half is right. It misses most names, which it has
# never met before.
P = crf.predict(X_test)
report = ig.metrics.report(
    Y_test, P, proba=crf.predict_marginals(X_test), classes=crf.classes_
)
rows = {
    kind or "all": [s.true, s.precision, s.recall, s.f1]
    for kind, s in report.spans.items()
}
pd.DataFrame(rows, index=["names", "precision", "recall", "F1"]).T.astype(
    {"names": int}
).round(3)

# %%
# Are its probabilities right? Of labels that get 70 %, say, about 70 % should be right.
ig.viz.reliability_diagram(report)

# %%
# One sentence of the test, with the probability of each label that was chosen:
k = next(
    k
    for k, labels in enumerate(P)
    if len(labels) < 14 and sum(one[0] == "B" for one in labels) > 1
)
chosen = crf.predict_marginals(X_test[k : k + 1])[0].max(axis=1)
pd.DataFrame(
    {
        "word": words_test[k],
        "truth": Y_test[k],
        "predicted": P[k],
        "probability": chosen.round(3),
    }
)
