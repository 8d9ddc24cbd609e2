"""Columns of text."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

import isinglass as ig

CELLS = st.text(
    st.characters(exclude_categories=("Cs",), exclude_characters=" \t\r\n\ufeff"), min_size=1, max_size=5
).filter(lambda cell: not cell.startswith("-DOC"))


@pytest.mark.long
@given(st.lists(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=4), max_size=4))
def test_what_is_written_is_read(sentences):
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        for name in ("a.txt", "a.txt.gz"):
            ig.write_conll(f"{folder}/{name}", sentences)
            assert ig.read_conll(f"{folder}/{name}") == sentences


@pytest.mark.parametrize("space", ["\u00a0", "\u3000", "\u2028", "\x85", "\x0b", "\x1c"])
def test_other_white_space_is_part_of_a_token(tmp_path, space):
    path = tmp_path / "a.txt"
    path.write_text(f"10{space}000 CD\nyen NN\n", encoding="utf-8")
    assert ig.read_conll(path) == [[(f"10{space}000", "CD"), ("yen", "NN")]]


def test_a_separator_may_leave_blanks_to_tokens(tmp_path):
    sentences = [[("New York", "B"), ("is", "O")]]
    ig.write_conll(tmp_path / "a", sentences, separator="\t")
    assert ig.read_conll(tmp_path / "a", separator="\t") == sentences
    for cell in ("a\tb", "a\nb", " "):
        with pytest.raises(ig.InputError, match="cells"):
            ig.write_conll(tmp_path / "a", [[(cell, "B")]], separator="\t")


def test_forms(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeff-DOCSTART- -X- O\n\nEU\tNNP  B-ORG\r\n\n \n\nsagt VB O".encode())
    assert ig.read_conll(path) == [[("EU", "NNP", "B-ORG")], [("sagt", "VB", "O")]]
    path.write_bytes(gzip.compress(b"New York\tB\nis\tO\n"))
    assert ig.read_conll(path, separator="\t") == [[("New York", "B"), ("is", "O")]]
    path.write_text("")
    assert ig.read_conll(path) == []


@pytest.mark.parametrize(
    ("text", "options", "match"),
    [
        ("a b\nc\n", {}, "line 2: expected 2 columns, got 1"),
        ("a b\n", {"columns": 3}, "line 1: expected 3 columns"),
        ("a\t\n", {"separator": "\t"}, "line 1"),
    ],
)
def test_damaged(tmp_path, text, options, match):
    path = tmp_path / "a.txt"
    path.write_text(text)
    with pytest.raises(ig.FileFormatError, match=match):
        ig.read_conll(path, **options)


def test_wrong_input(tmp_path):
    with pytest.raises(ig.InputError, match="separator"):
        ig.read_conll(tmp_path / "a", separator="")
    for cell in ("", "two words", 3):
        with pytest.raises(ig.InputError, match="cells"):
            ig.write_conll(tmp_path / "a", [[("a", cell)]])
    with pytest.raises(OSError, match="nothing"):
        ig.read_conll(tmp_path / "nothing")
