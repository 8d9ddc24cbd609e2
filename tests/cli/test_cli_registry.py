"""Every algorithm of the registry, through every task and every output format of the command line."""

import gzip
import json
from dataclasses import asdict, fields, replace

import numpy as np
import pytest

import isinglass as ig
from isinglass.cli.report import json_text
from isinglass.inference import ALGORITHMS
from isinglass.io import read_map, read_mar, read_pr
from isinglass.testing import random_potentials

TASKS = ("PR", "MAR", "MAP")
GRAPHS = {
    "loops": ig.grid_graph(2, 3, 3),
    "mixed": ig.FactorGraph([2, 3, 2, 1], [(0, 1, 2), (1, 2), (2,), (0,), ()]),
    "no factors": ig.FactorGraph([2, 3], []),
    "no variables": ig.FactorGraph([], []),
    "constants": ig.FactorGraph([], [(), ()]),
    "several parts": ig.FactorGraph([2, 2, 2, 3], [(0, 1), (3,)]),
}


def serves(name, task):
    facts = ALGORITHMS[name].facts
    if task == "MAP":
        return bool(facts.maximises)
    return facts.semiring == "sum" and (task == "MAR" or facts.log_z)


def seed(name):
    """Return the option that makes a stochastic algorithm give the same answer twice."""
    return ("--random-state", "0") if ALGORITHMS[name].facts.stochastic else ()


def refusal(name, file):
    """Return why an algorithm refuses a model (Swendsen-Wang serves Potts models only); None if it does not."""
    if not hasattr(ALGORITHMS[name], "sampler"):
        return None
    try:
        ALGORITHMS[name](random_state=0).sampler(ig.read_uai(file))
    except ig.InputError as error:
        return str(error)
    return None


@pytest.fixture(params=GRAPHS)
def file(request, tmp_path):
    name = request.node.callspec.params.get("name")
    if name is not None and ALGORITHMS[name].facts.stochastic and request.param not in ("loops", "several parts"):
        pytest.skip("slow; test_degenerate_graphs has such graphs")
    p = random_potentials(GRAPHS[request.param], np.random.default_rng(0), 0.5)
    ig.write_uai(p, tmp_path / "m.uai")
    return tmp_path / "m.uai"


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_format_has_the_same_answer(command, request, file, name, task, tmp_path):
    argv = ("infer", file, "--algorithm", name, "--task", task, *seed(name))
    if not serves(name, task):
        code, out, err = command(*argv)
        assert (code, out) == (2, "")
        assert f"for --task {task} (" in err
        assert f"got '{name}'" in err
        return
    if (text := refusal(name, file)) is not None:
        code, out, err = command(*argv)
        assert (code, out) == (2, "")
        assert text in err
        return
    code, text, err = command(*argv)
    assert code == 0
    assert err.startswith(f"isinglass: {name}: ")
    code, out, _ = command(*argv, "--json")
    found = json.loads(out, parse_constant=pytest.fail)
    assert (code, found["algorithm"], found["task"]) == (0, name, task)
    (tmp_path / "printed").write_text(text)
    assert_same(found, tmp_path / "printed", task)
    if request.node.callspec.params["file"] == "loops":  # how files are written does not depend on the model
        check_files(command, argv, text, found, tmp_path)


def check_files(command, argv, text, found, folder):
    """Compare the files that a command writes with what it prints."""
    plain, packed, as_json = folder / "r", folder / "r.gz", folder / "r.json"
    assert command(*argv, "--out", plain, "--quiet") == (0, "", "")
    assert command(*argv, "--out", packed, "--quiet") == (0, "", "")
    assert plain.read_text() == text == gzip.decompress(packed.read_bytes()).decode()
    assert command(*argv, "--json", "--out", as_json, "--quiet") == (0, "", "")
    assert json.loads(as_json.read_text()).keys() == found.keys()


def assert_same(found, plain, task):
    """Compare the fields of the JSON object with the file in the format of the task."""
    if task == "PR":
        assert found["log_z"] == pytest.approx(read_pr(plain), rel=1e-12)
    elif task == "MAR":
        assert found["marginals"] == [belief.tolist() for belief in read_mar(plain)]
    else:
        assert found["states"] == read_map(plain).tolist()


@pytest.mark.long
@pytest.mark.parametrize("name", [name for name in ALGORITHMS if serves(name, "MAR")])
def test_all_of_info_is_in_the_json_object(command, file, name):
    if refusal(name, file) is not None:
        pytest.skip("a model that it refuses")
    found = json.loads(command("infer", file, "--algorithm", name, "--task", "MAR", "--json", *seed(name)).out)
    info = asdict(ig.infer(ig.read_uai(file), name, **({"random_state": 0} if seed(name) else {})).info)
    assert set(info) <= set(found)
    assert {found[key] for key in ("converged", "iterations", "bound")} == {
        info[key] for key in ("converged", "iterations", "bound")
    }


def test_json_of_arrays_and_numbers_of_numpy():
    values = {
        "a": np.array([[1.0, np.nan], [-np.inf, 2.0]]),
        "b": np.float64(np.inf),
        "c": [np.int64(3), np.bool_(True)],
    }
    assert json_text(values) == '{"a": [[1.0, null], [null, 2.0]], "b": null, "c": [3, true]}\n'
    assert json_text({"empty": np.zeros((0, 2)), "none": (np.array(1),)}) == '{"empty": [], "none": [1]}\n'


def test_the_list_of_algorithms_names_them_all(command, file):
    out = command("algorithms").out
    facts = json.loads(command("info", file, "--json").out)
    assert [row["name"] for row in facts["algorithms"]] == list(ALGORITHMS)
    assert all(name in out for name in ALGORITHMS)


@pytest.mark.long
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_options_that_an_algorithm_does_not_have_are_refused(command, file, name, task):
    known = {field.name for field in fields(ALGORITHMS[name])}
    refused = refusal(name, file)
    options = {"--restarts": "1", "--schedule": "flooding", "--damping": "0.1", "--iterations": "2", "--memory": "1GB"}
    for flag, value in options.items():
        code, _, err = command("infer", file, "--algorithm", name, "--task", task, flag, value)
        taken = serves(name, task) and refused is None and (flag[2:] in known or flag == "--memory")
        assert code == (0 if taken else 2), (flag, err)


@pytest.mark.parametrize("log_z", [np.nan, -np.inf])
def test_a_log_z_that_is_none_is_no_result(command, file, monkeypatch, log_z):
    genuine = ig.infer

    def broken(*args, **options):
        result = genuine(*args, **options)
        return replace(result, component_log_z=np.full_like(result.component_log_z, log_z))

    monkeypatch.setattr("isinglass.inference.infer", broken)
    argv = ("infer", file, "--algorithm", "bp", "--task", "PR")
    code, out, err = command(*argv)
    if ig.read_uai(file).graph.n_components:
        assert (code, out) == (2, "")
        assert f"one that finds log Z of this model, got bp: log Z = {log_z}" in err
        assert json.loads(command(*argv, "--json").out)["log_z"] is None
