"""Damaged files: the outcome is an object or one line, and memory stays small."""

import gzip
import os
import random
import tracemalloc

import pytest
from io_helpers import one_line

from isinglass.cli.fit import read_recipe
from isinglass.errors import FileFormatError, InputError
from isinglass.io import read_bif, read_conll, read_evidence, read_fg, read_map, read_mar, read_pr, read_uai
from isinglass.io.files import read_text
from isinglass.potentials import Potentials
from mutations import mutated

UAI = b"MARKOV\n4\n2 3 1 2\n5\n2 0 1\n1 2\n3 3 0 1\n0\n1 3\n\n6\n.1 .2 .3 .4 0 1e-5\n1\n7\n12\n"
UAI += b"1 2 3 4 5 6 1 2 3 4 5 6\n1\n0.5\n2\n1 0\n1 0 1\n"
FG = b"# graph\n3\n\n2\n0 1\n2 3\n4\n0 .1\n1 .2\n3 1e-5\n5 4\n\n1\n2\n4\n2\n0 1\n3 2\n"
FG += b"\n3\n0 2 1\n2 4 3\n1\n23 1.5\n"
BIF = b"network a { } // one\nvariable r { type discrete [ 2 ] { no, yes }; property x ; }\n"
BIF += b"variable s { type discrete [ 3 ] { a, b, c }; }\nprobability ( r ) { table 0.8, 0.2; }\n"
BIF += b"probability ( s | r ) { default .1 .4 .5; (yes) 0.5, 0.25, 0.25; }\n"
RECIPE = b'estimator = "chain" # words\nlabel = -1\n[options]\nl2 = 1e-3\nforbidden = [["a", "b"]]\nn_jobs = 2\n'
FORMATS = {
    "uai": (read_uai, UAI, Potentials),
    "fg": (read_fg, FG, Potentials),
    "evid": (lambda path: read_evidence(path, [2, 3, 4, 5]), b"3 0 1 2 3 1 0\n", dict),
    "old_evid": (lambda path: read_evidence(path, [2, 3, 4, 5]), b"1\n3 0 1 2 3 1 0\n", dict),
    "mar": (read_mar, b"MAR\n3 2 .5 .5 1 1.0 3 .2 .3 .5\n", list),
    "map": (read_map, b"MAP\n4 0 1 2 3\n", object),
    "bif": (read_bif, BIF, Potentials),
    "conll": (read_conll, b"the DT B\ndog NN I\n\nYes UH O\n", list),
    "recipe": (read_recipe, RECIPE, tuple),
    "pr": (read_pr, b"PR\n-12.25\n", float),
}


def outcome(read, path):
    try:
        return read(path)
    except (FileFormatError, InputError) as error:
        one_line(error)
        return error


@pytest.mark.long
@pytest.mark.parametrize("name", FORMATS)
def test_mutations(tmp_path, name):
    read, data, kind = FORMATS[name]
    rng = random.Random(name)
    path = tmp_path / "a"
    path.write_bytes(data)
    assert isinstance(read(path), kind)
    refused = 0
    tracemalloc.start()
    try:
        for round_ in range(300):
            damaged = data
            for _ in range(1 + round_ % 3):
                damaged = mutated(damaged, rng)
            path.write_bytes(gzip.compress(damaged) if rng.random() < 0.1 else damaged)
            found = outcome(read, path)
            refused += isinstance(found, FileFormatError)
            assert isinstance(found, kind | FileFormatError)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()
    assert 20 < refused < 300  # the mutations do damage, and some leave a valid file


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"conll"}))  # where all text is right
def test_garbage(tmp_path, name):
    read, data, _ = FORMATS[name]
    rng = random.Random(1)
    junk = [rng.randbytes(n) for n in (1, 2, 10, 1000)] + [b"\0" * 1000, b"\x1f\x8b" + rng.randbytes(50)]
    junk += [
        gzip.compress(data)[:-3],
        gzip.compress(rng.randbytes(999)),
        data.replace(b"1", b"-1"),
        b"9" * 10**6,
    ]
    junk += [data + b"\0", b"9 " * 10**5, data[:7] + b"999999999999 " * 9]
    for damaged in junk:
        (tmp_path / "a").write_bytes(damaged)
        tracemalloc.start()
        try:
            assert isinstance(outcome(read, tmp_path / "a"), FileFormatError)
            assert tracemalloc.get_traced_memory()[1] < 50_000_000
        finally:
            tracemalloc.stop()


NAMES = [f"v{i}" for i in range(70)]
NETWORK = "network a { }\n" + "".join(f"variable {v} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for v in NAMES)
ROOTS = "".join(f"probability ( {v} ) {{ table .5 .5; }}\n" for v in NAMES[1:])


ONE = "network a {{ }} variable v {{ type discrete [ {} ] {{ a }}; }} probability ( v ) {{ {} }}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NETWORK + ROOTS + f"probability ( v0 | {' '.join(NAMES[1:])} ) {{ default .5 .5; }}", "at most 62 parents"),
        (NETWORK + ROOTS + f"probability ( v0 | {' '.join(NAMES[1:31])} ) {{ default .5 .5; }}", "tables of at most"),
        (ONE.format("\u00b2", ""), "line 1: expected \u00b2 different states"),
        (ONE.format("9" * 5000, ""), "9 different states of 'v', got 1"),
        (ONE.format(1, "table 1_0;"), "numbers, got 1_0"),
        (ONE.format(1, f"table \x1b{'9' * 5000};"), r"numbers, got \\x1b9*\.\.\."),
    ],
    ids=range(6),
)
def test_hostile_networks(tmp_path, text, words):
    """Tables that would be far larger than the file, digits of other scripts, numbers as Python has them."""
    (tmp_path / "a").write_text(text)
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match=words) as caught:
            read_bif(tmp_path / "a")
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    one_line(caught.value)


def test_bomb_in_pieces(tmp_path):
    """Many gzip members, one after the other, count together."""
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(10**6)) * 50)
    with pytest.raises(FileFormatError, match="at most 2 MB of text"):
        read_text(tmp_path / "a.gz", limit=2_000_000)
    assert os.path.getsize(tmp_path / "a.gz") < 100_000
