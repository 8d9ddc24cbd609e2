"""Powers in one loop: right to one unit in the last place, and honest about what is not normal."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.kernels.numba.arithmetic.powers import is_strange, raise_run
from isinglass.runtime.compilation.jit import compiled
from isinglass.testing import random_potentials


@compiled
def raised(x, c, out):
    return raise_run(x, c, out)


@compiled
def strange(x, c, out):
    for k in range(len(x)):
        out[k] = is_strange(x[k], c[k])


@pytest.mark.parametrize(("low", "high"), [(-12, 0), (-300, 0), (0, 300)])
def test_powers_are_right_to_the_last_place(low, high):
    rng = np.random.default_rng(0)
    x, c = 10 ** rng.uniform(low, high, 3001), rng.uniform(-1, 1, 3001)
    x[:500] = 1 - 10 ** rng.uniform(-16, -1, 500)
    out = np.empty(len(x))
    assert raised(x, c, out)
    with mpmath.workdps(40):
        truth = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x, c, strict=True)]
        worst = max(abs(float(mpmath.mpf(mine) / exact - 1)) for mine, exact in zip(out, truth, strict=True))
    assert worst < 2.3e-16


def test_what_is_not_normal_is_told():
    x = np.array([0.5, 0.0, 5e-324, 1e-300, 1e300, 1e-200, 1.0, 2.3e-308])
    c = np.array([2.0, 0.5, 0.5, 1.1, -1.1, 0.5, 7.0, 0.5])
    found = np.zeros(len(x), bool)
    strange(x, c, found)
    assert_array_equal(found, [False, True, True, True, True, False, False, False])
    for k in range(len(x)):
        assert raised(x[k : k + 1], c[k : k + 1], np.empty(1)) == (not found[k])


def test_a_component_is_the_same_beside_one_with_zeros():
    rng = np.random.default_rng(1)
    graph = ig.grid_graph(3, 4, 2)
    plain, hard = random_potentials(graph, rng), random_potentials(graph, rng, 1.0, 0.3, np.zeros(12, int))
    algorithm = ig.TreeReweighted(iterations=7)
    alone = ig.infer(plain, algorithm)
    beside = ig.infer(ig.potentials_union([hard, plain]), algorithm)
    assert (beside.messages[: len(alone.messages)] == -np.inf).any()
    assert_allclose(beside.variables.flat[24:], alone.variables.flat, rtol=1e-12, atol=1e-12)
