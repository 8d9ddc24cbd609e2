import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_helpers import one_line

from checks import refuses
from isinglass.errors import FileFormatError, InputError
from isinglass.io import read_evidence, read_map, read_mar, read_pr, write_evidence
from isinglass.io.formats.results import map_text, mar_text, pr_text


@given(st.floats(-1e6, 1e6))
def test_pr_round_trip(tmp_path_factory, log_z):
    path = tmp_path_factory.getbasetemp() / "a.PR"
    path.write_text(pr_text(log_z))
    assert math.isclose(read_pr(path), log_z, rel_tol=1e-15, abs_tol=1e-300)


def test_pr_is_decimal_in_the_file(tmp_path):
    assert float(pr_text(np.log(1000.0)).split()[1]) == pytest.approx(3, abs=1e-14)
    (tmp_path / "a.PR").write_text("PR\n3\n")
    assert read_pr(tmp_path / "a.PR") == pytest.approx(math.log(1000), rel=1e-15)


@given(st.lists(st.lists(st.floats(0, 1), min_size=1, max_size=4), max_size=5))
def test_mar_round_trip(tmp_path_factory, variables):
    path = tmp_path_factory.getbasetemp() / "a.MAR"
    path.write_text(mar_text([np.array(v) for v in variables]))
    assert [p.tolist() for p in read_mar(path)] == variables


@given(st.lists(st.integers(0, 2**31 - 1)))
def test_map_round_trip(tmp_path_factory, states):
    path = tmp_path_factory.getbasetemp() / "a.MAP"
    path.write_text(map_text(states))
    assert read_map(path).tolist() == states
    path.write_text(map_text(states).replace("MAP", "mpe"))
    assert read_map(path).tolist() == states


def test_writers_refuse():
    for log_z in (math.nan, math.inf, -math.inf):
        refuses("log_z", pr_text, log_z)
    for variable in ([], [[0.5]], [math.nan], [-0.5], [1j], ["a"]):
        refuses(r"variables\[1\]", mar_text, [[1.0], variable])
    for states in ([[1]], [-1], [0.5]):
        refuses("states", map_text, states)


@pytest.mark.parametrize(
    ("read", "text", "expected"),
    [
        (read_pr, "MAR 1", "line 1: expected PR, got 'MAR'"),
        (read_pr, "PR\n", "line 1: expected the decimal logarithm of Z, got the end of the file"),
        (read_pr, "PR\nnan", "line 2: expected the decimal logarithm of Z (a decimal number), got 'nan'"),
        (read_pr, "PR\n1 2", "line 2: expected the end of the file, got '2'"),
        (read_mar, "MAR\n999999999", "line 2: expected the number of variables, which the rest"),
        (
            read_mar,
            "MAR\n1 3 .5 .5",
            "line 2: expected as many tokens as the number of states of variable 0 says, got the",
        ),
        (read_mar, "MAR\n2 2 .5 .5\n1 -1", "line 3: expected the probability of state 0 of variable 1 (a number of"),
        (read_mar, "MAR\n1 0 0", "line 2: expected the number of states of variable 0 (a whole number from 1 to"),
        (read_mar, "MAR\n1 1 1 1", "line 2: expected the end of the file, got '1'"),
        (read_map, "MAP\n2 0", "line 2: expected the number of variables, which the rest of the file can hold (a"),
        (read_map, "MAP\n2 0 -1", "line 2: expected the state of variable 1 (a whole number from 0 to"),
        (read_map, "MAP\n1 0 0", "line 2: expected the end of the file, got '0'"),
    ],
)
def test_refused_in_one_line(tmp_path, read, text, expected):
    (tmp_path / "a").write_text(text)
    with pytest.raises(FileFormatError) as info:
        read(tmp_path / "a")
    assert one_line(info.value).removeprefix(f"{tmp_path / 'a'}, ").startswith(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("# nothing\n", {}),
        ("0", {}),
        ("1 0", {}),
        ("0 0", {}),
        ("1 4 2", {4: 2}),
        ("2 4 2 0 1", {0: 1, 4: 2}),
        ("1\n2 4 2 0 1\n", {0: 1, 4: 2}),
        ("1 1 4 2", {4: 2}),
        ("2 4 2 4 2", {4: 2}),
    ],
)
def test_forms(tmp_path, text, expected):
    (tmp_path / "a.evid").write_text(text)
    assert read_evidence(tmp_path / "a.evid") == expected
    assert read_evidence(tmp_path / "a.evid", [3] * 5) == expected


@pytest.mark.parametrize(
    ("text", "cards", "expected"),
    [
        (
            "3\n1 0 1\n1 0 1\n1 0 1",
            None,
            "line 1: expected 0 or 1 samples, because an even count of numbers is the older",
        ),
        ("0 1 4 2", None, "line 1: expected the number of observed variables (0), got '1'"),
        ("2 0 1", None, "line 1: expected 1 observed variables, by the count of numbers that follow, got '2'"),
        ("0\n1 1", None, "line 1: expected 1 observed variables, by the count of numbers that follow, got '0'"),
        ("x", None, "line 1: expected the number of observed variables (a whole number from 0 to 2147483647), got"),
        ("1 0\n1.0", None, "line 2: expected the state of variable 0 (a whole number from 0 to"),
        ("1\n-1 0", None, "line 2: expected observed variable 1 of 1 (a whole number from 0 to"),
        ("2 0 1\n0 0", None, "line 2: expected one state of variable 0, which was 1, got '0'"),
        ("1\n5 0", [2] * 5, "line 2: expected observed variable 1 of 1 (a whole number from 0 to 4), got '5'"),
        ("1\n0 2", [2] * 5, "line 2: expected the state of variable 0 (a whole number from 0 to 1), got '2'"),
        ("1 0 0", [], "line 1: expected observed variable 1 of 1"),
    ],
)
def test_evidence_is_refused_in_one_line(tmp_path, text, cards, expected):
    (tmp_path / "a.evid").write_text(text)
    with pytest.raises(FileFormatError) as info:
        read_evidence(tmp_path / "a.evid", cards)
    assert one_line(info.value).removeprefix(f"{tmp_path / 'a.evid'}, ").startswith(expected)


@given(st.dictionaries(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)))
def test_round_trip(tmp_path_factory, evidence):
    path = tmp_path_factory.getbasetemp() / "round.evid"
    write_evidence(evidence, path)
    assert read_evidence(path) == evidence


@pytest.mark.parametrize("evidence", [None, [1], {0: -1}, {-1: 0}, {0: 1.0}, {"a": 0}, {0: True}])
def test_write_checks(tmp_path, evidence):
    with pytest.raises(InputError, match=r"^evidence"):
        write_evidence(evidence, tmp_path / "a.evid")
    assert not (tmp_path / "a.evid").exists()
