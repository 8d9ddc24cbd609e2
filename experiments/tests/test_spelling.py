"""Random fields of words, against all words of a small alphabet."""

import itertools
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose

from isinglass_experiments.catalogue import make
from isinglass_experiments.fields import spelling
from isinglass_experiments.fields.strings import (
    Alphabet,
    WordModel,
    gradient_of,
    string_counts,
    table_of,
    window_counts,
)

AB = Alphabet("abc", {"X": "ab"})
FEATURES = [(0,), (5,), (0, 1), (3, 2), (1, 4), (5, 5, 2), (3, 0, 5), (0, 1, 5, 4), (2, 2, 2, 2)]  # "a", "X", "ab" ...
SHARES = np.array([0.0, 0.1, 0.2, 0.3, 0.4])


def holds(word, feature):
    """Return how often a word, with its marks, holds a string of symbols."""
    text, classes = "<<<" + word + ">", {"X": "ab"}
    symbols = [AB.symbols[s] for s in feature]
    ends = range(3, len(text))  # windows end at letters and at the last mark
    return sum(all(text[e - len(symbols) + 1 + j] in classes.get(c, c) for j, c in enumerate(symbols)) for e in ends)


def every(n):
    return ["".join(w) for w in itertools.product("abc", repeat=n)]


def test_log_z_and_expectations_are_those_of_all_words():
    theta = np.random.default_rng(0).normal(size=len(FEATURES))
    T = table_of(FEATURES, theta, AB.members())
    value, windows = WordModel(AB.size, SHARES).evaluate(T)
    log_z, expected = 0.0, np.zeros(len(FEATURES))
    for n in range(1, 5):
        counts = np.array([[holds(w, f) for f in FEATURES] for w in every(n)], float)
        mass = np.exp(counts @ theta)
        log_z += SHARES[n] * np.log(mass.sum())
        expected += SHARES[n] * (mass @ counts) / mass.sum()
    assert_allclose(value, log_z, rtol=1e-12)
    assert_allclose(gradient_of(FEATURES, windows, AB.members()), expected, rtol=1e-10)


def test_counts_of_strings_are_those_of_samples():
    words = ["abca", "c", "aab", "bb"]
    tables = string_counts(window_counts(AB.coded(words), AB.size), AB.members())
    for f in FEATURES:
        assert tables[len(f) - 1][f] == pytest.approx(np.mean([holds(w, f) for w in words]))


@pytest.mark.long
def test_gibbs_sampling_has_the_distribution_of_the_model():
    theta = 0.7 * np.random.default_rng(1).normal(size=len(FEATURES))
    T, model = table_of(FEATURES, theta, AB.members()), WordModel(AB.size, SHARES)
    drawn = model.gibbs(T, AB.coded(["aaa"] * 2000), 10, np.random.default_rng(0))
    found = np.bincount([int(w[3] * 9 + w[4] * 3 + w[5]) for w in drawn], minlength=27) / 2000
    mass = np.exp([sum(t * holds(w, f) for f, t in zip(FEATURES, theta, strict=True)) for w in every(3)])
    mass /= mass.sum()
    assert (np.abs(found - mass) < 4.5 * np.sqrt(mass * (1 - mass) / 2000)).all()


@pytest.mark.long
def test_a_model_grows_from_words():
    words = ["banana", "bandana", "ananas", "cabana", "panama", "sahara", "alaska", "kansas"] * 4
    grown = spelling.Induction(spelling.ENGLISH.coded(words), spelling.ENGLISH.coded(words[:8]))
    rounds = [grown.round(1) for _ in range(3)]
    assert rounds[0].strings == ["a"]
    likelihood = [r.train for r in rounds]
    assert (np.diff(likelihood) > 0).all()
    value, slope = grown._objective(grown.theta)
    for k in range(3):
        step = 1e-5 * np.eye(3)[k]
        by_difference = (grown._objective(grown.theta + step)[0] - grown._objective(grown.theta - step)[0]) / 2e-5
        assert_allclose(slope[k], by_difference, atol=1e-6)
    assert len({len(f) for f in grown.features}) > 1 or len(grown.features) == 3
    assert value == pytest.approx(-likelihood[-1], abs=1e-2)


@pytest.mark.skipif("ISINGLASS_DATA" not in os.environ, reason="ISINGLASS_DATA is not set")
@pytest.mark.slow
def test_the_experiment():
    report = make("spelling", quick=True).run()
    held_out = [float(row[-1]) for row in report.rows]
    assert held_out[-1] > held_out[0] + 4
    assert "s>" in report.data["weights"]
