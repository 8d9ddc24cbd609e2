"""Every option of every estimator changes the fit, is refused, or is in a written list.

Each option gets another value beside each setting: each loss or method, each optimizer, weights, counts, outputs,
`partial_fit`. The data are such that options matter: unequal classes, features that are not one-hot, few steps.
"""

from inspect import signature

import numpy as np
import pytest

import isinglass as ig
from isinglass import estimators
from isinglass.estimators.field.gaussian import GAUSSIAN_METHODS
from isinglass.learning.optimizers import OPTIMIZERS, Lbfgs
from isinglass.losses import LOSSES

RNG = np.random.default_rng(0)
LABELS = [np.array(y) for y in ([0, 1, 1, 2], [1, 1, 0, 1], [2, 1, 1, 1])]
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]
NODES = [np.c_[y, y == 1] + RNG.normal(size=(4, 2)) for y in LABELS]
GRAPHS = [(x, RING, RNG.normal(size=(4, 2))) for x in NODES]
CHAINS = [y.tolist() for y in (*LABELS, *RNG.integers(0, 3, (5, 4)))]
TOKENS = [[{"a": 1.0 + y[t], f"b{(t + y[t]) % 3}": 0.5, f"c{t * y[t]}": 1.0} for t in range(4)] for y in CHAINS]
NEW = [[{"a": c * a, f"b{int(9 * a) % 3}": c} for a in RNG.normal(size=6)] for c in np.geomspace(0.1, 3, 100)]
ATTRIBUTES, NEW_ATTRIBUTES = ([[list(token) for token in x] for x in some] for some in (TOKENS, NEW))
SETS = (RNG.random((6, 3)) < 0.4).astype(int)
STATES = (RNG.random((12, 4)) < 0.4).astype(int)
REALS = RNG.normal(size=(12, 4)) @ RNG.normal(size=(4, 4)) + 1.0
ASKED = np.array([True, True, True, False])
FIELD = ig.FactorGraph([2, 2, 2, 2], [(0,), *RING, (0, 2)])
ARROWS = (np.arange(16).reshape(1, 4, 4) % 3 > 0).tolist()

ESTIMATORS = {  # class: options of the plain fit, X, Y, what is predicted
    "GraphCRF": ({"iterations": 3}, GRAPHS, LABELS, GRAPHS),
    "GridCRF": ({"iterations": 3}, *(a := (np.reshape(NODES, (3, 2, 2, 2)), np.reshape(LABELS, (3, 2, 2)))), a[0]),
    "MultiLabelCRF": ({"iterations": 3}, *(b := (SETS[:, :2] + RNG.normal(size=(6, 2)), SETS)), b[0]),
    "ChainCRF": ({}, TOKENS, CHAINS, NEW),
    "MEMM": ({}, TOKENS, CHAINS, NEW),
    "HMM": ({}, ATTRIBUTES, CHAINS, NEW_ATTRIBUTES),
    "MRF": ({"graph": FIELD}, STATES, None, np.where(ASKED, -1, STATES)),
    "GaussianMRF": ({"graph": RING}, REALS, None, REALS),
    "VectorAutoregression": ({"graph": RING, "arrows": ARROWS}, REALS, None, REALS),
}  # fmt: skip
VALUES = {  # option, or class.option: another value
    "GaussianMRF.graph": [(0, 1)], "VectorAutoregression.graph": [(0, 1)], "MultiLabelCRF.graph": "tree",
    "MRF.graph": ig.chain_graph(4, 2), "MRF.edges": [("a", "b")], "GridCRF.edges": "shared",
    "MRF.method": "pseudo", "GaussianMRF.method": "covariance",
    **dict.fromkeys(("ChainCRF.decoder", "MEMM.decoder", "HMM.decoder"), "mpm"),
    **dict.fromkeys(("MRF.decoder", "MultiLabelCRF.decoder"), ig.decoding.Bayes([[0.0, 1e-3], [1.0, 0.0]])),
    "decoder": ig.decoding.Bayes([[0.0, 1.0, 1.0], [0.1, 0.0, 0.1], [1.0, 1.0, 0.0]]),
    "MultiLabelCRF.ignore_label": 1,
    "alpha": 0.3, "arrows": [np.eye(4, dtype=bool).tolist()], "bias": False, "boundary": False,
    "callback": lambda progress: True, "class_weight": {0: 3.0}, "edge_bias": True, "edge_l1": 0.1, "edge_l2": 0.2,
    "entropy": "B", "forbidden": [(2, 2)], "gradient": "implicit", "ignore_label": 2, "inference": "mf",
    "iterations": 2, "l1": 0.1, "l2": 0.2, "lags": 2, "loss": "uquad", "max_iter": 1, "min_count": 2, "n_states": 4,
    "optimizer": "steepest", "own_parameters": True, "patience": 1, "prior": "laplace", "schedule": "parallel",
    "stages": [{"l2": 5.0}, {}], "state_features": "all", "symmetric": True, "tied": True, "tol": 3000.0,
    "warm_start": True,
}  # fmt: skip
BESIDE = {  # option: what it needs beside it
    "entropy": {"inference": "convex", "iterations": None, "gradient": "implicit"},
    "patience": {"max_iter": 30, "validation": True},
}
WITHOUT_EFFECT = {  # on results
    "n_jobs": "any number of threads gives the same bits",
    "verbose": "prints",
    "checkpoint": "writes a file, with which training goes on to the same bits",
}
POTENTIALS = {name for name, loss in LOSSES.items() if loss.facts.uses == "potentials"}
ONE_STEP = ("closed-form", "directed")
NOT_USED = [  # the names in a setting, options, why they change nothing
    (POTENTIALS, {"gradient"}, "no inference is differentiated; other stages may have one"),
    ({"bcfw", "ChainCRF.margin"}, {"warm_start", "stages"}, "it begins with planes of zero, whatever the start"),
    ({"partial_fit"}, {"tol", "max_iter", "warm_start", "patience"}, "one pass, from where the last call ended"),
    (ONE_STEP, {"tol", "max_iter"}, "one step"),
    ({"pegasos"}, {"patience"}, "on these data the validation loss falls to the end"),
    ({"object"}, {"tol", "max_iter"}, "they are those of an optimizer given by name"),
]


def settings():
    """Yield class, options and ways to fit; graph estimators differ from `GraphCRF` by a few options alone."""
    for name in ESTIMATORS:
        cls = getattr(estimators, name)
        known, taken = signature(cls).parameters, signature(cls.fit).parameters
        yield name, {}, "fit"
        yield from ((name, {}, way) for way in ("sample_weight", "counts", "outputs") if way in taken)
        if hasattr(cls, "partial_fit"):
            yield name, {}, "partial_fit"
        if name == "GaussianMRF":
            yield from ((name, {"method": method}, "fit") for method in GAUSSIAN_METHODS)
        if "loss" in known:
            yield from ((name, {"loss": loss}, "outputs" if name == "MRF" else "fit") for loss in LOSSES)
        if "optimizer" in known:
            yield from ((name, {"optimizer": optimizer}, "fit") for optimizer in (*OPTIMIZERS, Lbfgs(max_iter=9)))


def plain_options(name, setting, way):
    """Return the options of the fit that others are compared with."""
    cls = getattr(estimators, name)
    known, optimizer, method = signature(cls).parameters, setting.get("optimizer"), setting.get("method")
    options = {**ESTIMATORS[name][0], **setting}
    if "stages" in known or "optimizer" in known:
        slack = {"ChainCRF": 15, "MRF": 3}.get(name, 5)  # it leaves zero late
        options["max_iter"] = slack if setting.get("loss") == "slack" else 3
    if "loss" in known and isinstance(optimizer, str) and OPTIMIZERS[optimizer].convex and name != "MRF":
        options["loss"] = "margin"
    if name == "MRF" and way == "outputs":
        options.update(inference="bp", iterations=3, gradient="unrolled")
    if method == "lasso":
        options["graph"] = None
    if method in ONE_STEP:
        options["graph"] = [[], [0], [1], [0, 2]] if method == "directed" else RING[:3]
    return options


def outcome(name, options, way, validation=False):
    """Return parameters, predictions and reports of a fit as one vector; None if it is refused."""
    _, X, Y, new = ESTIMATORS[name]
    estimator = getattr(estimators, name)(**options)
    data = {"X": X} if Y is None else {"X": X, "Y": Y}
    if way == "sample_weight":
        data["sample_weight"] = np.arange(1.0, len(X) + 1)
    elif way == "counts":
        data = {"counts": np.histogramdd(X, [[-0.5, 0.5, 1.5]] * 4)[0]}
    elif way == "outputs":
        data["outputs"] = ASKED
    if validation:
        others = (np.array(Y) + 1) % (np.max(Y) + 1)
        data["validation"] = (X, list(others) if isinstance(Y, list) else others)
    try:
        for _ in range(2 if options.get("warm_start") or way == "partial_fit" else 1):
            (estimator.partial_fit if way == "partial_fit" else estimator.fit)(**data)
        calls = ("predict", "predict_marginals", "predict_proba", "score_samples", "forecast")
        found = [np.ravel(x) for call in calls if hasattr(estimator, call) for x in calling(estimator, call, new)]
    except ig.InputError:
        return None
    facts = [getattr(estimator, fact, 0.0) for fact in ("n_iter_", "converged_", "objective_", "theta_", "constant_")]
    return np.concatenate([*map(np.ravel, facts), [len(getattr(estimator, "history_", ()))], *found]).astype(float)


def calling(estimator, call, new):
    """Return the answers of a method."""
    return getattr(estimator, call)(new, 2) if call == "forecast" else getattr(estimator, call)(new)


def shown(value):
    return value if isinstance(value, str) else "-".join(map(str, value.values())) if isinstance(value, dict) else None


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "setting", "way"), list(settings()), ids=shown)
def test_an_option_changes_the_fit_or_is_refused(name, setting, way):
    options = plain_options(name, setting, way)
    plain = outcome(name, options, way)
    if plain is None:
        assert setting  # the data themselves are not refused
        return
    np.testing.assert_array_equal(outcome(name, options, way), plain)  # a change is by the option
    of_all = name in ("GraphCRF", "ChainCRF", "MEMM", "MRF", "GaussianMRF") or way != "fit" or not setting
    same = set()
    for option in signature(getattr(estimators, name)).parameters:
        inherited = option in signature(ig.GraphCRF).parameters
        if option in WITHOUT_EFFECT or option in setting or (inherited and not of_all):
            continue
        beside = dict(BESIDE.get(option, {}))
        validation = beside.pop("validation", False) and way != "partial_fit"
        one = outcome(name, {**options, **beside}, way, validation) if beside else plain
        value = VALUES.get(f"{name}.{option}", VALUES.get(option))
        two = outcome(name, {**options, **beside, option: value}, way, validation)
        if one is not None and two is not None and one.shape == two.shape and np.allclose(one, two, 1e-6, 1e-9, True):
            same.add(option)
    names = {way, *(v for v in options.values() if isinstance(v, str)), *(f"{name}.{v}" for v in setting.values())}
    names |= {"object"} if isinstance(options.get("optimizer"), Lbfgs) else set()
    allowed = set().union(*(given for of, given, _ in NOT_USED if names & set(of)))
    assert not same - allowed


def test_every_option_has_another_value():
    public = {name for name in estimators.__all__ if hasattr(getattr(estimators, name), "get_params")}
    assert public - {"Estimator", "CRF"} == set(ESTIMATORS)  # but for base classes
    for name in ESTIMATORS:
        for option in getattr(estimators, name)().get_params():
            assert option in WITHOUT_EFFECT or option in VALUES or f"{name}.{option}" in VALUES, (name, option)
