"""Made-up text for sequence labelling: 8900 sentences, 204,000 tokens, 22 labels, 10 attributes a token.

Words follow a Zipf law, another one for each label. Needs NumPy only: the peer's environment reads it, too.
"""

from __future__ import annotations

import numpy as np

SENTENCES, LABELS, VOCABULARY = 8900, 22, 20_000


def words_and_labels(sentences: int = SENTENCES) -> tuple[list[list[int]], list[list[int]]]:
    """Return the words and labels of each sentence."""
    rng = np.random.default_rng(20)
    moves = np.cumsum(rng.dirichlet(np.full(LABELS, 0.15), size=LABELS) * 0.9 + 0.1 / LABELS, axis=1)
    zipf = np.cumsum(1 / np.arange(1, VOCABULARY + 1) ** 1.1)
    zipf /= zipf[-1]
    own = np.array([rng.permutation(VOCABULARY) for _ in range(LABELS)])
    shared = rng.permutation(VOCABULARY)
    words, labels = [], []
    for n in np.maximum(1, rng.poisson(23, SENTENCES))[:sentences].tolist():
        y, u = [int(rng.integers(LABELS))], rng.random(n)
        for t in range(1, n):
            y.append(min(int(np.searchsorted(moves[y[-1]], u[t])), LABELS - 1))
        rank = np.minimum(np.searchsorted(zipf, rng.random(n)), VOCABULARY - 1)
        words.append(np.where(rng.random(n) < 0.9, own[y, rank], shared[rank]).tolist())
        labels.append(y)
    return words, labels


def attributes(words: list[int]) -> list[list[str]]:
    """Return ten attributes of each token."""
    w = [-1, -1, *words, -1, -1]
    return [
        [
            "b",
            f"w={w[i]}",
            f"w-1={w[i - 1]}",
            f"w+1={w[i + 1]}",
            f"w-2={w[i - 2]}",
            f"w+2={w[i + 2]}",
            f"s={w[i] % 499}",
            f"s2={w[i] % 97}",
            f"p={w[i] // 50}",
            f"w-1|s={w[i - 1] % 97}|{w[i] % 97}",
        ]
        for i in range(2, len(words) + 2)
    ]


def tagging_problem(sentences: int = SENTENCES) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Return sentences as lists of attributes, and their labels."""
    words, labels = words_and_labels(sentences)
    return [attributes(one) for one in words], [list(map(str, one)) for one in labels]
