"""isinglass info."""

import json

import pytest

import isinglass as ig
from isinglass.inference import ALGORITHMS


def facts_of(command, *argv):
    code, out, err = command("info", *argv, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


def test_json(command, model):
    facts = facts_of(command, model)
    assert (facts["n_variables"], facts["states"], facts["n_factors"]) == (3, [2, 3], 3)
    assert (facts["n_observed"], facts["n_connected_parts"], facts["forest"]) == (0, 1, True)
    assert facts["factors"] == [
        {"shape": [2], "arity": 1, "factors": 1, "entries": 2, "zeros": 0},
        {"shape": [2, 3], "arity": 2, "factors": 1, "entries": 6, "zeros": 0},
        {"shape": [3, 2], "arity": 2, "factors": 1, "entries": 6, "zeros": 1},
    ]
    order = ig.elimination_order(ig.read_uai(model).graph)
    assert (facts["width"], facts["table_entries"]) == (order.width, order.entries)
    assert facts["largest_table_entries"] == pytest.approx(2**order.log2_largest)
    assert [a["name"] for a in facts["algorithms"]] == list(ALGORITHMS)
    clusters = {"swendsen-wang", "wolff"}  # of equal states, which three and two are not
    for found in facts["algorithms"]:
        assert found["fits"] is (found["name"] not in clusters)
        assert found["needs"].startswith("not for this model, but for ") is (found["name"] in clusters)
    assert 0 < facts["memory_limit"] <= facts["memory_available"]


def test_tables_of_a_model(command, model):
    facts = facts_of(command, model, "--evidence", f"{model}.evid")
    assert facts["n_observed"] == 1
    code, out, err = command("info", model, "--evidence", f"{model}.evid")
    assert (code, err) == (0, "")
    assert {("variables", "3"), ("observed", "1"), ("forest", "yes")} <= {tuple(s.split()) for s in out.splitlines()}
    assert "2 x 3 to 3 x 2 (2 shapes)" in out
    assert "exact" in out
    assert "without --memory, inference may take" in out
    path = model.with_name("[bold]" + "x" * 90 + ".fg")
    path.write_text(model.with_suffix(".fg").read_text())
    assert "[bold]xxx" in command("info", path).out


def test_hopeless_model(command, tmp_path):
    """A model that nothing fits: the numbers that no double holds are null, and no command crashes."""
    n = 1100
    edges = [(i, j) for i in range(60) for j in range(i)]
    head = f"MARKOV\n{n}\n{'2 ' * n}\n{len(edges)}\n"
    scopes = "".join(f"2 {i} {j}\n" for i, j in edges)
    (tmp_path / "h.uai").write_text(head + scopes + "4 1 2 2 1\n" * len(edges))
    facts = facts_of(command, tmp_path / "h.uai")
    by_name = {a["name"]: a for a in facts["algorithms"]}
    assert not facts["order_complete"]
    assert by_name["exact"]["bytes"] is None
    assert not by_name["exact"]["fits"]
    assert not by_name["brute"]["fits"]
    assert "more than" in command("info", tmp_path / "h.uai").out
    for task in ("PR", "MAR", "MAP"):
        code, _, err = command("infer", tmp_path / "h.uai", "--task", task)
        assert code == 2
        assert "memory limit" in err


def test_constants_and_mistakes(command, tmp_path):
    (tmp_path / "e.uai").write_text("MARKOV\n0\n\n1\n0\n1\n2.5\n")
    facts = facts_of(command, tmp_path / "e.uai")
    assert (facts["states"], facts["n_connected_parts"], facts["factors"][0]["shape"]) == ([], 0, [])
    assert "constant" in command("info", tmp_path / "e.uai").out
    assert command("info", tmp_path / "none.uai").code == 2
    assert command("info", tmp_path / "none.txt", "--json").code == 2
