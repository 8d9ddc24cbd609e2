"""Fitted estimators in safe files."""

import copy
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from estimator_helpers import KINDS, grid, images
from numpy.testing import assert_array_equal

import isinglass as ig
from checks import each_equal, refuses
from isinglass.estimators import load
from isinglass.estimators.encoding import decoded, encoded
from isinglass.io.arrays import read_arrays, write_arrays
from isinglass.learning.optimizers import OwlQn

OBJECTS = {
    "inference": ig.BeliefPropagation(damping=0.1, schedule="sequential"),
    "loss": ig.losses.SmoothedUnivariate(lam=3.0),
    "decoder": ig.decoding.MAP(ig.MaxProduct(max_iter=50)),
    "optimizer": OwlQn(l1=0.5, max_iter=40),
    "class_weight": {0: 1.0, 1: 2.0},
    "l2": np.float64(0.3),
}


AUTO = {"iterations": "auto", "loss": "suclass"}


@pytest.mark.parametrize(
    "options", [{}, OBJECTS, {"class_weight": [1.0, 2.0]}, AUTO], ids=["names", "objects", "lists", "auto"]
)
@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_estimator_is_the_one_that_was_saved(kind, options, tmp_path):
    make, data = KINDS[kind]
    X, Y = data()
    crf = make(**options).fit(X, Y)
    crf.save(tmp_path / "a.isg")
    again = type(crf).load(tmp_path / "a.isg")
    assert again.get_params() == crf.get_params()
    assert again.history_ == crf.history_
    assert again.theta_.tobytes() == crf.theta_.tobytes()
    assert {k: v for k, v in vars(again).items() if np.isscalar(v)} == {
        k: v for k, v in vars(crf).items() if np.isscalar(v)
    }
    for name, array in crf.parameters_.items():
        assert_array_equal(again.parameters_[name], array)
    each_equal(again.predict_marginals(X), crf.predict_marginals(X))
    assert again.score(X, Y) == crf.score(X, Y)
    again.set_params(warm_start=True).fit(X, Y)


def saved(tmp_path, **options):
    crf, path = grid(**options).fit(*images()), tmp_path / "a.isg"
    crf.save(path)
    return crf, path


def test_equal_estimators_give_equal_bytes(tmp_path):
    one = saved(tmp_path)[1].read_bytes()
    assert saved(tmp_path)[1].read_bytes() == one
    assert [p.name for p in tmp_path.iterdir()] == ["a.isg"]


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    crf = grid().fit(*images())
    for name, value, message in (
        ("callback", print, "before saving, or pickle the estimator"),
        ("loss", object(), "a name, number or object of the library"),
        ("l2", np.inf, "l2: expected a number"),
    ):
        refuses(message, copy.copy(crf).set_params(**{name: value}).save, tmp_path / "a.isg")
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_is_not_kept(tmp_path):
    crf, path = saved(tmp_path, checkpoint=str(tmp_path / "run.npz"))
    assert crf.checkpoint is not None
    assert ig.GridCRF.load(path).checkpoint is None


def test_other_files_are_refused(tmp_path):
    _, path = saved(tmp_path)
    refuses("expected the schema 'graph-crf', got 'grid-crf'", ig.GraphCRF.load, path, error=ig.FileFormatError)
    file = read_arrays(path)
    write_arrays(path, file.arrays, schema="grid-crf", version=9, metadata=file.metadata)
    refuses("a newer isinglass reads it", ig.GridCRF.load, path, error=ig.FileFormatError)
    with pytest.raises(FileNotFoundError):
        ig.GridCRF.load(tmp_path / "nowhere")


def forged(path, change):
    """Write the file again with other metadata or arrays."""
    file = read_arrays(path)
    metadata, arrays = json.loads(json.dumps(file.metadata)), dict(file.arrays)
    change(metadata, arrays)
    write_arrays(path, arrays, schema="grid-crf", metadata=metadata)


FORGED = {
    "unknown parameter": lambda m, a: m["parameters"].update(evil=1),
    "deep parameter": lambda m, a: m["parameters"].update(loss__lam=1),
    "path": lambda m, a: m["parameters"].update(checkpoint="/etc/passwd"),
    "callback": lambda m, a: m["parameters"].update(callback="os.system"),
    "unknown name": lambda m, a: m["parameters"].update(loss="os.system"),
    "unknown object": lambda m, a: m["parameters"].update(loss={"module": "os", "options": {}}),
    "unknown class": lambda m, a: m["parameters"].update(loss={"loss": "system", "options": {}}),
    "class of another kind": lambda m, a: m["parameters"].update(loss={"algorithm": "bp", "options": {}}),
    "unknown option": lambda m, a: m["parameters"].update(loss={"loss": "suclass", "options": {"x": 1}}),
    "odd name": lambda m, a: m["parameters"].update(loss={"loss": ["ucl"], "options": {}}),
    "odd number": lambda m, a: m["parameters"].update(l2="1"),
    "odd list": lambda m, a: m["parameters"].update(class_weight=[1, 2]),
    "odd dict": lambda m, a: m["parameters"].update(class_weight={"dict": [[[], 1]]}),
    "no parameters": lambda m, a: m.pop("parameters"),
    "no states": lambda m, a: m.update(n_states="2"),
    "odd states": lambda m, a: m.update(n_states=-2),
    "other states": lambda m, a: m.update(n_states=3),
    "other features": lambda m, a: m.update(n_features_in=3),
    "odd shapes": lambda m, a: m["shapes"].update(node=[-3, 2]),
    "large shapes": lambda m, a: m["shapes"].update(node=[10**9, 2]),
    "no shapes": lambda m, a: m.update(shapes={}),
    "short theta": lambda m, a: a.update(theta=np.zeros(3)),
    "infinite theta": lambda m, a: a.update(theta=a["theta"] + np.inf),
    "no theta": lambda m, a: a.pop("theta"),
    "odd history": lambda m, a: a.update(history=np.zeros((2, 3))),
    "infinite history": lambda m, a: a.update(history=a["history"] + np.inf),
    "odd objective": lambda m, a: a.update(objective=np.zeros(2)),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FORGED)
def test_forged_files_are_refused(name, tmp_path):
    _, path = saved(tmp_path)
    forged(path, FORGED[name])
    with pytest.raises(ig.FileFormatError):
        ig.GridCRF.load(path)


def test_forged_stages_are_refused(tmp_path):
    grid(iterations=3, own_parameters=True).fit(*images()).save(tmp_path / "a")
    file = read_arrays(tmp_path / "a")
    for node, edge in (([3, 3, 2], [2, 2, 2]), ([0, 3, 2], [0, 2, 2]), ([1, 3, 3, 2], [1, 3, 2, 2])):
        shapes = {"node": node, "edge/horizontal": edge, "edge/vertical": edge}
        theta = np.zeros(sum(int(np.prod(s)) for s in shapes.values()))
        forged = {**file.metadata, "shapes": shapes}
        write_arrays(tmp_path / "a", {**file.arrays, "theta": theta}, schema="grid-crf", metadata=forged)
        with pytest.raises(ig.FileFormatError):
            ig.GridCRF.load(tmp_path / "a")


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (os.mkdir, (self.path,))


def test_a_malicious_file_executes_nothing(tmp_path):
    _, path = saved(tmp_path)
    mark = tmp_path / "executed"
    bomb = pickle.dumps(Bomb(str(mark)))
    path.write_bytes(bomb)
    with pytest.raises(ig.FileFormatError):
        ig.GridCRF.load(path)
    _, path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    np.save(tmp_path / "bomb.npy", np.array([Bomb(str(mark))], object), allow_pickle=True)
    members["theta.npy"] = (tmp_path / "bomb.npy").read_bytes()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    with pytest.raises(ig.FileFormatError):
        ig.GridCRF.load(path)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("class_weight", {("N", 1): 2.0, ("V", (2, True)): 0.5}),
        ("forbidden", {(("N", 1), None), (None, ("V", (2, True)))}),
        ("forbidden", [(("N", 1), ("N", 1))]),
        ("forbidden", frozenset()),
        ("forbidden", ()),
    ],
)
def test_parameters_come_back_as_what_they_were(parameter, value, tmp_path):
    crf = tuples()
    crf.set_params(**{parameter: value})
    crf.save(tmp_path / "a.isg")
    again = getattr(ig.ChainCRF.load(tmp_path / "a.isg"), parameter)
    assert again == value
    assert type(again) is type(value)


def tuples():
    X, Y = [[["a"], ["b\udc80"]], [["b\udc80"], ["a"]]], [[("N", 1), ("V", (2, True))], [("V", (2, True)), ("N", 1)]]
    return ig.ChainCRF(loss="ucl").fit(X, Y)


def test_odd_labels_and_options_come_back(tmp_path):
    crf = tuples()
    crf.save(tmp_path / "a.isg")
    again = ig.ChainCRF.load(tmp_path / "a.isg")
    assert again.classes_ == crf.classes_
    assert [type(label) for label in again.classes_] == [tuple, tuple]
    assert list(again.index_.names) == ["a", "b\udc80"]
    assert again.predict([[["b\udc80"]]]) == [[("V", (2, True))]]
    crf = grid().fit(*images())
    crf.set_params(inference=ig.ConvexFreeEnergy(rtol=np.inf), iterations=None, gradient="implicit")
    crf.save(tmp_path / "a.isg")
    assert ig.GridCRF.load(tmp_path / "a.isg").inference == crf.inference


def test_what_load_would_refuse_is_refused_by_save(tmp_path):
    for crf in (grid().fit(*images()), tuples()):
        refuses("l2", crf.set_params(l2=-1.0).save, tmp_path / "a.isg")
    assert not (tmp_path / "a.isg").exists()

    class Text(str):
        __slots__ = ()

    refuses("set_params", tuples().set_params(class_weight={Text("N"): 1.0}).save, tmp_path / "a.isg")
    assert not (tmp_path / "a.isg").exists()


@pytest.mark.parametrize("value", [np.array([1.5, np.inf]), np.array([[1, 2]], np.int32), np.array(["a", "bc"])])
def test_arrays_come_back_with_their_dtype(value):
    again = decoded(json.loads(json.dumps(encoded(value, "x"))), "x")
    assert again.dtype == value.dtype
    assert_array_equal(again, value)


def test_subclasses_that_did_not_register(tmp_path):
    class Own(ig.GridCRF):
        pass

    class Tagger(ig.ChainCRF):
        pass

    X, Y = images()
    crf = Own(iterations=2).fit(X, Y)
    crf.save(tmp_path / "own.isg")
    assert type(Own.load(tmp_path / "own.isg")) is Own
    refuses("a fitted estimator, got 'Own'", load, tmp_path / "own.isg", error=ig.FileFormatError)
    refuses("the schema 'grid-crf', got 'Own'", ig.GridCRF.load, tmp_path / "own.isg", error=ig.FileFormatError)
    for made in (ig.GridCRF(iterations=2).fit(X, Y), tuples()):
        made.save(tmp_path / "base.isg")
        cls = Own if isinstance(made, ig.GridCRF) else Tagger
        assert cls.load(tmp_path / "base.isg").theta_.tobytes() == made.theta_.tobytes()
