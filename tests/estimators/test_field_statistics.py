"""Statistics of fitted Markov random fields, against statsmodels' Poisson regression and by hand."""

import itertools
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest
from field_helpers import cells, exact_table, truth
from numpy.testing import assert_allclose
from scipy.optimize import linprog
from scipy.sparse import csr_array

import isinglass as ig
from isinglass.learning.markov.samples import Samples
from isinglass.learning.markov.statistics.information import covariance, features
from isinglass.learning.markov.statistics.support import existence
from isinglass.learning.optimizers import OwlQn
from isinglass.models import IndicatorTerm, Model, table_model

DATA = Path(os.environ.get("ISINGLASS_DATA", "none")) / "contingency" / "contingency.npz"
needs_data = pytest.mark.skipif(not DATA.exists(), reason="ISINGLASS_DATA is not set")
NAMES = [
    *("HairEyeColor", "Titanic", "UCBAdmissions", "housing", "DanishWelfare", "Rochdale", "PreSex", "Punishment"),
    *("Reinis", "Dyke", "Detergent", "Hoyt", "Heart", "occupationalStatus"),
]
HAIR = [
    [[32, 36], [11, 9], [10, 5], [3, 2]],
    [[53, 66], [50, 34], [25, 29], [15, 14]],
    [[10, 16], [10, 7], [7, 7], [7, 7]],
    [[3, 4], [30, 64], [5, 5], [8, 8]],
]


def load(name):
    with np.load(DATA) as file:
        assert name in json.loads(str(file["meta_json"]))
        return file[name]


def design(cards, scopes):
    """Return the design matrix of a log-linear model in treatment contrasts, with the names that a summary has."""
    x = np.array(list(np.ndindex(*cards)))
    inside = {t for s in scopes for r in range(1, len(s) + 1) for t in itertools.combinations(sorted(s), r)}
    columns, names = [np.ones(len(x))], []
    for s in sorted(inside, key=lambda s: (len(s), s)):
        for states in itertools.product(*(range(1, cards[i]) for i in s)):
            columns.append((x[:, list(s)] == states).all(axis=1).astype(float))
            names.append(" ".join(f"x{i}={k}" for i, k in zip(s, states, strict=True)))
    return np.array(columns).T, names


def poisson(counts, matrix):
    sm = pytest.importorskip("statsmodels.api")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of counts that are fitted as zero
        return sm.GLM(counts.ravel().astype(float), matrix, family=sm.families.Poisson()).fit(maxiter=300, tol=1e-13)


def fitted(table, scopes, **options):
    options = {"method": "ipf", "tol": 1e-9, "max_iter": 5000, **options}
    return ig.MRF(ig.FactorGraph(table.shape, scopes), **options).fit(counts=table)


def pairs(n):
    return list(itertools.combinations(range(n), 2))


def test_deviances_of_hair_and_eyes():
    """Mutual independence, joint independence of sex, and no interaction of all three."""
    table = np.array(HAIR)
    models = [[(0,), (1,), (2,)], [(0, 1), (2,)], [(0, 1), (1, 2), (0, 2)]]
    found = [fitted(table, scopes) for scopes in models]
    assert [round(m.deviance(), 3) for m in found] == [166.3, 19.857, 6.761]
    assert [m.degrees_of_freedom() for m in found] == [24, 15, 9]
    assert [round(m.goodness_of_fit().p_g2, 3) for m in found] == [0.0, 0.178, 0.662]
    step = found[0].compare(found[1])
    assert (step.df, round(step.g2, 2)) == (9, 146.44)
    p, q = (exact_table(m.potentials_) for m in (found[1], found[0]))
    assert step.x2 == pytest.approx(table.sum() * ((p - q) ** 2 / q).sum(), rel=1e-9)
    with pytest.raises(ig.InputError, match=r"no scope that contains \(0, 1\)"):
        found[2].compare(found[0])


@pytest.mark.long
@needs_data
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_deviances_and_errors_are_those_of_poisson_regression(name):
    table = load(name)
    n = table.ndim
    for scopes in ([(i,) for i in range(n)], pairs(n) if n > 2 else []):
        if not scopes:
            continue
        mrf, (matrix, names) = fitted(table, scopes), design(table.shape, scopes)
        reference = poisson(table, matrix)
        assert mrf.deviance() == pytest.approx(reference.deviance, abs=1e-6)
        assert mrf.pearson() == pytest.approx(reference.pearson_chi2, rel=1e-6)
        assert_allclose(table.sum() * exact_table(mrf.potentials_).ravel(), reference.fittedvalues, atol=1e-5)
        if mrf.converged_:
            assert mrf.degrees_of_freedom() == reference.df_resid
            summary = mrf.summary()
            assert_allclose([summary[x].estimate for x in names], reference.params[1:], atol=1e-6)
            assert_allclose([summary[x].error for x in names], reference.bse[1:], atol=1e-5)
            assert_allclose([summary[x].p for x in names], reference.pvalues[1:], atol=1e-6)
            constant = reference.llf - mrf.log_likelihood(cells(mrf.graph), table.ravel())
            assert mrf.aic() + constant * -2 == pytest.approx(reference.aic - 2, abs=1e-6)


@pytest.mark.long
@needs_data
@pytest.mark.parametrize(
    ("name", "scopes", "lost"),
    [
        ("Titanic", pairs(4), 4),  # no children in the crew: their pair of states has no mass
        ("Rochdale", list(itertools.combinations(range(8), 3)), None),
        ("DanishWelfare", [(0, 1, 2, 3)], 8),  # the saturated model has an empty cell wherever the table has
    ],
)
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_a_maximum_at_infinity(name, scopes, lost):
    """Fitted counts agree; cells without support count neither as cells nor for parameters."""
    table = load(name)
    mrf, (matrix, _) = fitted(table, scopes, tol=1e-8), design(table.shape, scopes)
    reference = poisson(table, matrix)
    counts = table.sum() * exact_table(mrf.potentials_)
    assert_allclose(counts.ravel(), reference.fittedvalues, atol=1e-4)
    assert mrf.deviance() == pytest.approx(reference.deviance, abs=1e-5)
    support = counts > 0
    assert (~support).sum() > 0
    if lost is not None:
        assert (~support).sum() == lost
    assert (table[~support] == 0).all()
    rank = np.linalg.matrix_rank(matrix[support.ravel()])
    assert mrf.degrees_of_freedom() == support.sum() - rank
    assert mrf.free_parameters() == rank - 1


@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_cells_that_vanish_without_an_empty_margin():
    """Haberman's example: two opposite empty corners of a 2x2x2 table, and no empty pair (no three-way interaction)."""
    table = np.array([[[0, 4], [3, 5]], [[6, 2], [7, 0]]])
    graph = ig.FactorGraph([2, 2, 2], pairs(3))
    seen = Samples(np.argwhere(table > 0), table[table > 0].astype(float))
    model = table_model(graph)
    assert existence(model, seen, np.ones(model.size, bool)).cells.tolist() == [[0, 0, 0], [1, 1, 1]]
    for method in ("ml", "ipf"):
        mrf = fitted(table, pairs(3), method=method)
        assert_allclose(table.sum() * exact_table(mrf.potentials_), table, atol=1e-6)
        assert mrf.degrees_of_freedom() == 0
        assert mrf.deviance() == pytest.approx(0, abs=1e-8)
        assert "not estimable" in str(mrf.summary())
        assert not mrf.converged_
        assert "along x" in mrf.message_


def test_covariances_and_features_are_those_of_enumeration():
    graph = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (0, 2), (1,)])
    model = table_model(graph)
    theta = np.random.default_rng(0).normal(size=model.size)
    x = cells(graph)
    f, p = features(model, x), exact_table(model.potentials(theta)).ravel()
    assert_allclose(f @ theta, model.potentials(theta).log_score(x), atol=1e-12)
    centred = f - p @ f
    assert_allclose(covariance(model, theta), (centred * p[:, None]).T @ centred, atol=1e-12)


@pytest.mark.long
def test_standard_errors_are_those_of_repeated_samples():
    """The spread of estimates over many data sets; the sandwich agrees where the model is right."""
    graph = ig.grid_graph(2, 2, 2)
    spins = np.array([-1.0, 1.0])
    one = IndicatorTerm("field", spins.reshape(-1, 1), (2,), table_ids=np.zeros(4, int))
    two = IndicatorTerm("coupling", np.outer(spins, spins).reshape(-1, 1), (2, 2), table_ids=np.zeros(4, int))
    model = Model(graph, [[one], [two]])
    p = model.potentials([0.2, 0.3])
    rng = np.random.default_rng(0)
    found = [ig.MRF(model).fit(ig.sample(p, 400, random_state=rng)) for _ in range(200)]
    spread = np.std([m.theta_ for m in found], axis=0)
    for kind in ("fisher", "sandwich"):
        errors = found[0].standard_errors(kind)
        assert_allclose([errors["field"][0], errors["coupling"][0]], spread, rtol=0.2)
    assert [row.name for row in found[0].summary().rows] == ["field[0]", "coupling[0]"]


@pytest.mark.parametrize("size", [1.0, 1e6])
def test_a_constant_feature_is_no_parameter(size):
    """One of a variable with a single state, of probability one but for rounding."""
    graph = ig.FactorGraph([2, 3, 1], [(0, 1), (2,)])
    tables = [IndicatorTerm("pair", csr_array(np.eye(6)), (2, 3))]
    model = Model(graph, [tables, [IndicatorTerm("constant", csr_array([[size]]), (1,))]])
    X = np.c_[np.random.default_rng(0).integers(0, [2, 3], (60, 2)), np.zeros(60, int)]
    mrf = ig.MRF(model, method="ml", tol=1e-6).fit(X)
    assert mrf.free_parameters() == 5
    assert np.isnan(mrf.standard_errors()["constant"]).all()


def test_the_unit_of_a_feature_changes_no_statistic():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (500, 2))
    X[:, 1] = np.where(rng.random(500) < 0.4, X[:, 0], X[:, 1])
    graph, dummies = ig.FactorGraph([3, 3], [(0,), (1,), (0, 1)]), csr_array(np.eye(3)[:, 1:])
    found = []
    for unit in (1.0, 1e5):
        scores = csr_array(unit * np.outer([0, 1, 2], [0, 1, 2]).reshape(9, 1))
        singles = [IndicatorTerm("ab"[i], dummies, (3,), table_ids=[[0, -1], [-1, 0]][i]) for i in range(2)]
        model = Model(graph, [singles, [IndicatorTerm("linear", scores, (3, 3))]])
        mrf = ig.MRF(model, method="ml", tol=1e-7).fit(X)
        errors = mrf.standard_errors()
        errors["linear"] = unit * errors["linear"]
        found.append((mrf.free_parameters(), mrf.degrees_of_freedom(), mrf.aic(), *np.concatenate([*errors.values()])))
    assert found[0][:2] == (5, 3)
    assert_allclose(found[1], found[0], rtol=1e-5)


def test_tables_have_no_errors_of_their_own_but_their_contrasts_have():
    mrf = fitted(np.array([[43, 9], [44, 4]]), [(0, 1)])
    assert np.isnan(mrf.standard_errors()["edge"]).all()
    row = mrf.summary()["x0=1 x1=1"]
    assert row.estimate == pytest.approx(np.log(43 * 4 / (9 * 44)))
    assert row.error == pytest.approx(np.sqrt(1 / 43 + 1 / 9 + 1 / 44 + 1 / 4))
    assert mrf.summary("sandwich")["x0=1 x1=1"].error == pytest.approx(row.error)  # saturated: never wrong
    assert "x0=1 x1=1" in str(mrf.summary())
    assert "100 samples, 3 free parameters" in str(mrf.summary())


def test_a_summary_as_a_frame():
    pytest.importorskip("pandas")
    summary = fitted(np.array(HAIR), [(0, 1), (2,)]).summary()
    frame = summary.to_frame()
    assert list(frame.columns) == ["estimate", "error", "z", "p"]
    assert frame.loc["x0=1 x1=1", "error"] == summary["x0=1 x1=1"].error


def test_criteria_by_hand():
    mrf = fitted(np.array([[43, 9], [44, 4]]), [(0,), (1,)])
    loglik = 87 * np.log(0.87) + 13 * np.log(0.13) + 52 * np.log(0.52) + 48 * np.log(0.48)
    assert mrf.aic() == pytest.approx(-2 * loglik + 4)
    assert mrf.bic() == pytest.approx(-2 * loglik + 2 * np.log(100))
    X = np.array([[0, 0], [1, 1]])
    assert mrf.deviance(X) == pytest.approx(2 * (2 * np.log(0.5) - mrf.log_likelihood(X)))
    assert mrf.deviance([[0, 0]], sample_weight=[3.0]) == pytest.approx(-2 * 3 * np.log(0.4524))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m.summary("robust"), "'fisher' or 'sandwich'"),
        (lambda m: m.deviance([[0, -1]]), "complete samples"),
        (lambda m: ig.MRF(m.graph, method="pseudo", l2=1).fit([[0, 1]]).summary(), "maximum likelihood"),
        (lambda m: m.compare(ig.MRF(m.graph, method="ipf").fit(counts=[[1, 2], [3, 4]])), "the same samples"),
        (lambda m: m.compare(ig.MRF(ig.FactorGraph([3], [(0,)]), method="ipf").fit([[0]])), "the same variables"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_wrong_questions_are_named(call, words):
    with pytest.raises(ig.InputError, match=words):
        call(fitted(np.array([[43, 9], [44, 4]]), [(0, 1)]))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        *(({"l2": 1e-12}, "l2"), ({"prior": "dirichlet", "method": "ipf"}, "prior"), ({"prior": "group"}, "prior")),
        *(({"method": method}, "method") for method in ("cd", "composite", "piecewise", "pseudo", "pmm")),
        *(({"inference": "trw"}, "inference"), ({"optimizer": OwlQn(l1=1e-9)}, "optimizer")),
    ],
)
@pytest.mark.filterwarnings("ignore::isinglass.ConvergenceWarning")
def test_fits_that_are_not_maximum_likelihood_are_not_tested(options, name):
    graph = ig.FactorGraph([4, 4, 2], pairs(3))
    one, other = (ig.MRF(graph, **given, max_iter=3).fit(counts=np.array(HAIR)) for given in (options, {}))
    for call in (
        one.goodness_of_fit,
        one.aic,
        one.bic,
        one.summary,
        lambda: one.compare(other),
        lambda: other.compare(one),
    ):
        with pytest.raises(ig.InputError, match=f"^{name}: expected maximum likelihood"):
            call()
    assert one.deviance() > 0


def test_a_large_model_needs_no_table():
    graph = ig.chain_graph(30, 2)
    mrf = ig.MRF(graph, method="ipf").fit(ig.sample(truth(graph, 0, 0.3), 2000, random_state=0))
    assert mrf.free_parameters() == 30 + 29
    assert mrf.degrees_of_freedom() == 2**30 - 1 - 59


def has_a_maximum(f, seen, weights):
    """Tell whether the mean of features is in the relative interior of their polytope: all cells can have weight."""
    mean = weights @ f[seen] / weights.sum()
    matrix = np.c_[np.r_[f.T, np.ones((1, len(f)))], np.r_[f.T.sum(axis=1), len(f)]]  # w = v + s, v >= 0; maximise s
    found = linprog(-np.eye(len(f) + 1)[-1], A_eq=matrix, b_eq=np.r_[mean, 1], method="highs-ds")
    assert found.status == 0
    return -found.fun > 1e-8


def existence_problem(kind, rng):
    """Return a graph or model, options, data, and the features whose mean decides."""
    if kind == "haberman":
        table = rng.integers(1, 9, (2, 2, 2))
        for corner in rng.choice(8, rng.integers(2, 4), replace=False):
            table.flat[corner] = 0
        graph, options = ig.FactorGraph([2] * 3, pairs(3)), {"method": str(rng.choice(["ml", "ipf", "scaling"]))}
    else:
        cards = rng.integers(2, 4, 4)
        table = rng.poisson(rng.choice([0.3, 0.5, 1.0]), cards) + (np.arange(cards.prod()) == 0).reshape(cards)
        graph = ig.FactorGraph(cards, [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (0, 3)])
        options = {"method": str(rng.choice(["ml", "ipf"]))}
    if kind == "chordal":
        graph = ig.FactorGraph(table.shape, [(0, 1), (1, 2, 3)])
        options = {"method": "closed-form"}
    x = cells(graph)
    features_ = design(graph.cards, graph.scopes)[0][:, 1:]
    if kind == "penalised":  # tables of pairs
        options, features_ = (
            {"prior": "group", "max_iter": 5000},
            design(graph.cards, [(i,) for i in range(4)])[0][:, 1:],
        )
    if kind == "tied":  # one real feature for all pairs, and one for all variables
        graph = ig.FactorGraph([3] * 4, [(i,) for i in range(4)] + [(0, 1), (1, 2), (2, 3)])
        x, table = cells(graph), np.zeros([3] * 4)
        np.add.at(table, tuple(rng.integers(0, 3, (rng.integers(1, 4), 4)).T), 1)
        digits = int(rng.integers(0, 2))
        one, two = rng.normal(size=3).round(digits), rng.normal(size=(3, 3)).round(digits)
        single = IndicatorTerm("one", one.reshape(-1, 1), (3,), table_ids=np.zeros(4, int))
        double = IndicatorTerm("two", two.reshape(-1, 1), (3, 3), table_ids=np.zeros(3, int))
        features_ = np.c_[one[x].sum(axis=1), sum(two[x[:, i], x[:, i + 1]] for i in range(3))]
        graph, options = Model(graph, [[single], [double]]), {}
    return graph, options, table, x, features_


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
def test_fits_say_whether_the_likelihood_has_a_maximum():
    """50 data sets on each side, labelled by another linear program; the extended estimate matches the moments, too."""
    rng, left = np.random.default_rng(0), {True: 50, False: 50}
    for kind in itertools.cycle(["haberman", "tied", "chordal", "penalised", "pairs"]):
        graph, options, table, x, f = existence_problem(kind, rng)
        seen = np.flatnonzero(table.ravel())
        exists = has_a_maximum(f, seen, table.ravel()[seen])
        if not left[exists]:
            continue
        left[exists] -= 1
        mrf = ig.MRF(graph, **{"max_iter": 20000, **options}).fit(counts=table)
        assert mrf.converged_ == exists, (kind, mrf.message_)
        assert ("no maximum" in mrf.message_) != exists
        if kind != "penalised":
            p = exact_table(mrf.potentials_).ravel()[: len(x)]
            assert_allclose(p @ f, table.ravel()[seen] @ f[seen] / table.sum(), atol=1e-4)
        if not any(left.values()):
            return


@pytest.mark.long
@needs_data
@pytest.mark.filterwarnings("ignore:.*likelihood has no maximum")
@pytest.mark.parametrize("name", [*NAMES, "Haberman"])
def test_gradients_and_proportional_fitting_have_equal_statistics(name):
    table = np.array([[[0, 4], [3, 5]], [[6, 2], [7, 0]]]) if name == "Haberman" else load(name)
    one, two = (fitted(table, pairs(table.ndim), method=method, tol=1e-8) for method in ("ml", "ipf"))
    assert (
        one.degrees_of_freedom()
        == two.degrees_of_freedom()
        == {"Titanic": 10, "Haberman": 0}.get(name, two.degrees_of_freedom())
    )
    assert one.aic() == pytest.approx(two.aic(), abs=1e-5)
    found = [[(row.estimate, row.error) for row in mrf.summary().rows] for mrf in (one, two)]
    assert_allclose(found[0], found[1], atol=1e-3)
    assert one.converged_ == two.converged_ == (name not in ("Titanic", "Haberman", "occupationalStatus"))


def test_what_the_linear_program_does_not_decide_is_said():
    X = np.random.default_rng(0).integers(0, 2, (30, 16))
    mrf = ig.MRF(ig.FactorGraph([2] * 16, pairs(16)), max_iter=3, tol=1e9).fit(X)
    assert mrf.converged_
    assert "not decided whether the likelihood has a maximum: more than 20000 joint states" in mrf.message_
