"""The experiment erma: its data, its cells, and that a run that was cut goes on to the same bits."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.models import table_model
from isinglass_experiments.common.experiment import make
from isinglass_experiments.common.statistics import sign_test
from isinglass_experiments.erma import experiment, published, settings, tables, training
from isinglass_experiments.erma.cells import FILE, Cell, measured
from isinglass_experiments.erma.data import make_task, model_names

OPTIONS = {"quick": True, "rows": ["50-100"], "examples": 12, "further": 5, "steps": 2, "n_jobs": 1}


def test_models_and_data_are_those_of_the_publication():
    assert len(model_names()) == 12
    task = make_task("50-195", 0, 0.2, 40)
    assert task.truth.graph.n_variables == 50
    assert len(task.truth.graph.scopes) == len(task.graph.scopes) == 195
    assert len(set(task.graph.scopes) - set(task.truth.graph.scopes)) == 39
    assert sorted(np.bincount(task.roles)) == [16, 17, 17]
    assert_array_equal(make_task("50-195", 0, 0.0, 40).train, task.train)
    assert len(np.unique(task.train, axis=0)) > 30


def test_losses_of_an_exact_inference_on_a_tiny_model():
    """Compare the losses of decisions with those by hand, on a model of five variables."""
    graph = ig.pairwise_graph(5, [(0, 1), (1, 2), (2, 3), (3, 4)], 2)
    plain = table_model(graph)
    theta = np.random.default_rng(0).normal(size=plain.size)
    inputs = np.array([[0, -1, -1, -1, 1]])
    found = settings.losses_by_setting(plain, theta, inputs, np.array([1, -1, 0]), ig.BeliefPropagation())
    p = plain.potentials(theta)
    r = ig.infer(p, "brute", evidence={0: 0, 4: 1})
    one, two = r.variable(1)[1], r.variable(3)[1]
    assert_allclose(found["frac-MSE"], [((1 - one) ** 2 + two**2) / 2], atol=1e-8)
    assert_allclose(found["int-L1"], [((one <= 0.5) + (two > 0.5)) / 2])
    assert_allclose(found["int-F"], [0.0 if one > two else 1.0])
    both = ig.infer(p, "brute", evidence={0: 0, 4: 1, 1: 1, 3: 0})
    assert_allclose(found["APPR-LOGL"], [r.log_z - both.log_z], atol=1e-8)
    twice = settings.losses_by_setting(
        plain, theta, np.tile(inputs, (2, 1)), np.tile([1, -1, 0], 2), ig.BeliefPropagation(), 1
    )
    assert {test: len(values) for test, values in twice.items()} == dict.fromkeys(settings.TESTS, 2) | {"APPR-LOGL": 1}
    assert_allclose(twice["APPR-LOGL"], found["APPR-LOGL"])


@pytest.mark.long
def test_a_run_that_was_cut_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    fewer = [(settings, "BASELINE", 2), (settings, "SHORT", 1), (training, "BATCHES", 2), (settings, "CONVERGENCE", 2)]
    for module, name, small in fewer:
        monkeypatch.setattr(module, name, small)
    first = make("erma", checkpoints=str(tmp_path), **OPTIONS).run()
    assert {row[0] for row in first.rows} == {"3", "4", "5", "6"}
    assert {row[3] for row in first.rows} == {"30 it.", "10 it.", "2 it.", "10 it., 20% changed"}
    path = tmp_path / FILE
    lines = [line for line in path.read_text().splitlines() if line]
    assert len(lines) == 20
    assert all(len(json.loads(line)["theta"]) == 400 for line in lines)
    path.write_text("\n".join(lines[:13]) + "\n" + lines[13][:100])  # while a line was written
    again = make("erma", checkpoints=str(tmp_path), **OPTIONS).run()
    assert json.dumps(first.data) == json.dumps(again.data)
    assert [line for line in path.read_text().splitlines() if line] == [*lines[:13], lines[13][:100], *lines[13:]]
    trained = []
    monkeypatch.setattr(experiment, "measured", lambda *given: trained.append(given) or measured(*given))
    make("erma", checkpoints=str(tmp_path), **OPTIONS).run()
    assert trained == []
    make("erma", checkpoints=str(tmp_path), **OPTIONS | {"steps": 1, "rows": ["50-100"]}).run()
    assert len(trained) == 20  # of another description


def test_the_penalty_is_part_of_value_gradient_and_products_of_the_hessian():
    task = make_task("50-100", 1, 0.0, 20)
    plain = table_model(task.graph)
    models, labels = training.batches_of(plain, task)
    theta, v = np.random.default_rng(0).normal(size=(2, plain.size))
    rows, loss, way = np.arange(3), settings.loss_of("frac-MSE"), ig.BeliefPropagation(iterations=3)
    with_it, without = (training.Batches(models, labels, loss, way, penalty) for penalty in (0.1, 0.0))
    assert_allclose(with_it(rows, theta)[0] - without(rows, theta)[0], 0.3 * theta @ theta)
    assert_allclose(with_it(rows, theta)[1] - without(rows, theta)[1], 0.6 * theta, atol=1e-12)
    more = with_it.hessian_product(rows, theta, v) - without.hessian_product(rows, theta, v)
    assert_allclose(more, 0.6 * v, atol=1e-12)
    assert_allclose(with_it.mean(theta)[0] - without.mean(theta)[0], 0.1 * theta @ theta)


def test_losses_of_decisions_have_a_prior_and_the_published_baseline_has_none():
    steps = {name: settings.steps_of(name, 25) for name in (*settings.TRAININGS, settings.CONVERGED)}
    assert [step.penalty for step in steps["APPR-LOGL"]] == [0.0]
    assert [step.penalty > 0 for step in steps["int-F-hyb-in"]] == [False, True, True, True]
    assert steps[settings.CONVERGED][0].gain is None
    assert [step.gain is None for step in steps["int-L1-in"]] == [False, True]


def test_published_values_have_their_places():
    assert published.TABLE_5["frac-MSE", False, 10] == 0.02461
    assert published.TABLE_4["int-L1", True, 0.3] == 0.00602
    assert all(
        published.TABLE_6[test, test] == published.TABLE_3[test, settings.MATCHED[test]][0] for test in settings.TESTS
    )
    assert {training for _, training in published.TABLE_3} == set(settings.TRAININGS)


def test_rows_compare_with_the_truth_and_the_baseline():
    values = {"truth": 0.1, "APPR-LOGL": 0.14, "frac-MSE-in": 0.11}
    losses = {Cell("50-100", name, 100): dict.fromkeys(settings.TESTS, np.full(9, x)) for name, x in values.items()}
    row = tables.row_of(losses, "frac-MSE", "frac-MSE-in", (0.00057, 0.0071), iterations=100)
    assert row["delta"] == pytest.approx(0.01)
    assert row["ratio"] == pytest.approx(0.25)
    assert row["published_ratio"] == pytest.approx(0.0803, abs=1e-4)
    assert row["wins"] == "1-0-0"
    assert tables.row_of(losses, "frac-MSE", "APPR-LOGL", (0.0071, 0.0071), iterations=100)["ratio"] is None
    assert tables.row_of(losses, "frac-MSE", "int-F-in", (None, None), iterations=100)["delta"] is None


def test_rivals_of_the_matched_setting_are_named():
    rng, losses = np.random.default_rng(0), {}
    for training_, less in [
        ("frac-MSE-in", 0.0),
        ("int-F-hyb-in", 0.01),
        ("int-L1-hyb-in", 2e-4),
        ("APPR-LOGL", -0.01),
    ]:
        values = 0.1 - less + 1e-5 * rng.normal(size=200)
        losses[Cell("50-100", training_, 100)] = dict.fromkeys(settings.TESTS, values)
    rows = {(row["test"], row["training"]): row for row in tables.against_matched(losses, 100)}
    assert len(rows) == 9
    assert rows["frac-MSE", "int-F-hyb-in"]["difference"] == pytest.approx(-0.01, abs=1e-4)
    assert rows["frac-MSE", "int-F-hyb-in"]["p"] < 0.05
    text = experiment._rivals(losses, 100)
    assert "int-F-hyb-in for frac-MSE by 0.0100" in text
    assert "int-L1-hyb-in for" not in text  # better, but by less than the margin
    assert "APPR-LOGL" not in text


def test_signs_are_permuted():
    rng = np.random.default_rng(0)
    assert sign_test(rng.normal(size=400) + 0.3) < 0.01
    assert sign_test(rng.normal(size=400)) > 0.01
    assert sign_test(np.zeros(5)) == 1.0


def test_wrong_options_are_refused():
    with pytest.raises(ig.InputError, match="rows: expected some of 50-100"):
        make("erma", rows=["60-100"]).run()
    with pytest.raises(ig.InputError, match="rows: expected some of APPR-LOGL"):
        measured(Cell("50-100", "int-X", 5, examples=12))
