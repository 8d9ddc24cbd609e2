"""Skip-chains and fat chains, small."""

import os
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse import csr_array

import isinglass as ig
from isinglass.estimators.sequence.features import Encoded, FeatureIndex
from isinglass.models.chain.layout import by_token
from isinglass_experiments.catalogue import make
from isinglass_experiments.data import entity_attributes
from isinglass_experiments.fatchain import FatChainModel, ladder
from isinglass_experiments.skipchain import f1_interval, linked_right, links


@pytest.mark.parametrize("name", ["skipchain", "fatchain"])
def test_no_folder(monkeypatch, tmp_path, name):
    monkeypatch.delenv("ISINGLASS_DATA", raising=False)
    with pytest.raises(ig.InputError, match="ISINGLASS_DATA"):
        make(name).run()
    with pytest.raises(ig.InputError, match="a folder with"):
        make(name, data=str(tmp_path)).run()


def test_attributes():
    found = entity_attributes(["New", "York", "2017"])
    assert {"w0=york", "w-1=new", "s1=0", "p2=yo", "x3=ork", "w2=</s>"} <= set(found[1])
    assert entity_attributes([]) == []


def test_links_join_each_occurrence_to_the_next():
    assert links(["Green", "is", "Green", ",", "Green", "."]) == [(0, 2), (2, 4)]
    assert links(["Green", "Green", "is", "a", "b", "a"]) == []
    words, truth = [["Ann", "saw", "Ann"], ["The", "x", "The"]], [["B-p", "O", "B-p"], ["O", "O", "O"]]
    assert linked_right(words, truth, [["B-p", "O", "O"], ["B-p", "O", "O"]]) == 0.5


def test_interval_of_a_difference():
    rng = np.random.default_rng(0)
    truth = [["B-x", "O"]] * 400
    one, two = ([y if rng.random() < p else ["O", "O"] for y in truth] for p in (0.5, 0.7))
    gain, low, high = f1_interval(truth, one, two, draws=300)
    assert low < gain < high
    assert low > 0
    assert f1_interval(truth, one, one, draws=10) == (0.0, 0.0, 0.0)


def test_scores_of_a_fat_chain_are_sums_of_its_tables():
    rng = np.random.default_rng(0)
    X = csr_array(rng.integers(0, 2, (4, 3)).astype(float))
    data = Encoded(by_token(X), np.array([0, 1, 4]), FeatureIndex(None, 3, False))
    fat = FatChainModel((["a", "b", "c"], ["x", "y"]), np.array([0, 2]))
    Z, Y = [["b"], ["a", "c", "b"]], [["x"], ["y", "y", "x"]]
    model = fat.model(data, range(2))
    fat.theta = rng.normal(size=model.size)
    named, expected = model.split(fat.theta), 0.0
    rows = data.X.toarray()[:, [0, 2]]
    codes = [("abc".index(z), "xy".index(y)) for zs, ys in zip(Z, Y, strict=True) for z, y in zip(zs, ys, strict=True)]
    for row, (z, y) in zip(rows, codes, strict=True):
        expected += (row @ named["tag"])[z] + (row @ named["chunk"])[y] + named["tag-chunk"][z, y]
    for (z, y), (z_next, y_next) in pairwise(codes[1:]):
        expected += named["tag-tag"][z, z_next] + named["chunk-chunk"][y, y_next]
    potentials = model.potentials(fat.theta)
    assert_allclose(potentials.log_score(fat.codes(Z, Y)), expected, rtol=1e-12)
    beliefs = ig.infer(potentials, "exact")
    assert model.graph.n_components == 2
    approximate = ig.infer(potentials, fat.algorithm)
    assert max(np.abs(beliefs.variable(i) - approximate.variable(i)).max() for i in range(8)) < 0.1
    tags, chunks = fat.predict(data)
    assert tags[1] == ["abc"[int(np.argmax(approximate.variable(i)))] for i in (2, 3, 4)]
    assert chunks[1] == ["xy"[int(np.argmax(approximate.variable(i)))] for i in (5, 6, 7)]


def test_ladder_of_one_word():
    assert ladder(1, 3, 2).scopes[:] == [(0,), (1,), (0, 1)]


def _run(name):
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    return make(name, quick=True, n_jobs=1).run().data


@pytest.mark.slow
def test_skipchain():
    exact, bp, skip = _run("skipchain")["rows"]
    assert bp["objective"] == pytest.approx(exact["objective"], rel=1e-4)
    assert bp["f1"] == pytest.approx(exact["f1"], abs=0.3)
    assert skip["objective"] < bp["objective"]
    assert skip["converged"] == 1
    assert skip["f1"] > 8


@pytest.mark.slow
def test_fatchain():
    alone, cascade, fat = _run("fatchain")["rows"]
    assert fat["f1"] > alone["f1"]
    assert fat["tags"] > 85
    assert cascade["f1"] > alone["f1"]
