"""What is read out when it is asked for has the bits of what is read out at once, and costs nothing before."""

import gc
import pickle
import weakref

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import isinglass as ig
from checks import each_equal, refuses
from isinglass.inference.message_passing.read_out import ReadOut
from isinglass.kernels.backend import using
from isinglass.kernels.numba.backend import NUMBA


class Recorder:
    """Hands every call on to Numba, and notes its name."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        self.calls.append(name)
        return getattr(NUMBA, name)


def models():
    rng = np.random.default_rng(3)
    grid = ig.grid_graph(9, 8, 2)
    loop = ig.FactorGraph([2, 3, 2, 2], [(0,), (1,), (0, 1), (1, 2), (0, 2, 3), (1, 3)])
    found = {}
    for name, graph in {"grid": grid, "loop": loop, "tree": ig.chain_graph(6, 3)}.items():
        tables = [rng.normal(size=(len(group), *group.shape)) for group in graph.groups]
        found[name] = ig.Potentials.from_groups(graph, tables)
    tables = [rng.normal(size=(72, 2)), rng.normal(size=(1, 2, 2))]
    found["one table"] = ig.Potentials.from_groups(grid, tables).repeat(2)
    found["near to an underflow"] = ig.Potentials.from_groups(grid, [120 * tables[0], tables[1]])
    return found


MODELS = models()


def everything(p, **options):
    r = ig.infer(p, "bp", tape=True, **options)
    bars = np.random.default_rng(0).normal(size=r.variables.flat.size)
    g = r.backward(variables=bars)
    return [r.variables.flat, r.component_log_z, r.factors.flat, r.messages, *g.groups, g.initial_messages]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [{"iterations": 3}, {"iterations": 3, "schedule": "flooding"}, {"tol": 1e-10}])
def test_later_is_the_same_as_at_once(name, options, monkeypatch):
    if name == "grid" and "schedule" not in options:
        options = {**options, "schedule": "grid"}
    later = everything(MODELS[name], **options)
    monkeypatch.setattr(ReadOut, "_cannot_underflow", lambda *_: False)
    each_equal(later, everything(MODELS[name], **options))


@pytest.mark.parametrize("name", ["grid", "loop"])
def test_links_are_read_out_when_they_are_asked_for(name):
    recorder = Recorder()
    with using(recorder):
        r = ig.infer(MODELS[name], "bp", iterations=3, tape=True)
    r.backward(variables=np.ones_like(r.variables.flat))
    assert "read_out_links" not in recorder.calls
    first = r.log_z
    assert recorder.calls.count("read_out_links") == 1
    assert (r.log_z, len(r.factors[0])) == (first, 2)
    assert recorder.calls.count("read_out_links") == 1


def test_a_lower_bound_that_is_too_small_is_not_trusted():
    recorder, p = Recorder(), MODELS["near to an underflow"]
    with using(recorder):
        r = ig.infer(p, "bp", iterations=2, schedule="flooding")
    assert "read_out_links" in recorder.calls
    assert np.isfinite(r.log_z)


def test_nothing_is_kept_by_a_cycle():
    r = ig.infer(MODELS["grid"], "bp", iterations=3, tape=True)
    r.backward(variables=np.ones_like(r.variables.flat))
    messages = weakref.ref(r.reverse)
    gc.disable()
    try:
        del r
        assert messages() is None
    finally:
        gc.enable()


def test_a_pickled_result_has_everything():
    r = ig.infer(MODELS["grid"], "bp", iterations=3, tape=True)
    again = pickle.loads(pickle.dumps(r))
    assert_array_equal(again.component_log_z, r.component_log_z)
    assert_array_equal(again.factors.flat, r.factors.flat)
    assert_array_equal(again.messages, r.messages)
    refuses("no tape", again.backward, error=ig.errors.InputError)


@pytest.mark.parametrize(("height", "width"), [(2, 6), (5, 7), (9, 8), (3, 300), (40, 13)])
def test_eight_sites_at_a_time(height, width):
    """Binary grids with shared tables against those with a table for each link, whose loops are others."""
    rng = np.random.default_rng(height)
    graph, tables = ig.grid_graph(height, width, 2), rng.normal(size=(2, 2, 2))
    fields, across = (
        rng.normal(size=(height * width, 2)),
        np.repeat([0, 1], [height * (width - 1), (height - 1) * width]),
    )
    shared = ig.Potentials.from_groups(graph, [fields, tables], table_ids=[np.arange(height * width), across])
    own = ig.Potentials.from_groups(graph, [fields, tables[across]])
    bars = rng.normal(size=fields.size)
    one, two = (ig.infer(p, "bp", iterations=4, schedule="flooding", tape=True) for p in (shared, own))
    assert_array_equal(one.variables.flat, two.variables.flat)
    assert one.info.residual == two.info.residual
    a, b = one.backward(variables=bars), two.backward(variables=bars)
    np.testing.assert_allclose(a.groups[0], b.groups[0], rtol=1e-11, atol=1e-13)
    for axis in range(2):
        np.testing.assert_allclose(a.groups[1][axis], b.groups[1][across == axis].sum(axis=0), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(a.initial_messages, b.initial_messages, rtol=1e-10, atol=1e-13)


def test_derivatives_by_last_messages_that_do_not_sum_to_zero():
    """The implicit rule carries any derivatives by messages back: normalisation has to be taken out of them."""
    p = MODELS["one table"]
    loss, labels = ig.losses.UnivariateLikelihood(), np.arange(144) % 2
    found = [
        ig.gradients.rule(rule).evaluate(p, ig.BeliefPropagation(tol=1e-12), lambda r: loss(r, labels)).groups
        for rule in ("implicit", "unrolled")
    ]
    for one, two in zip(*found, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("step", ["_read_links", "_log_z"])
def test_ctrl_c_while_it_is_read_out_later_changes_nothing(step, monkeypatch):
    p, algorithm = models()["loop"], ig.BeliefPropagation(iterations=4, schedule="flooding")
    wanted, r = ig.infer(p, algorithm), ig.infer(p, algorithm)
    original = getattr(ReadOut, step)

    def interrupted(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ReadOut, step, interrupted)
        with pytest.raises(KeyboardInterrupt):
            r.factors.flat  # noqa: B018
    assert r.log_z == wanted.log_z
    assert_array_equal(r.factors.flat, wanted.factors.flat)
