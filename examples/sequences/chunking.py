"""
Chunks of a sentence: a chain CRF
=================================

A sentence is cut into noun phrases, verb phrases and others. A chain CRF with the words
and tags around each token finds nine chunks of ten after 1000 sentences; after all 8936
of the training set its F1 is .936.
"""

import os

import matplotlib.pyplot as plt
import numpy as np

import isinglass as ig
from isinglass_experiments.data import load_conll2000

# %%
# **Data.** CoNLL-2000: text of the Wall Street Journal. A token has a list of
# attributes: words and tags up to two tokens away, and pairs of them. Where
# ``ISINGLASS_DATA`` is not set, the example makes up sentences from a few patterns.


def made_up(n, seed):
    """Return attributes and labels of sentences such as "the old dog saw a cat"."""
    rng = np.random.default_rng(seed)
    words = {"D": ["the", "a"], "J": ["old", "red"], "N": ["dog", "cat"]}
    words |= {"V": ["saw", "has"], "R": ["now", "here"]}
    noun = [("D", "B-NP"), ("J", "I-NP"), ("N", "I-NP")]
    X, Y = [], []
    for _ in range(n):
        parts = [*noun, ("V", "B-VP"), *noun[:: rng.integers(1, 3)], ("R", "B-ADVP")]
        tokens = [(str(rng.choice(words[tag])), tag) for tag, _ in parts]
        X.append([[f"w0={word}", f"t0={tag}"] for word, tag in tokens])
        Y.append([label for _, label in parts])
    return X, Y


if os.environ.get("ISINGLASS_DATA"):
    X, Y, X_test, Y_test = load_conll2000()
    X, Y, X_test, Y_test = X[:1000], Y[:1000], X_test[:1000], Y_test[:1000]
else:
    (X, Y), (X_test, Y_test) = made_up(1000, 0), made_up(1000, 1)
print(len(X), "sentences for training;", *list(X[0][0])[:6], "...")

# %%
# **Learn.** ``l2`` is the penalty of the weights; the label of a token is ``B-NP`` at
# the beginning of a noun phrase, ``I-NP`` inside, ``O`` outside of all chunks. Training
# ends after 30 iterations; more of them change little.
crf = ig.ChainCRF(l2=1.0, max_iter=30)
with ig.errors.no_convergence_warnings():
    crf.fit(X, Y)
P = crf.predict(X_test)
report = ig.metrics.report(Y_test, P)
f1 = ig.metrics.span_f1(Y_test, P)
print(f"labels right {report.accuracy:.3f}, F1 of chunks {f1:.3f}")

# %%
# **By kind of chunk.** Look at the number of chunks beside each F1: kinds that are rare
# in 1000 sentences are hard.
kinds = {kind: one for kind, one in report.spans.items() if kind and one.true >= 10}
kinds = dict(sorted(kinds.items(), key=lambda item: item[1].true))
figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
bars = ax.barh(list(kinds), [one.f1 for one in kinds.values()])
ax.bar_label(bars, [f"{one.true} chunks" for one in kinds.values()], padding=4)
ax.set(xlabel="F1 on the test sentences", xlim=(0, 1.25))

# %%
# **One sentence**, each word with its predicted label.
for token, label in zip(X_test[0], P[0], strict=True):
    word = next(one[3:] for one in token if one.startswith("w0="))
    print(f"{word}/{label}", end=" ")
