"""Estimators from parts: one that is added here alone, those of the guide, and what all of them have in common."""

import inspect
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import isinglass as ig
from isinglass import losses
from isinglass.estimators import CRF, ESTIMATORS, Estimator, load, register
from isinglass.learning.training import TrainingProblem, fingerprint, training_choices

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "estimator.md"


class IsingObjective:
    """The exact likelihood of samples under one coupling and one field."""

    size, iterations, converged_share = 2, 1, 1.0

    def __init__(self, graph, X, l2):
        spins = 2 * X - 1
        pairs = np.array([scope for scope in graph.scopes if len(scope) == 2])
        self.graph, self.pairs, self.n, self.l2 = graph, pairs, len(X), l2
        self.seen = np.array([(spins[:, pairs[:, 0]] * spins[:, pairs[:, 1]]).sum(), spins.sum()], float)

    def __call__(self, theta):
        result = ig.infer(ig.models.Ising(self.graph).potentials(coupling=theta[0], field=theta[1]), "exact")
        field = np.diff(np.asarray(result.variables), axis=1).sum()
        scopes = list(self.graph.scopes)
        tables = [result.factor(scopes.index(tuple(pair))) for pair in self.pairs.tolist()]
        coupling = sum(b[0, 0] + b[1, 1] - b[0, 1] - b[1, 0] for b in tables)
        value = self.n * result.log_z - self.seen @ theta + self.l2 * (theta**2).sum()
        return float(value), self.n * np.array([coupling, field]) - self.seen + 2 * self.l2 * theta

    def unpenalised(self, theta):
        return self(theta)[0] - self.l2 * float((theta**2).sum())


@dataclass(frozen=True, eq=False)
class IsingProblem(TrainingProblem):
    graph: Any
    X: Any
    size = 2

    @property
    def n_examples(self):
        return len(self.X)

    def objective(self):
        return IsingObjective(self.graph, self.X, self.chosen.l2)

    def part_objective(self, rows):
        return IsingObjective(self.graph, self.X[rows], self.chosen.l2 * len(rows) / len(self.X))

    def fingerprint(self, start):
        return fingerprint(self.chosen.optimizer, self.chosen.l2, start, self.X, list(self.graph.scopes))


@register
@dataclass(eq=False, repr=False)
class IsingField(Estimator):
    """One coupling and one field, by maximum likelihood.

    Parameters
    ----------
    rows, columns : int
        Of the grid.
    """

    schema: ClassVar[str] = "test-ising-field"

    rows: Any = 2
    columns: Any = 3
    l2: Any = 0.0
    optimizer: Any = "lbfgs"
    tol: Any = 1e-8
    warm_start: Any = False
    checkpoint: Any = None
    callback: Any = None

    def fit(self, X, y=None):
        return self._train(np.asarray(X))

    def predict(self, X):
        """Return how likely each state of each variable is; X is ignored."""
        self._require_fitted()
        return np.asarray(ig.infer(self.potentials_).variables)

    def score(self, X, y=None):
        return -IsingObjective(self._graph(), np.asarray(X), 0.0)(self.theta_)[0] / len(X)

    def _graph(self):
        return ig.grid_graph(self.rows, self.columns, 2)

    def _choices(self):
        return training_choices(self, losses.make("cl"))

    def _problem(self, chosen, X):
        return IsingProblem(chosen, self._graph(), X)

    def _keep(self, stage, trained):
        self.potentials_ = ig.models.Ising(self._graph()).potentials(coupling=self.theta_[0], field=self.theta_[1])

    def _restore(self, saved):
        self.theta_ = saved.array("theta", "f", (2,))
        self._keep(self, None)


def samples(n=300):
    truth = ig.models.Ising(ig.grid_graph(2, 3, 2)).potentials(coupling=0.4, field=0.2)
    return ig.sample(truth, n, random_state=0)


def test_an_estimator_of_this_file_fits_and_predicts():
    X = samples(3000)
    model = IsingField(l2=0.1).fit(X)
    assert_allclose(model.theta_, [0.4, 0.2], atol=0.08)
    assert model.converged_
    assert [epoch.iteration for epoch in model.history_] == list(range(1, model.n_iter_ + 1))
    assert_allclose(model.predict(X)[:, 1], X.mean(axis=0), atol=0.05)
    assert clone(model).get_params() == model.get_params()
    assert pickle.loads(pickle.dumps(model)).theta_.tobytes() == model.theta_.tobytes()
    search = GridSearchCV(IsingField(), {"l2": [0.1, 1e4]}, cv=2, error_score="raise").fit(X)
    assert search.best_params_ == {"l2": 0.1}
    again = clone(model).set_params(warm_start=True).fit(X)
    assert again.fit(X).n_iter_ < model.n_iter_
    with pytest.raises(ValueError, match="not fitted"):
        IsingField().predict(X)
    with pytest.raises(ig.InputError, match="l2: expected a number of at least 0"):
        IsingField(l2=-1.0).fit(X)
    adam = IsingField(
        optimizer=ig.learning.optimizers.Adam(learning_rate=0.1, epochs=20, tol=1e-3, random_state=0)
    ).fit(X)
    assert_allclose(adam.theta_, [0.4, 0.2], atol=0.1)


def test_an_estimator_of_this_file_is_saved_and_loaded(tmp_path):
    model = IsingField(l2=0.1).fit(samples())
    model.save(tmp_path / "a.isg", notes={"a": 1})
    for again in (IsingField.load(tmp_path / "a.isg"), load(tmp_path / "a.isg")):
        assert type(again) is IsingField
        assert again.get_params() == model.get_params()
        assert again.history_ == model.history_
        assert_array_equal(again.predict(None), model.predict(None))
    with pytest.raises(ig.FileFormatError, match="the schema 'grid-crf'"):
        ig.GridCRF.load(tmp_path / "a.isg")


def test_a_base_class_loads_what_derives_from_it(tmp_path):
    IsingField(l2=0.1).fit(samples()).save(tmp_path / "a.isg")
    assert type(Estimator.load(tmp_path / "a.isg")) is IsingField
    with pytest.raises(ig.FileFormatError, match="expected a fitted CRF, got 'test-ising-field'"):
        CRF.load(tmp_path / "a.isg")
    X, Y = [(np.eye(2), [(0, 1)])], [[0, 1]]
    ig.GraphCRF(iterations=2, max_iter=500).fit(X, Y).save(tmp_path / "b.isg")
    assert type(CRF.load(tmp_path / "b.isg")) is ig.GraphCRF


def test_files_of_what_is_not_registered(tmp_path, monkeypatch):
    IsingField(l2=0.1).fit(samples()).save(tmp_path / "a.isg")
    with monkeypatch.context() as patch:
        patch.setattr(ESTIMATORS, "_entries", {k: v for k, v in ESTIMATORS.items() if v is not IsingField})
        for read in (load, Estimator.load):
            with pytest.raises(ig.FileFormatError, match="got 'test-ising-field'; import the module that registers it"):
                read(tmp_path / "a.isg")
    X, Y = [(np.eye(2), [(0, 1)])], [[0, 1]]
    for k, loss in enumerate(("uquad", losses.make("uquad"))):
        ig.GraphCRF(iterations=2, max_iter=500, loss=loss).fit(X, Y).save(tmp_path / f"{k}.isg")
        with monkeypatch.context() as patch:
            patch.setattr(losses.LOSSES, "_entries", {n: v for n, v in losses.LOSSES.items() if n != "uquad"})
            with pytest.raises(ig.FileFormatError, match=r"got 'uquad'; .*import the module that registers it"):
                load(tmp_path / f"{k}.isg")


def test_an_estimator_is_a_dataclass_with_a_name():
    with pytest.raises(ig.InputError, match=r"Bare: expected a dataclass, .* write @dataclass\(eq=False, repr=False\)"):
        register(type("Bare", (IsingField,), {}))
    with pytest.raises(ig.InputError, match="schema: expected a class attribute of type str, got none in Nameless"):
        register(dataclass(eq=False, repr=False)(type("Nameless", (Estimator,), {})))


def test_an_estimator_of_this_file_goes_on_from_a_checkpoint(tmp_path):
    X = samples()
    whole = IsingField(l2=0.1).fit(X)
    stopped = IsingField(l2=0.1, checkpoint=tmp_path / "run.npz", callback=lambda p: p.iteration == 2).fit(X)
    assert stopped.n_iter_ == 2
    again = IsingField(l2=0.1, checkpoint=tmp_path / "run.npz").fit(X)
    assert again.theta_.tobytes() == whole.theta_.tobytes()
    assert again.history_ == whole.history_
    with pytest.raises(ig.InputError, match="checkpoint: expected a checkpoint of this problem"):
        IsingField(l2=0.2, checkpoint=tmp_path / "run.npz").fit(X)


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
    X, Y = contours()
    X, y = X.reshape(-1, 2), Y.ravel()
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
    if cls is not IsingField:  # whose grid is documented, and what it shares
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
