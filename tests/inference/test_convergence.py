"""What "converged", "exact" and a derivative at a tolerance stop mean for message passing."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import isinglass as ig
from checks import each_close, quiet, refuses
from isinglass.errors import no_convergence_warnings
from isinglass.graph.message_graph import edges_of
from isinglass.inference.message_passing.algorithms.base import _Flooding

SCHEDULES = ["auto", "flooding", "sequential", "residual"]
COUPLING = np.array([[1.0, -1.0], [-1.0, 1.0]])


def torus(n, coupling):
    site = np.arange(n * n).reshape(n, n)
    scopes = [np.stack([site, np.roll(site, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)]
    graph = ig.FactorGraph.from_groups(np.full(n * n, 2), [np.concatenate(scopes)])
    return ig.Potentials.from_groups(graph, [coupling * COUPLING[None]])


def star():
    graph = ig.FactorGraph([2] * 3, [(0,), (1,), (2,), (0, 1), (0, 2)])
    return ig.Potentials(graph, [[7, 5], [-11, 10], [4, -9], [[-3, -4], [22, -7]], [[-3, 7], [-6, 1]]])


def steep_chain():
    tables = [[[19, -52], [-41, -244]], [[180, 114], [-33, 77]], [[28, -55], [98, -31]]]
    return ig.Potentials(ig.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3)]), tables)


def steep_loop():
    tables = [[[-35, 40], [4, -17]], [[2, 4], [81, -22]], [[-60, 5], [41, -20]]]
    return ig.Potentials(ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0)]), tables)


def ring(tables=None):
    graph = ig.FactorGraph([2] * 4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    return ig.Potentials(graph, [np.zeros((2, 2))] * 4 if tables is None else tables)


def pair():
    return ig.Potentials(ig.FactorGraph([2, 2], [(0, 1)]), [np.log([[1.0, 2.0], [3.0, 4.0]])])


@pytest.mark.parametrize("damping", [0.0, 0.5])
@pytest.mark.parametrize("schedule", [*SCHEDULES, "tree"])
@pytest.mark.parametrize("model", [star, steep_chain])
def test_forests_with_steep_tables(model, schedule, damping):
    p = model()
    truth = ig.infer(p, "brute")
    r = ig.infer(p, ig.BeliefPropagation(schedule=schedule, damping=damping))
    assert r.info.converged
    assert_allclose(r.variables.flat, truth.variables.flat, atol=1e-6)
    assert_allclose(r.log_z, truth.log_z, rtol=1e-9)


def test_exact_is_said_after_an_undamped_pass_up_and_down():
    for algorithm in (ig.BeliefPropagation(damping=0.5), ig.TreeReweighted(), ig.BeliefPropagation(schedule="tree")):
        r = ig.infer(steep_chain(), algorithm)
        assert (r.info.bound, r.info.iterations) == ("exact", 1)
    loose = ig.infer(steep_chain(), ig.BeliefPropagation(schedule="flooding", damping=0.5))
    assert loose.info.converged
    assert loose.info.bound is None


def test_tree_reweighting_on_a_steep_loop():
    found, far = ig.infer(steep_loop(), "trw"), quiet(steep_loop(), "trw", iterations=2000)
    assert_allclose(found.log_z, far.log_z, atol=1e-5)
    assert found.info.bound == "upper"
    assert found.log_z >= ig.infer(steep_loop()).log_z


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**31), damping=st.sampled_from([0.0, 0.3]), ring=st.sampled_from([(), (0,), (0, 0)]))
def test_the_measure_is_the_most_that_a_change_can_do(seed, damping, ring):
    """No belief moves by more than the undamped change of a message can make it, and one does; zeros stand apart."""
    from isinglass.kernels.layout import Span
    from isinglass.kernels.numba.messages.changes import effects

    rng, edges = np.random.default_rng(seed), edges_of(ig.FactorGraph([3, 2], [(0, 1)]))
    change, old = rng.normal(0, 10 ** rng.uniform(-3, 1), 3), rng.normal(0, 3, 5)
    new = old + np.concatenate([(1 - damping) * change, [0.0, 0.0]])
    if rng.random() < 0.3:
        change[1], old[1], new[1] = np.nan, -np.inf, -np.inf
    found, linear = np.zeros(1), (lambda x: x) if ring else np.exp
    effects(edges, Span(0, 2, 0, 1, 0, 1), linear(old), linear(new), damping, np.ones(1, bool), found, ring)
    kept = change[~np.isnan(change)]
    for logs in rng.normal(0, 3, (20, len(kept))):
        assert np.abs(softmax(logs + kept) - softmax(logs)).max() <= found[0] + 1e-12
    worst = np.full(len(kept), -np.inf)
    worst[[kept.argmax(), kept.argmin()]] = -kept[[kept.argmax(), kept.argmin()]] / 2
    assert_allclose(np.abs(softmax(worst + kept) - softmax(worst)).max(), found[0], atol=1e-12)


def test_a_zero_that_comes_or_goes_is_the_largest_change():
    from isinglass.kernels.layout import Span
    from isinglass.kernels.numba.messages.changes import effects

    edges, found = edges_of(ig.FactorGraph([2, 2], [(0, 1)])), np.zeros(1)
    some, zero = np.array([0.5, 0.5, 0.5, 0.5]), np.array([0.0, 1.0, 0.5, 0.5])
    for old, new in ((some, zero), (zero, some)):
        effects(edges, Span(0, 2, 0, 1, 0, 1), old, new, 0.0, np.ones(1, bool), found, ())
        assert found[0] == 1


@pytest.mark.parametrize("schedule", ["flooding", "sequential"])
def test_derivatives_at_a_tolerance_of_zero(schedule):
    p = ring(np.random.default_rng(1).normal(size=(4, 2, 2)))
    loss = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    r = quiet(p, "bp", schedule=schedule, tol=0.0, tape=True)
    assert r.info.converged == (r.info.residual == 0)
    other = ig.perturbation(p, "bp", variables=loss, tol=1e-13)
    each_close(r.backward(variables=loss).groups, other.groups, atol=1e-9)


def softmax(logs):
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


@pytest.mark.parametrize("damping", [0.0, 0.4])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("kind", [ig.BeliefPropagation, ig.TreeReweighted, ig.MaxProduct])
def test_the_residual_is_that_of_an_undamped_flooding(kind, schedule, damping):
    p = ring(np.random.default_rng(3).normal(0, 2, (4, 2, 2)))
    r = ig.infer(p, kind(schedule=schedule, damping=damping, tol=1e-5))
    after = quiet(p, kind(schedule="flooding", damping=0.0, iterations=1), init=r)
    change = (after.messages - r.messages).reshape(-1, 2)
    flooded = np.tanh(np.ptp(change, axis=1).max() / 4)
    assert r.info.converged
    assert flooded <= 1e-5
    if schedule == "flooding" and damping:  # measured before the last, damped iteration
        assert r.info.residual >= flooded
    elif schedule not in ("auto", "flooding"):
        assert_allclose(r.info.residual, flooded, rtol=1e-4, atol=1e-12)


def test_a_run_that_damping_freezes_has_not_converged():
    p = ring(np.random.default_rng(0).normal(size=(4, 2, 2)))
    m = ig.map_assignment(p, "max-product", damping=1 - 1e-9)
    assert not m.optimal
    assert m.bound == np.inf
    assert not quiet(p, "bp", damping=1 - 1e-9).info.converged


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.3])
@pytest.mark.parametrize("kind", [ig.BeliefPropagation, ig.TreeReweighted, ig.FractionalBeliefPropagation])
def test_warm_starts_forget_hard_zeros_of_other_models(kind, damping, schedule):
    algorithm = kind(damping=damping, schedule=schedule)
    with np.errstate(divide="ignore"):
        equal = ig.Potentials(pair().graph, [np.log(np.eye(2))])
    certain = ig.infer(equal, algorithm, evidence={0: 0})  # so is the other one: a message has a hard zero
    assert np.isneginf(certain.messages).any()
    for start in (certain, ig.infer(pair(), algorithm, evidence={0: 0})):
        r = ig.infer(pair(), algorithm, init=start)
        assert_allclose(r.log_z, np.log(10.0), atol=1e-6)
        assert_allclose(r.variable(0), [0.3, 0.7], atol=1e-6)


def test_warm_starts_keep_hard_zeros_that_are_proved():
    p = ig.Potentials(
        ig.FactorGraph([2] * 3, [(0, 1), (1, 2), (2, 0), (0,)]), [*[np.log(np.eye(2) + 1e-3)] * 3, [0, 0]]
    )
    hard = p.with_evidence({0: 1})
    first = ig.infer(hard, "trw")
    again = ig.infer(hard, "trw", init=first)
    assert again.info.iterations == 1
    assert_allclose(again.variables.flat, first.variables.flat, atol=1e-7)


@pytest.mark.long
def test_a_log_z_off_its_domain_is_said():
    if not os.environ.get("ISINGLASS_DATA"):
        pytest.skip("ISINGLASS_DATA is not set")
    p = ig.read_uai(Path(os.environ["ISINGLASS_DATA"]) / "uai" / "linkage_21.uai.gz")
    for options in ({"iterations": 100}, {}, {"max_iter": 2000}):
        with pytest.warns(ig.ConvergenceWarning, match="not that of any beliefs"):
            r = ig.infer(p, "bp", **options)
        assert not r.info.converged
        assert r.info.bound is None
        assert np.isnan(r.log_z)
        assert "grow without end" in r.info.note


def test_impossible_is_said_where_arc_consistency_proves_it():
    never = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    p = ring([never, never, never, never]).with_evidence({0: 0, 2: 1})
    for algorithm in ("bp", "trw", "max-product"):
        with pytest.raises(ig.ImpossibleEvidenceError):
            ig.infer(p, algorithm)


def test_an_unstable_start_is_said():
    with pytest.warns(ig.ConvergenceWarning, match="start_noise"):
        r = ig.infer(torus(12, 1.0), "bp")
    assert r.info.stable is False
    assert_allclose(r.variables.flat, 0.5)
    moved = ig.infer(torus(12, 1.0), ig.BeliefPropagation(start_noise=1e-3, schedule="residual", check_stability=True))
    assert moved.info.converged
    assert moved.info.stable
    assert moved.log_z > r.log_z
    assert np.abs(np.asarray(moved.variables)[:, 1] - 0.5).min() > 0.49


def test_a_stable_start_is_left_alone():
    r = ig.infer(torus(12, 0.1), "bp")
    assert (r.info.stable, r.info.note, r.info.iterations) == (None, "", 1)
    assert ig.infer(torus(12, 0.1), "bp", check_stability=True).info.stable
    exact = ig.infer(torus(12, 1.0), "bp", iterations=3, check_stability=True)  # no warning: three were asked for
    assert exact.info.stable is False


@pytest.mark.parametrize("name", ["bp", "trw"])
def test_a_start_without_coupling_needs_no_check(monkeypatch, name):
    """It takes up to 80 iterations in reverse, whose loops are long to compile."""
    monkeypatch.setattr("isinglass.inference.message_passing.algorithms.base.spectral_radii", None)
    r = ig.infer(torus(4, 0.0), name)
    assert (r.info.stable, r.info.note, r.info.iterations, r.info.converged) == (None, "", 1, True)


def test_one_coupled_component_is_checked_among_others():
    p = ig.potentials_union([torus(4, 0.0), torus(4, 1.0)])
    with pytest.warns(ig.ConvergenceWarning, match="start_noise"):
        assert ig.infer(p, "bp").info.stable is False


def test_stability_is_that_of_the_power_method():
    """The leading eigenvalue of a uniform Ising model is (degree - 1) tanh K."""
    critical = np.arctanh(1 / 3)
    assert ig.infer(torus(12, critical - 0.02), "bp", check_stability=True).info.stable
    assert quiet(torus(12, critical + 0.02), "bp", check_stability=True).info.stable is False


def test_noise_does_not_depend_on_the_batch():
    p = torus(4, 0.2)
    one = quiet(p, "bp", start_noise=0.1, iterations=2)
    three = quiet(p.repeat(3), "bp", start_noise=0.1, iterations=2)
    assert_allclose(three.variables.flat, np.tile(one.variables.flat, 3), rtol=1e-12, atol=1e-12)
    other = quiet(p, "bp", start_noise=0.1, iterations=2, random_state=1)
    assert np.abs(other.variables.flat - one.variables.flat).max() > 0


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["auto", "flooding", "sequential", "residual"])
@pytest.mark.parametrize("damping", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("kind", [ig.BeliefPropagation, ig.TreeReweighted])
def test_derivatives_where_a_run_starts_at_its_fixed_point(kind, damping, schedule):
    loss = [[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    algorithm = kind(damping=damping, schedule=schedule)
    found = ig.infer(ring(), algorithm, tape=True).backward(variables=loss)
    truth = ig.infer(ring(), "brute", tape=True).backward(variables=loss)
    each_close(found.groups, truth.groups, atol=1e-7)
    warm = ig.infer(ring(np.random.default_rng(1).normal(size=(4, 2, 2))), algorithm)
    again = ig.infer(warm.potentials, algorithm, init=warm, tape=True).backward(variables=loss)
    cold = ig.perturbation(warm.potentials, algorithm, variables=loss)
    each_close(again.groups, cold.groups, atol=1e-6)


@pytest.mark.parametrize("tape", [True, "sqrt"])
def test_a_derivative_at_an_unstable_point_is_refused(tape):
    r = quiet(torus(6, 1.0), "bp", tape=tape)
    loss = np.zeros((36, 2))
    loss[0, 0] = 1.0
    refuses("start_noise", r.backward, variables=loss)


@pytest.mark.long
@pytest.mark.parametrize("schedule", ["flooding", "grid", "sequential", "residual"])
def test_hessians_do_not_stop_with_the_values(schedule):
    graph, site = ig.grid_graph(16, 16, 2), 8 * 16 + 8
    p = ig.Potentials.from_groups(graph, [np.zeros((256, 2)), 0.3 * COUPLING[None]])
    direction = [np.zeros_like(table) for table in p.log_tables]
    direction[site] = np.array([-1.0, 1.0])
    product = ig.hessian_vector_product(p, ig.BeliefPropagation(schedule=schedule), direction, log_z=1.0)
    covariances = [product.log_tables[site + k] @ [-1.0, 1.0] for k in range(1, 5)]
    assert_allclose(covariances, [0.4294188, 0.1877491, 0.0895506, 0.0448970], atol=1e-6)


def test_derivatives_do_not_depend_on_the_way_to_the_fixed_point():
    """A link that is updated once, before what it receives is known, is differentiated at the fixed point."""
    tables = [np.eye(2), [[0.0, 3.0], [0.0, 3.0]], [0.0, 1.0]]
    p = ig.Potentials(ig.FactorGraph([2, 2, 2], [(0, 1), (1, 2), (0,)]), tables)
    loss = [np.zeros(2), np.zeros(2), np.array([0.0, 1.0])]
    truth = ig.infer(p, "brute", tape=True).backward(variables=loss)
    for tape in (True, "sqrt"):
        found = ig.infer(p, "bp", schedule="residual", tape=tape).backward(variables=loss)
        each_close(found.groups, truth.groups, atol=1e-8)


@pytest.mark.parametrize("options", [{}, {"schedule": "sequential"}, {"damping": 0.3}, {"schedule": "residual"}])
def test_derivatives_that_early_iterations_do_not_see(options):
    """Messages start on a state that leaves mute the couplings which matter at the fixed point."""
    n, far = 4, 40.0
    coupling = np.zeros((3, 3))
    coupling[:2, :2] = COUPLING
    leaf = np.array([[0.0, 0.0], [0.0, 0.0], [-2 * far, -2 * far]])
    scopes = [(i, (i + 1) % n) for i in range(n)] + [(i, n + i) for i in range(n)] + [(i,) for i in range(n)]
    own = [np.array([0.0, 0.0, far])] * n
    p = ig.Potentials(ig.FactorGraph([3] * n + [2] * n, scopes), [coupling] * n + [leaf] * n + own)
    loss = [np.array([1.0, 0.0, 0.0]), *[np.zeros(3)] * (n - 1), *[np.zeros(2)] * n]
    found = ig.infer(p, "bp", tape=True, **options).backward(variables=loss)
    assert_allclose(found.log_tables[2 * n][0], 0.5034997, atol=1e-6)


@pytest.mark.long
def test_perturbations_and_hessians_stay_at_the_fixed_point():
    grid = ig.grid_graph(8, 8, 2)
    p = ig.Potentials.from_groups(grid, [np.zeros((64, 2)), 0.6 * COUPLING[None]])
    loss = np.zeros((64, 2))
    loss[0, 0] = 1
    field = [np.array([0.0, 1.0]) if t.ndim == 1 else np.zeros((2, 2)) for t in p.log_tables]
    with no_convergence_warnings():
        refuses("a stable fixed point", ig.perturbation, p, "bp", variables=list(loss))
        refuses("fixed point", ig.hessian_vector_product, p, "bp", field, log_z=1.0)
    strong = ig.Potentials.from_groups(grid, [np.zeros((64, 2)), 2.0 * COUPLING[None]])
    product = ig.hessian_vector_product(strong, "mf", field, log_z=1.0)
    assert np.abs(product.groups[0]).max() < 1e-3  # at the magnetised point that mean field ends at


@pytest.mark.long
@pytest.mark.parametrize("radius", [0.99, 1.01])
def test_stability_of_larger_models(radius):
    r = quiet(torus(24, np.arctanh(radius / 3)), "bp", check_stability=True)
    assert r.info.stable == (radius < 1)


@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_small_residuals_of_many_messages_are_no_proof(tol):
    """Each message is within the tolerance; together they hide that the other state is better."""
    length, arms = 300, 3
    n = 1 + arms * length
    scopes = [(0 if k == 0 else a * length + k, 1 + a * length + k) for a in range(arms) for k in range(length)]
    weak, root = 0.2 * tol, (0.2 * length + 60) * tol
    own = [np.array([-root, root]), *[np.array([weak, -weak])] * (n - 1)]
    p = ig.Potentials(ig.FactorGraph([2] * n, scopes + [(i,) for i in range(n)]), [3 * COUPLING] * len(scopes) + own)
    best = ig.map_assignment(p).score
    for algorithm in ("bp", "max-product"):
        found = ig.map_assignment(p, algorithm, schedule="sequential", tol=tol)
        assert not found.optimal or found.score >= best - 1e-9


def test_the_grid_schedule_stops_at_the_same_iteration_beside_hard_zeros():
    rng, graph = np.random.default_rng(4), ig.grid_graph(2, 2, 2)
    one = ig.Potentials(graph, [1.5 * rng.normal(size=graph.cards[list(s)]) for s in graph.scopes])
    zeros = [np.zeros((2,) * len(s)) for s in graph.scopes]
    zeros[-1] = np.array([[-np.inf, 0.0], [0.0, 0.0]])
    alone = ig.infer(one, "bp", schedule="grid")
    both = ig.infer(ig.potentials_union([one, ig.Potentials(graph, zeros)]), "bp", schedule="grid")
    assert_allclose(both.variables.flat[:8], alone.variables.flat, rtol=1e-12, atol=1e-12)


def test_mean_field_from_a_start_that_gives_a_probability_to_what_is_forbidden():
    other = np.array([[-np.inf, 0.0], [0.0, -np.inf]])
    p = ig.Potentials(ig.FactorGraph([2, 2], [(0, 1), (0,)]), [other, [0.0, 0.3]])
    for algorithm in ("mf", "smf"):
        cold, warm = ig.infer(p, algorithm), ig.infer(p, algorithm, init=ig.infer(p, "exact"))
        assert_allclose(warm.log_z, cold.log_z)


def test_derivatives_that_are_not_finite_are_refused():
    r = ig.infer(pair().with_evidence({0: 0}), "bp", tape=True)
    with np.errstate(divide="ignore"), pytest.raises(ig.InputError, match="variables: expected finite derivatives"):
        r.backward(variables=-1 / r.variables.flat)


@pytest.mark.parametrize("algorithm", ["bp", "trw", "mf", "smf"])
def test_whether_to_check_stability_is_yes_or_no(algorithm):
    refuses("check_stability: expected True or False", ig.infer, ring(), algorithm, check_stability="yes")


def test_beliefs_of_a_runaway_sum_to_one():
    """At logarithms of 1e20 that of a sum of two equal numbers is that of one of them."""
    inf = np.inf
    tables = [
        [
            [[-inf, -inf], [-130.27922372956925, -inf]],
            [[72.28652608360554, 4.964719779768019], [-inf, -18.34191404974771]],
        ],
        [[[-inf, -13.696836553377498], [-inf, -inf]], [[-inf, 30.15888131941201], [-25.007534298035562, -inf]]],
    ]
    p = ig.Potentials(ig.FactorGraph([2, 2, 2, 3], [(2, 0, 1), (1, 2, 0)]), [np.array(table) for table in tables])
    with pytest.warns(ig.ConvergenceWarning):
        r = ig.infer(p, ig.TreeReweighted(tol=1e-12, max_iter=200))
    assert not r.info.converged
    assert_allclose([belief.sum() for belief in [*r.variables, *r.factors]], 1)


def test_beliefs_of_a_runaway_sum_to_one_while_its_log_z_is_possible():
    """Messages of 1e9 nats may cancel in log Z; their rounding of 1e-7 must not show in beliefs."""
    inf = np.inf
    scopes = [(0, 1), (0, 1), (1,), (1, 0), (1, 0)]
    tables = [
        [[-inf, -1.2, -inf], [0.069, -0.399, -0.109], [0.186, -0.739, 1.081], [-inf, -1.267, 0.412]],
        [[-0.333, -2.683, -0.157], [-0.46, -inf, 0.25], [0.369, -inf, -inf], [-0.601, -inf, -2.22]],
        [-inf, 1.657, -1.323],
        [[0.932, 0.885, 0.457, -2.066], [0.161, 0.824, 1.183, -1.603], [-inf, -1.707, -1.137, -1.781]],
        [[-inf, -inf, -1.037, 0.055], [-0.66, -0.765, 1.001, -0.34], [-0.291, 0.636, -inf, -0.692]],
    ]
    p = ig.Potentials(ig.FactorGraph([4, 3], scopes), tables)
    with no_convergence_warnings():
        for iterations in range(100, 220, 7):
            method = ig.FractionalBeliefPropagation(tol=1e-12, max_iter=iterations, damping=0.2, counting_numbers=0.8)
            r = ig.infer(p, method)
            assert not r.info.converged
            assert_allclose([belief.sum() for belief in [*r.variables, *r.factors]], 1, rtol=0, atol=1e-10)


def test_an_iteration_that_forgets_its_messages_needs_one_product(monkeypatch):
    """Rounding is no direction: at tables of zeros, where every fit begins, the radius is zero at once."""
    products = []
    back = _Flooding.back
    monkeypatch.setattr(_Flooding, "back", lambda *given: products.append(1) or back(*given))
    p = ig.Potentials.from_groups(ig.grid_graph(6, 6, 2), [np.zeros((36, 2)), np.zeros((1, 2, 2))]).repeat(3)
    for name in ("bp", "trw"):
        assert ig.infer(p, name, check_stability=True).info.stable
        assert len(products) <= 2
        products.clear()
