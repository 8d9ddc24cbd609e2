"""Random examples, and what every model must satisfy."""

import numpy as np

import isinglass as ig


def random_graphs(rng, n=4, features=3, edge_features=None, k=2):
    """Examples of different sizes: (node_features, edges[, edge_features])."""
    examples = []
    for i in range(n):
        nodes = int(rng.integers(1, 6)) if i else 4
        edges = [(a, b) for a in range(nodes) for b in range(nodes) if a != b and rng.random() < 0.35]
        edges = np.array(edges, int).reshape(-1, 2)
        example = rng.standard_normal((nodes, features)), edges
        if edge_features is not None:
            example += (rng.standard_normal((len(edges), edge_features)),)
        examples.append(example)
    return examples


def complex_normal(rng, shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


def check_adjoint(model, rng):
    """<bars, A theta> = <A^T bars, theta>, real and complex (without conjugates)."""
    for draw in (lambda s: np.asarray(rng.standard_normal(s)), lambda s: np.asarray(complex_normal(rng, s))):
        theta = draw(model.size)
        groups = model.potentials(theta).groups
        bars = [draw(g.shape) for g in groups]
        back = model.transpose(bars)
        assert back.shape == (model.size,)
        assert back.dtype == theta.dtype
        forward = sum((g * b).sum() for g, b in zip(groups, bars, strict=True))
        np.testing.assert_allclose((back * theta).sum(), forward, rtol=1e-11, atol=1e-11)


def check_log_z_gradient(model, rng):
    """The gradient of exact log Z by theta against central differences."""
    theta = 0.5 * rng.standard_normal(model.size)
    result = ig.infer(model.potentials(theta), "exact", tape=True)
    found = model.transpose(result.backward(log_z=1.0).groups)
    for i in range(model.size):
        step = np.zeros(model.size)
        step[i] = 1e-4
        up, down = (ig.infer(model.potentials(theta + s * step), "exact").log_z for s in (1, -1))
        np.testing.assert_allclose(found[i], (up - down) / 2e-4, rtol=1e-6, atol=1e-6)


def check_once(model, rng):
    """All potentials of a model have the same graph and the same arrays of table numbers."""
    one, two = (model.potentials(rng.standard_normal(model.size)) for _ in range(2))
    assert one.graph is two.graph is model.graph
    assert all(a is b for a, b in zip(one.table_ids, two.table_ids, strict=True))
    for g, ids in zip(one.groups, one.table_ids, strict=True):
        assert not len(ids) or ids.max() < len(g)
