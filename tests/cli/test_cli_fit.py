"""``isinglass fit``, ``predict`` and ``evaluate``: the same as the library in Python, on text and on arrays."""

import gzip
import json
import os
import signal
import time

import numpy as np
import pytest
from cli_helpers import data_folder

import isinglass as ig
from isinglass.cli.examples import TAGS as TAGS_WINDOWS
from isinglass.cli.examples import WORDS as WINDOWS
from isinglass.cli.main import main
from isinglass.estimators import load, notes_of
from isinglass.features import window_attributes
from isinglass.metrics import span_f1
from isinglass_experiments.data import chunk_attributes, load_conll2000
from second_interpreter import context

pytestmark = pytest.mark.filterwarnings("ignore:training stopped after")

WORDS = ["the", "dog", "barks", "a", "cat", "sleeps", "old", "here"]
TAGS = ["DT", "NN", "VB", "DT", "NN", "VB", "JJ", "RB"]
LABELS = ["B-NP", "I-NP", "B-VP", "B-NP", "I-NP", "B-VP", "I-NP", "O"]


def sentences(n, seed=0):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        picks = rng.integers(0, len(WORDS), rng.integers(2, 9))
        noise = rng.integers(0, len(LABELS), len(picks))
        picked = np.where(rng.random(len(picks)) < 0.1, noise, picks)
        found.append([(WORDS[i], TAGS[i], LABELS[j]) for i, j in zip(picks, picked, strict=True)])
    return found


def text(rows, columns=3):
    return "\n".join("\n".join(" ".join(token[:columns]) for token in one) + "\n" for one in rows)


@pytest.fixture
def chunks(tmp_path):
    (tmp_path / "train.txt").write_text(text(sentences(40)))
    (tmp_path / "test.txt").write_text(text(sentences(15, seed=1)))
    (tmp_path / "plain.txt").write_text(text(sentences(15, seed=1), columns=2))
    (tmp_path / "chunk.toml").write_text('estimator = "chain"\n[options]\nl2 = 0.1\nmax_iter = 40\n')
    return tmp_path


def test_text_gives_what_python_gives(chunks, command):
    fitted = command("fit", chunks / "chunk.toml", chunks / "train.txt", "--model", chunks / "m.isg")
    assert fitted.code == 0, fitted.err
    assert "ChainCRF" in fitted.out
    X, Y, X_test, Y_test = (
        [f([t[0] for t in one], [t[1] for t in one], [t[2] for t in one]) for one in sentences(n, seed=s)]
        for n, s in ((40, 0), (15, 1))
        for f in (lambda w, t, _: chunk_attributes(w, t), lambda _w, _t, y: y)
    )
    crf = ig.ChainCRF(l2=0.1, max_iter=40).fit(X, Y)
    mine = load(chunks / "m.isg")
    assert np.array_equal(np.sort(mine.theta_), np.sort(crf.theta_))
    assert notes_of(chunks / "m.isg")["columns"] == 3
    labels = [label for one in crf.predict(X_test) for label in one]
    for name in ("test.txt", "plain.txt"):
        out = command("predict", chunks / "m.isg", chunks / name).out
        lines = [line.split() for line in out.splitlines() if line]
        assert [line[-1] for line in lines] == labels
        assert len(lines[0]) == (4 if name == "test.txt" else 3)
    scores = json.loads(command("evaluate", chunks / "m.isg", chunks / "test.txt", "--json").out)
    assert scores["spans"]["all"]["f1"] == span_f1(Y_test, crf.predict(X_test))
    assert scores["accuracy"] == crf.score(X_test, Y_test)
    table = command("evaluate", chunks / "m.isg", chunks / "test.txt").out
    assert "NP" in table
    assert f"{scores['spans']['all']['f1']:.4f}" in table


def test_marginals_and_files(chunks, command):
    command("fit", chunks / "chunk.toml", chunks / "train.txt", "--model", chunks / "m.isg", "--quiet")
    out = chunks / "labelled.txt"
    assert command("predict", chunks / "m.isg", chunks / "plain.txt", "--marginals", "--out", out).code == 0
    rows = ig.read_conll(out)
    assert all(0.2 < float(token[-1]) <= 1 for one in rows for token in one)
    crf = load(chunks / "m.isg")
    windows = {"c0": WINDOWS, "c1": TAGS_WINDOWS}
    columns = [{f"c{c}": [token[c] for token in one] for c in range(2)} for one in sentences(15, seed=1)]
    best = crf.predict_marginals([window_attributes(one, windows) for one in columns])[0][0].max()
    assert 0 < float(rows[0][0][-1]) <= round(best, 6)


def test_columns_in_another_order(chunks, command):
    gz = chunks / "train.txt.gz"
    gz.write_bytes(gzip.compress("\n".join(
        "\n".join(f"{y}\t{w}\t{t}" for w, t, y in one) + "\n" for one in sentences(30)
    ).encode()))  # fmt: skip
    (chunks / "own.toml").write_text(
        'estimator = "chain"\nlabel = 0\nseparator = "\\t"\n[options]\nloss = "ucl"\nl2 = 0.1\nmax_iter = 5\n'
    )
    assert command("fit", chunks / "own.toml", gz, "--model", chunks / "m.isg").code == 0
    crf = load(chunks / "m.isg")
    assert crf.n_iter_ <= 5
    assert {"c10=dog", "c1-1|0=the|dog", "c2-2|-1|0=DT|NN|VB"} <= {name for name, _ in crf.state_features_}
    assert command("evaluate", chunks / "m.isg", gz).code == 0


@pytest.mark.parametrize(
    ("unknown", "option"), [("-1", ""), ("?", 'ignore_label = "?"'), ("255", "ignore_label = 255")]
)
def test_labels_in_text_may_be_unobserved(chunks, command, unknown, option):
    """-1 is not observed, as the help says, and so is ignore_label: None in Python, neither learned nor counted."""
    rows = sentences(40)
    hidden = [[(w, t, unknown if i % 3 == 0 else y) for i, (w, t, y) in enumerate(one)] for one in rows]
    (chunks / "partly.txt").write_text(text(hidden))
    with open(chunks / "chunk.toml", "a") as file:
        file.write(f"{option}\n")
    assert command("fit", chunks / "chunk.toml", chunks / "partly.txt", "--model", chunks / "m.isg").code == 0
    Y = [[None if y == unknown else y for _, _, y in one] for one in hidden]
    X = [chunk_attributes([t[0] for t in one], [t[1] for t in one]) for one in rows]
    crf = ig.ChainCRF(l2=0.1, max_iter=40).fit(X, Y)
    assert load(chunks / "m.isg").classes_ == crf.classes_ == ["B-NP", "B-VP", "I-NP", "O"]
    scores = json.loads(command("evaluate", chunks / "m.isg", chunks / "partly.txt", "--json").out)
    assert scores["accuracy"] == crf.score(X, Y)
    assert scores["labels"] == sum(y is not None for one in Y for y in one)
    assert "spans" not in scores
    (chunks / "spins.txt").write_text("a DT 1\nb NN -1\n")
    assert "labels -1 and 1 only" in command("evaluate", chunks / "m.isg", chunks / "spins.txt").err
    assert command("predict", chunks / "m.isg", chunks / "spins.txt").code == 0


def test_text_without_sequences_or_labels(chunks, command):
    model, empty = chunks / "m.isg", chunks / "empty.txt"
    empty.write_text("\n\n")
    assert "empty.txt: expected at least one sequence, got none" in command(
        "fit", chunks / "chunk.toml", empty, "--model", model
    ).err  # fmt: skip
    command("fit", chunks / "chunk.toml", chunks / "train.txt", "--model", model, "--quiet")
    labelled = command("predict", model, empty)
    assert (labelled.code, labelled.out.strip()) == (0, "")
    assert "at least one sequence" in command("evaluate", model, empty).err
    assert "the last column must hold the labels" in command("evaluate", model, chunks / "plain.txt").err


def test_images(tmp_path, command):
    X, Y, X_test, Y_test = ig.datasets.noisy_digits(0.3, 1, 1)
    np.savez(tmp_path / "train.npz", X=X, Y=Y)
    np.savez(tmp_path / "test.npz", X=X_test, Y=Y_test)
    (tmp_path / "d.toml").write_text('estimator = "grid"\n[options]\niterations = 2\nl2 = 0.01\nmax_iter = 8\n')
    model = tmp_path / "m.isg"
    assert command("fit", tmp_path / "d.toml", tmp_path / "train.npz", "--model", model, "--jobs", "2").code == 0
    crf = ig.GridCRF(iterations=2, l2=0.01, max_iter=8).fit(X, Y)
    scores = json.loads(command("evaluate", model, tmp_path / "test.npz", "--json").out)
    assert scores["accuracy"] == crf.score(X_test, Y_test)
    out = tmp_path / "p.npz"
    assert command("predict", model, tmp_path / "test.npz", "--marginals", "--out", out).code == 0
    with np.load(out) as found:
        assert np.array_equal(found["labels"], crf.predict(X_test))
        assert np.array_equal(found["marginals"], crf.predict_marginals(X_test))
    assert "--out FILE" in command("predict", model, tmp_path / "test.npz").err
    np.savez(tmp_path / "turned.npz", X=X_test, Y=Y_test.reshape(-1, 14, 56))
    assert "integers of shape (9, 28, 28)" in command("evaluate", model, tmp_path / "turned.npz").err
    Y_test[0] = -1  # a first image without labels is no reason to refuse the others
    np.savez(tmp_path / "partly.npz", X=X_test, Y=Y_test)
    scores = json.loads(command("evaluate", model, tmp_path / "partly.npz", "--json").out)
    assert scores["accuracy"] == crf.score(X_test, Y_test)


def test_images_whose_labels_are_a_mask_with_void(tmp_path, command):
    Y = np.array([[[7, 0, 0], [0, 255, 255]], [[7, 255, 0], [0, 255, 255]]], np.uint8)
    X = Y[..., None] / 255.0
    np.savez(tmp_path / "train.npz", X=X, Y=Y)
    (tmp_path / "d.toml").write_text('estimator = "grid"\n[options]\niterations = 2\nignore_label = 7\n')
    model = tmp_path / "m.isg"
    assert command("fit", tmp_path / "d.toml", tmp_path / "train.npz", "--model", model).code == 0
    assert load(model).classes_.tolist() == [0, 255]
    scores = json.loads(command("evaluate", model, tmp_path / "train.npz", "--json").out)
    assert (scores["labels"], set(scores["by_label"])) == (10, {"0", "255"})
    assert scores["accuracy"] == load(model).score(X, Y)


def test_graphs(tmp_path, command):
    rng = np.random.default_rng(0)
    counts = np.array([4, 3, 5])
    edges = [np.stack([np.arange(n - 1), np.arange(1, n)], axis=1) for n in counts]
    nodes, Y = rng.normal(size=(12, 3)), rng.integers(0, 2, 12)
    arrays = {"nodes": nodes, "node_counts": counts, "edges": np.concatenate(edges), "edge_counts": counts - 1}
    np.savez(tmp_path / "g.npz", **arrays, Y=Y)
    (tmp_path / "g.toml").write_text('estimator = "graph"\n[options]\ninference = "exact"\nloss = "cl"\n'
                                     'gradient = "envelope"\n')  # fmt: skip
    model = tmp_path / "m.isg"
    assert command("fit", tmp_path / "g.toml", tmp_path / "g.npz", "--model", model).code == 0
    ends = np.cumsum(counts)[:-1]
    X = list(zip(np.split(nodes, ends), edges, strict=True))
    crf = ig.GraphCRF(inference="exact", loss="cl", gradient="envelope").fit(X, np.split(Y, ends))
    out = tmp_path / "p.npz"
    assert command("predict", model, tmp_path / "g.npz", "--out", out).code == 0
    with np.load(out) as found:
        assert np.array_equal(found["labels"], np.concatenate(crf.predict(X)))
    assert json.loads(command("evaluate", model, tmp_path / "g.npz", "--json").out)["labels"] == 12
    np.savez(tmp_path / "bad.npz", **(arrays | {"node_counts": counts + 1}), Y=Y)
    assert "add up" in command("predict", model, tmp_path / "bad.npz", "--out", out).err


def test_stages(tmp_path, command):
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (4, 5, 6))
    X = np.eye(2)[Y] + rng.normal(size=(4, 5, 6, 2))
    np.savez(tmp_path / "i.npz", X=X, Y=Y)
    toml = 'stages = ["cl", {loss = "suclass", max_iter = 3}, "ucl"]'
    (tmp_path / "i.toml").write_text(f'estimator = "grid"\n[options]\niterations = 2\n{toml}\n')
    files = tmp_path / "i.toml", tmp_path / "i.npz", "--model", tmp_path / "m.isg"
    assert command("fit", *files, "--checkpoint", tmp_path / "run.npz").code == 0
    crf = ig.GridCRF(iterations=2, stages=["cl", {"loss": "suclass", "max_iter": 3}, "ucl"]).fit(X, Y)
    assert load(tmp_path / "m.isg").theta_.tobytes() == crf.theta_.tobytes()
    assert (tmp_path / "run.stage2.npz").exists()
    (tmp_path / "i.toml").write_text('estimator = "grid"\n[options]\nstages = ["cl", {loss = {lam = 3.0}}]\n')
    assert "loss" in command("fit", *files).err


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (
            "estimator = 'chian'",
            "bad.toml, line 1: expected 'chain' or 'grid' or 'graph' as estimator, got 'chian'; see:",
        ),
        ("estimator = 'chain'\nopions = 1", "opions"),
        ("estimator = 'chain'\n[options]\nl3 = 1", "bad.toml, line 3: expected one of bias"),
        ("estimator = 'chain'\n[options]\ncheckpoint = 'x'", "options.checkpoint"),
        ("estimator = 'chain'\n[options]\nl2 = -1", "bad.toml, line 3: expected a number of at least 0 as l2, got -1"),
        ("estimator = 'chain'\n[options]\nloss = 'ucll'", "ucl"),
        (
            "estimator = 'chain'\n[options]\nmin_count = 1_000_000_000_000",
            "whole ones up to 1000000000 as min_count",
        ),
        (
            "estimator = 'chain'\nlabel = 99999999999",
            "bad.toml, line 2: expected text, finite numbers, whole ones up to 1000000000 as label",
        ),
        ('estimator = "chain"\nseparator = "\\n"', "bad.toml, line 2: expected text between columns as separator"),
        ("estimator = " + "9" * 5000, "bad.toml: expected TOML"),
        ("estimator = 'chain'\nlabel = 3 3", "bad.toml, line 2: expected TOML"),
        ("estimator" + ".a" * 20_000 + " = 3", "bad.toml: expected TOML, got a key of ten or more parts"),
        ("estimator = 'chain'\n[options]\noptimizer = {max_iter = 3}", "Lbfgs() as optimizer, got dict"),
        (
            "estimator = 'chain'\n[options]\nl2 = 2020-01-01",
            "bad.toml, line 3: expected text, finite numbers, whole ones up to 1000000000 as l2",
        ),
        ("estimator = 'chain'\n[options]\nstate_features = 3", "expected 'seen' or 'all' as state_features, got 3"),
        ("estimator = 'chain'\n[options]\nl2 = inf", "bad.toml, line 3: expected text, finite numbers"),
        ("estimator = 'chain'\nlabel = 7", "a column 7 of labels (they count from 0), got 3 columns"),
        ("estimator = 'chain'\nlabel = 2020-01-01", "the number of a column"),
        ("estimator = 'chain'\noptions = 3", "bad.toml, line 2: expected a table as options, got 3"),
        ("estimator = 'chain'\nscheme = 'iob3'", "'bio' or 'bioes' as scheme, got 'iob3'"),
        ("estimator = 'chain'\n[windows]\nc0 = [[0]]", "window_attributes and ChainCRF in Python"),
        ("estimator = 'grid'\nseparator = ','", "none, unless estimator is 'chain'"),
        ("estimator = ", "TOML"),
        ("", "estimator"),
    ],
)
def test_wrong_recipes(toml, words, chunks, command):
    (chunks / "bad.toml").write_text(toml)
    outcome = command("fit", chunks / "bad.toml", chunks / "train.txt", "--model", chunks / "m.isg")
    assert outcome.code == 2
    assert words in outcome.err
    assert not (chunks / "m.isg").exists()


@pytest.mark.long
@pytest.mark.parametrize("estimator", ["chain", "grid", "graph"])
def test_an_odd_option_is_refused_with_file_and_line(estimator, tmp_path, command):
    if estimator == "chain":
        (data := tmp_path / "d.txt").write_text("the DT B\ndog NN I\n\nYes UH O\n")
    else:
        shape = {"node_counts": [4], "edges": [[0, 1], [1, 2]], "edge_counts": [2]} if estimator == "graph" else {}
        X, Y = np.eye(4)[None, :, :, None], np.eye(4, dtype=int)[None]
        arrays = {"nodes": np.eye(4), "Y": np.arange(4) % 2} if shape else {"X": X, "Y": Y}
        np.savez(data := tmp_path / "d.npz", **shape, **arrays)
    path = tmp_path / "c.toml"
    cls = {"chain": ig.ChainCRF, "grid": ig.GridCRF, "graph": ig.GraphCRF}[estimator]
    names = [name for name in cls().get_params() if name not in ("callback", "checkpoint", "verbose", "warm_start")]
    for name in [*names, "stages"]:
        for value in ("[]", "{}", "[[[], []]]", "'x'", "-7", "1_000_000_000_000_000_000", "nan", "1979-05-27"):
            limit = "max_iter = 1\n" * (name != "max_iter")
            path.write_text(f"estimator = '{estimator}'\n[options]\n{name} = {value}\n{limit}")
            code, _, err = command("fit", path, data, "--model", tmp_path / "m.isg", "--quiet")
            assert code == 0 or err.startswith(f"isinglass: {path}, line 3: expected "), (name, value, err)


def test_wrong_files(chunks, command):
    fit = ("fit", chunks / "chunk.toml", chunks / "train.txt", "--model")
    assert command("fit", chunks / "none.toml", chunks / "train.txt", "--model", "m").code == 2
    assert "another file" in command(*fit, chunks / "train.txt").err
    assert command(*fit, chunks / "no" / "m.isg").code == 2
    assert command(*fit, chunks / "m.isg").code == 0
    assert "3 columns" in command("evaluate", chunks / "m.isg", chunks / "plain.txt").err
    (chunks / "one.txt").write_text("dog\n")
    assert "3 columns, as in training" in command("predict", chunks / "m.isg", chunks / "one.txt").err
    assert command("predict", chunks / "chunk.toml", chunks / "test.txt").code == 2
    load(chunks / "m.isg").save(chunks / "python.isg")
    assert "not written by" in command("predict", chunks / "python.isg", chunks / "test.txt").err
    ig.io.write_arrays(chunks / "other.isg", {"a": np.zeros(1)}, schema="other", version=1)
    assert "a fitted estimator" in command("predict", chunks / "other.isg", chunks / "test.txt").err


def test_validation_ends_training(chunks, command):
    (chunks / "long.toml").write_text('estimator = "chain"\n[options]\nl2 = 1e-6\npatience = 2\n')
    fit = ("fit", chunks / "long.toml", chunks / "train.txt", "--model", chunks / "m.isg")
    outcome = command(*fit, "--validation", chunks / "test.txt")
    assert outcome.code == 0
    assert "validation loss" in outcome.out


@pytest.mark.long
def test_killed_and_taken_up_again_gives_the_same_file(chunks, command):
    rows = sentences(600, seed=3)
    (chunks / "train.txt").write_text(text(rows))
    (chunks / "chunk.toml").write_text('estimator = "chain"\n[options]\nl2 = 1e-4\ntol = 1e-9\nmax_iter = 150\n')
    start = ["fit", str(chunks / "chunk.toml"), str(chunks / "train.txt"), "--quiet"]
    whole, again, state = chunks / "whole.isg", chunks / "again.isg", chunks / "run"
    assert command(*start, "--model", whole).code == 0
    resumed = [*start, "--model", str(again), "--checkpoint", str(state)]
    run = context.Process(target=main, args=(resumed,))
    run.start()
    while not state.exists():
        time.sleep(0.005)
        assert run.is_alive()
    time.sleep(0.05)
    run.kill()
    run.join()
    assert run.exitcode == -signal.SIGKILL
    assert not again.exists()
    assert command(*resumed).code == 0
    assert again.read_bytes() == whole.read_bytes()


@pytest.mark.slow
def test_conll_2000_as_in_python(tmp_path, command):
    folder = data_folder("text")
    (tmp_path / "c.toml").write_text('estimator = "chain"\n[options]\nl2 = 1.0\nmax_iter = 30\n')
    train, test = folder / "conll2000_train.txt.gz", folder / "conll2000_test.txt.gz"
    assert command("fit", tmp_path / "c.toml", train, "--model", tmp_path / "m.isg", "--jobs", "2").code == 0
    scores = json.loads(command("evaluate", tmp_path / "m.isg", test, "--json").out)
    data = load_conll2000(folder.parent)
    crf = ig.ChainCRF(l2=1.0, max_iter=30, n_jobs=2).fit(data.X_train, data.Y_train)
    assert scores["spans"]["all"]["f1"] == span_f1(data.Y_test, crf.predict(data.X_test))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--model", "train.txt"], "--model: expected another file than those that are read"),
        (["--model", "same.isg", "--checkpoint", "same.isg"], "--model: expected another file"),
        (["--model", "new.isg", "--checkpoint", "train.txt"], "--checkpoint: expected another file"),
    ],
)
def test_files_that_are_read_are_not_written(chunks, command, monkeypatch, tmp_path, argv, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.toml").write_text("estimator = 'chain'\n")
    (tmp_path / "train.txt").write_text("a N B\n\n")
    code, out, err = command("fit", "c.toml", "train.txt", *argv)
    assert (code, out) == (2, "")
    assert words in err
    assert (tmp_path / "train.txt").read_text() == "a N B\n\n"


def test_outputs_are_no_inputs(chunks, command, monkeypatch):
    """Neither by another name of the same file, nor by standard input."""
    model, data, other = chunks / "m.isg", chunks / "test.txt", chunks / "other.txt"
    command("fit", chunks / "chunk.toml", chunks / "train.txt", "--model", model, "--quiet")
    os.link(data, other)
    assert "--out: expected another file" in command("predict", model, data, "--out", other).err
    descriptor = os.open(data, os.O_RDONLY)
    monkeypatch.setattr("os.fstat", lambda number: os.stat(descriptor if number == 0 else number))
    assert "--out: expected another file" in command("predict", model, "-", "--out", data).err
    os.close(descriptor)


@pytest.mark.parametrize("recipe", ["estimator = 'chain'\n", "estimator = 'chain'\nseparator = '\\t'\n"])
def test_one_column_has_no_labels(command, tmp_path, recipe):
    (tmp_path / "c.toml").write_text(recipe)
    (tmp_path / "t.txt").write_text("word\n\n" if "separator" not in recipe else "a N B\n\n")
    code, _, err = command("fit", tmp_path / "c.toml", tmp_path / "t.txt", "--model", tmp_path / "m.isg")
    assert code == 2
    assert "expected at least two columns, one of which holds the labels, got 1; is the separator right?" in err
