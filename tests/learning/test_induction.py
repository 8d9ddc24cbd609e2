"""Feature induction, against enumeration."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import isinglass as ig
from isinglass.learning.structure.induction import approximate_gains
from isinglass.models import conjunction_model


def table(cards, features, theta):
    """Return all joint states, and their probabilities, by enumeration."""
    states = np.array(list(itertools.product(*map(range, cards))))
    score = sum(
        t * np.all([states[:, i] == s for i, s in f.items()], axis=0) for f, t in zip(features, theta, strict=True)
    )
    mass = np.exp(score + np.zeros(len(states)))
    return states, mass / mass.sum()


def test_the_model_is_that_of_its_features():
    cards, features = [2, 3, 2], [{0: 1}, {1: 2, 0: 0}, {0: 1, 1: 0, 2: 1}, {2: 0, 0: 0}, {0: 1, 1: 1}]
    theta = np.random.default_rng(0).normal(size=5)
    states, p = table(cards, features, theta)
    found = ig.infer(conjunction_model(cards, features).potentials(theta)).joint([0, 1, 2])
    assert_allclose(found[tuple(states.T)], p, atol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.floats(0, 1), st.lists(st.floats(0.001, 0.999), min_size=1, max_size=4), st.floats(1e-4, 0.1))
def test_the_approximate_gain_is_the_best_along_one_weight(seen, q, penalty):
    q, share = np.array(q), np.full(len(q), 1 / len(q))
    gain, weight = approximate_gains(np.array([seen]), q[None], share, penalty)

    def loss(a):
        return -(a * seen - share @ np.log(1 - q + q * np.exp(a)) - penalty * a**2)

    found = minimize_scalar(loss, bounds=(-40, 40), method="bounded", options={"xatol": 1e-10})
    assert_allclose(gain[0], -found.fun, atol=1e-8)
    assert_allclose(weight[0], found.x, atol=1e-3)


def samples(n=800, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 4))
    X[:, 2] = np.where(rng.random(n) < 0.9, X[:, 0] & X[:, 1], X[:, 2])
    return X


def test_every_feature_gains_at_least_what_was_promised():
    X = samples()
    found = ig.induce_features(X, most=8, l2=0.01)
    reached = [-4 * np.log(2), *(step.log_likelihood for step in found.steps)]
    gains = np.array([step.gain for step in found.steps])
    assert len(found.steps) >= 3
    assert (np.diff(reached) >= gains - 1e-3).all()  # the gain is less a penalty; the likelihood here is not
    for features in ([{2: 1}], found.features):  # what is reported is the likelihood, by enumeration
        part = found if features is found.features else ig.induce_features(X, start=features, most=0, l2=0.01)
        states, p = table([2] * 4, part.features, part.theta)
        index = {tuple(s): k for k, s in enumerate(states.tolist())}
        assert_allclose(part.potentials.log_score(X).mean() - ig.infer(part.potentials).log_z,
                        np.log([p[index[tuple(x)]] for x in X.tolist()]).mean(), atol=1e-9)  # fmt: skip
    assert any(len(f) >= 2 for f in found.features)
    assert all(3 not in f for f in found.features)  # variable 3 is a fair coin of its own


def test_the_first_feature_has_the_largest_divergence():
    X = samples(seed=1)
    single = [((i, s),) for i, s in itertools.product(range(4), range(2))]
    pairs = [a + b for a, b in itertools.combinations(single, 2) if a[0][0] != b[0][0]]
    gain = {}
    for f in single + pairs:
        p, q = np.all([X[:, i] == s for i, s in f], axis=0).mean(), 0.5 ** len(f)
        gain[f] = p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
    step = ig.induce_features(X, most=1, l2=1e-6).steps[0]
    assert tuple(step.feature.items()) == max(gain, key=gain.get)
    assert_allclose(step.gain, max(gain.values()), rtol=1e-4)


def test_dependence_is_found_where_all_margins_are_even():
    """No single state gains anything there, but a pair does."""
    X = np.random.default_rng(0).integers(0, 2, (300, 3))
    X = np.column_stack([X, X[:, 0]])
    found = ig.induce_features(X, most=2)
    assert [sorted(f) for f in found.features] == [[0, 3], [0, 3]]


def test_fits_go_on_and_noise_adds_nothing():
    X = samples()
    found = ig.induce_features(X, most=4, l2=0.5)
    mrf = ig.MRF(found.model, l2=0.5, tol=1e-6).fit(X)
    assert_allclose(mrf.theta_, found.theta, atol=1e-4)
    assert mrf.score(X) == pytest.approx(found.steps[-1].log_likelihood, abs=1e-6)
    X = np.random.default_rng(0).integers(0, 3, (400, 3))
    assert ig.induce_features(X).steps == []
    Y = samples()
    twice = ig.induce_features(np.concatenate([Y, Y]), most=3)
    weighted = ig.induce_features(Y, sample_weight=np.full(len(Y), 2.0), most=3)
    assert twice.features == weighted.features
    assert_allclose(twice.theta, weighted.theta, atol=1e-6)


def test_given_variables_make_a_conditional_random_field():
    """The weights are those of a logistic regression on products of inputs."""
    from sklearn.linear_model import LogisticRegression

    X = samples(3000)
    found = ig.induce_features(X, given=[0, 1, 3], most=6, l2=0.5)
    assert all(2 in f for f in found.features)
    assert not any(3 in f for f in found.features)
    rows = np.array([[all(x[i] == s for i, s in f.items() if i != 2) for f in found.features] for x in X], float)
    sign = np.array([1.0 if f[2] == 1 else -1.0 for f in found.features])
    other = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=1000).fit(rows * sign, X[:, 2])
    assert_allclose(found.theta, other.coef_[0], atol=1e-3)
    right = np.log(other.predict_proba(rows * sign)[np.arange(len(X)), X[:, 2]]).mean()
    assert_allclose(found.steps[-1].log_likelihood, right, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"l2": 0}, "l2"),
        ({"most": -1}, "most"),
        ({"order": 0}, "order"),
        ({"criterion": "mdl"}, "criterion"),
        ({"given": [0, 1, 2, 3]}, "given"),
        ({"given": [9]}, "given"),
        ({"start": [{9: 0}]}, "start[0]"),
        ({"start": [{0: 5}]}, "start[0]"),
        ({"start": [{}]}, "start[0]"),
        ({"start": [{0: 1}, {0: 1}]}, "features"),
        ({"cards": [2, 2]}, "cards"),
    ],
)
def test_wrong_options_are_named(options, name):
    with pytest.raises(ig.InputError) as told:
        ig.induce_features(samples(20), **options)
    assert told.value.argument == name


def test_constant_columns_and_single_states_do_no_harm():
    X = samples()
    X[:, 3] = 0
    found = ig.induce_features(X, cards=[2, 2, 2, 1], most=5)
    assert all(3 not in f for f in found.features)
    found = ig.induce_features(X, cards=[2, 2, 2, 2], most=5)  # a state that is never seen
    assert {3: 0} in found.features or {3: 1} in found.features
    assert np.isfinite(found.theta).all()
