"""Hessian-vector products: against covariances, mixed differences at 60 digits, and their own transpose."""

import numpy as np
import oracle
import pytest
from numpy.testing import assert_allclose
from test_gradients import GRAPHS, Loss, moved
from test_oracle import algorithm_and_counting

import isinglass as ig
from checks import quiet as run
from checks import refuses
from isinglass.testing import random_potentials

SMALL = ig.FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), (0, 1, 2), (1,), (0,), ()])


def flat(arrays):
    return np.concatenate([np.asarray(a).ravel() for a in arrays])


def unflat(vector, p):
    sizes = np.cumsum([t.size for t in p.log_tables])[:-1]
    return [part.reshape(t.shape) for part, t in zip(np.split(vector, sizes), p.log_tables, strict=True)]


def product(p, algorithm, direction, *bars, **options):
    return flat(ig.hessian_vector_product(p, algorithm, direction, *bars, **options).log_tables)


def covariance(p):
    """The covariance of the indicators of all table entries, by enumeration."""
    shape = tuple(p.graph.cards)
    states = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=-1)
    weights = np.exp(p.log_score(states) - p.log_score(states).max())
    weights /= weights.sum()
    columns = [
        np.eye(t.size)[np.ravel_multi_index(tuple(states[:, list(s)].T), t.shape) if s else np.zeros(len(states), int)]
        for s, t in zip(p.graph.scopes, p.log_tables, strict=True)
    ]
    features = np.hstack(columns)
    mean = weights @ features
    return features.T @ (weights[:, None] * features) - np.outer(mean, mean)


@pytest.mark.parametrize("algorithm", ["exact", "brute"])
@pytest.mark.parametrize("name", GRAPHS)
def test_the_hessian_of_log_z_is_the_covariance(name, algorithm):
    rng = np.random.default_rng(1)
    p = random_potentials(GRAPHS[name], rng, 1.0, 0.2)
    expected = covariance(p)
    for _ in range(5):
        v = rng.normal(size=len(expected))
        assert_allclose(product(p, algorithm, unflat(v, p), 1.0), expected @ v, atol=1e-12)


def test_on_a_forest_message_passing_gives_the_covariance_too():
    rng = np.random.default_rng(1)
    p = random_potentials(GRAPHS["tree"], rng)
    v = rng.normal(size=sum(t.size for t in p.log_tables))
    for algorithm in ("bp", "trw", ig.BeliefPropagation(iterations=6)):
        assert_allclose(product(p, algorithm, unflat(v, p), 1.0), covariance(p) @ v, atol=1e-11)


def dense(p, plain, loss, v):
    """H v, one entry after the other, by mixed differences of the reference."""
    size = sum(t.size for t in p.log_tables)
    return np.array(
        [
            oracle.second_derivative(
                p, plain, lambda r: oracle.loss(r, loss.z, loss.variables, loss.factors), unflat(e, p), unflat(v, p)
            )
            for e in np.eye(size)
        ]
    )


@pytest.mark.long
@pytest.mark.parametrize("converged", [False, True])
@pytest.mark.parametrize("kind", ["bp", "trw", "fbp", "mf"])
def test_against_mixed_differences_at_60_digits(kind, converged):
    """Truncated runs exactly as they ran; converged ones at the fixed point, up to the tolerance."""
    rng = np.random.default_rng(4)
    p = random_potentials(SMALL, rng, 0.4)
    loss = Loss(SMALL, rng)
    v = rng.normal(size=sum(t.size for t in p.log_tables))
    options = {"tol": 1e-14, "max_iter": 3000} if converged else {"iterations": 2}
    if kind == "mf":
        algorithm = ig.MeanField(**options)
    else:
        algorithm, counting = algorithm_and_counting(kind, SMALL, damping=0.2, **options)
    taken = ig.infer(p, algorithm).info.iterations if converged else 2
    assert taken < 120

    def plain(model):
        return oracle.mean_field(model, taken) if kind == "mf" else oracle.message_passing(model, counting, taken, 0.2)

    mine = product(p, algorithm, unflat(v, p), loss.z, loss.variables, loss.factors)
    if not converged:
        assert_allclose(mine, dense(p, plain, loss, v), atol=1e-10, rtol=1e-10)
        return
    for _ in range(3):  # one direction at a time: these runs are long
        u = rng.normal(size=len(v))
        value = oracle.second_derivative(
            p, plain, lambda r: oracle.loss(r, loss.z, loss.variables, loss.factors), unflat(u, p), unflat(v, p)
        )
        assert_allclose(mine @ u, value, rtol=1e-10, atol=1e-10)


ALGORITHMS = [
    ig.BeliefPropagation(iterations=3),
    ig.BeliefPropagation(iterations=3, schedule="sequential", damping=0.2),
    ig.BeliefPropagation(iterations=3, schedule="residual"),
    ig.BeliefPropagation(damping=0.2, tol=1e-12),
    ig.TreeReweighted(iterations=4),
    ig.TreeReweighted(tol=1e-12),
    ig.FractionalBeliefPropagation(iterations=3, counting_numbers=0.7),
    ig.MeanField(iterations=2),
    ig.MeanField(),
    ig.MaxProduct(iterations=3),
    ig.Exact(),
    ig.Brute(),
]


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=repr)
def test_it_is_symmetric(algorithm):
    """The loss is a scalar, whatever ran: u' H v = v' H u, with hard zeros and evidence."""
    for name in ("mixed", "grid"):
        rng = np.random.default_rng(8)
        graph = GRAPHS[name]
        witness = rng.integers(0, graph.cards)
        p = random_potentials(graph, rng, 0.7, 0.2, witness, {0: int(witness[0])})
        loss = Loss(graph, rng)
        finite = flat(p.log_tables) > -np.inf
        u, v = (finite * rng.normal(size=finite.size) for _ in range(2))
        for bars in ((1.0,), (loss.z, loss.variables, loss.factors)):
            hv, hu = (product(p, algorithm, unflat(w, p), *bars) for w in (v, u))
            assert_allclose(u @ hv, v @ hu, rtol=1e-10, atol=1e-10)


SMOOTH = [a for a in ALGORITHMS if getattr(a, "schedule", "") != "residual" and getattr(a, "iterations", 1) is not None]
SMOOTH = [a for a in SMOOTH if a.name != "max-product"]  # a finite step changes no choice and no number of iterations


@pytest.mark.parametrize("algorithm", SMOOTH, ids=repr)
def test_a_loss_with_logarithms(algorithm):
    """-sum_i log b_i(y_i) + log_z²: beside differences of its gradient."""
    rng = np.random.default_rng(9)
    graph = GRAPHS["mixed"]
    p = random_potentials(graph, rng, 0.5)
    labels = rng.integers(0, graph.cards)

    def loss(r):
        own = [-np.eye(len(b))[y] / b[y] for b, y in zip(r.variables, labels, strict=True)]
        return 2 * r.log_z, own, None

    direction = [rng.normal(size=t.shape) for t in p.log_tables]
    mine = product(p, algorithm, direction, loss=loss)

    def gradient(step):
        r = run(moved(p, direction, step), algorithm, tape=True)
        return flat(r.backward(*loss(r)).log_tables)

    h = 1e-2
    weights = [4 / 5, -1 / 5, 4 / 105, -1 / 280]
    expected = sum(w * (gradient(k * h) - gradient(-k * h)) / h for k, w in enumerate(weights, 1))
    assert_allclose(mine, expected, rtol=1e-7, atol=1e-8)


def test_shared_tables_and_directions_in_groups():
    rng = np.random.default_rng(0)
    one = random_potentials(ig.grid_graph(2, 2, 2), rng)
    p = one.repeat(3)
    algorithm = ig.BeliefPropagation(iterations=4)
    step = run(one, algorithm, tape=True).backward(log_z=1.0)
    separate = ig.hessian_vector_product(one, algorithm, step, 1.0)
    together = ig.hessian_vector_product(p, algorithm, step, [1.0, 2.0, 3.0])
    for a, b in zip(separate.groups, together.groups, strict=True):
        assert_allclose(6 * a, b, atol=1e-12)
    by_factor = ig.hessian_vector_product(p, algorithm, list(step.log_tables) * 3, 1.0)
    for a, b in zip(separate.groups, by_factor.groups, strict=True):
        assert_allclose(3 * a, b, atol=1e-12)


def test_refusals():
    p = random_potentials(GRAPHS["tree"], np.random.default_rng(0))
    zero = [np.zeros(t.shape) for t in p.log_tables]
    refuses("direction: expected one array for each of 3 factors", ig.hessian_vector_product, p, "bp", zero[:2], 1.0)
    refuses(r"direction\[2\]: expected shape \(2,\)", ig.hessian_vector_product, p, "bp", [*zero[:2], np.zeros(3)], 1.0)
    refuses("loss: expected either", ig.hessian_vector_product, p, "bp", zero, 1.0, loss=lambda r: (0.0, None, None))
    refuses("potentials: expected real", ig.hessian_vector_product, moved(p, zero, 1j), "bp", zero, 1.0)
    shared = p.repeat(2)
    different = [*zero, *(z + 1 for z in zero)]
    with pytest.raises(ig.InputError, match="the direction of the other factors with this table"):
        ig.hessian_vector_product(shared, "bp", different, 1.0)
