"""The experiment hopfield: digits completed from half images."""

import pytest

import isinglass as ig
from isinglass_experiments import hopfield
from isinglass_experiments.catalogue import make


def test_digits_are_recalled_from_halves():
    report = make("hopfield", quick=True).run()
    recalled = {row["storage"]: row["recalled"] for row in report.data["rows"]}
    assert recalled["pseudo-inverse"] == [20]
    assert recalled["hebb"][0] < 5
    assert report.pictures["hopfield"][0][1].shape == (20, 28, 28)
    assert hopfield.visible("left").sum() == 392


def test_wrong_input():
    with pytest.raises(ig.InputError, match="draws"):
        make("hopfield", draws=0).run()
