"""Damaged files through the command line: exit code 0 or 2, at most one line, little memory."""

import random
import tracemalloc

import pytest
from cli_helpers import EVID, FG, UAI

from mutations import mutated

ROUNDS = 300


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
