"""The Ising model against its energy."""

from itertools import product

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.models import Ising


@pytest.mark.parametrize("per_site", [False, True])
def test_scores_against_the_formula(per_site):
    rng = np.random.default_rng(0)
    graph = ig.grid_graph(2, 3, 2)
    J, h = (rng.standard_normal(7), rng.standard_normal((2, 3))) if per_site else (0.4, -0.3)
    p = Ising(graph).potentials(coupling=J, field=h)
    pairs = [scope for scope in graph.scopes if len(scope) == 2]
    for x in product(range(2), repeat=6):
        s = 2 * np.array(x) - 1
        expected = (np.broadcast_to(h, (2, 3)).ravel() * s).sum()
        expected += sum(j * s[a] * s[b] for j, (a, b) in zip(np.broadcast_to(J, 7), pairs, strict=True))
        assert p.log_score(x) == pytest.approx(expected, abs=1e-12)
    assert len(p.groups[1]) == (7 if per_site else 1)


def test_fields_are_counted_once_and_couplings_go_by_factor():
    graph = ig.FactorGraph([2, 2], [(0,), (0, 1), (0,), (1, 0)])
    p = Ising(graph).potentials(coupling=[1.0, 10.0], field=[0.5, 0.0])
    assert p.log_score([1, 1]) == 11.5
    assert p.log_tables[3][0, 0] == 10.0
    refuses("field: expected fields only at variables that have a factor", Ising(graph).potentials, field=1.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Ising(3), "graph: expected a FactorGraph"),
        (lambda: Ising(ig.chain_graph(2, 3)), r"graph: expected binary variables .* shape \(3,\)"),
        (
            lambda: Ising(ig.chain_graph(3, 2)).potentials([1.0]),
            "coupling: expected one number, or one for each of 2 pairs",
        ),
        (lambda: Ising(ig.chain_graph(3, 2)).potentials(field=np.nan), "field: expected finite real numbers"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    refuses(message, call)
