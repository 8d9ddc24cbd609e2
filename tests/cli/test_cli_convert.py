"""isinglass convert."""

import numpy as np
import pytest
from cli_helpers import UAI, one_clean_line

import isinglass as ig


@pytest.mark.parametrize("first", ["a.uai", "a.uai.gz"])
@pytest.mark.parametrize("second", ["b.uai", "b.uai.gz"])
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


def test_fg(command, model):
    source, target = model.with_suffix(".fg"), model.with_name("c.uai")
    assert command("convert", source, target, "--quiet") == (0, "", "")
    p, q = ig.read_model(source), ig.read_model(target)
    assert all(np.array_equal(a, b) for a, b in zip(p.log_tables, q.log_tables, strict=True))


def test_evidence_may_be_left_out(command, model):
    target = model.with_name("c.uai")
    model.write_text(UAI + "1 2 1\n")
    assert command("convert", model, target, "--drop-evidence", "--quiet") == (0, "", "")
    assert not ig.read_model(target).evidence
    assert not model.with_name("c.uai.evid").exists()


@pytest.mark.parametrize(
    ("source", "target", "words"),
    [
        ("m.uai", "m.xml", "a name that ends in .uai"),
        ("m.uai", "c.fg", "a name that ends in .uai or .uai.gz, got 'c.fg'; write .uai, .fg is only read"),
        ("m.txt", "m.uai", "a name that ends in .uai"),
        ("none.uai", "n.uai", "none.uai: No such file"),
        ("m.uai", "no/where.uai", "No such folder"),
    ],
)
def test_mistakes(command, model, monkeypatch, source, target, words):
    monkeypatch.chdir(model.parent)
    before = sorted(model.parent.iterdir())
    code, out, err = command("convert", source, target)
    assert (code, out) == (2, "")
    assert words in err
    assert sorted(model.parent.iterdir()) == before


@pytest.mark.parametrize(
    ("target", "evidence"),
    [("m.uai", "m.uai.evid"), ("c.uai", "c.uai.evid"), ("x/../m.uai", "m.uai.evid"), ("link.uai", "m.uai.evid")],
)
def test_what_is_read_is_not_written(command, model, target, evidence):
    given = model.with_name(evidence)
    given.write_text("1 2 1\n")
    model.with_name("x").mkdir()
    model.with_name("link.uai").symlink_to(model)
    assert "OUT: expected another file" in command("convert", model, model.parent / target, "--evidence", given).err
    assert (model.read_text(), given.read_text()) == (UAI, "1 2 1\n")
