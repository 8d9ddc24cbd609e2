"""Minimum-Bayes-risk decoders: against the brute-force minimiser of the expected loss, and their relaxations."""

import numpy as np
import pytest
from decision_oracle import expected_losses, f_loss, product_model
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass import decoding
from isinglass.testing import random_potentials

MIXED = ig.FactorGraph([2, 3, 2, 4], [(0, 1, 2), (2, 3), (0,), (3,), (1, 3), (0, 3), ()])
LOOP = ig.FactorGraph([2] * 6, [(i, (i + 1) % 6) for i in range(6)] + [(i,) for i in range(6)] + [(0, 3)])
OUTPUTS = np.array([True, True, False, True])


def cost_loss(tables):
    """Return the loss that adds up costs (state, decision) of each output."""
    return lambda d, truths: sum(table[truths[:, i], d[i]] for i, table in enumerate(tables))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["mpm", "median", "bayes"])
def test_decomposable_losses_are_minimised(name, seed):
    rng = np.random.default_rng(seed)
    p = random_potentials(MIXED, rng)
    r, which = ig.infer(p, "brute"), np.flatnonzero(OUTPUTS)
    ordered = [np.abs(np.subtract.outer(np.arange(k), np.arange(k))) for k in (2, 3, 4)]
    tables = {"mpm": [1 - np.eye(k) for k in (2, 3, 4)], "median": ordered}.get(name)
    if name == "bayes":
        p = random_potentials(ig.FactorGraph([3, 3, 3], [(0, 1), (1, 2), (0, 2)]), rng)
        r, which, tables = ig.infer(p, "brute"), np.arange(3), [rng.normal(size=(3, 3))] * 3
    decoder = decoding.make(name, **({"cost": tables[0]} if name == "bayes" else {}))
    mask = np.isin(np.arange(p.graph.n_variables), which)
    found = decoder(r, mask)
    _, risks = expected_losses(p, which, cost_loss(tables))
    mine = expected_losses(p, which, cost_loss(tables), [found[which]])[1][0]
    assert mine == pytest.approx(risks.min(), abs=1e-12)
    assert (found[~mask] == -1).all()


def test_the_mean_state_has_the_least_squared_error():
    p = random_potentials(MIXED, np.random.default_rng(0))
    found = decoding.make("identity")(ig.infer(p, "brute"), OUTPUTS)
    which = np.flatnonzero(OUTPUTS)

    def squares(d, truths):
        return ((d - truths) ** 2).sum(axis=1)

    best = expected_losses(p, which, squares, [found[which]])[1][0]
    for i in range(3):
        for step in (-1e-3, 1e-3):
            moved = found[which] + step * (np.arange(3) == i)
            assert expected_losses(p, which, squares, [moved])[1][0] > best
    assert np.isnan(found[2])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [1.0, 0.5, 2.0])
def test_f_of_independent_outputs_is_maximised(seed, beta):
    rng = np.random.default_rng(seed)
    p = product_model(rng, [2, 2, 3, 2, 2][: 2 + seed % 4])
    decoder = decoding.make("f1", beta=beta, positive=1)
    found = decoder(ig.infer(p, "brute"))
    which = np.arange(p.graph.n_variables)
    _, risks = expected_losses(p, which, f_loss(beta))
    assert expected_losses(p, which, f_loss(beta), [found])[1][0] == pytest.approx(risks.min(), abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("beta", [1.0, 2.0])
def test_f_of_any_joint_model_is_maximised(seed, beta):
    rng = np.random.default_rng(seed)
    p = random_potentials(LOOP, rng, evidence={4: 1} if seed % 2 else {})
    mask = np.array([True, True, seed > 2, True, False, True])
    which = np.flatnonzero(mask)
    for given in (p, ig.infer(p, "exact")):
        found = decoding.make("f1", form="exact", beta=beta)(given, mask)
        _, risks = expected_losses(p, which, f_loss(beta))
        assert expected_losses(p, which, f_loss(beta), [found[which]])[1][0] == pytest.approx(risks.min(), abs=1e-9)
        assert found[4] == -1


def test_the_joint_model_matters():
    """Two outputs exclude each other: both at .45; independence would choose both, F of one is as good as can be."""
    table = np.log([[0.1, 0.45], [0.45, 1e-300]])
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [table])
    independent, exact = (decoding.make("f1", form=form)(ig.infer(p)) for form in ("independent", "exact"))
    best = expected_losses(p, [0, 1], f_loss(), [exact])[1][0]
    assert best <= expected_losses(p, [0, 1], f_loss(), [independent])[1][0]
    assert best == pytest.approx(expected_losses(p, [0, 1], f_loss())[1].min(), abs=1e-12)


def test_zeros_of_the_partition_function_are_avoided():
    """Equal spins without fields: Z(z) = 1 + z^n has its zeros on the unit circle (Lee and Yang)."""
    for n in (2, 3, 4):
        tables = [np.where(np.eye(2) > 0, 0.0, -np.inf)] * (n - 1)
        p = ig.Potentials(ig.FactorGraph([2] * n, [(i, i + 1) for i in range(n - 1)]), tables)
        found = decoding.make("f1", form="exact")(p)
        _, risks = expected_losses(p, np.arange(n), f_loss())
        assert expected_losses(p, np.arange(n), f_loss(), [found])[1][0] == pytest.approx(risks.min(), abs=1e-9)


def test_the_even_split_is_what_it_says():
    p = product_model(np.random.default_rng(3), [2] * 7)
    r = ig.infer(p, "brute")
    found, ones = decoding.make("f1", form="even-split")(r), np.asarray(r.variables)[:, 1]
    assert found.sum() == 3
    assert ones[found == 1].min() > ones[found == 0].max()


def test_other_states_are_the_most_believed_ones():
    graph = ig.FactorGraph([3, 3], [(0,), (1,)])
    r = ig.infer(ig.Potentials(graph, np.log([[0.05, 0.05, 0.9], [0.3, 0.6, 0.1]])), "brute")
    assert decoding.make("f1", positive=1)(r).tolist() == [2, 1]


@pytest.mark.parametrize("loss", ["hamming", "l1", "0-1", "f1", lambda d, y: (d.sum() - y.sum(axis=1)) ** 2])
def test_samples_find_a_nearly_best_decision(loss):
    p = random_potentials(LOOP, np.random.default_rng(5))
    mask = np.array([True, True, True, False, False, True])
    which = np.flatnonzero(mask)
    found = decoding.make("sampled", loss=loss, samples=4000, random_state=1)(p, mask)
    cost = decoding.sampled.COSTS[loss] if isinstance(loss, str) else loss
    _, risks = expected_losses(p, which, cost)
    assert expected_losses(p, which, cost, [found[which]])[1][0] < risks.min() + 0.02
    again = decoding.make("sampled", loss=loss, samples=4000, random_state=1)(ig.infer(p), mask)
    assert_array_equal(found, again)


RELAXED = [
    decoding.MPM(), decoding.Soft(0.7), decoding.Median(), decoding.Identity(), decoding.Distribution(),
    decoding.Bayes(), decoding.F1(), decoding.F1("even-split"), decoding.F1(beta=2.0),
]  # fmt: skip


def with_flat(result, flat):
    """Return a result with other beliefs of variables."""
    beliefs = ig.inference.result.VariableBeliefs(result.potentials.graph, flat)
    return ig.Result(result.potentials, result.component_log_z, beliefs, result.factors, result.info)


@pytest.mark.parametrize("decoder", RELAXED, ids=str)
def test_relaxations_have_the_right_derivatives(decoder):
    rng = np.random.default_rng(1)
    p = ig.potentials_union([random_potentials(MIXED, rng), random_potentials(LOOP, rng)])
    r, mask = ig.infer(p, "brute"), np.concatenate([OUTPUTS, np.array([True] * 5 + [False])])
    flat, t = np.array(r.variables.flat), 0.8
    found = decoder.relaxed(r, mask, t)
    bars, direction = rng.normal(size=flat.shape), rng.normal(size=flat.shape)
    by_beliefs, by_temperature = found.back(bars)
    step = 1e-20
    moved = decoder.relaxed(with_flat(r, flat + 1j * step * direction), mask, t).shares
    assert by_beliefs @ direction == pytest.approx(bars @ moved.imag / step, rel=1e-10, abs=1e-12)
    up, down = (decoder.relaxed(r, mask, t + s).shares for s in (1e-5, -1e-5))
    assert by_temperature.sum() == pytest.approx(bars @ (up - down) / 2e-5, rel=1e-7, abs=1e-9)
    assert (found.shares[~np.repeat(mask, p.graph.cards)] == 0).all()
    totals = np.add.reduceat(found.shares, np.concatenate([[0], np.cumsum(p.graph.cards)[:-1]]))
    assert_allclose(totals, mask.astype(float), atol=1e-12)


@pytest.mark.parametrize("decoder", [d for d in RELAXED if d.facts.output == "states"], ids=str)
def test_relaxations_tend_to_the_decision(decoder):
    p = random_potentials(LOOP, np.random.default_rng(2))
    r = ig.infer(p, "brute")
    decided = decoder(r)
    distances = []
    for t in (1.0, 0.1, 1e-3, 1e-5):
        shares = decoder.relaxed(r, None, t).shares.reshape(-1, 2)
        distances.append(1 - shares[np.arange(6), decided].min())
    assert distances[-1] < 1e-9
    assert (np.diff(distances) <= 0).all()


@pytest.mark.parametrize("temperature", [3.0, 0.3, 1e-2, 1e-6])
def test_the_soft_number_of_positives_of_an_even_split_is_half(temperature):
    p = product_model(np.random.default_rng(4), [2] * 9)
    r = ig.infer(p, "brute")
    shares = decoding.F1("even-split").relaxed(r, None, temperature).shares.reshape(-1, 2)
    assert shares[:, 1].sum() == pytest.approx(4.0, abs=1e-9)
    ones = np.asarray(r.variables)[:, 1]
    assert (np.diff(shares[np.argsort(ones), 1]) >= 0).all()


def test_the_relaxed_even_split_has_no_jumps_where_ranks_change():
    """Move one belief past all others: shares and their slopes change continuously."""
    rest = np.array([0.2, 0.45, 0.6, 0.9])
    graph = ig.FactorGraph([2] * 5, [(i,) for i in range(5)])

    def shares(odds):
        q = np.append(rest, odds)
        r = ig.infer(ig.Potentials(graph, np.log(np.c_[1 - q, q])), "brute")
        return decoding.F1("even-split").relaxed(r, None, 0.2).shares

    values = np.array([shares(odds) for odds in np.linspace(0.05, 0.95, 181)])
    assert np.abs(np.diff(values, axis=0)).max() < 0.05
    assert np.abs(np.diff(values, 2, axis=0)).max() < 1e-3


@pytest.mark.parametrize("logs", [[900.0, 900.0, 900.0, 0.0], [-900.0] * 3 + [0.0], [900.0, 0.0, 0.3, -900.0]])
def test_certain_outputs_of_an_even_split_stay_finite(logs):
    p = ig.Potentials(ig.FactorGraph([2] * 4, [(i,) for i in range(4)]), [[0.0, log] for log in logs])
    r = ig.infer(p, "brute")
    found = decoding.F1("even-split").relaxed(r, None, 0.5)
    slopes, by_t = found.back(np.arange(8.0))
    assert all(np.isfinite(x).all() for x in (found.shares, slopes, by_t))


@pytest.mark.parametrize("low", [-np.inf, -900.0, -740.0, -720.0])  # e^-740 is a subnormal number
def test_temperature_one_gives_the_beliefs_and_extremes_stay_finite(low):
    p = ig.Potentials(ig.FactorGraph([3, 2], [(0,), (1,)]), [[0.0, low, 1.0], [low, 0.0]])
    r = ig.infer(p, "brute")
    assert_allclose(decoding.MPM().relaxed(r, None, 1.0).shares, r.variables.flat)
    for t in (1e-8, 0.5, 1.0, 30.0):
        for decoder in (decoding.MPM(), decoding.F1(), decoding.F1("even-split"), decoding.Median()):
            found = decoder.relaxed(r, None, t)
            slopes, by_t = found.back(np.arange(5.0))
            assert np.isfinite(found.shares).all()
            assert np.isfinite(slopes).all()
            assert np.isfinite(by_t).all()


@pytest.mark.parametrize("name", ["soft", "distribution"])
def test_distributions_have_nan_where_nothing_is_decided(name):
    r = ig.infer(random_potentials(MIXED, np.random.default_rng(0)), "brute")
    found = decoding.make(name)(r, OUTPUTS)
    assert np.isnan(found[2]).all()
    assert found[3].sum() == pytest.approx(1.0)


R = ig.infer(ig.Potentials(ig.FactorGraph([2, 3], [(0, 1)]), [np.zeros((2, 3))]), "brute")
TWO = ig.infer(ig.Potentials(ig.FactorGraph([2], []).repeat(2), []), "brute")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decoding.Soft(0.0)(R), "temperature: expected a positive number, got 0"),
        (lambda: decoding.MPM().relaxed(R, None, -1.0), "temperature: expected a number of at least 0, got -1"),
        (lambda: decoding.MPM().relaxed(R, None, np.nan), "temperature: expected"),
        (lambda: decoding.MPM()(R, [True]), r"outputs: expected a bool array \(2,\)"),
        (lambda: decoding.MPM()(R, [1, 0]), "outputs: expected a bool array .* of dtype int64"),
        (lambda: decoding.F1()(TWO, [True, False]), "outputs: expected at least one variable .* none in example 1"),
        (lambda: decoding.F1(positive=2)(R), "positive: expected outputs with the state 2 .* variable 0 of 2 states"),
        (lambda: decoding.F1("best")(R), "form: expected one of 'independent', 'exact', 'even-split', got 'best'"),
        (lambda: decoding.F1(beta=0.0)(R), "beta: expected a positive number"),
        (lambda: decoding.F1(beta=1e200)(R), "beta: expected a positive number up to 1e\\+06"),
        (lambda: decoding.Soft(1e-320)(R), "temperature: expected a number from 1e-100"),
        (lambda: decoding.F1()(R.potentials), "given: expected the Result .* form='exact'"),
        (lambda: decoding.F1("exact").relaxed(R), "form: expected 'independent' or 'even-split' for training"),
        (lambda: decoding.MAP().relaxed(R), "decoder: expected one with a differentiable version, .*'mpm'.* got 'map'"),
        (lambda: decoding.Bayes(np.zeros((2, 2)))(R), r"cost: expected a table \(3, 3\) of finite costs"),
        (lambda: decoding.Bayes([[0, np.inf], [1, 0]])(R, [True, False]), "cost: expected a table .* got inf"),
        (lambda: decoding.Bayes("l1")(R), "cost: expected 'hamming' or a table"),
        (lambda: decoding.Sampled("f2")(R), "loss: expected one of"),
        (lambda: decoding.Sampled(lambda d, y: 1.0)(R), "loss: expected a function that returns 200 finite losses"),
        (lambda: decoding.Sampled(samples=0)(R), "samples: expected"),
    ],
)
def test_wrong_calls_are_answered_kindly(call, message):
    with pytest.raises(ig.InputError, match=message):
        call()
