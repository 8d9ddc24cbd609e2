"""Estimators from parts: one that is added here alone, those of the guide, and what all of them have in common."""

import inspect
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from checks import refuses
from isinglass import losses
from isinglass.errors import no_convergence_warnings
from isinglass.estimators import CRF, ESTIMATORS, Estimator, load, register

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "estimator.md"


@pytest.fixture
def softmax(guide):
    return guide[0]["Softmax"]


def test_an_estimator_of_ones_own_fits_and_predicts(softmax):
    X, y = points()
    model = softmax(l2=0.1).fit(X, y)
    assert model.converged_
    assert [epoch.iteration for epoch in model.history_] == list(range(1, model.n_iter_ + 1))
    assert clone(model).get_params() == model.get_params()
    assert (
        GridSearchCV(softmax(), {"l2": [0.1, 1e4]}, cv=2, scoring="accuracy", error_score="raise").fit(X, y).best_score_
        > 0.6
    )
    with pytest.raises(ValueError, match="not fitted"):
        softmax().predict(X)
    refuses("l2: expected a number of at least 0", softmax(l2=-1.0).fit, X, y)


def test_an_estimator_of_ones_own_is_saved_and_loaded(softmax, tmp_path):
    X, y = points()
    model = softmax(l2=0.1).fit(X, y)
    model.save(tmp_path / "a.isg", notes={"a": 1})
    for again in (softmax.load(tmp_path / "a.isg"), load(tmp_path / "a.isg"), Estimator.load(tmp_path / "a.isg")):
        assert type(again) is softmax
        assert again.get_params() == model.get_params()
        assert again.history_ == model.history_
        assert_array_equal(again.predict(X), model.predict(X))
    refuses("the schema 'grid-crf'", ig.GridCRF.load, tmp_path / "a.isg", error=ig.FileFormatError)
    refuses("expected a fitted CRF, got 'softmax'", CRF.load, tmp_path / "a.isg", error=ig.FileFormatError)
    ig.GraphCRF(iterations=2, max_iter=500).fit([(np.eye(2), [(0, 1)])], [[0, 1]]).save(tmp_path / "b.isg")
    assert type(CRF.load(tmp_path / "b.isg")) is ig.GraphCRF


def test_files_of_what_is_not_registered(softmax, tmp_path, monkeypatch):
    softmax(l2=0.1).fit(*points()).save(tmp_path / "a.isg")
    with monkeypatch.context() as patch:
        patch.setattr(ESTIMATORS, "_entries", {k: v for k, v in ESTIMATORS.items() if v is not softmax})
        for read in (load, Estimator.load):
            with pytest.raises(ig.FileFormatError, match="got 'softmax'; import the module that registers it"):
                read(tmp_path / "a.isg")
    X, Y = [(np.eye(2), [(0, 1)])], [[0, 1]]
    for k, loss in enumerate(("uquad", losses.make("uquad"))):
        ig.GraphCRF(iterations=2, max_iter=500, loss=loss).fit(X, Y).save(tmp_path / f"{k}.isg")
        with monkeypatch.context() as patch:
            patch.setattr(losses.LOSSES, "_entries", {n: v for n, v in losses.LOSSES.items() if n != "uquad"})
            with pytest.raises(
                ig.FileFormatError,
                match="isg: expected a registered loss, got 'uquad'; import the module that registers it",
            ):
                load(tmp_path / f"{k}.isg")


def test_an_estimator_is_a_dataclass_with_a_name(softmax):
    with pytest.raises(ig.InputError, match=r"Bare: expected a dataclass, .* write @dataclass\(eq=False, repr=False\)"):
        register(type("Bare", (softmax,), {}))
    with pytest.raises(ig.InputError, match="schema: expected a class attribute of type str, got none in Nameless"):
        register(dataclass(eq=False, repr=False)(type("Nameless", (Estimator,), {})))


def test_an_estimator_of_ones_own_goes_on_from_a_checkpoint(softmax, tmp_path):
    whole, path = softmax(l2=0.1).fit(*points()), tmp_path / "run.npz"
    with no_convergence_warnings():
        assert softmax(l2=0.1, checkpoint=path, max_iter=2).fit(*points()).n_iter_ == 2
    again = softmax(l2=0.1, checkpoint=path).fit(*points())
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    assert again.history_ == whole.history_
    refuses("checkpoint: expected a checkpoint of this problem", softmax(l2=0.2, checkpoint=path).fit, *points())


@pytest.fixture(scope="module")
def guide():
    """Run the classes of the guide."""
    blocks = [block.split("```")[0] for block in GUIDE.read_text().split("```python")[1:]]
    names = {}
    exec("\n".join(block for block in blocks if "class " in block), names)
    yield names, next(block for block in blocks if "run.npz" in block)
    for schema in ("ring-crf", "softmax"):
        ESTIMATORS._entries.pop(schema)


def contours():
    rng = np.random.default_rng(0)
    Y = (np.arange(12) // 6 + rng.integers(0, 2, (8, 1))) % 2
    return np.stack([Y + 0.8 * rng.normal(size=Y.shape), rng.normal(size=Y.shape)], axis=-1), Y


def points():
    X, Y = contours()
    return X.reshape(-1, 2), Y.ravel()


def test_the_guide_to_a_field_of_ones_own(guide, tmp_path, monkeypatch):
    names, example = guide
    X, Y = contours()
    monkeypatch.chdir(tmp_path)
    exec(example, names | {"X": X, "Y": Y}, found := {})
    crf, labels = found["crf"], found["labels"]
    assert_array_equal(labels, crf.predict(X))
    assert labels.shape == Y.shape
    assert crf.score(X, Y) > 0.85
    assert (tmp_path / "run.npz").exists()
    assert "How many points on each side" in names["RingCRF"].__doc__
    assert "own_parameters : bool" in names["RingCRF"].__doc__
    edges = [(i, (i + d) % 12) for d in (1, 2) for i in range(12)]
    same = ig.GraphCRF(iterations=5, bias=True, l2=0.1).fit([(x, edges) for x in X], list(Y))
    assert crf.theta_.tobytes() == same.theta_.tobytes()


@pytest.mark.parametrize("optimizer", ["lbfgs", "adam"])
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_the_guide_to_an_objective_of_ones_own(guide, optimizer, tmp_path):
    softmax = guide[0]["Softmax"]
    X, y = points()
    model = softmax(l2=0.1, optimizer=optimizer, checkpoint=tmp_path / "run.npz", max_iter=30).fit(X, y)
    objective = guide[0]["SoftmaxObjective"](X, y, 2, 0.1)
    if optimizer == "lbfgs":
        assert_allclose(objective(model.theta_)[1], 0, atol=0.01)
    assert (model.predict(X) == y).mean() > 0.6
    model.save(tmp_path / "a.isg")
    assert_array_equal(load(tmp_path / "a.isg").predict(X), model.predict(X))


@pytest.mark.parametrize("schema", ESTIMATORS)
def test_every_parameter_is_documented_once(schema):
    cls = ESTIMATORS[schema]
    sections = cls.__doc__.split("Parameters\n----------\n")[1].split("\n\n")[0]
    heads = [line.partition(":")[0] for line in sections.splitlines() if not line.startswith(" ")]
    documented = [name.strip() for head in heads for name in head.split(",")]
    given = list(inspect.signature(cls).parameters)
    assert sorted(documented) == sorted(given)
    assert sorted(cls()._get_param_names() if schema != "mrf" else given) == sorted(given)
    assert len(documented) == len(set(documented))


def test_the_order_of_parameters_is_kept():
    """Some of them may be given by place."""
    names = {cls.__name__: list(inspect.signature(cls).parameters) for cls in ESTIMATORS.values()}
    assert names["GridCRF"][:8] == [
        "inference", "iterations", "own_parameters", "loss", "gradient", "schedule", "optimizer", "stages",
    ]  # fmt: skip
    assert names["GraphCRF"][11:15] == ["bias", "edge_bias", "symmetric", "entropy"]
    assert names["ChainCRF"][:3] == ["loss", "optimizer", "l2"]
    assert names["MEMM"][:3] == ["optimizer", "l2", "l1"]
    assert names["MRF"][:4] == ["graph", "method", "inference", "iterations"]
