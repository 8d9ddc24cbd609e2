"""isinglass convert."""

import numpy as np
import pytest
from cli_helpers import UAI, one_clean_line

import isinglass as ig


@pytest.mark.parametrize("first", ["a.uai", "a.uai.gz", "a.fg", "a.fg.gz"])
@pytest.mark.parametrize("second", ["b.uai", "b.uai.gz", "b.fg", "b.fg.gz"])
def test_round_trips(command, model, first, second):
    folder = model.parent
    for source, target in ((model, folder / first), (folder / first, folder / second)):
        code, out, err = command("convert", source, target)
        assert (code, out) == (0, "")
        one_clean_line(err)
        assert "3 variables" in err
    p, q = ig.read_model(model), ig.read_model(folder / second)
    for a, b in zip(p.log_tables, q.log_tables, strict=True):
        np.testing.assert_array_equal(a, b)
    assert list(p.graph.scopes) == list(q.graph.scopes)


def test_evidence_goes_beside(command, model):
    target = model.with_name("c.uai.gz")
    assert "1 observed" in command("convert", model, target, "--evidence", f"{model}.evid").err
    assert ig.read_evidence(model.with_name("c.uai.evid")) == {2: 1}


def test_fg_has_no_evidence(command, model):
    target = model.with_name("c.fg")
    model.write_text(UAI + "1 2 1\n")
    code, _, err = command("convert", model, target)
    assert code == 2
    assert "add --drop-evidence" in err
    assert not target.exists()
    assert command("convert", model, target, "--drop-evidence", "--quiet") == (0, "", "")
    assert not ig.read_model(target).evidence


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("m.uai", "m.xml", "a name that ends in .uai"),
        ("m.txt", "m.uai", "a name that ends in .uai"),
        ("none.uai", "m.fg", "none.uai: No such file"),
        ("m.uai", "no/where.fg", "No such folder"),
    ],
)
def test_mistakes(command, model, monkeypatch, source, target, words):
    monkeypatch.chdir(model.parent)
    before = sorted(model.parent.iterdir())
    code, out, err = command("convert", source, target)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(model.parent.iterdir()) == before
