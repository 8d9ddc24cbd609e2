"""The estimators inside scikit-learn."""

import numpy as np
import pytest
from estimator_helpers import KINDS
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer

import isinglass as ig
from checks import refuses

pytestmark = pytest.mark.parametrize("kind", KINDS)


def doubled(X):
    return X * 2 if isinstance(X, np.ndarray) else [(2 * x, e) for x, e in X]


def test_clone_and_parameters(kind):
    make, data = KINDS[kind]
    crf = make(loss="uquad", l2=0.7)
    assert crf.get_params()["loss"] == "uquad"
    assert clone(crf).get_params() == crf.get_params()
    assert crf.set_params(l2=0.1).l2 == 0.1
    assert type(crf)().set_params(**crf.get_params()).get_params() == crf.get_params()
    fitted = crf.fit(*data())
    assert fitted is crf
    assert not hasattr(clone(fitted), "theta_")
    refuses("Invalid parameter", crf.set_params, error=ValueError, l3=1)


def test_init_checks_nothing_and_shows_itself(kind):
    make, data = KINDS[kind]
    make(loss="nonsense", l2="many", inference=None)
    crf = make(inference=ig.BeliefPropagation(schedule="sequential"), class_weight="balanced")
    before = crf.get_params()
    assert {k: v for k, v in crf.fit(*data()).get_params().items() if v is not before[k]} == {}
    make, _ = KINDS[kind]
    text = repr(make(loss="ccl"))
    assert text.startswith("GridCRF(" if kind == "grid" else "GraphCRF(")
    assert "loss='ccl'" in text
    assert "<pre>" in make()._repr_html_()


def test_pipeline(kind):
    make, data = KINDS[kind]
    X, Y = data()
    pipe = make_pipeline(FunctionTransformer(doubled), make()).fit(X, Y)
    assert_array_equal(pipe.predict(X)[0], make().fit(doubled(X), Y).predict(doubled(X))[0])
    assert pipe.score(X, Y) > 0.9
    named = Pipeline([("scale", FunctionTransformer(doubled)), ("crf", make())])
    named.set_params(crf__l2=2.0).fit(X, Y, crf__sample_weight=np.ones(len(Y)))
    assert named["crf"].l2 == 2.0


@pytest.mark.long
def test_grid_search(kind):
    make, data = KINDS[kind]
    X, Y = data(4)
    search = GridSearchCV(make(), {"l2": [0.1, 10.0], "loss": ["ucl", "cl"]}, cv=2, error_score="raise").fit(X, Y)
    assert set(search.best_params_) == {"l2", "loss"}
    assert search.best_score_ > 0.7
    assert len(search.predict(X)) == 4


def test_cross_validation(kind):
    make, data = KINDS[kind]
    scores = cross_val_score(make(), *data(6), cv=3, error_score="raise")
    assert scores.shape == (3,)
    assert scores.min() > 0.5
