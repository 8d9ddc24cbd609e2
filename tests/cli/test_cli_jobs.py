"""Jobs from the shell: what words look like, schemes, standard input, JSON with names, what a model file is."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pytest

import isinglass as ig
from isinglass.features import to_bioes
from isinglass.metrics import span_f1

pytestmark = pytest.mark.filterwarnings("ignore:training stopped after")

RECIPE = """estimator = "chain"
scheme = "bioes"
[options]
l2 = 0.05
max_iter = 60
"""
SENTENCES = [
    ["Anna B-PER", "Smith I-PER", "visits O", "Paris B-LOC"],
    ["Bob B-PER", "lives O", "in O", "New B-LOC", "York I-LOC"],
    ["Berlin B-LOC", "likes O", "Anna B-PER"],
    ["the O", "dog O", "sleeps O"],
]


@pytest.fixture
def names(tmp_path, command):
    (tmp_path / "train.txt").write_text("\n\n".join("\n".join(one) for one in SENTENCES * 3) + "\n")
    (tmp_path / "r.toml").write_text(RECIPE)
    outcome = command("fit", tmp_path / "r.toml", tmp_path / "train.txt", "--model", tmp_path / "m.isg", "--quiet")
    assert outcome.code == 0, outcome.err
    return tmp_path


def test_models_learn_bioes_and_predict_bio(names, command):
    crf = ig.ChainCRF.load(names / "m.isg")
    assert {"S-LOC", "E-PER", "O"} <= set(crf.classes_)
    assert {"c0.lower-1=the", "c0.suffix20=og", "c0.short-shape0=Xx", "c0-1|0=<s>|Anna"} <= {
        name for name, _ in crf.state_features_
    }
    out = command("predict", names / "m.isg", names / "train.txt").out
    rows = [line.split() for line in out.splitlines() if line]
    assert all(row[2][0] in "BIO" for row in rows)
    truth, found = ([row[k] for row in rows] for k in (1, 2))
    assert span_f1([truth], [found]) > 0.9
    scores = json.loads(command("evaluate", names / "m.isg", names / "train.txt", "--json").out)
    assert scores["spans"]["all"]["f1"] > 0.9
    assert set(scores["by_label"]) <= {"B-PER", "I-PER", "B-LOC", "I-LOC", "O"}


def test_standard_input_and_named_marginals(names, command, monkeypatch):
    class Stream:
        buffer = io.BytesIO(b"Anna\nSmith\n\nthe\ndog\n")

    monkeypatch.setattr("sys.stdin", Stream)
    outcome = command("predict", names / "m.isg", "-", "--json", "--marginals")
    assert outcome.code == 0, outcome.err
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert lines[0]["labels"] == ["B-PER", "I-PER"]
    assert lines[1]["labels"] == ["O", "O"]
    for token in lines[0]["marginals"]:
        assert sum(token.values()) == pytest.approx(1, abs=1e-4)
        assert {"S-LOC", "O"} <= set(token)
    crf = ig.ChainCRF.load(names / "m.isg")
    assert set(lines[0]["marginals"][0]) == set(crf.classes_)


def test_labelled_text_from_standard_input(names, command, monkeypatch, tmp_path):
    class Stream:
        buffer = io.BytesIO((names / "train.txt").read_bytes())

    monkeypatch.setattr("sys.stdin", Stream)
    outcome = command("evaluate", names / "m.isg", "-", "--json", "--report", tmp_path / "page")
    assert outcome.code == 0, outcome.err
    assert json.loads(outcome.out) == json.loads(
        command("evaluate", names / "m.isg", names / "train.txt", "--json").out
    )
    assert "on standard input" in (tmp_path / "page" / "index.html").read_text()


def test_images_as_json(tmp_path, command):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (3, 3, 4))
    X = Y[..., None] + 0.3 * rng.normal(size=(3, 3, 4, 1))
    np.savez(tmp_path / "i.npz", X=X, Y=Y)
    (tmp_path / "i.toml").write_text('estimator = "grid"\n[options]\niterations = 2\nbias = true\n')
    assert command("fit", tmp_path / "i.toml", tmp_path / "i.npz", "--model", tmp_path / "m.isg").code == 0
    lines = command("predict", tmp_path / "m.isg", tmp_path / "i.npz", "--json", "--marginals").out.splitlines()
    crf = ig.GridCRF.load(tmp_path / "m.isg")
    first = json.loads(lines[0])
    assert first["labels"] == crf.predict(X)[0].tolist()
    assert first["marginals"][0][1]["1"] == pytest.approx(crf.predict_marginals(X)[0, 0, 1, 1], abs=1e-6)
    assert "give --out FILE or --json" in command("predict", tmp_path / "m.isg", tmp_path / "i.npz").err


def test_info_of_a_fitted_model(names, command):
    facts = json.loads(command("info", names / "m.isg", "--json").out)
    assert facts["estimator"] == "ChainCRF(l2=0.05, max_iter=60)"
    assert facts["recipe"]["scheme"] == "bioes"
    assert facts["columns"] == 2
    assert facts["n_parameters"] == len(ig.ChainCRF.load(names / "m.isg").theta_)
    shown = command("info", names / "m.isg").out
    assert "ChainCRF" in shown
    assert f"Strongest weights\n\n{ig.ChainCRF.load(names / 'm.isg').explain(top=3)}" in shown
    graph = ig.FactorGraph({"a": ["x", "y"], "b": 2}, [("a", "b")])
    ig.MRF(graph, l2=0.1).fit(np.array([[0, 1], [1, 0], [1, 1]])).save(names / "mrf.isg")
    assert json.loads(command("info", names / "mrf.isg", "--json").out)["estimator"].startswith("MRF(")


def test_labels_that_are_no_spans_have_no_scheme(tmp_path, command):
    (tmp_path / "r.toml").write_text("estimator = 'chain'\nscheme = 'bioes'\n")
    for text, words in (
        ("a NOUN\nb VERB\n", "labels such as 'B-NP'"),
        ("a B-X\nb -1\n", "labels that are all observed"),
    ):
        (tmp_path / "train.txt").write_text(text)
        outcome = command("fit", tmp_path / "r.toml", tmp_path / "train.txt", "--model", tmp_path / "m.isg")
        assert words in outcome.err
    assert to_bioes(["B-X"]) == ["S-X"]


@pytest.mark.parametrize("separator", ["", 'separator = "\\t"\n'])
def test_running_text_is_no_column_of_tokens(tmp_path, command, monkeypatch, separator):
    """A line of text is not labelled as if it were one token."""
    apart = "\t" if separator else " "
    rows = "\n\n".join("\n".join(token.replace(" ", apart) for token in one) for one in SENTENCES)
    (tmp_path / "train.txt").write_text(rows + "\n")
    (tmp_path / "r.toml").write_text(f'estimator = "chain"\n{separator}')
    model = tmp_path / "m.isg"
    assert command("fit", tmp_path / "r.toml", tmp_path / "train.txt", "--model", model, "--quiet").code == 0
    for text in ("I live in New York\n", "New York\n"):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        code, out, err = command("predict", model, "-")
        assert (code, out) == (2, "")
        assert "one token a line" in err
    (tmp_path / "unknown.txt").write_text(f"New{apart}-1\nYork{apart}-1\n")
    assert command("predict", model, tmp_path / "unknown.txt").code == 0


def test_running_text_is_no_token_of_several_columns(tmp_path, command, monkeypatch):
    """With as many words as a token has columns it was tagged as one token."""
    (tmp_path / "train.txt").write_text("Anna NNP I-NP B-PER\nlives VBZ I-VP O\nhere RB I-ADVP O\n\n" * 3)
    (tmp_path / "r.toml").write_text('estimator = "chain"\n')
    model = tmp_path / "m.isg"
    assert command("fit", tmp_path / "r.toml", tmp_path / "train.txt", "--model", model, "--quiet").code == 0
    for text, fine in (("I live here\n", False), ("I live in York\n", False), ("Bob NNP I-NP\n", True)):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        code, out, err = command("predict", model, "-")
        assert (code, bool(out), "one token a line" in err) == ((0, True, False) if fine else (2, False, True))


def test_errors_name_standard_input(names, command, monkeypatch):
    class Stream:
        buffer = io.BytesIO(b"Anna a b c d\n")

    monkeypatch.setattr("sys.stdin", Stream)
    outcome = command("predict", names / "m.isg", "-")
    assert outcome.code == 2
    assert outcome.err.startswith("isinglass: standard input: expected ")


def test_an_unknown_option_of_a_recipe_is_named(names, command):
    (names / "r.toml").write_text(RECIPE.replace("max_iter =", "max_iters ="))
    outcome = command("fit", names / "r.toml", names / "train.txt", "--model", names / "n.isg")
    assert outcome.code == 2
    assert "got 'max_iters'; did you mean 'max_iter'?" in outcome.err
    (names / "r.toml").write_text(RECIPE.replace("scheme", "schema"))
    outcome = command("fit", names / "r.toml", names / "train.txt", "--model", names / "n.isg")
    assert "got 'schema'; did you mean 'scheme'?" in outcome.err
