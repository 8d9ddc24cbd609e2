"""The seam for stochastic algorithms is open: a Gibbs sampler, written here alone, works like one of the library."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import isinglass as ig
from checks import refuses
from isinglass.cli.main import main
from isinglass.inference.algorithm import ALGORITHMS, Algorithm, Facts, register
from isinglass.testing import InferenceSuite, monte_carlo

GUIDE = (Path(__file__).parents[2] / "docs" / "guides" / "algorithm.md").read_text()


BLOCKS = [text.split("```")[0] for text in GUIDE.split("```python")[1:]]
SKETCH = {}
exec(BLOCKS[2].replace("@register\n", ""), SKETCH)
Gibbs = SKETCH["Gibbs"]


@pytest.fixture(autouse=True, scope="module")
def registered():
    """Register the sampler for the tests of this file."""
    register(Gibbs)
    yield
    ALGORITHMS._entries.pop(Gibbs.name)


@pytest.mark.long
class TestGibbs(InferenceSuite):
    """The whole conformance suite, with its statistical checks."""

    def algorithm(self):
        return Gibbs(sweeps=60, chains=24)

    def accepts(self, potentials):
        return True


def grids(n=3):
    rng = np.random.default_rng(1)
    return [ig.testing.random_potentials(ig.grid_graph(2, 2, 2 + k % 2), rng, 0.5) for k in range(n)]


def test_infer_by_name():
    p = grids()[0]
    result = ig.infer(p, "gibbs-sketch", random_state=0, sweeps=400, evidence={0: 1})
    truth = ig.infer(p, "brute", evidence={0: 1})
    assert result.info.converged
    assert result.info.details["stderr_variables"].shape == result.variables.flat.shape
    np.testing.assert_allclose(result.variables.flat, truth.variables.flat, atol=6 * result.info.residual)
    assert repr(result).startswith("Result: log_z = nan, Info(algorithm='gibbs-sketch'")
    again = ig.infer(p, Gibbs(sweeps=400, random_state=0), evidence={0: 1})
    np.testing.assert_array_equal(again.variables.flat, result.variables.flat)


def test_chains_begin_with_a_possible_state():
    differ = np.where(np.eye(3) > 0, -np.inf, 0.0)
    p = ig.Potentials(ig.FactorGraph([3] * 9, [(i, i + 1) for i in range(8)]), [differ] * 8)
    draws = ig.sample(p, 20, "gibbs-sketch", random_state=0, evidence={4: 2})
    assert (draws[:, 1:] != draws[:, :-1]).all()
    assert (draws[:, 4] == 2).all()
    odd = ig.Potentials(ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0, 2)]), [differ[:2, :2]] * 3)
    with pytest.raises(ig.ImpossibleEvidenceError):
        ig.infer(odd, "gibbs-sketch", random_state=0)


def test_the_stream_belongs_to_the_number_of_the_example():
    a, b, c = grids()
    batches = [[a, b], [c, b, a], [b, b, c], [b]]
    found = []
    for batch in batches:
        together, first = ig.infer(ig.potentials_union(batch), "gibbs-sketch", random_state=3), 0
        for number, p in enumerate(batch):
            last = first + p.graph.n_variables
            found.append((p is b, number, np.concatenate([together.variable(i) for i in range(first, last)])))
            first = last
    mine = {number: values for is_b, number, values in found if is_b}
    for is_b, number, values in found:
        assert not is_b or (values == mine[number]).all()
    assert (mine[0] != mine[1]).any()


def test_seeds_and_samples():
    p, rng = grids()[0], np.random.default_rng(5)
    one, two = (ig.infer(p, "gibbs-sketch", random_state=rng).variables.flat for _ in range(2))
    again = ig.infer(p, "gibbs-sketch", random_state=np.random.default_rng(5)).variables.flat
    assert (one != two).any()
    np.testing.assert_array_equal(one, again)
    p = grids()[0]
    draws = ig.sample(p, 7, "gibbs-sketch", sweeps=20, random_state=1)
    assert draws.shape == (7, 4)
    np.testing.assert_array_equal(draws, ig.sample(p, 7, Gibbs(sweeps=20, random_state=1)))
    np.testing.assert_array_equal(draws, ig.sample(p, 7, Gibbs(sweeps=20, random_state=2), random_state=1))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ig.map_assignment, "algorithm: expected one that maximises, got 'gibbs-sketch'; use 'brute' or "),
        (lambda p, a: ig.n_best(p, 2, a), "algorithm: expected one that maximises, got 'gibbs-sketch'"),
        (lambda p, a: ig.sample(p, 2, "mf"), "one that samples, got 'mf'; use .*'exact' or .*'gibbs-sketch'"),
        (lambda p, a: ig.infer(p, a, random_state=0).joint([0, 1]), "joint beliefs, got gibbs-sketch; use "),
        (lambda p, a: ig.infer(p, a, random_state=-1), "random_state: expected a whole number"),
        (lambda p, a: ig.infer(p, a, random_state=0, tape=True).backward(1.0), "tape: expected True"),
        (ig.perturbation, "got 'gibbs-sketch'"),
    ],
)
def test_what_it_cannot_do_is_refused_with_names_from_the_registry(call, message):
    refuses(message, call, grids()[0], "gibbs-sketch")


def test_what_is_said_and_declared():
    crf = ig.GraphCRF(inference="gibbs-sketch")
    with pytest.raises(ig.InputError, match="'gibbs-sketch' are estimates by sampling, which have no derivative"):
        crf.fit([(np.zeros((2, 1)), [(0, 1)])], [[0, 1]])
    hard = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.where(np.eye(2) > 0, 0.0, -np.inf)])
    with pytest.warns(ig.ConvergenceWarning, match="with standard errors of beliefs up to .*; soften the hard"):
        ig.infer(hard, "gibbs-sketch", random_state=0)
    with pytest.warns(ig.ConvergenceWarning, match="raise max_iter$"):
        ig.infer(grids()[0], "mf", max_iter=1)
    for missing, kind in (("name", "str"), ("facts", "Facts")):
        with pytest.raises(ig.InputError, match=f"{missing}: expected a class attribute of type {kind}, got none in"):
            register(type("Nameless", (Gibbs,), {missing: None}))


def test_a_stochastic_algorithm_needs_a_seed():
    with pytest.raises(ig.InputError, match="an option random_state of a stochastic algorithm"):

        @register
        @dataclass(frozen=True)
        class Unseeded(Algorithm):
            name: ClassVar[str] = "unseeded"
            facts: ClassVar[Facts] = Facts("no seed", exact="never", bound=None, stochastic=True)

    assert "unseeded" not in ALGORITHMS


def test_the_command_line(tmp_path, capsys):
    ig.write_uai(grids()[0], tmp_path / "m.uai")
    argv = ["infer", str(tmp_path / "m.uai"), "--algorithm", "gibbs-sketch", "--random-state", "0"]
    assert main([*argv, "--json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out, parse_constant=pytest.fail)
    assert found["log_z"] is None
    assert found["details"]["stderr_variables"][0] > 0
    assert "gibbs-sketch: converged after 200 iterations, standard error 0.0" in captured.err
    assert main([*argv, "--task", "MAR"]) == 0
    assert capsys.readouterr().out.startswith("MAR")
    assert main([*argv, "--task", "PR"]) == 2
    assert "one that finds log Z, for --task PR" in capsys.readouterr().err
    assert main(["algorithms"]) == 0
    assert "gibbs-sketch" in capsys.readouterr().out


def wrong(most=None, **changes):
    """Return the suite of a sampler with a mistake in it, on models of so many variables at the most."""

    class Wrong(TestGibbs):
        def algorithm(self):
            return type("Wrong", (Gibbs,), {"name": "wrong", **changes})(sweeps=60, chains=24)

        def accepts(self, potentials):
            return most is None or potentials.graph.n_variables <= most

    return Wrong()


def tempered(self, potentials, chains, random_state):
    flatter = ig.Potentials(potentials.graph, [0.7 * t for t in potentials.log_tables], potentials.evidence)
    return Gibbs.states(self, flatter, chains, random_state)


def scaled(factor):
    def run(self, potentials, *arguments):
        result = Gibbs.run(self, potentials, *arguments)
        for errors in result.info.details.values():
            errors *= factor
        return result

    return run


def by_place(self, potentials, chains, random_state):
    """Take the random numbers of all examples from one stream."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SKETCH, "streams", lambda p, seed: [np.random.default_rng(seed)] * p.graph.n_components)
        yield from Gibbs.states(self, potentials, chains, random_state)


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": tempered}, "standard errors from .* a correct algorithm stays within"),
        ({"run": scaled(0.3)}, "reported standard errors are too small"),
        ({"run": scaled(10.0)}, "reported standard errors are too large"),
        ({"run": lambda self, p, *a: Gibbs(self.sweeps, self.chains, 0).run(p)}, "random_state changes nothing"),
    ],
)
def test_the_suite_finds_mistakes_in_estimates(changes, message):
    refuses(message, wrong(3, **changes).test_estimates, error=AssertionError)


@pytest.mark.long
def test_the_suite_finds_mistakes_in_samples_and_streams():
    refuses("samples, number", wrong(3, states=tempered).test_sample_frequencies, error=AssertionError)
    for check in ("test_batch_independence", "test_sample_streams"):
        refuses(r"(?i)not equal", getattr(wrong(states=by_place), check), error=AssertionError)


def test_estimates_without_reported_errors():
    """The spread of the replicates takes their place."""
    values = np.random.default_rng(0).normal(0.5, 0.1, (monte_carlo.REPLICATES, 5))
    monte_carlo.Estimates(values, None, np.full(5, 0.5)).check("right")
    with pytest.raises(AssertionError, match="number 3: the mean estimate"):
        monte_carlo.Estimates(values, None, np.where(np.arange(5) == 3, 0.8, 0.5)).check("wrong")


def test_the_error_probability_of_a_check_is_what_it_says(monkeypatch):
    """At 5 %, right estimates are refused in about 5 % of all checks, or less (Bonferroni)."""
    monkeypatch.setattr(monte_carlo, "ERROR_PROBABILITY", 0.05)
    rng, refused = np.random.default_rng(0), np.zeros(2)
    for _ in range(400):
        values = rng.normal(0.0, 1.0, (monte_carlo.REPLICATES, 3))
        for k, errors in enumerate((None, np.ones_like(values))):
            try:
                monte_carlo.Estimates(values, errors, np.zeros(3)).check("right")
            except AssertionError:
                refused[k] += 1
    assert (refused / 400 < 0.1).all()
    assert (refused / 400 > 0.02).all()


def test_the_other_code_of_the_guide_runs():
    try:
        exec(BLOCKS[0], {})
        assert ig.infer(grids()[0], "uniform").variable(0).tolist() == [0.5, 0.5]
    finally:
        ALGORITHMS._entries.pop("uniform", None)
