"""Damaged files through the command line: exit code 0 or 2, at most one line, little memory."""

import random
import tracemalloc

import pytest
from cli_helpers import EVID, FG, UAI

ROUNDS = 300
PIECES = [
    b"9",
    b"-",
    b".",
    b"e9",
    b" ",
    b"\n",
    b"#",
    b"\0",
    b"\xff",
    b"\x1b[31m",
    b" 999999999 ",
    b"nan",
    b"inf",
    b"00",
]
PIECES += [b"99999999999999999999", b"1e999", b"\x1f\x8b", b"\r", b" 2147483647", b"1e-999", b"M", b"3000000", b"0 0 0"]


def mutated(data, rng):
    i, j = sorted(rng.choices(range(len(data) + 1), k=2))
    kind = rng.randrange(5)
    if kind == 0 and i < len(data):
        return data[:i] + bytes([data[i] ^ (1 << rng.randrange(8))]) + data[i + 1 :]
    if kind == 1:
        return data[:i] + data[min(j, i + rng.randrange(1, 9)) :]
    if kind == 2:
        return data[:i]
    if kind == 3:
        words = data.split() or [b""]
        words[rng.randrange(len(words))] = rng.choice(PIECES)
        return b" ".join(words)
    return data[:i] + rng.choice(PIECES) + data[i:]


@pytest.mark.long
@pytest.mark.parametrize("damaged", ["m.uai", "m.uai.evid", "m.fg"])
def test_mutations(command, model, damaged):
    whole = {"m.uai": UAI, "m.uai.evid": EVID, "m.fg": FG}[damaged].encode()
    main_file = "m.fg" if damaged == "m.fg" else "m.uai"
    extra = ["--evidence", model.parent / "m.uai.evid"] if damaged != "m.fg" else []
    rng = random.Random(damaged)
    assert command("infer", model.parent / main_file, *extra).code == 0
    command("info", model.parent / main_file, *extra)
    codes = []
    for i in range(ROUNDS // 3):
        data = whole
        for _ in range(1 + i % 3):
            data = mutated(data, rng)
        (model.parent / damaged).write_bytes(data)
        argv = ["infer", model.parent / main_file, "--task", ("PR", "MAR", "MAP")[i % 3], "--memory", "20MB", *extra]
        tracemalloc.start()
        try:
            codes.append(command(*(argv if i % 10 else ["info", *argv[1:2], *extra])).code)
            assert tracemalloc.get_traced_memory()[1] < 50_000_000, data
        finally:
            tracemalloc.stop()
    assert set(codes) == {0, 2}
