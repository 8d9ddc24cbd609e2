"""Stored answers: every algorithm, estimator, public name and help text is as it was (`tools/answers.py`)."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.long
def test_answers_are_those_that_are_stored(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    import answers

    failed = answers.check()
    assert not failed, "\n".join(failed)
