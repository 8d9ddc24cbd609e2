"""Copies of a grid are inferred as each by itself, to the last bit, or not at all."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import isinglass as ig
from isinglass.inference.algorithm import make
from isinglass.inference.message_passing.moves import sheets

SIDES = [(2, 2), (2, 9), (7, 8), (8, 8), (9, 17), (20, 11)]


def grid(height, width, card=2, scale=1.0, axes=2):
    """A grid whose unary tables are zero, with one table for each axis, or one for both."""
    graph, rng = ig.grid_graph(height, width, card), np.random.default_rng(card)
    ids = np.repeat([0, axes - 1], [height * (width - 1), (height - 1) * width])
    tables = [np.zeros((height * width, card)), scale * rng.normal(size=(axes, card, card))]
    return ig.Potentials.from_groups(graph, tables, [np.arange(height * width), ids])


def with_unary(potentials, unary):
    return ig.Potentials.from_groups(potentials.graph, [unary, potentials.groups[1]], potentials.table_ids)


def sweeps(**options):
    return ig.BeliefPropagation(**{"iterations": 4, "schedule": "grid", **options})


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("card", [2, 3, 4])
@pytest.mark.parametrize(("height", "width"), SIDES)
def test_the_same_bits_as_one_by_one(height, width, card, iterations):
    one, algorithm, n = grid(height, width, card), sweeps(iterations=iterations), height * width
    logs = 3 * np.random.default_rng(1).normal(size=(3 * n, card)) + 100
    found = algorithm.copies(one)(logs.copy()).reshape(3, n, card)
    for c, beliefs in enumerate(found):
        assert_array_equal(beliefs, ig.infer(with_unary(one, logs[c * n : (c + 1) * n]), algorithm).variables)


def test_the_unary_tables_of_the_copy_that_is_given_do_not_count():
    one, rng = grid(8, 9), np.random.default_rng(2)
    logs = rng.normal(size=(2 * 72, 2))
    other = with_unary(one, 500 * rng.normal(size=(72, 2)))
    assert_array_equal(sweeps().copies(other)(logs.copy()), sweeps().copies(one)(logs.copy()))


def test_one_table_for_both_axes():
    one, logs = grid(9, 10, axes=1), np.random.default_rng(3).normal(size=(2 * 90, 2))
    found = sweeps().copies(one)(logs.copy())
    assert_array_equal(found[90:], ig.infer(with_unary(one, logs[90:]), sweeps()).variables)


@pytest.mark.parametrize("card", [2, 3])
@pytest.mark.parametrize("size", [700, 2000, 1e300])
def test_small_products_are_left_to_infer(size, card):
    one, logs = grid(9, 10, card), np.zeros((3 * 90, card))
    copies = sweeps().copies(one)
    assert copies(logs.copy()) is not None
    logs[123, 0] = -size
    assert copies(logs.copy()) is None
    assert copies(np.zeros_like(logs)) is not None  # the next ones are not harmed


@pytest.mark.parametrize("wrong", [np.inf, -np.inf])
@pytest.mark.parametrize("state", [0, 1, slice(None)])
def test_infinite_tables_are_left_to_infer(wrong, state):
    logs = np.zeros((3 * 90, 2))
    logs[123, state] = wrong
    assert sweeps().copies(grid(9, 10))(logs) is None


@pytest.mark.parametrize(("size", "fine"), [(5.0, True), (64.0, False), (150.0, False)])
def test_products_that_are_small_only_together(size, fine):
    """No entry is small, but messages from four sides agree: beliefs of links might underflow, or messages do."""
    one = ig.Potentials.from_groups(ig.grid_graph(9, 10, 2), [np.zeros((90, 2)), size * np.eye(2)[None]])
    found = sweeps().copies(one)(np.tile([0.0, -size], (90, 1)))
    assert (found is not None) == fine


@dataclass(frozen=True)
class Own(ig.BeliefPropagation):
    def run(self, *arguments, **options):
        return super().run(*arguments, **options)


def test_what_is_not_for_them():
    one = grid(4, 5)
    assert sweeps().copies(one) is not None
    for options in (
        {"iterations": None}, {"schedule": "flooding"}, {"schedule": "sequential"}, {"damping": 0.1},
        {"start_noise": 0.1}, {"iterations": 0},
    ):  # fmt: skip
        assert sweeps(**options).copies(one) is None
    assert Own(iterations=4, schedule="grid").copies(one) is None
    for name in ("trw", "max-product", "mf", "exact"):
        known = {"iterations": 3, "schedule": "grid"} if name in ("trw", "max-product") else {}
        assert make(name, known).copies(one) is None
    two = ig.Potentials.from_groups(one.graph.repeat(2), [np.zeros((40, 2)), np.eye(2)[None]])
    zero = ig.Potentials.from_groups(one.graph, [np.zeros((20, 2)), np.array([[[0.0, -np.inf], [0.0, 0.0]]])])
    each = ig.Potentials.from_groups(one.graph, [np.zeros((20, 2)), np.random.default_rng(0).normal(size=(31, 2, 2))])
    shared = ig.Potentials.from_groups(one.graph, [np.zeros((1, 2)), np.eye(2)[None]])
    seen = one.with_evidence({3: 1})
    for other in (two, zero, each, shared, seen):
        assert sweeps().copies(other) is None


def test_large_grids_are_shared_out_instead(monkeypatch):
    one = grid(16, 16)
    monkeypatch.setattr(sheets, "_chunk", lambda work, length: 8)
    assert sweeps().copies(one) is None
