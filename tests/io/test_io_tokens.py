import gzip
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from io_helpers import one_line

import isinglass as ig
from checks import refuses
from isinglass.errors import FileFormatError
from isinglass.io.formats.tokens import TokenReader, shown
from isinglass.segments import ranges


def numbers(text):
    reader = TokenReader(text, "f")
    return reader.numbers_at(np.arange(reader.remaining), lambda i: f"factor 3, entry {i}")


def integers(text, low=-9, high=99):
    reader = TokenReader(text, "f")
    return reader.integers(reader.remaining, lambda i: f"item {i}", low, high)


def test_numbers_and_integers_accepted():
    reader = TokenReader("# héllo 1 2\r\n 1\t2#3\n\n\f4 # end", "f")
    assert reader.integers(3, str, 0, 9).tolist() == [1, 2, 4]
    reader.finish()
    text = "1 +1. -.5 1e5 1E-05 5e-324 1.7976931348623157e308 0 -0.0 0e999 000.000E-999 00012 0.1"
    assert numbers(text).tolist() == [float(t) for t in text.split()]
    assert integers("1 +2 -3 007 " + "0" * 5000 + "5").tolist() == [1, 2, -3, 7, 5]
    assert integers("").tolist() == []


NOT_NUMBERS = [
    "1_000",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "infinity",
    "0x10",
    "1.5.2",
    "1e",
    "1e+",
    ".",
    "+",
    "-",
    "e5",
    "--",
    "1,5",
    "1e5.0",
    "1-2",
    "True",
    "1j",
    "0b1",
    "1d5",
]


@pytest.mark.parametrize("token", NOT_NUMBERS)
def test_numbers_refused(token):
    with pytest.raises(FileFormatError) as info:
        numbers(f"1.5 2\n{token} 1")
    assert one_line(info.value) == f"f, line 2: expected factor 3, entry 2 (a decimal number), got '{token}'"


@pytest.mark.parametrize("token", ["1e400", "-1e400", "1e-400", "0.0001e-322", "9" * 400, "-1e-999999999999999999"])
def test_numbers_outside_the_double_range(token):
    with pytest.raises(FileFormatError, match=r"^f, line 2: expected factor 3, entry 7 \(a number in the range"):
        numbers(f"0 0.0 1 1 1 1 0e5\n{token} 0")


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_numbers_keep_every_bit(values):
    assert numbers(" ".join(map(repr, values))).tolist() == values


@pytest.mark.parametrize("token", ["1.5", "1_0", "0x1", "1e1", "nan", "-10", "100", "9" * 19, "9" * 5000, "--1", "+"])
@pytest.mark.parametrize("before", ["1", "-1"])  # the fast way and the careful way
def test_integers_refused(token, before):
    with pytest.raises(FileFormatError, match=r"^f, line 2: expected item 1 \(a whole number from -9 to 99\), got '"):
        integers(f"{before}\n{token}")
    with pytest.raises(FileFormatError, match=r"^f, line 1: expected it \(a whole number from -9 to 99\), got '"):
        TokenReader(token, "f").integer("it", -9, 99)


def test_bounds_groups_and_the_end():
    reader = TokenReader("1\n2 3", "f")
    with pytest.raises(FileFormatError, match=r"line 2: expected x1 \(a whole number from 0 to 1\), got '2'"):
        reader.integers_at(np.arange(3), lambda i: f"x{i}", 0, np.array([1, 1, 1]))
    with pytest.raises(FileFormatError, match=r"^f, line 2: expected the end of the file, got 'x'$"):
        TokenReader("\nx", "f").finish()
    reader = TokenReader("2 7 8 0 1 9 5", "f")
    lengths, first = reader.groups(3, str, 0, 2)
    assert (lengths.tolist(), first.tolist(), reader.remaining) == ([2, 0, 1], [1, 4, 5], 1)
    refuses("got the end of the file", reader.groups, 1, str, 0, 9, error=FileFormatError)
    assert ranges(np.array([3, 9, 1]), np.array([2, 0, 1])).tolist() == [3, 4, 1]
    assert ranges(np.zeros(0, np.int64), np.zeros(0, np.int64)).tolist() == []


@pytest.mark.parametrize("character", ["\0", "\x1c", "\x7f", "١", "\u00a0", "\u2028", "\ufeff", "ſ"])
def test_only_printable_ascii(character):
    with pytest.raises(FileFormatError) as info:
        TokenReader(f"1\n2 {character}", "f")
    assert one_line(info.value).startswith("f, line 2: expected plain ASCII text, got the character '\\")


def test_end_of_file():
    for take in (
        lambda r: r.integer("x", 0, 1),
        lambda r: r.word("MAP"),
        lambda r: r.integers(2, str, 0, 1),
        lambda r: r.skip(1, "x"),
        lambda r: r.count("x"),
        lambda r: r.groups(1, str, 0, 1),
    ):
        reader = TokenReader("1\n1\n\n", "f")
        reader.skip(2, "")
        refuses(r"^f, line 2: expected .*, got the end of the file$", take, reader, error=FileFormatError)


def test_counts_are_not_trusted():
    tracemalloc.start()
    try:
        refuses("from 0 to 2", TokenReader("999999999 1 1", "f").count, "n", error=FileFormatError)
        for take in (lambda r: r.integers(10**9, str, 0, 1), lambda r: r.skip(10**9, "")):
            with pytest.raises(FileFormatError):
                take(TokenReader("1 1", "f"))
        assert tracemalloc.get_traced_memory()[1] < 10**6
    finally:
        tracemalloc.stop()


@given(st.text())
def test_shown_is_short_and_printable(token):
    assert len(shown(token)) <= 400
    assert shown(token).isprintable()
    if token.isascii() and token.isprintable():
        assert len(shown(token)) <= 80


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
        refuses("cells", ig.write_conll, tmp_path / "a", [[(cell, "B")]], separator="\t")


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
    refuses(match, ig.read_conll, path, error=ig.FileFormatError, **options)


def test_wrong_input(tmp_path):
    refuses("separator", ig.read_conll, tmp_path / "a", separator="")
    for cell in ("", "two words", 3):
        refuses("cells", ig.write_conll, tmp_path / "a", [[("a", cell)]])
    refuses("nothing", ig.read_conll, tmp_path / "nothing", error=OSError)
