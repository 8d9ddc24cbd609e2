"""Message passing runs on any backend behind the protocol: here one in plain NumPy, and one that records its calls."""

import ast
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import isinglass as ig
from isinglass.inference import message_passing
from isinglass.inference.message_passing.model import log_model
from isinglass.kernels.backend import using
from isinglass.kernels.layout import is_linear

ROOM = Path(message_passing.__file__).parent


class NumpyBackend:
    """Flooding with linear values and counting numbers of one, link by link, without derivatives."""

    pairs = None
    grids = None

    def take_tops(self, rows, out, tops, first, last):
        part = slice(first, last)
        tops[part] = rows[part].max(axis=1)
        out[part] = rows[part] - np.where(tops[part] > -np.inf, tops[part], 0)[:, None]
        return out[part].min(), np.abs(tops[part]).max()

    def flood(self, run, values, new, status):
        assert is_linear(run.semiring)
        n = messages_to_links(run, values)
        for f, edges in links(run):
            for message, e in zip(
                messages_of_link(table_of(run, values, f), [n[e] for e in edges]), edges, strict=True
            ):
                new[entries(run, e)] = message / message.sum()
        change = np.abs(new - run.m)
        status.residual[:] = 0
        for e, f in enumerate(run.edges.edge_link):
            c = run.edges.component[f]
            status.residual[c] = max(status.residual[c], change[entries(run, e)].max())

    def read_out_variables(self, run, values, beliefs, active):
        for i in range(len(run.edges.cards)):
            belief = values.phi[states(run, i)].copy()
            for e in edges_at(run, i):
                belief *= run.m[entries(run, e)]
            beliefs.z_variables[i] = belief.sum()
            beliefs.variables[states(run, i)] = belief / belief.sum()

    def read_out_links(self, run, values, beliefs, active, flagged):
        n = messages_to_links(run, values)
        for f, edges in links(run):
            belief = table_of(run, values, f)
            for slot, e in enumerate(edges):
                belief = belief * along(n[e], slot, len(edges))
            beliefs.z_links[f] = belief.sum()
            start = beliefs.first_belief[f]
            beliefs.factors[start : start + belief.size] = (belief / belief.sum()).ravel()

    def effects(self, run, old, new, status):
        status.residual[status.active] = 0
        for e, f in enumerate(run.edges.edge_link):
            c, change = run.edges.component[f], np.log(new[entries(run, e)] / old[entries(run, e)])
            if status.active[c]:
                status.residual[c] = max(status.residual[c], np.tanh(np.ptp(change) / 4))


def entries(run, e):
    return slice(run.edges.start[e], run.edges.start[e + 1])


def states(run, i):
    return slice(run.edges.first_state[i], run.edges.first_state[i + 1])


def edges_at(run, i):
    return range(run.edges.first_edge[i], run.edges.first_edge[i + 1])


def links(run):
    first = run.edges.first_slot
    return [(f, run.edges.slot_edge[first[f] : first[f + 1]].tolist()) for f in range(len(run.edges.size))]


def table_of(run, values, f):
    slots = slice(run.edges.first_slot[f], run.edges.first_slot[f + 1])
    flat = values.psi[values.table[f] : values.table[f] + run.edges.size[f]]
    return flat.reshape(run.edges.cards[run.edges.slot_variable[slots]])


def along(vector, slot, arity):
    return vector.reshape([-1 if k == slot else 1 for k in range(arity)])


def marginal(table, slot):
    return table.sum(axis=tuple(k for k in range(table.ndim) if k != slot))


def messages_to_links(run, values):
    n = {}
    for i in range(len(run.edges.cards)):
        for e in edges_at(run, i):
            n[e] = values.phi[states(run, i)].copy()
            for other in edges_at(run, i):
                n[e] *= run.m[entries(run, other)] if other != e else 1
    return n


def messages_of_link(table, sent):
    for slot in range(table.ndim):
        weighted = table
        for other, message in enumerate(sent):
            weighted = weighted * (along(message, other, table.ndim) if other != slot else 1)
        yield marginal(weighted, slot)


def model(kind="any"):
    """Two loopy examples with shared tables; `any` has factors of three variables and different numbers of states."""
    rng = np.random.default_rng(5)
    if kind == "grid":
        graph = ig.grid_graph(2, 3, 2)
    else:
        graph = ig.FactorGraph([2, 3, 2, 2], [(0,), (1,), (0, 1), (1, 2), (0, 2, 3), (1, 3)])
    tables = [rng.normal(size=(1 if group.arity > 1 else len(group), *group.shape)) for group in graph.groups]
    return ig.Potentials.from_groups(graph, tables).repeat(2)


def run_with(p, backend, back=False, **options):
    """Return log Z, the beliefs of variables, the residual and, if asked for, all derivatives, flat."""
    rng = np.random.default_rng(1)
    with using(backend):
        r = ig.infer(p, "bp", tape=back, **options)
    parts = [r.component_log_z, r.variables.flat, [r.info.residual]]
    if back:
        tables = [rng.normal(size=[p.graph.cards[i] for i in scope]) for scope in p.graph.scopes]
        found = r.backward(rng.normal(), rng.normal(size=p.graph.cards.sum()), tables)
        parts += [*found.groups, found.initial_messages]
    return np.concatenate([np.ravel(part) for part in parts])


@pytest.mark.long
@pytest.mark.parametrize("many", [log_model.MANY, 0])
@pytest.mark.parametrize("kind", ["any", "grid"])
def test_a_backend_in_plain_numpy(kind, many, monkeypatch):
    from isinglass.kernels.numba.backend import NUMBA

    monkeypatch.setattr(log_model, "MANY", many)  # from how many entries on the backend shifts log tables
    p = model(kind)
    for options in ({"iterations": 3}, {"tol": 1e-12}):
        mine, theirs = (run_with(p, backend, schedule="flooding", **options) for backend in (NumpyBackend(), NUMBA))
        assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


class Recorder:
    """Hands every call on to Numba, and notes its name."""

    def __init__(self):
        self.calls = set()

    def __getattr__(self, name):
        from isinglass.kernels.numba.backend import NUMBA

        self.calls.add(name)
        return getattr(NUMBA, name)


@pytest.mark.parametrize(
    ("schedule", "calls"),
    [
        ("flooding", {"flood", "flood_back"}),
        ("sequential", {"update_in_sequence", "update_in_sequence_back"}),
        ("residual", {"update_by_residual", "update_in_sequence_back"}),
    ],
)
def test_every_schedule_goes_through_the_protocol(schedule, calls):
    from isinglass.kernels.numba.backend import NUMBA

    p, recorder = model(), Recorder()
    options = {"schedule": schedule, "iterations": 3}
    assert_array_equal(run_with(p, recorder, True, **options), run_with(p, NUMBA, True, **options))
    assert calls | {"read_out_variables", "read_out_links", "read_out_back"} <= recorder.calls
    assert "pairs" in recorder.calls or schedule != "flooding"


def test_nothing_else_of_message_passing_imports_loops():
    for path in sorted(ROOM.rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text()))
        modules = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert not [name for name in modules if name.startswith("isinglass.kernels.numba")], path


WITHOUT_NUMBA = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "numba":
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
sys.path.insert(0, {folder!r})
import isinglass.kernels.numba.backend, isinglass.inference.message_passing.moves.grid_sweep
from test_backend_seam import NumpyBackend, model, run_with
print(repr(float(run_with(model(), NumpyBackend(), iterations=3)[0])))
"""


@pytest.mark.long
def test_another_backend_needs_no_numba():
    code = WITHOUT_NUMBA.format(folder=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == run_with(model(), NumpyBackend(), iterations=3)[0]
