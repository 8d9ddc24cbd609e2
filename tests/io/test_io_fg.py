import gzip
import tempfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from io_helpers import assert_identical, models, one_line

from isinglass.errors import FileFormatError, InputError
from isinglass.io import read_fg, read_model, write_model
from isinglass.io.formats.tables import exp_of_logs

SMALL = "# two factors\n2\n\n2\n0 1\n2 3\n5\n0 1\n1 2\n2 3\n3 4\n5 6\n\n1\n1\n3\n1\n2 .5\n"


def parse(tmp_path, text, **options):
    (tmp_path / "m.fg").write_text(text)
    return read_fg(tmp_path / "m.fg", **options)


def refusal(tmp_path, text, **options):
    with pytest.raises(FileFormatError) as info:
        parse(tmp_path, text, **options)
    return one_line(info.value).removeprefix(str(tmp_path / "m.fg"))


def test_small_model(tmp_path):
    p = parse(tmp_path, SMALL)
    assert p.graph.cards.tolist() == [2, 3]
    assert p.graph.scopes[:] == [(0, 1), (1,)]
    assert np.exp(p.log_tables[0]).round(12).tolist() == [[1, 3, 0], [2, 4, 6]]  # the first variable is fastest
    assert np.exp(p.log_tables[1]).round(12).tolist() == [0, 0, 0.5]


def test_gzip_evidence_and_writing(tmp_path):
    (tmp_path / "m.fg.gz").write_bytes(gzip.compress(SMALL.encode()))
    assert_identical(read_model(tmp_path / "m.fg.gz"), parse(tmp_path, SMALL))
    parse(tmp_path, SMALL)
    assert dict(read_model(tmp_path / "m.fg", {1: 2}).evidence) == {1: 2}
    with pytest.raises(InputError, match=r"ends in \.uai or \.uai\.gz, got .*; write \.uai, \.fg is only read"):
        write_model(parse(tmp_path, SMALL), tmp_path / "n.fg")
    assert not (tmp_path / "n.fg").exists()


@given(models(with_evidence=False, cover=True))
@settings(max_examples=60, deadline=None)
def test_both_formats_hold_the_same_model(p):
    with tempfile.TemporaryDirectory() as folder:
        write_model(p, f"{folder}/m.uai")
        Path(folder, "m.fg").write_text(fg_text(p))
        assert_identical(read_model(f"{folder}/m.uai"), read_model(f"{folder}/m.fg"))


def fg_text(p):
    """Write a model in libDAI's format."""
    blocks = [str(p.graph.n_factors)]
    for scope, table in zip(p.graph.scopes, p.log_tables, strict=True):
        listed = [f"{i} {v!r}" for i, v in enumerate(exp_of_logs(table.ravel(order="F")).tolist()) if v]
        words = [" ".join(map(str, row)) for row in (scope, table.shape)]
        blocks.append("\n".join(["", str(len(scope)), *words, str(len(listed)), *listed]))
    return "\n".join(blocks)


BAD = [
    ("", ", line 1: expected the number of factors, which the rest of the file can hold (0), got the end"),
    ("999999999 1 0", ", line 1: expected the number of factors, which the rest of the file can hold"),
    (SMALL.replace("2\n0 1\n2 3", "64\n0 1\n2 3"), ", line 4: expected the number of variables of factor 0 (a whole"),
    (SMALL.replace("\n0 1\n2 3", "\n0 -1\n2 3"), ", line 5: expected the label of a variable (a whole number from"),
    (SMALL.replace("\n0 1\n2 3", "\n1 1\n2 3"), ", line 5: expected a label that the factor does not have yet"),
    (SMALL.replace("\n0 1\n2 3", "\n3 1\n2 3"), ", line 5: expected all the labels 0 to 3, got a gap at 0"),
    (SMALL.replace("\n0 1\n2 3", "\n0 1\n0 3"), ", line 6: expected the number of states of variable 0 (a whole"),
    (SMALL.replace("1\n3\n1\n2 .5", "1\n4\n1\n2 .5"), ", line 16: expected 3 states of variable 1, as before, got '4'"),
    (SMALL.replace("5 6\n", "6 6\n"), ", line 12: expected an index into the table of factor 0 (a whole number from 0"),
    (SMALL.replace("5 6\n", "2 6\n"), ", line 12: expected an index that factor 0 does not list yet, got '2'"),
    (SMALL.replace("5 6\n", "5 -6\n"), ", line 12: expected factor 0, entry 4 (a number of at least 0), got '-6'"),
    (SMALL.replace("2 .5", "2 1e-400"), ", line 18: expected factor 1, entry 0 (a number in the range of a double"),
    (SMALL.replace("2 .5", "2 nan"), ", line 18: expected factor 1, entry 0 (a decimal number), got 'nan'"),
    (SMALL.replace("1\n2 .5", "2\n2 .5"), ", line 18: expected 2 entries of factor 1, got the end of the file"),
    (SMALL.replace("1\n2 .5", "999999999\n2 .5"), ", line 18: expected 999999999 entries of factor 1, got the end"),
    (SMALL + "7", ", line 19: expected the end of the file, got '7'"),
]


@pytest.mark.parametrize(("text", "expected"), BAD)
def test_refused_in_one_line(tmp_path, text, expected):
    assert refusal(tmp_path, text).startswith(expected)


@pytest.mark.parametrize("cards", ["2000000000 2000000000", "1048577 1", "2147483647 2147483647"])
def test_sparse_giant_costs_nothing(tmp_path, cards):
    tracemalloc.start()
    try:
        got = refusal(tmp_path, f"1\n2\n0 1\n{cards}\n0\n")
        most = "at most 1048576 entries in all (max_entries)"
        assert got == f", line 2: expected tables of {most}, got more, with factor 0"
        assert tracemalloc.get_traced_memory()[1] < 5 * 10**6
    finally:
        tracemalloc.stop()


def test_max_entries(tmp_path):
    text = "1\n2\n0 1\n3 4\n0\n"
    assert parse(tmp_path, text, max_entries=12).log_tables[0].shape == (3, 4)
    assert "at most 11 entries in all" in refusal(tmp_path, text, max_entries=11)
    big = "1\n1\n0\n1048577\n0\n"
    assert parse(tmp_path, big, max_entries=2 * 10**6).log_tables[0].shape == (1048577,)
