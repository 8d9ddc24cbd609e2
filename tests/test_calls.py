"""Loops that are called directly: the same code, found by all that it depends on."""

import numpy as np
import pytest

import isinglass as ig
from isinglass.kernels.layout import Span
from isinglass.runtime import calls as module
from isinglass.runtime.calls import FEW, Calls, kind
from isinglass.runtime.jit import compiled


@compiled
def add(x, pair, times):
    """Add both entries of a pair to a vector."""
    for i in range(len(x)):
        x[i] += times * (pair[0][i] + pair[1])


@pytest.fixture
def looks(monkeypatch):
    """Return how often each loop was looked for."""
    seen = []
    keep = Calls._keep
    monkeypatch.setattr(Calls, "_keep", lambda self, loop, arguments: seen.append(loop) or keep(self, loop, arguments))
    return seen


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64])
@pytest.mark.parametrize("step", [1, 2, -1])
def test_the_code_is_that_of_a_plain_call(dtype, step, looks):
    vector, other, calls = np.zeros(6, dtype)[::step], np.arange(6).astype(dtype)[::step], Calls(same=True)
    plain = vector.copy()
    for _ in range(FEW + 3):
        calls(add, vector, (other, dtype(2)), 3)
        add(plain, (other, dtype(2)), 3)
    np.testing.assert_array_equal(vector, plain)
    assert vector.any()
    assert looks == [add]
    assert len(calls._kept) == 1


def test_types_that_may_change_are_looked_at_each_time(looks):
    calls, vector = Calls(same=False), np.zeros(2)
    for n in range(2 * FEW):
        calls(add, vector, (np.ones(2, np.int64 if n % 2 else np.float64), 0.0), 1)
    np.testing.assert_array_equal(vector, [2.0 * FEW] * 2)
    assert not looks


def test_what_is_not_compiled_is_not_kept(monkeypatch):
    calls, vector = Calls(same=True), np.zeros(3)
    monkeypatch.setattr(module, "_code", {})
    for _ in range(FEW - 1):
        calls(add, vector, (np.ones(3), 0.0), 1)
    monkeypatch.setattr(add, "overloads", {})
    for _ in range(3):
        calls(add, vector, (np.ones(3), 0.0), 1)
    assert not calls._kept
    np.testing.assert_array_equal(vector, [FEW + 2.0] * 3)


def test_kinds_tell_apart_what_numba_tells_apart():
    fixed = np.ones(4)
    fixed.flags.writeable = False
    values = [
        np.ones(4), np.ones(4)[::2], np.ones(4)[::-1], np.ones((2, 2)), np.ones((2, 3)).T, fixed,
        np.ones(4, np.float32), np.ones(4, bool), np.ones(4, int), np.ones(4, ">f8"), 1, 1.0, True, 1j,
        np.float32(1), np.float64(1), None, (), (0,), (0, 0), (np.ones(4),), (np.ones(4), 1), ((0,), 1.0),
        Span(0, 1, 0, 1, 0, 1),
    ]  # fmt: skip
    for one in values:
        for two in values:
            if kind(one) == kind(two):
                assert add.typeof_pyval(one) == add.typeof_pyval(two), (one, two)


def test_iterations_of_small_graphs_call_directly(looks, monkeypatch):
    graph = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (0, 1, 2)])
    p, algorithm = ig.testing.random_potentials(graph, np.random.default_rng(0)), ig.BeliefPropagation(iterations=40)
    directly = ig.infer(p, algorithm)
    assert [loop.__name__ for loop in looks] == ["flood"]
    monkeypatch.setattr(module, "FEW", 1000)
    plainly = ig.infer(p, algorithm)
    assert len(looks) == 1
    for one, two in zip(directly.variables, plainly.variables, strict=True):
        np.testing.assert_array_equal(one, two)
