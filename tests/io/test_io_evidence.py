import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_helpers import one_line

from isinglass.errors import FileFormatError, InputError
from isinglass.io import read_evidence, write_evidence


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
        (
            "2 0 1",
            None,
            "line 1: expected 1 observed variables, by the count of numbers that follow, got '2'",
        ),
        (
            "0\n1 1",
            None,
            "line 1: expected 1 observed variables, by the count of numbers that follow, got '0'",
        ),
        (
            "x",
            None,
            "line 1: expected the number of observed variables (a whole number from 0 to 2147483647), got",
        ),
        ("1 0\n1.0", None, "line 2: expected the state of variable 0 (a whole number from 0 to"),
        ("1\n-1 0", None, "line 2: expected observed variable 1 of 1 (a whole number from 0 to"),
        ("2 0 1\n0 0", None, "line 2: expected one state of variable 0, which was 1, got '0'"),
        (
            "1\n5 0",
            [2] * 5,
            "line 2: expected observed variable 1 of 1 (a whole number from 0 to 4), got '5'",
        ),
        ("1\n0 2", [2] * 5, "line 2: expected the state of variable 0 (a whole number from 0 to 1), got '2'"),
        ("1 0 0", [], "line 1: expected observed variable 1 of 1"),
    ],
)
def test_refused_in_one_line(tmp_path, text, cards, expected):
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
