"""Which loss is best on chains: J. Domke (2009), section 3.7 and figures 3.2-3.9.

Binary chains, for which inference is exact, in three worlds:

    well             x is uniform, y is drawn from a CRF with random parameters
    semi             y alternates between ten 0s and ten 1s; 60 % of x are set to random values
    misspecified     y is all 0 or all 1, but for five places; 75 % of x are set to random values

The likelihood is convex; all other losses start from its parameters. The thesis averages over 100 training sets and
says neither how long the chains are, nor how many, nor from where the parameters come. Here: chains of 50, 1 to 100 of
them (with 500 others to test on), independent N(0, 1) parameters, drawn again in each repetition; the first group of
ten begins at a random place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np

from isinglass import ChainCRF, infer
from isinglass.errors import no_convergence_warnings
from isinglass.models import chain_model
from isinglass.typing import FloatArray, IntArray, JsonObject
from isinglass.validation import whole_number
from isinglass_experiments.common.experiment import (
    Experiment,
    Plot,
    Progress,
    Report,
    chosen_rows,
    parallel_map,
    register,
    tell,
)
from isinglass_experiments.common.methods import LOSSES as MEAN_LOSSES
from isinglass_experiments.common.methods import mean_losses
from isinglass_experiments.common.statistics import holm, p_value

LENGTH, GROUP, CHANGED = 50, 10, 5
WORLDS = ("well", "semi", "misspecified")
LOSSES = ("pseudo", "cl", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass")
MEASURES = ("error", *MEAN_LOSSES)
SIZES = (1, 2, 5, 10, 20, 50, 100)
TESTED = 500
L2 = 1e-3
P = 0.01
_HOW = f"paired t-tests, Holm's p < {P:g}"


@register
@dataclass(frozen=True)
class Chains(Experiment):
    """Compare losses on chains.

    Parameters
    ----------
    quick : bool
        6 repetitions, chains of 5 and 20, and 100 to test on.
    draws : int, optional
        Repetitions; by default 100.
    rows : sequence of str, optional
        Losses; by default all eight.
    n_jobs : int
        Processes that share the repetitions; results do not depend on it.
    """

    draws: int | None = None
    rows: Sequence[str] | None = None

    name: ClassVar[str] = "chains"
    summary: ClassVar[str] = "losses on three kinds of binary chains (Domke 2009, section 3.7)"

    def run(self, progress: Progress | None = None) -> Report:
        """Train with every loss on every number of chains, again and again."""
        rows, sizes = chosen_rows(self.rows, LOSSES, LOSSES), (5, 20) if self.quick else SIZES
        draws = whole_number((6 if self.quick else 100) if self.draws is None else self.draws, "draws", 2)
        tested = 100 if self.quick else TESTED
        work = [(world, draw, rows, sizes, tested) for world in WORLDS for draw in range(draws)]
        found: list[FloatArray] = []
        for one in parallel_map(repetition, work, self.n_jobs):
            world, draw = work[len(found)][:2]
            tell(progress, f"{world}, repetition {draw}", len(found) / len(work))
            found.append(one)
        shape = (len(WORLDS), draws, len(rows), len(sizes), len(MEASURES))
        return _report(rows, sizes, np.reshape(found, shape), tested)


def chains(world: str, n: int, theta: FloatArray, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Make chains: inputs x and labels y, int arrays (n, LENGTH). `theta` (8,) are the parameters of "well"."""
    if world == "well":
        x = random.integers(0, 2, (n, LENGTH))
        return x, _drawn(x, theta, random)
    if world == "semi":
        start = random.integers(0, 2 * GROUP, (n, 1))
        y, noise = (start + np.arange(LENGTH)) // GROUP % 2, 0.6
    else:
        y, noise = np.repeat(random.integers(0, 2, (n, 1)), LENGTH, axis=1), 0.75
        places = random.permuted(np.tile(np.arange(LENGTH), (n, 1)), axis=1)[:, :CHANGED]
        np.put_along_axis(y, places, 1 - np.take_along_axis(y, places, axis=1), axis=1)
    hidden = random.permuted(np.tile(np.arange(LENGTH) < round(noise * LENGTH), (n, 1)), axis=1)
    return np.where(hidden, random.integers(0, 2, y.shape), y), y


def _drawn(x: IntArray, theta: FloatArray, random: np.random.Generator) -> IntArray:
    """Draw labels from a CRF with node parameters theta[:4] and edge parameters theta[4:]: filter, then go back."""
    node, edge = np.exp(theta[:4].reshape(2, 2))[x], np.exp(theta[4:].reshape(2, 2))
    forward = np.empty((LENGTH, len(x), 2))
    forward[0] = node[:, 0]
    for t in range(1, LENGTH):
        forward[t] = (forward[t - 1] @ edge) * node[:, t]
        forward[t] /= forward[t].sum(axis=1, keepdims=True)
    y = np.empty(x.shape, np.int64)
    weight = forward[-1]
    for t in range(LENGTH - 1, -1, -1):
        y[:, t] = random.random(len(x)) * weight.sum(axis=1) >= weight[:, 0]
        weight = forward[t - 1] * edge[:, y[:, t]].T
    return y


def repetition(world: str, draw: int, rows: Sequence[str], sizes: Sequence[int], tested: int) -> FloatArray:
    """Train and test once. Returns an array (rows, sizes, measures)."""
    random = np.random.default_rng([WORLDS.index(world), draw])
    theta = random.normal(size=8)
    x, y = chains(world, max(sizes), theta, random)
    x_test, y_test = chains(world, tested, theta, random)
    found = np.empty((len(rows), len(sizes), len(MEASURES)))
    for s, size in enumerate(sizes):
        fitted = trained(rows, _features(x[:size]), list(y[:size]))
        for r, row in enumerate(rows):
            found[r, s] = measured(fitted[row], x_test, y_test)
    return found


def trained(rows: Sequence[str], X: list[FloatArray], Y: list[IntArray]) -> dict[str, FloatArray]:
    """Return the parameters that each loss finds; all but the first, "cl", start from its."""
    crf = ChainCRF(l2=L2, state_features="all", bias=False, boundary=False, tol=1e-5, max_iter=300)
    found: dict[str, FloatArray] = {}
    weights = np.append(np.ones(len(X)), 0.0)  # one chain more, of no weight: both labels are there
    X, Y = [*X, np.eye(2)], [*Y, np.arange(2)]
    with no_convergence_warnings():
        found["cl"] = crf.fit(X, Y, weights).theta_.copy()
        for row in rows:
            if row != "cl":
                crf.theta_ = found["cl"].copy()
                found[row] = crf.set_params(loss=row, warm_start=True).fit(X, Y, weights).theta_.copy()
    return found


def measured(theta: FloatArray, x: IntArray, y: IntArray) -> FloatArray:
    """Return the univariate error of a model, and its test losses, per place or per pair."""
    result = infer(chain_model(_features(x), 2).potentials(theta), "exact")
    wrong = (np.asarray(result.variables)[:, 1] > 0.5) != y.ravel()
    return np.array([float(wrong.mean()), *mean_losses(result, y).values()])


def _features(x: IntArray) -> list[FloatArray]:
    return list(np.eye(2)[x])


def _report(rows: tuple[str, ...], sizes: Sequence[int], found: FloatArray, tested: int) -> Report:
    means = found.mean(axis=1)
    table = [
        [world, row, *(f"{means[w, r, s, 0]:.4f}" for s in range(len(sizes)))]
        for w, world in enumerate(WORLDS)
        for r, row in enumerate(rows)
    ]
    draws = found.shape[1]
    title = f"Chains: univariate test error by loss and number of training chains ({draws} repetitions)"
    tests = [_tests(rows, world) for world in found[:, :, :, -1, 0]]
    notes = [
        f"chains of {LENGTH}, {tested} to test on, l2 {L2:g}; all losses start from cl",
        *(f"{world}: {text}" for world, text in zip(WORLDS, map(_verdict, tests), strict=True)),
        "published: figures only, whose values did not survive",
    ]
    data: JsonObject = {
        "experiment": "chains",
        "worlds": list(WORLDS),
        "losses": list(rows),
        "sizes": list(sizes),
        "measures": list(MEASURES),
        "means": means.tolist(),
        "errors": found[..., 0].tolist(),
        "tests": dict(zip(WORLDS, tests, strict=True)),
    }
    plots = {
        f"chains-{world}-{measure}": Plot(
            "training chains",
            f"test {measure}",
            {row: (list(sizes), means[w, r, :, m].tolist()) for r, row in enumerate(rows)},
        )
        for w, world in enumerate(WORLDS)
        for m, measure in enumerate(MEASURES)
    }
    return Report(title, ["data", "loss", *map(str, sizes)], table, notes, data, plots=plots)


def _tests(rows: tuple[str, ...], errors: FloatArray) -> list[JsonObject]:
    """Compare each two losses at the largest size in one world, paired over repetitions; errors (draws, rows)."""
    pairs = list(combinations(range(len(rows)), 2))
    adjusted = holm([p_value(errors[:, a], errors[:, b]) for a, b in pairs]) if pairs else np.zeros(0)
    found = []
    for (a, b), p in zip(pairs, adjusted.tolist(), strict=True):
        difference = float((errors[:, a] - errors[:, b]).mean())
        better, worse = (a, b) if difference <= 0 else (b, a)
        found.append({"better": rows[better], "worse": rows[worse], "difference": abs(difference), "p": p})
    return found


def _verdict(tests: list[JsonObject]) -> str:
    """Say which losses beat which."""
    sure = [test for test in tests if test["p"] < P]
    if not sure:
        return f"no loss beats another at the largest size ({_HOW})"
    beaten: dict[str, list[str]] = {}
    for test in sure:
        beaten.setdefault(test["worse"], []).append(test["better"])
    text = "; ".join(f"{worse} is beaten by {', '.join(better)}" for worse, better in beaten.items())
    return f"{text} ({_HOW})"
