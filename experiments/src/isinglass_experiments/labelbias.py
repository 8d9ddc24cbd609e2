"""Label bias: two words that differ in the middle, and a model that decides at the first letter.

The words are "rib" and "rob"; every state of this automaton emits its letter, or one of the three others under noise:

    r1 -> i -> b      or      r2 -> o -> b

The two r look the same. An MEMM must choose between r1 and r2 at the first letter, and then has no choice left: the
only successor of r1 has probability one, whatever the second letter is. A chain CRF with the same weights, and an HMM,
weigh the whole word. (Lafferty, McCallum and Pereira 2001, section 5.1: 2000 training and 500 test words, 29/32 for the
right letter and 1/32 for each other one; errors of 4.6 % with the CRF and 42 % with the MEMM. Murphy 2012, section
19.6.1.)

All models know which states may follow one another, as in the paper. Errors are counted by words, whose path is wrong
somewhere, and by labels, single states; the paper does not say which it counts. Beside them is the error of the best
rule there is: the more probable path under the true model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from isinglass import HMM, MEMM, ChainCRF, InputError
from isinglass.metrics import sequence_accuracy
from isinglass.typing import FloatArray, JsonObject
from isinglass.validation import number, whole_number
from isinglass_experiments.common.experiment import (
    Experiment,
    Plot,
    Progress,
    Report,
    fit_quietly,
    parallel_map,
    register,
    tell,
)

LETTERS = "ribo"
PATHS = (("r1", "i", "b"), ("r2", "o", "b"))
PAPER = 3 / 32
_LEVELS = (0.0, 0.05, PAPER, 0.2, 0.3, 0.4)
_STATES = sorted({state for path in PATHS for state in path})
_FOLLOW = {pair for path in PATHS for pair in zip((None, *path), (*path, None), strict=True)}
_MODELS = ("HMM", "MEMM", "CRF")
FORBIDDEN = [pair for pair in product([None, *_STATES], repeat=2) if pair not in _FOLLOW]


@register
@dataclass(frozen=True)
class LabelBias(Experiment):
    """The label bias of locally normalised models.

    Parameters
    ----------
    quick : bool
        Three draws, and half of the noise levels.
    noise : sequence of float
        How often a state emits another letter than its own.
    draws : int, optional
        How often data are drawn: 10, or 3 if quick.
    n_jobs : int
        Processes; values do not depend on them.
    """

    noise: Sequence[float] | None = None
    draws: int | None = None

    name: ClassVar[str] = "labelbias"
    summary: ClassVar[str] = "label bias: errors of HMM, MEMM and CRF on two words (Lafferty et al. 2001)"
    published: ClassVar[dict[str, float]] = {"MEMM": 0.42, "CRF": 0.046}

    def run(self, progress: Progress | None = None) -> Report:
        """Train the three on draws of the data at each noise level, and test."""
        levels = self._levels()
        draws = (3 if self.quick else 10) if self.draws is None else whole_number(self.draws, "draws", 1)
        n_train, n_test = (500, 500) if self.quick else (2000, 500)
        work = [(level, draw, n_train, n_test) for level in levels for draw in range(draws)]
        found = []
        for i, one in enumerate(parallel_map(errors, work, self.n_jobs)):
            found.append(one)
            tell(progress, f"noise {work[i][0]:.3g}", (i + 1) / len(work))
        values = np.array([[one[name] for name in _MODELS] for one in found])
        return _report(values.reshape(len(levels), draws, len(_MODELS), 2), levels, n_train, n_test)

    def _levels(self) -> list[float]:
        if self.noise is None:
            return list(_LEVELS[1::2] if self.quick else _LEVELS)
        levels = [number(level, "noise", 0, 1) for level in self.noise]
        if not levels or max(levels) >= 0.75:
            got = "none" if not levels else f"{max(levels):g}"
            raise InputError("noise", "levels below 0.75, from where letters say nothing", got)
        return levels


def words(n: int, noise: float, generator: np.random.Generator) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Draw words and their paths.

    Examples
    --------
    >>> X, Y = words(2, 0.0, np.random.default_rng(0))
    >>> ["".join(letter for token in x for letter in token) for x in X], Y[0]
    (['rob', 'rob'], ['r2', 'o', 'b'])
    """
    Y = [list(PATHS[i]) for i in generator.integers(0, len(PATHS), n)]
    X = []
    for path in Y:
        others = [[letter for letter in LETTERS if letter != state[0]] for state in path]
        wrong = generator.random(len(path)) < noise
        X.append([[str(generator.choice(o)) if w else y[0]] for y, o, w in zip(path, others, wrong, strict=True)])
    return X, Y


def errors(noise: float, draw: int, n_train: int, n_test: int) -> dict[str, tuple[float, float]]:
    """Return the shares of words and of labels that each model gets wrong on one draw."""
    generator = np.random.default_rng([draw, round(noise * 2**20)])
    (X, Y), (X_test, Y_test) = words(n_train, noise, generator), words(n_test, noise, generator)
    options: JsonObject = {"l2": 0.01, "state_features": "all", "forbidden": FORBIDDEN, "max_iter": 500}
    options |= {"bias": False, "boundary": False}
    models = (HMM(forbidden=FORBIDDEN), MEMM(**options), ChainCRF(**options))
    found = {}
    for name, model in zip(_MODELS, models, strict=True):
        fit_quietly(model, X, Y)
        found[name] = (1 - sequence_accuracy(Y_test, model.predict(X_test)), 1 - model.score(X_test, Y_test))
    return found


def least_error(noise: float) -> float:
    """Return the share of words that no rule gets right.

    Examples
    --------
    >>> least_error(0.0), round(least_error(3 / 32), 4), round(least_error(0.75), 4)
    (0.0, 0.0625, 0.5)
    """
    total = 0.0
    for word in product(LETTERS, repeat=3):
        total += min(_probability(word, path, noise) for path in PATHS) / len(PATHS)
    return total


def _probability(word: Sequence[str], path: Sequence[str], noise: float) -> float:
    right = [letter == state[0] for letter, state in zip(word, path, strict=True)]
    return float(np.prod(np.where(right, 1 - noise, noise / (len(LETTERS) - 1))))


def _report(values: FloatArray, levels: list[float], n_train: int, n_test: int) -> Report:
    """Make a table of errors (levels, draws, models, words or labels)."""
    draws, least = values.shape[1], [least_error(level) for level in levels]
    mean, standard_error = values.mean(axis=1), values.std(axis=1, ddof=min(1, draws - 1)) / np.sqrt(draws)
    rows = []
    for i, level in enumerate(levels):
        for m, name in enumerate(_MODELS):
            paper = f"{LabelBias.published[name]:.3f}" if level == PAPER and name in LabelBias.published else ""
            cells = [f"{mean[i, m, j]:.4f} ± {standard_error[i, m, j]:.4f}" for j in range(2)]
            rows.append([f"{level:.3f}", name, *cells, f"{least[i]:.4f}", paper])
    notes = [
        f"mean and standard error over {draws} draws of {n_train} training and {n_test} test words",
        "best possible, of words: the more probable path under the true model",
        "published: Lafferty et al. 2001, section 5.1, of words or of labels",
        "the MEMM cannot undo at the second letter what it chose at the first; HMM and CRF weigh the whole word",
    ]
    data = {"experiment": LabelBias.name, "noise": levels, "models": list(_MODELS), "errors": values.tolist(),
            "least": least, "published": LabelBias.published}  # fmt: skip
    curves = {name: (levels, mean[:, m, 0].tolist()) for m, name in enumerate(_MODELS)}
    plots = {"labelbias": Plot("noise", "words wrong", {**curves, "best possible": (levels, least)})}
    columns = ["noise", "model", "words wrong", "labels wrong", "best possible", "published"]
    return Report("Label bias: rib and rob", columns, rows, notes, data, {}, plots)
