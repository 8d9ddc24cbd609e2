"""Decoders: maximum posterior marginals and most probable assignments."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass import decoding
from isinglass.testing import random_potentials

MIXED = ig.FactorGraph([2, 3, 2, 4], [(0, 1, 2), (2, 3), (0,), (3,), (1, 3), (0, 3), ()])


def test_marginals_are_maximised_one_by_one():
    for seed in range(5):
        r = ig.infer(random_potentials(MIXED, np.random.default_rng(seed)), "brute")
        assert_array_equal(decoding.MPM()(r), [int(b.argmax()) for b in r.variables])
    p = ig.Potentials(ig.FactorGraph([3, 2, 3], [(0,)]), [[0.0, 1.0, 1.0]])
    assert decoding.MPM()(ig.infer(p, "brute")).tolist() == [1, 0, 0]
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0 + 1e-20j, 1.0 - 1e-20j]])
    assert decoding.MPM()(ig.infer(p, "brute")).tolist() == [1]


@pytest.mark.parametrize("algorithm", ["exact", "brute", ig.Exact(restarts=2)])
def test_most_probable_assignments(algorithm):
    p = random_potentials(MIXED, np.random.default_rng(1), evidence={1: 2})
    expected = ig.map_assignment(p, "brute").states
    assert_array_equal(decoding.MAP(algorithm)(p), expected)
    assert_array_equal(decoding.MAP(algorithm)(ig.infer(p, "bp")), expected)


def test_a_batch_is_decoded_like_its_parts():
    parts = [random_potentials(g, np.random.default_rng(i)) for i, g in enumerate((MIXED, ig.chain_graph(4, 3)))]
    union = ig.potentials_union(parts)
    for decoder in (decoding.MAP(), decoding.MPM()):
        alone = [decoder(ig.infer(p, "exact")) for p in parts]
        assert_array_equal(decoder(ig.infer(union, "exact")), np.concatenate(alone))


def test_the_registry():
    known = {"mpm", "map", "soft", "identity", "distribution", "bayes", "median", "f1", "sampled"}
    assert set(decoding.DECODERS) == known
    for name, cls in decoding.DECODERS.items():
        assert cls.name == name
        assert isinstance(decoding.make(name), cls)
        assert cls.facts.formula
    assert decoding.make("map", algorithm="bp") == decoding.MAP("bp")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: decoding.MPM()(p), "given: expected the Result of an inference, got Potentials; infer first"),
        (lambda p: decoding.MAP("mf")(p), "algorithm: expected one that maximises, got 'mf'"),
        (lambda p: decoding.MAP()(3), "potentials: expected Potentials, got int"),
        (lambda p: decoding.make("mmp"), "decoder: expected one of .*, got 'mmp'; did you mean"),
        (lambda p: decoding.make("mpm", algorithm="bp"), r"algorithm: expected an option of 'mpm' \(no options\)"),
        (lambda p: decoding.make(None), r"decoder: expected a name such as 'mpm' or an object such as MPM\(\)"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]])
    with pytest.raises(ig.InputError, match=message):
        call(p)
