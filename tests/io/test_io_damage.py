"""Damaged model files and checkpoints, in a process of its own whose memory is watched (`damage.py`)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.long
@pytest.mark.parametrize("kind", ["arrays", "text"])
def test_damaged_files_are_read_or_refused_and_take_little_memory(kind):
    count = os.environ.get("ISINGLASS_DAMAGED", "600")
    command = [sys.executable, Path(__file__).with_name("damage.py"), count, "0", kind]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert found["other"] == {}
    assert found["odd"] == 0
    assert found["refused"] > 0.6 * int(count)
    assert found["read"] > 0  # where nobody looks
    assert found["risen"] < 2**26 + 20 * found["size"]
