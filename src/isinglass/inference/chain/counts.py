"""Best paths of a chain for each value of a count: Viterbi with a counter.

    d_t(z, c)  =  f_t(z) + max_w [d_{t-1}(w, c - step_t(z)) + g(w, z)]

is the best score of a path that ends in state z at token t with the count c, where state z of token t adds step_t(z). A
cost that is a function of counts, such as that of F1, is thereby maximised exactly (Altun, Johnson and Hofmann 2003).
Two counts are one number: c = c_1 + (largest c_1 + 1) c_2.
"""

from __future__ import annotations

import numpy as np

from isinglass.typing import FloatArray, IntArray


class CountedPaths:
    """The best paths of one sequence.

    Parameters
    ----------
    scores : array (tokens, states)
        At least one token.
    transition : array (states, states)
        Log scores; -inf forbids.
    steps : int array (tokens, states)
        What each state adds to the count.
    size : int
        One more than the largest count.

    Attributes
    ----------
    heights : array (size,)
        The score of the best path with each count; -inf where there is none.

    Examples
    --------
    >>> found = CountedPaths(np.array([[0.0, 1.0], [0.5, 0.0]]), np.zeros((2, 2)), np.array([[0, 1], [0, 1]]), 3)
    >>> found.heights.tolist(), found.path(1).tolist()
    ([0.5, 1.5, 1.0], [1, 0])
    """

    def __init__(self, scores: FloatArray, transition: FloatArray, steps: IntArray, size: int) -> None:
        self.steps = steps
        n, k = scores.shape
        self.back = np.zeros((n, k, size), np.int64)
        d = np.full((k, size), -np.inf)
        d[np.arange(k), steps[0]] = scores[0]
        for t in range(1, n):
            after = np.full((k, size), -np.inf)
            for z in range(k):
                reached, step = d + transition[:, z, None], int(steps[t, z])
                before = reached.argmax(axis=0)
                self.back[t, z, step:] = before[: size - step]
                after[z, step:] = scores[t, z] + reached[before, np.arange(size)][: size - step]
            d = after
        self.last, self.heights = d.argmax(axis=0), d.max(axis=0)

    def path(self, count: int) -> IntArray:
        """Return the best path with a count."""
        n = len(self.back)
        states, z, c = np.empty(n, np.int64), int(self.last[count]), count
        for t in range(n - 1, -1, -1):
            states[t] = z
            z, c = int(self.back[t, z, c]), c - int(self.steps[t, z])
        return states
