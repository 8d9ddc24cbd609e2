import gzip
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from io_helpers import assert_close, assert_identical, models, one_line

from checks import refuses
from isinglass.errors import FileFormatError, InputError
from isinglass.graph import FactorGraph, grid_graph
from isinglass.io import read_evidence, read_model, read_uai, write_model, write_uai
from isinglass.io.formats.tables import exp_of_logs
from isinglass.potentials import Potentials

SMALL = "MARKOV\n3\n2 2 3\n2\n2 0 1\n1 2\n\n4\n 1 2 3 4\n3\n 0 1 .5\n"


def parse(tmp_path, text, evidence=None):
    (tmp_path / "m.uai").write_text(text)
    return read_uai(tmp_path / "m.uai", evidence)


def refusal(tmp_path, text, evidence=None):
    with pytest.raises(FileFormatError) as info:
        parse(tmp_path, text, evidence)
    return one_line(info.value).removeprefix(str(tmp_path / "m.uai"))


def test_small_models(tmp_path):
    p = parse(tmp_path, SMALL)
    assert p.graph.cards.tolist() == [2, 2, 3]
    assert p.graph.scopes[:] == [(0, 1), (2,)]
    assert np.exp(p.log_tables[0]).round(12).tolist() == [[1, 2], [3, 4]]  # the last variable is fastest
    assert p.log_tables[1][0] == -np.inf
    assert dict(p.evidence) == {}
    p = parse(tmp_path, "bayes 2 2 3 1 2 1 0 6 1 2 3 4 5 6")
    assert p.graph.scopes[0] == (1, 0)
    assert np.exp(p.log_tables[0]).round(12).tolist() == [[1, 2], [3, 4], [5, 6]]
    assert parse(tmp_path, "MARKOV # no variables\n0\n\n0\n").graph.n_variables == 0
    p = parse(tmp_path, "Markov 1 1 2 0 1 0 1 0.5 1 3")
    assert p.log_tables[0].shape == ()
    assert float(p.log_tables[0]) == np.log(0.5)


@pytest.mark.long
@pytest.mark.parametrize("name", ["m.uai", "m.uai.gz"])
@given(models())
@settings(max_examples=60, deadline=None)
def test_round_trip(name, p):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        write_uai(p, path)
        assert Path(folder, "m.uai.evid").exists() == bool(p.evidence)
        q = read_uai(path, Path(folder, "m.uai.evid") if p.evidence else None)
        assert_close(p, q)
        write_model(q, path)
        assert_identical(q, read_model(path, dict(q.evidence)))


@pytest.mark.long
@given(st.lists(st.floats(0, allow_infinity=False), min_size=1, max_size=50))
@settings(max_examples=300, deadline=None)
def test_any_values_survive(values):
    with np.errstate(divide="ignore"):
        logs = np.log(np.array(values))
    assert np.log(exp_of_logs(logs)[logs > -np.inf]).tobytes() == logs[logs > -np.inf].tobytes()
    with tempfile.TemporaryDirectory() as folder:
        p = Potentials(FactorGraph([len(values)], [(0,)]), [logs])
        write_uai(p, f"{folder}/m.uai")
        assert_identical(p, read_uai(f"{folder}/m.uai"))


@pytest.mark.parametrize(("low", "high"), [(-745, 709), (-1, 1), (-1e-9, 1e-9), (-40, 40)])
def test_exp_of_logs_inverts_np_log(low, high):
    values = np.exp(np.random.default_rng(0).uniform(low, high, 200_000))
    logs = np.log(values[values > 0])
    assert np.log(exp_of_logs(logs)).tobytes() == logs.tobytes()


def test_evidence_in_the_file_and_from_outside(tmp_path):
    assert dict(parse(tmp_path, SMALL + "1 2 1").evidence) == {2: 1}
    assert dict(parse(tmp_path, SMALL + "1 1 2 1").evidence) == {2: 1}
    assert dict(parse(tmp_path, SMALL + "0").evidence) == {}
    assert dict(parse(tmp_path, SMALL + "1 2 1", {0: 1, 2: 1}).evidence) == {0: 1, 2: 1}
    (tmp_path / "e.evid").write_text("2 0 0 1 1")
    assert dict(parse(tmp_path, SMALL + "1 2 1", tmp_path / "e.evid").evidence) == {0: 0, 1: 1, 2: 1}
    assert dict(parse(tmp_path, SMALL, str(tmp_path / "e.evid")).evidence) == {0: 0, 1: 1}


def test_bad_evidence_from_outside(tmp_path):
    for evidence, expected in [
        ({2: 0}, "evidence: expected one state of variable 2, got state 0, but the model file observes state 1; "),
        ({5: 0}, "evidence: expected variables 0 to 2, got variable 5"),
        ({0: 2}, r"evidence\[0\]: expected a state from 0 to 1, got 2"),
        ([0], "evidence: expected a mapping or the path of a file, got list"),
    ]:
        refuses(expected, parse, tmp_path, SMALL + "1 2 1", evidence)
    (tmp_path / "e.evid").write_text("1\n0 2")
    with pytest.raises(FileFormatError, match=r"e\.evid, line 2: expected the state of variable 0"):
        parse(tmp_path, SMALL, tmp_path / "e.evid")


BAD = [
    ("", ", line 1: expected MARKOV or BAYES, got the end of the file"),
    ("FG\n1", ", line 1: expected MARKOV or BAYES, got 'FG'"),
    ("MARKOV\nx", ", line 2: expected the number of variables, which the rest of the file can hold (0), got 'x'"),
    ("MARKOV", ", line 1: expected the number of variables, which the rest of the file can hold (0), got the end"),
    ("MARKOV\n999999999\n2 2", ", line 2: expected the number of variables, which the rest of the file can hold"),
    ("MARKOV\n1\n0\n0", ", line 3: expected the number of states of variable 0 (a whole number from 1 to 2147"),
    ("MARKOV 1\n2147483648 0", ", line 2: expected the number of states of variable 0"),
    ("MARKOV 1 2\n-1", ", line 2: expected the number of factors, which the rest of the file can hold (0), got"),
    ("MARKOV 1 2\n9 1 0", ", line 2: expected the number of factors, which the rest of the file can hold (0)"),
    (SMALL.replace("2 0 1", "4 0 1"), ", line 5: expected the number of variables of factor 0 (a whole number"),
    (
        SMALL.replace("2 0 1", "2 0 3"),
        ", line 5: expected a variable of factor 0 (a whole number from 0 to 2), got '3'",
    ),
    (SMALL.replace("2 0 1", "2 0 -1"), ", line 5: expected a variable of factor 0 (a whole number from 0 to 2)"),
    (SMALL.replace("2 0 1", "2 1 1"), ", line 5: expected a variable that factor 0 does not have yet, got '1'"),
    (SMALL.replace("1 2\n\n", "1 1.0\n\n"), ", line 6: expected a variable of factor 1 (a whole number"),
    (SMALL.replace("\n4\n", "\n5\n"), ", line 8: expected the number of entries of factor 0 (4), got '5'"),
    (SMALL.replace("\n4\n", "\n4.0\n"), ", line 8: expected the number of entries of factor 0 (4), got '4.0'"),
    (SMALL.replace("1 2 3 4\n3", "1 2 3\n3"), ", line 11: expected the number of entries of factor 1 (3), got '0'"),
    (SMALL.replace(".5", ""), ", line 11: expected factor 1, entry 2, got the end of the file"),
    (SMALL.replace(".5", "x"), ", line 11: expected factor 1, entry 2 (a decimal number), got 'x'"),
    (SMALL.replace(".5", "-.5"), ", line 11: expected factor 1, entry 2 (a number of at least 0), got '-.5'"),
    (SMALL.replace(".5", "1e400"), ", line 11: expected factor 1, entry 2 (a number in the range of a double, "),
    (SMALL.replace(".5", "1e-400"), ", line 11: expected factor 1, entry 2 (a number in the range of a double, "),
    (SMALL.replace(".5", "inf"), ", line 11: expected factor 1, entry 2 (a decimal number), got 'inf'"),
    (SMALL + "7", ", line 12: expected the end of the file or 0 observed variables, by the count of numbers"),
    (SMALL + "x", ", line 12: expected the end of the file or the number of observed variables"),
    (SMALL + "0.5 1", ", line 12: expected the end of the file or 0 or 1 samples, because an even count"),
    (SMALL + "1 2 3", ", line 12: expected the state of variable 2 (a whole number from 0 to 2), got '3'"),
    (SMALL + "\0", ", line 12: expected plain ASCII text, got the character '\\x00'"),
    (SMALL.replace("MARKOV", "M" * 500), ", line 1: expected MARKOV or BAYES, got '" + "M" * 34 + "'..."),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_refused_in_one_line(tmp_path, text, expected):
    assert refusal(tmp_path, text).startswith(expected)


def test_tables_too_large_for_the_file(tmp_path):
    many = "MARKOV 40 " + "2147483647 " * 40 + "1\n40 " + " ".join(map(str, range(40))) + " 4 1 1 1 1"
    assert refusal(tmp_path, many) == (
        ", line 2: expected scopes whose tables fit into the rest of the file, got factor 0 with inf entries"
    )
    assert "(1000000), got '4'" in refusal(tmp_path, "MARKOV 2 1000 1000 1 2 0 1 4 1 1 1 1")
    assert "entry 2, got the end" in refusal(tmp_path, "MARKOV 2 1000 1000 1 2 0 1 1000000 1 1")


def test_scope_with_too_many_axes(tmp_path):
    def text(n):
        return f"MARKOV {n} {'1 ' * n} 1 {n} {' '.join(map(str, range(n)))} 1 2.0"

    assert parse(tmp_path, text(63)).log_tables[0].ndim == 63
    assert "(a whole number from 0 to 63), got '64'" in refusal(tmp_path, text(64))


def test_gzip_in_messages(tmp_path):
    (tmp_path / "m.uai.gz").write_bytes(gzip.compress(SMALL.replace(".5", "x").encode()))
    refuses(r"m\.uai\.gz, line 11: expected factor 1, entry 2", read_uai, tmp_path / "m.uai.gz", error=FileFormatError)


@pytest.mark.parametrize("value", [710.0, 1e300, -725.0, -744.7, -745.1, -746.0, -1e300])
def test_logs_out_of_range_are_named(tmp_path, value):
    graph = FactorGraph([2, 2], [(0,), (0, 1), (1, 0)])
    p = Potentials.from_groups(graph, [np.zeros((1, 2)), [np.zeros((2, 2)), [[0, 0], [value, 0]]]], [None, [0, 1]])
    with pytest.raises(InputError) as info:
        write_model(p, tmp_path / "m.uai")
    assert one_line(info.value).startswith("log_tables[2]: expected logarithms of numbers in the range of a double")
    assert f"got {value} at index (1, 0); subtract a constant" in str(info.value)
    assert list(tmp_path.iterdir()) == []


def test_what_is_written(tmp_path):
    p = Potentials(FactorGraph([2], [(0,)]), [np.array([0.0, 1j])])
    refuses("potentials: expected real log-tables, got complex ones", write_model, p, tmp_path / "m.uai")
    p = Potentials.from_groups(grid_graph(3, 3, 2), [np.zeros((9, 2)), np.eye(2)[None]])
    write_uai(p, tmp_path / "m.uai")
    assert_close(p, read_uai(tmp_path / "m.uai"))
    p = parse(tmp_path, SMALL, {2: 1, 0: 0})
    write_uai(p, tmp_path / "out.uai.gz")
    assert read_evidence(tmp_path / "out.uai.evid") == {0: 0, 2: 1}
    assert (tmp_path / "out.uai.evid").read_text() == "2 0 0 2 1\n"
    assert dict(read_uai(tmp_path / "out.uai.gz").evidence) == {}
    values = np.array([2.2250738585072014e-308, 1.5e-308, 3e-310, 5e-324])
    p = Potentials(FactorGraph([4], [(0,)]), [np.log(values)])
    write_uai(p, tmp_path / "m.uai")
    assert_identical(p, read_uai(tmp_path / "m.uai"))
    least = Potentials(FactorGraph([2], [(0,)]), [[-708.3, -700.123]])
    write_uai(least, tmp_path / "m.uai")
    assert_close(least, read_uai(tmp_path / "m.uai"))


@pytest.mark.parametrize("name", ["model", "model.gz", "model.uai.evid", "uai", "a\nb"])
def test_unknown_ending(name):
    for call, endings in (
        (read_model, ".uai, .uai.gz, .fg or .fg.gz"),
        (partial(write_model, None), ".uai or .uai.gz"),
    ):
        with pytest.raises(InputError) as info:
            call(name)
        assert f"a name that ends in {endings}" in one_line(info.value)


@pytest.mark.long
def test_large_grid(tmp_path):
    graph = grid_graph(150, 150, 2)
    rng = np.random.default_rng(0)
    p = Potentials.from_groups(graph, [rng.normal(size=(len(g), *g.shape)) for g in graph.groups])
    write_uai(p, tmp_path / "m.uai")
    q = read_uai(tmp_path / "m.uai")
    assert all(np.allclose(a, b, rtol=0, atol=1e-15) for a, b in zip(p.groups, q.groups, strict=True))
