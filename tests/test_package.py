"""The package as a whole: layers, import without heavy packages, lazy names, the registry's facts."""

import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import isinglass as ig

ROOT = Path(__file__).parent.parent

WITHOUT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"numba", "sklearn", "torch", "matplotlib", "networkx", "pyamg", "hypothesis"}:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
import numpy as np
import isinglass as ig
p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])
assert abs(np.exp(ig.infer(p, "brute").log_z) - 10) < 1e-12
assert "width 1" in str(p)
grid = ig.grid_graph(9, 9, 2)
assert "Numba is not installed" in str(ig.Potentials.from_groups(grid, [np.zeros((81, 2)), np.zeros((1, 2, 2))]))
help_text = __import__("pydoc").render_doc(ig)
for call in (lambda: ig.infer(p, "exact"), lambda: ig.to_networkx(p.graph), ig.GridCRF):
    try:
        call()
    except ig.MissingDependencyError as error:
        assert "pip install" in str(error)
    else:
        raise AssertionError("expected an error that says how to get the package")
"""


def test_every_public_name_is_documented():
    """Each name in `__all__` of the package or of a part has its place in a table, once, under this name or another."""
    texts = [path.read_text() for path in (ROOT / "docs" / "reference").glob("*.rst")]
    entry = re.compile(r"^(?:   ~|\.\. autoclass:: )isinglass\.([\w.]+)$", re.MULTILINE)
    listed = [name for text in texts for name in entry.findall(text)]
    places = []
    for module, _, name in (f"isinglass.{one}".rpartition(".") for one in listed):
        places.append(id(getattr(importlib.import_module(module), name)))
    assert len(set(places)) == len(listed)
    parts = "viz pages features metrics models datasets decoding errors estimators gradients graph inference io"
    parts += " learning learning.gaussian learning.markov learning.markov.priors learning.optimizers learning.structure"
    parts += " learning.training losses testing"
    for part in ("", *parts.split()):
        module = importlib.import_module(f"isinglass.{part}".rstrip("."))
        public = {name: getattr(module, name) for name in module.__all__}
        missing = [name for name, one in public.items() if not inspect.ismodule(one) and id(one) not in places]
        assert missing == [], part
    assert "partial_fit" in (ROOT / "docs" / "sequences.md").read_text()


def test_what_the_wheel_says_of_itself():
    """Its types are seen by mypy, and the license of the digits is named."""
    assert (Path(ig.__file__).parent / "py.typed").is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["license"] == "BSD-3-Clause AND CC-BY-SA-3.0"
    texts = [(ROOT / name).read_text() for name in project["license-files"]]
    assert ["Redistribution" in texts[0], "CC BY-SA 3.0" in texts[1]] == [True, True]


def python(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.long
def test_works_without_the_optional_packages():
    done = python(WITHOUT)
    assert done.returncode == 0, done.stderr


def test_import_loads_nothing_heavy():
    heavy = "numpy", "scipy", "numba", "sklearn", "torch", "matplotlib", "networkx", "pyamg", "hypothesis", "rich"
    done = python(f"import sys, isinglass; print([m for m in {heavy!r} if m in sys.modules])")
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_every_public_name_resolves():
    for name in ig.__all__:
        assert getattr(ig, name) is not None
    assert {"FactorGraph", "Potentials", "infer", "map_assignment", "read_uai", "write_uai"} <= set(dir(ig))
    with pytest.raises(AttributeError):
        ig.no_such_name  # noqa: B018


@pytest.mark.long
@pytest.mark.parametrize("part", ["estimators", "gradients"])
def test_sub_packages_load_when_they_are_used(part):
    done = python(f"import isinglass as ig; print(ig.{part}.__name__, '{part}' in dir(ig))")
    assert done.stdout.split() == [f"isinglass.{part}", "True"], done.stderr


@pytest.mark.long
def test_imports_only_go_down_the_layers():
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_algorithms_are_listed_with_a_line_each():
    table = ig.algorithms()
    assert {"exact", "brute"} <= set(table)
    assert all(table.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: ig.infer(p, "exakt"), "algorithm: expected one of .*; did you mean 'exact'?"),
        (
            lambda p: ig.infer(p, "exact", speed=3),
            "speed: expected an option of 'exact' .one of memory_limit, restarts, order, beliefs, n_jobs.",
        ),
        (lambda p: ig.infer(p, "bp", n_job=2), r"n_job: .*n_jobs.*, got 2; did you mean 'n_jobs'\?"),
        (lambda p: ig.sample(p, 1, "gibbs", n_job=2), "did you mean 'n_jobs'"),
        (lambda p: ig.map_assignment(p, "bp", dampning=0.5), "did you mean 'damping'"),
        (lambda p: ig.infer(p, "exact", order=[0] * 400), r"got \[0, 0, 0, 0, 0, ...\], 400 in all$"),
        (lambda p: ig.infer(p, 3), "algorithm: expected a name"),
        (lambda p: ig.infer(p, ig.Exact), "got the class Exact"),
        (lambda p: ig.infer("model.uai"), "potentials: expected Potentials, got str"),
        (lambda p: ig.infer(p, "exact", memory_limit="lots"), "memory_limit: expected a size such as 12GB"),
        (lambda p: ig.infer(p, "exact").variable(2), "i: expected a number below 2"),
        (lambda p: ig.infer(p, "exact").factor(-1), "a: expected a whole number"),
        (lambda p: ig.infer(p, "exact").joint([0, 0]), "variables: expected distinct variables"),
        (lambda p: ig.n_best(p, 0), "n: expected a whole number of at least 1"),
        (lambda p: ig.sample(p, -1), "n: expected a whole number"),
        (lambda p: ig.infer(p, progress=3), "progress: expected a function"),
        (lambda p: ig.infer(p, evidence=[0, 1]), "evidence: expected a mapping"),
        (lambda p: ig.infer(p, evidence={0: np.array([0, 1])}), r"evidence\[0\]: expected a whole number"),
        (lambda p: ig.Potentials(p.graph, None), "log_tables: expected one table for each factor"),
        (lambda p: ig.Potentials(p.graph, {(0, 1): [[0, 0], [0, 0]]}), "log_tables: .* got dict"),
        (lambda p: ig.Potentials("graph", []), "graph: expected a FactorGraph, got str"),
        (lambda p: ig.Potentials.from_groups(p.graph, [np.zeros((2, 2))]), r"write table\[None\]"),
        (lambda p: ig.Potentials.from_groups(p.graph, [np.zeros((1, 2, 2))], 3), "table_ids: expected one entry"),
        (lambda p: ig.FactorGraph.from_groups([2], 5), "scopes: expected one integer array"),
        (lambda p: ig.FactorGraph([2, 2], {(0, 1)}), "scopes: expected a sequence of tuples"),
        (lambda p: ig.potentials_union(p), "potentials: expected a sequence"),
        (lambda p: ig.potentials_union([p, p.graph]), r"potentials\[1\]: expected a Potentials"),
        (lambda p: ig.disjoint_union([p]), r"graphs\[0\]: expected a FactorGraph"),
        (lambda p: ig.lattice_graph(3, 2), "shape: expected a sequence"),
        (lambda p: ig.chain_graph(0, 2), "n: expected a whole number of at least 1"),
        (lambda p: ig.pairwise_graph(3, [(0, 3)], 2), "edges: expected variables 0 to 2"),
        (lambda p: ig.elimination_order(p), "graph: expected a FactorGraph"),
        (lambda p: ig.to_networkx(p), "graph: expected a FactorGraph"),
        (lambda p: ig.from_networkx([(0, 1)], 2), "graph: expected a networkx.Graph"),
        (lambda p: ig.write_uai(p.graph, "x.uai"), "potentials: expected a Potentials"),
        (lambda p: ig.infer(p, ig.BeliefPropagation(schedule="fast")), "schedule: expected 'auto' or"),
        (
            lambda p: ig.infer(p, ig.BeliefPropagation(damping=1.0)),
            "damping: expected a number of at least 0 and below 1",
        ),
        (lambda p: ig.infer(p, ig.BeliefPropagation(iterations=-1)), "iterations: expected a whole number"),
        (lambda p: ig.infer(p, "bp", tol="a"), "tol: expected a number"),
        (lambda p: ig.infer(p, "bp", init=3), "init: expected the result of an earlier message passing"),
        (lambda p: ig.infer(p, ig.TreeReweighted(weights=2.0)), "weights: expected probabilities"),
        (
            lambda p: ig.infer(p, ig.FractionalBeliefPropagation(counting_numbers=0)),
            "counting_numbers: expected positive",
        ),
        (lambda p: ig.n_best(p, 2, "bp"), "n: expected 1, the only number that 'bp' decodes"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [[[0.0, 1.0], [1.0, 0.0]]])
    with pytest.raises(ig.InputError, match=message):
        call(p)


def test_joint_tables_that_do_not_fit_are_refused():
    p = ig.Potentials.from_groups(ig.chain_graph(90, 2), [np.zeros((1, 2)), np.zeros((1, 2, 2))])
    for count in (40, 80):
        with pytest.raises(ig.MemoryLimitError, match=f"joint table of {count} variables needs"):
            ig.infer(p, "exact").joint(range(count))


def test_edges_may_be_empty():
    assert list(ig.pairwise_graph(2, [], 2).scopes) == [(0,), (1,)]
    assert ig.FactorGraph.from_groups([2, 2], [np.zeros((0, 2), int)]).n_factors == 0


def test_tolerances_are_accepted_by_algorithms_that_do_not_iterate():
    p = ig.Potentials(ig.FactorGraph([2], [(0,)]), [[0.0, 1.0]])
    assert ig.infer(p, "exact", tol=1e-9, max_iter=5).info.converged
