"""Graphs without variables, without factors, with empty groups and components: all algorithms, solvers, schedules."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, refuses
from isinglass.graph import disjoint_union
from isinglass.inference import ALGORITHMS
from isinglass.inference.free_energy.algorithm import SOLVERS
from isinglass.inference.message_passing.algorithms.base import SCHEDULES
from isinglass.testing import random_potentials

NONE = [np.zeros((0, r), int) for r in range(4)]
PAIR = np.array([[0, 1]])


def on(cards, scopes):
    return random_potentials(ig.FactorGraph(cards, scopes), np.random.default_rng(0), 0.5)


def grouped(cards, scopes, tables, **more):
    return ig.Potentials.from_groups(ig.FactorGraph.from_groups(cards, scopes), tables, **more)


MODELS = {
    "nothing": on([], []),
    "constants": on([], [(), ()]),
    "no factors": on([2, 3], []),
    "one state": on([1, 1], [(0, 1)]),
    "empty components": random_potentials(
        disjoint_union([ig.FactorGraph([], []), ig.FactorGraph([2, 2], [(0, 1)]), ig.FactorGraph([], [()])]),
        np.random.default_rng(0),
        0.5,
    ),
    "empty groups": grouped(
        [2, 2, 3],
        [NONE[2], PAIR, NONE[1], NONE[3], NONE[0]],
        [np.zeros((0, 2, 2)), np.eye(2)[None], np.zeros((0, 2)), np.zeros((0, 2, 2, 2)), np.zeros(0)],
    ),
    "empty groups, shared tables": grouped(
        [2, 2, 3],
        [NONE[2], PAIR, NONE[1], NONE[3]],
        [np.eye(2)[None], np.eye(2)[None], np.ones((1, 3)), np.ones((1, 2, 2, 2))],
    ),
    "empty groups, many tables": grouped(
        [2, 2], [NONE[2], PAIR], [np.ones((5, 3, 4)), np.eye(2)[None]], table_ids=[[], None]
    ),
    "empty groups alone": grouped([2, 2], [NONE[2]], [np.eye(2)[None]]),
    "empty groups, no variables": grouped([], [NONE[2], NONE[1]], [np.eye(2)[None], np.zeros((0, 3))]),
}


def chosen():
    """Return all algorithms, with every schedule and solver, by a name for the test."""
    found = {}
    for name, cls in ALGORITHMS.items():
        known = cls.__dataclass_fields__
        found[name] = cls(random_state=0) if cls.facts.stochastic else cls()
        if "iterations" in known:
            found[f"{name}, 3 iterations"] = cls(iterations=3)
        for schedule in SCHEDULES if "schedule" in known else ():
            if schedule not in ("tree", "grid"):  # which ask for trees and grids
                found[f"{name}, {schedule}"] = cls(schedule=schedule, damping=0.3)
    for solver in ("newton", *SOLVERS):
        for system in ("factorised", "iterative"):
            options = {"weights": "C", "solver": solver, "system": system, "max_iter": 3000}
            found[f"convex, {solver}, {system}"] = ig.ConvexFreeEnergy(**options)
    return found


CHOSEN = chosen()


@pytest.fixture(params=MODELS)
def p(request):
    return MODELS[request.param]


@pytest.mark.long
@pytest.mark.parametrize("name", CHOSEN)
def test_inference(p, name):
    algorithm, truth = CHOSEN[name], ig.infer(p, "brute")
    r = ig.infer(p, algorithm)
    assert r.info.converged or "iterations" in name
    assert_allclose([belief.sum() for belief in r.variables], 1.0, rtol=1e-9)
    if algorithm.facts.exact != "never" and "iterations" not in name:  # all of them are forests
        assert_allclose(r.component_log_z, truth.component_log_z, atol=1e-7)
        assert_allclose(r.variables.flat, truth.variables.flat, atol=1e-7)
    observed = dict.fromkeys(range(p.graph.n_variables), 0)
    clamped = ig.infer(p, algorithm, evidence=observed)
    if algorithm.facts.semiring == "sum" and algorithm.facts.log_z and name.split(",")[0] not in ("fbp", "convex"):
        assert_allclose(clamped.log_z, p.log_score(list(observed.values())), atol=1e-7)
    assert algorithm.cost(p).bytes >= 0
    assert repr(r).startswith("Result: ")


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, one in CHOSEN.items() if not one.facts.stochastic])
def test_derivatives(p, name):
    algorithm = CHOSEN[name]
    r = ig.infer(p, algorithm, tape=True)
    d = r.backward(log_z=1.0, variables=np.ones_like(r.variables.flat))
    assert [g.shape for g in d.groups] == [g.shape for g in p.groups]
    assert len(d.log_tables) == p.graph.n_factors
    real = not name.startswith("convex") or "newton" in name or name == "convex"
    if algorithm.facts.envelope and real and "iterations" not in name and "iterative" not in name:
        found = ig.perturbation(p, algorithm, 1.0, np.ones_like(r.variables.flat))
        each_close(found.groups, d.groups, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, one in CHOSEN.items() if one.facts.samples])
def test_sampling(p, name):
    assert ig.sample(p, 3, CHOSEN[name], random_state=0).shape == (3, p.graph.n_variables)
    assert ig.sample(p, 0, CHOSEN[name], random_state=0).shape == (0, p.graph.n_variables)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name, one in CHOSEN.items() if one.facts.maximises])
def test_maximisation(p, name):
    algorithm, best = CHOSEN[name], ig.map_assignment(p, "brute")
    found = ig.map_assignment(p, algorithm)
    assert found.score <= best.score + 1e-12
    assert found.score == pytest.approx(p.log_score(found.states))
    if algorithm.facts.maximises == "many":
        assert ig.n_best(p, 2, algorithm)[0].score == pytest.approx(best.score)


def test_second_derivatives(p):
    direction = [np.ones_like(table) for table in p.log_tables]
    for name in ("exact", "bp"):
        for variables in (None, np.ones(int(p.graph.cards.sum()))):
            found = ig.hessian_vector_product(p, name, direction, 1.0, variables)
            assert [g.shape for g in found.groups] == [g.shape for g in p.groups]


def test_tables_of_empty_groups():
    graph = ig.FactorGraph.from_groups([2, 2], [NONE[2], PAIR])
    p = ig.Potentials(graph, [np.eye(2)])  # one table for each factor: none for the empty group
    assert [g.shape for g in p.groups] == [(0, 1, 1), (1, 2, 2)]
    refuses(r"log_tables\[0\]", ig.Potentials.from_groups, graph, [np.zeros(0), np.eye(2)[None]])


def test_files(p, tmp_path):
    ig.write_uai(p, tmp_path / "m.uai")
    again = ig.read_uai(tmp_path / "m.uai")
    assert ig.infer(again).log_z == pytest.approx(ig.infer(p).log_z)
