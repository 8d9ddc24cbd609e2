"""The cases of ``tools/answers.py``: models, algorithms, estimators and their options, in tables.

Models and data are small, and random numbers in them have fixed seeds. What chance, ties or divergence decide does not
belong here (`answers.py shake` finds it): iterations that may not converge are limited, minibatches hold all examples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

import isinglass as ig
from isinglass import decoding, losses, metrics
from isinglass.learning import markov, optimizers

Answer = dict[str, Any]
Options = Mapping[str, Any]
Cases = Iterator[tuple[str, Callable[[], Answer]]]

SHAKE = 0.0  # the relative change of tables and data in `shake`


def shaken(a: Any) -> np.ndarray:
    """Return an array; in `shake`, with other last bits."""
    a = np.asarray(a, float)
    return a * (1 + SHAKE * np.random.default_rng(9).uniform(-1, 1, a.shape)) if SHAKE else a


class Estimate:
    """A Monte Carlo estimate, the truth, and how far apart they may be; what is stored is this last number."""

    def __init__(self, estimate: Any, truth: Any, error: float) -> None:
        self.apart, self.error = float(np.abs(np.asarray(estimate) - truth).max(initial=0.0)), float(error)


def flat(arrays: Any) -> np.ndarray:
    """Return arrays, one after the other."""
    return np.concatenate([np.zeros(0), *map(np.ravel, arrays)])


def called(name: str, options: Options) -> str:
    """Return how a key names a call; of an object it shows what differs from the defaults."""
    shown = ",".join(f"{k}={named(v)}" for k, v in options.items() if k != "max_iter")
    return f"{name}({shown})" if shown else name


def named(value: Any) -> str:
    """Return how a key names the value of an option."""
    if not is_dataclass(value):
        return type(value).__name__ if isinstance(value, ig.FactorGraph | ig.models.Ising) else str(value)
    options = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    return called(value.name, {f.name: options[f.name] for f in fields(value) if options.get(f.name) != f.default})


def caught(compute: Callable[[], Any]) -> Any:
    """Return an answer, or the class of an error."""
    try:
        return compute()
    except Exception as error:
        return f"raises {type(error).__name__}"


def each(**questions: Callable[[], Any]) -> Answer:
    """Return the answer to each question, of which some may raise."""
    return {name: caught(ask) for name, ask in questions.items()}


# -------------------------------------------------------------------------------------------------------- models
def random(graph: ig.FactorGraph, scale: float = 1.0, zeros: float = 0.0, seed: int = 0) -> ig.Potentials:
    """Return a model with normal tables; of the entries, except the first of each table, some are hard zeros."""
    rng = np.random.default_rng(seed)
    tables = []
    for scope in graph.scopes:
        shape = tuple(graph.cards[i] for i in scope)
        table = scale * rng.normal(size=shape)
        hard = rng.random(shape) < zeros
        hard.flat[0] = False
        tables.append(np.where(hard, -np.inf, shaken(table)))
    return ig.Potentials(graph, tables)


def spins(kind: type, graph: ig.FactorGraph, low: float, high: float) -> ig.Potentials:
    """Return an Ising or Potts model with random fields, and couplings in an interval."""
    rng = np.random.default_rng(1)
    n, k = len(graph.cards), int(graph.cards[0])
    field = rng.normal(0, 0.4, n if kind is ig.models.Ising else (n, k))
    coupling = rng.uniform(low, high, graph.n_factors - n)
    return kind(graph).potentials(coupling=shaken(coupling), field=shaken(field))


LOOPS = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4), (0, 3)]
MODELS: dict[str, Callable[[], ig.Potentials]] = {
    "tree": lambda: random(ig.pairwise_graph(9, [(i, (i - 1) // 2) for i in range(1, 9)], 3)),
    "chain": lambda: random(ig.chain_graph(7, 3)),
    "grid": lambda: random(ig.grid_graph(3, 4, 2)),
    "ternary": lambda: random(
        ig.FactorGraph([2, 3, 3, 2, 3, 2], [(0, 1, 2), (2, 3), (3, 4), (4, 0), (1,), (2,), (3, 4, 5)]), 0.7
    ),
    "mixed": lambda: random(ig.FactorGraph([2, 4, 3, 2, 5, 3], [*((i,) for i in range(6)), *LOOPS]), 0.6),
    "zeros": lambda: random(ig.grid_graph(3, 3, 3), zeros=0.15),
    "large": lambda: random(ig.FactorGraph([2, 3, 2, 3, 2, 2], [*((i,) for i in range(6)), *LOOPS[:6]]), 200.0),
    "apart": lambda: random(ig.FactorGraph([2, 1, 3, 2, 2, 3], [(0, 1), (0,), (2, 3), (3, 4), (4, 2), (1,)])),
    "repeated": lambda: random(
        ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 0), (0, 1), (1, 2), (2, 3), (2, 3), (3, 0), (2,), (2,)]), 0.6
    ),
    "batch": lambda: ig.potentials_union([random(ig.grid_graph(2, 3, 2), seed=i) for i in range(3)]),
    "copies": lambda: random(ig.grid_graph(2, 3, 3), 0.8).repeat(3),
    "evidence": lambda: random(ig.grid_graph(3, 4, 2), seed=2).with_evidence({1: 1, 5: 0}),
    "attractive": lambda: spins(ig.models.Ising, ig.grid_graph(6, 6, 2), 0.1, 0.5),
    "frustrated": lambda: spins(ig.models.Ising, ig.grid_graph(4, 4, 2), -0.5, 0.5),
    "potts": lambda: spins(ig.models.Potts, ig.grid_graph(3, 3, 3), 0.2, 0.8),
    "labels": lambda: spins(ig.models.Potts, ig.grid_graph(5, 5, 4), 0.2, 0.8),
    "cuts": lambda: ig.potentials_union(
        [spins(ig.models.Ising, ig.grid_graph(n, 4, 2), 0.1, 0.6) for n in (3, 4)]
    ).with_evidence({7: 1, 20: 0}),
}
model = cache(lambda name: MODELS[name]())

# ----------------------------------------------------------------------------------------------------- inference
LIMIT = {"max_iter": 60}  # where they do not converge, iterations multiply rounding
T = {"iterations": 5}
ALGORITHMS: list[tuple[str, Options]] = [
    ("exact", {}),
    ("brute", {}),
    ("bp", LIMIT),
    ("bp", {"schedule": "flooding", **LIMIT}),
    ("bp", {"schedule": "sequential", **LIMIT}),
    ("bp", {"schedule": "residual", **LIMIT}),
    ("bp", {"schedule": "tree"}),
    ("bp", {"schedule": "grid", **LIMIT}),
    ("bp", {"damping": 0.4, **LIMIT}),
    ("bp", {"tol": 1e-3, **LIMIT}),
    ("bp", T),
    ("bp", {"init": "bp", **T}),
    ("bp", {"schedule": "sequential", **T}),
    ("bp", {"schedule": "grid", "damping": 0.2, **T}),
    ("fbp", {"counting_numbers": 0.7, **LIMIT}),
    ("fbp", {"counting_numbers": 1.3, "damping": 0.2, **T}),
    ("trw", LIMIT),
    ("trw", {"schedule": "sequential", **LIMIT}),
    ("trw", {"weights": 0.6, **LIMIT}),
    ("trw", T),
    ("mf", LIMIT),
    ("mf", T),
    ("smf", LIMIT),
    ("smf", T),
    ("convex", {}),
    ("convex", {"weights": "B"}),
    ("convex", {"weights": "C"}),
    ("convex", {"weights": "bethe"}),
    ("convex", {"system": "iterative"}),
    ("max-product", LIMIT),
    ("max-product", {"schedule": "sequential", "damping": 0.3, **LIMIT}),
    ("max-product", T),
]
SOLVERS: list[tuple[str, Options]] = [
    ("convex", {"solver": name, "max_iter": 3000}) for name in ("primal", "blocks", "dual", "lbfgs")
]
RISKS: list[tuple[str, Options]] = [
    *(("bp", {"loss": name, **T}) for name in ("ucl", "uquad", "ccl", "cquad", "expected", "suclass", "scclass")),
    *(("bp", {"loss": name, **T}) for name in ("l1", "mse", "hamming", "hybrid")),
    *((name, {"loss": "ucl", **T}) for name in ("trw", "mf")),
    ("fbp", {"loss": "ucl", "counting_numbers": 0.8, "damping": 0.1, **T}),
    ("exact", {"loss": "ccl"}),
]
SQRT: list[tuple[str, Options]] = [(name, {"tape": "sqrt", **T}) for name in ("bp", "trw", "mf")]
AT_ONCE: list[tuple[str, Options]] = [("exact", {}), ("brute", {})]
FIXED_POINTS: list[tuple[str, Options]] = [("convex", {}), *((name, {"tol": 1e-11}) for name in ("bp", "trw", "mf"))]
MAXIMISERS: list[tuple[str, Options]] = [
    *AT_ONCE,
    *((name, LIMIT) for name in ("bp", "trw", "max-product")),
    ("icm", {}),
    ("icm", {"blocks": "trees", "restarts": 5}),
    ("annealing", {"restarts": 6}),
    ("ils", {"restarts": 5}),
    ("lp", {}),
    ("ilp", {}),
    ("trws", {}),
    ("toulbar2", {}),
    ("auto", {"seconds": None}),
    ("graph-cut", {}),
    ("expansion", {}),
    ("qpbo", {}),
]
SAMPLERS: list[tuple[str, Options]] = [
    ("gibbs", {}),
    ("gibbs", {"scan": "systematic"}),
    ("gibbs", {"scan": "random"}),
    ("tree-gibbs", {}),
    ("swendsen-wang", {}),
    ("wolff", {}),
    ("tempering", {"replicas": 4}),
    ("ais", {}),
    ("ais", {"start": "tree"}),
    ("importance", {}),
]


def inferred(name: str, algorithm: str, options: Options) -> Answer:
    """Return beliefs, log Z and the report."""
    start = {"init": ig.infer(model(name), options["init"], iterations=2)} if "init" in options else {}
    r = ig.infer(model(name), algorithm, **{**options, **start})
    report = [r.info.converged, r.info.iterations, r.info.converged_share]
    beliefs = {"variables": r.variables.flat, "factors": r.factors.flat}
    return {"log_z": r.component_log_z, **beliefs, "report": report, "bound": str(r.info.bound)}


def solved(name: str, algorithm: str, options: Options) -> Answer:
    """Return beliefs and log Z, without the report."""
    r = ig.infer(model(name), algorithm, **options)
    return {"log_z": r.component_log_z, "variables": r.variables.flat, "converged": r.info.converged}


def bars(name: str) -> list[np.ndarray]:
    """Return derivatives by the beliefs."""
    rng = np.random.default_rng(3)
    return [rng.normal(size=k) for k in model(name).graph.cards]


def differentiated(name: str, algorithm: str, options: Options) -> Answer:
    """Return derivatives by all tables, initial messages and damping."""
    d = ig.infer(model(name), algorithm, **{"tape": True, **options}).backward(log_z=1.0, variables=bars(name))
    return {"groups": flat(d.groups), "damping": d.damping, "messages": flat(d.initial_messages)}


def risky(name: str, algorithm: str, options: Options) -> Answer:
    """Return a loss of beliefs, and its derivatives by tables, damping and counting numbers."""
    states = ig.map_assignment(model(name)).states
    labels = np.where(np.arange(len(states)) % 4 == 3, -1, states)
    d = ig.gradients.risk_gradients(model(name), algorithm, labels=labels, **options)
    found = {"value": d.value, "groups": flat(d.groups), "damping": d.damping}
    return found | each(counting=lambda: d.counting_numbers, options=lambda: flat(list(d.options.values())))


def perturbed(name: str, algorithm: str, options: Options) -> Answer:
    """Return derivatives by perturbation."""
    return {"groups": flat(ig.perturbation(model(name), algorithm, variables=bars(name), **options).groups)}


def curved(name: str, algorithm: str, options: Options) -> Answer:
    """Return a Hessian of log Z times a vector."""
    direction = [np.cos(3 * np.where(np.isfinite(t), t, 0.0)) for t in model(name).log_tables]
    return {"groups": flat(ig.hessian_vector_product(model(name), algorithm, direction, log_z=1.0, **options).groups)}


def asked(name: str, algorithm: str, options: Options) -> Answer:
    """Return what a result says when it is asked."""
    r = ig.infer(model(name), algorithm, **options)
    return each(
        joint=lambda: r.joint([0, 2, 3]),
        pair=lambda: r.pair(0, 2),
        conditional=lambda: r.conditional([2], given={0: 0}),
        correlation=lambda: r.correlation(0, 2),
        entropy=lambda: [r.entropy(), r.entropy([0, 2])],
        information=lambda: r.mutual_information(0, 2),
        mean=lambda: r.expect(lambda x: x.sum(-1), [0, 2]),
    )


def maximised(name: str, solver: str, options: Options) -> Answer:
    """Return an assignment; of searches by chance the score alone, which is that of the maximum."""
    m = ig.map_assignment(model(name), solver, **options)
    if "restarts" in options:
        return {"score": m.score}
    return {"states": m.states, "score": m.score, "bound": m.bound, "optimal": m.optimal}


def best(name: str, solver: str, options: Options) -> Answer:
    """Return the five best assignments; of those with equal scores, as for copies of a graph, the scores alone."""
    found = ig.n_best(model(name), 5, solver, **options)
    scores = np.array([m.score for m in found])
    alone = (np.abs(scores[:, None] - scores) < 1e-6).sum(1) == 1
    return {"states": [m.states for m, one in zip(found, alone, strict=True) if one], "scores": scores}


def sampled(name: str, algorithm: str, options: Options) -> Answer:
    """Return the estimates of a sampler."""
    exact = ig.infer(model(name), "exact")
    r = ig.infer(model(name), algorithm, random_state=0, **options)
    if r.info.stderr is not None:
        return {"log_z": Estimate(r.log_z, exact.log_z, 5 * r.info.stderr)}
    beliefs, truth = (np.concatenate([s.variables.flat, s.factors.flat]) for s in (r, exact))
    return {"beliefs": Estimate(beliefs, truth, 5 * r.info.residual)}


def drawn(name: str, algorithm: str, options: Options) -> Answer:
    """Return the shares of states among independent samples."""
    p = model(name)
    x = ig.sample(p, 2500, algorithm, random_state=0, **options)
    shares = [np.bincount(column, minlength=k) / len(x) for column, k in zip(x.T, p.graph.cards, strict=True)]
    return {"beliefs": Estimate(flat(shares), ig.infer(p, "exact").variables.flat, 5 * 0.5 / len(x) ** 0.5)}


def meaning(name: str) -> Answer:
    """Return what a graph says of its variables."""
    g = model(name).graph
    wide = ig.triangulate(g)
    others = range(3, len(g.cards))
    return {
        "width": ig.elimination_order(g).width,
        "chordal": [ig.is_chordal(g), ig.is_chordal(wide)],
        "cliques": str(sorted(map(sorted, ig.cliques(g)))),
        "separated": [ig.separated(g, [0], [j], [1, 2]) for j in others],
        "blanket": ig.markov_blanket(g, [0]),
        "independencies": str(ig.implied_independencies(g, "local")),
    }


INFERENCE: list[tuple[str, str, Callable[..., Answer], Sequence[tuple[str, Options]]]] = [
    ("infer", "", inferred, ALGORITHMS),
    ("solvers", "", solved, SOLVERS),
    ("backward", "", differentiated, [*(a for a in ALGORITHMS if "init" not in a[1]), *SQRT]),
    ("backward", "risk of ", risky, RISKS),
    ("perturbation", "", perturbed, [("exact", {}), *FIXED_POINTS]),
    ("hessian", "", curved, [("exact", {}), ("bp", T), ("trw", T), ("mf", T)]),
    ("queries", "", asked, [*AT_ONCE, ("bp", T), ("mf", T)]),
    ("map", "", maximised, MAXIMISERS),
    ("map", "best ", best, AT_ONCE),
    ("sampled", "", sampled, SAMPLERS),
    ("sampled", "draws of ", drawn, AT_ONCE),
]


def inference_cases() -> Cases:
    """Yield every algorithm on every model."""
    for group, prefix, of, table in INFERENCE:
        for what, options in table:
            for name in MODELS:
                if group in ("sampled", "solvers") and name == "large":  # chains hardly move, solvers end early
                    continue
                yield f"{group}/{prefix}{called(what, options)}/{name}", partial(of, name, what, options)
    for name in MODELS:
        yield f"graph/{name}", partial(meaning, name)


# ------------------------------------------------------------------------------------------------------ learning
ENVELOPE = {"loss": "cl", "inference": "exact", "gradient": "envelope"}
BATCHES = {"epochs": 3, "batch_size": 6}  # all examples: no random order matters
GRAPH: list[Options] = [
    {},
    *({"loss": name} for name in ("uquad", "ccl", "cquad", "expected", "log-expected", "suclass", "scclass")),
    *({"loss": name} for name in ("pseudo", "mpf", "piecewise", "hamming", "l1", "mse", "hybrid")),
    *({"loss": name, "inference": "exact"} for name in ("margin", "slack", "perceptron", "viterbi")),
    {"loss": losses.Margin(relaxed=True)},
    *({"loss": of(cost=[[0, 1, 2], [1, 0, 1], [3, 1, 0]])} for of in (losses.Slack, losses.ExpectedCost)),
    {"loss": losses.SmoothedUnivariate(lam=2.0)},
    *({**ENVELOPE, "inference": name} for name in ("exact", "bp", "trw", "mf", "convex")),
    *({"inference": name, "iterations": 4} for name in ("bp", "fbp", "trw", "mf")),
    *({"inference": name, "gradient": "implicit"} for name in ("bp", "trw", "mf", "convex")),
    {"gradient": "perturbation", "iterations": None},
    *({"inference": "convex", "gradient": "implicit", "entropy": name} for name in ("B", "fit")),
    {"inference": ig.FractionalBeliefPropagation(iterations=4, damping=0.2, learn=("damping", "counting_numbers"))},
    {"own_parameters": True, "iterations": 3},
    {"edge_l2": 0.3, "bias": False, "class_weight": "balanced"},
    {"stages": ["pseudo", "ucl"]},
    *({"decoder": name} for name in ("map", "bayes", "median")),
    {"l1": 0.05, "optimizer": "owlqn"},
    {"optimizer": "lbfgs"},
    *({"optimizer": getattr(optimizers, name)(**BATCHES)} for name in ("Sgd", "AdaGrad", "Adam", "Smd")),
    *({"optimizer": name, "loss": "margin", "inference": "exact"} for name in ("cutting-plane", "bcfw")),
    {"optimizer": optimizers.Pegasos(**BATCHES, l2=0.1), "loss": "margin"},
    {"optimizer": optimizers.AveragedPerceptron(**BATCHES), "loss": "perceptron", "l2": 0.0},
]
GRID: list[Options] = [
    {},
    {"schedule": "flooding", "iterations": 4},
    {"edges": "shared"},
    {**ENVELOPE, "inference": "trw"},
    {"loss": "f1"},
    {"loss": "f1", "decoder": "f1"},
    {"loss": "pseudo"},
    {"own_parameters": True, "iterations": 2},
]
LABEL_SETS: list[Options] = [
    {},
    {"graph": "tree"},
    {"graph": [(0, 1)]},
    {"loss": "f1"},
    {"loss": losses.Margin(cost="f1"), "inference": "exact"},
]
CHAIN: list[Options] = [
    {},
    *({"loss": name} for name in ("pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass", "expected")),
    *({"loss": name} for name in ("margin", "slack", "perceptron", "viterbi")),
    {"state_features": "all", "boundary": False, "bias": False},
    {"min_count": 2, "class_weight": "balanced", "loss": "ucl", "decoder": "mpm"},
    {"forbidden": [("D", "D")]},
    {"l1": 0.05},
]
FIELD = ig.FactorGraph([2, 3, 2, 2], [(0,), (1,), (2,), (3,), (0, 1), (1, 2), (2, 3), (3, 0)])
ISING = ig.models.Ising(ig.lattice_graph([2, 2], 2))
FIELDS: list[Options] = [
    *({"method": name, "l2": 0.1} for name in ("ml", "pseudo", "composite", "piecewise", "mpf")),
    {"method": markov.Composite(blocks=[[0, 1], [2, 3]])},
    *({"inference": name, "l2": 0.1} for name in ("bp", "trw")),
    *({"graph": ISING, "method": name, "tied": tied} for name in ("ml", "pseudo") for tied in (False, True)),
    {"tied": True, "l2": 0.1},
    {"prior": "gaussian"},
]
UPDATES: list[Options] = [  # without an objective for optimizers
    {"method": "em", "l2": 0.1},
    *({"method": name} for name in ("ipf", "scaling", "camel", "pmm")),
    {"method": markov.IterativeScaling(kind="iis")},
    {"method": "closed-form", "graph": ig.FactorGraph([2, 3, 2, 2], [(0, 1), (1, 2), (2, 3)])},
    {"method": "ipf", "prior": "dirichlet"},
    *({"prior": name} for name in ("laplace", "group")),
]
GAUSSIAN: list[Options] = [
    {},
    {"graph": [(0, 1), (1, 2), (2, 3), (3, 0)]},
    {"method": "closed-form", "graph": [(0, 1), (1, 2)]},
    {"method": "covariance", "graph": [(0, 1), (1, 2)]},
    {"method": "directed", "graph": [(), (0,), (0, 1), (), (3,)]},
    {"method": "lasso", "alpha": 0.1},
]
STRUCTURES: list[tuple[str, Options]] = [
    ("chow-liu", {}),
    ("neighbourhood", {"strength": 0.1}),
    ("neighbourhood", {"strength": 0.1, "rule": "or"}),
    ("group-l1", {"strength": 0.1}),
    ("greedy", {}),
    ("greedy", {"criterion": "aic"}),
]


def sentences(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return sentences of tokens with attributes, and labels; none is D after D."""
    numbers = [rng.integers(12, size=n) for n in rng.integers(1, 8, size=15)]
    X = [[{"word": f"w{w}", "size": float(shaken(w / 7 + 0.5))} for w in sentence] for sentence in numbers]
    Y = [["NVD"[(w + (rng.random() < 0.3)) % 3] for w in sentence] for sentence in numbers]
    return X, [list("".join(y).replace("DD", "DN")) for y in Y]


def rings(rng: np.random.Generator, features: int = 0, hidden: bool = False) -> tuple[Any, Any]:
    """Return five rings and a chain, with three labels."""
    edges = [np.array([(i, (i + 1) % 5) for i in range(5 if g else 4)]) for g in range(6)]
    X = [(shaken(rng.normal(size=(5, 3))), e, *([shaken(rng.normal(size=(len(e), 2)))] * features)) for e in edges]
    Y = [(x[0][:, 0] + 0.5 * rng.normal(size=5) > 0).astype(int) + (x[0][:, 1] > 0.5) for x in X]
    return X, [np.where(hidden & (np.arange(5) == i % 5), -1, y) for i, y in enumerate(Y)]


def images(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return six images of 4 x 5 pixels, with two labels."""
    X = shaken(rng.normal(size=(6, 4, 5, 3)))
    return X, (X.sum(-1) + rng.normal(size=X.shape[:3]) > 0).astype(int)


def label_sets(rng: np.random.Generator) -> tuple[Any, Any]:
    """Return inputs, and sets of four labels."""
    X = shaken(rng.normal(size=(20, 3)))
    return X, (X @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(20, 4)) > 0).astype(int)


# An estimator, its data, and options, one after the other.
Data = Callable[[np.random.Generator], tuple[Any, Any]]
ESTIMATORS: dict[str, tuple[type, Data, list[Options]]] = {
    "GraphCRF": (ig.GraphCRF, rings, GRAPH),
    "GraphCRF of edges": (ig.GraphCRF, partial(rings, features=1), [{}, {"symmetric": True}, {"edge_bias": True}]),
    "GraphCRF of hidden": (
        ig.GraphCRF,
        partial(rings, hidden=True),
        [{}, ENVELOPE, {"loss": "margin", "inference": "exact"}],
    ),
    "GridCRF": (ig.GridCRF, images, GRID),
    "MultiLabelCRF": (ig.MultiLabelCRF, label_sets, LABEL_SETS),
    "ChainCRF": (ig.ChainCRF, sentences, CHAIN),
    "MEMM": (ig.MEMM, sentences, [{}, {"boundary": False}, {"l1": 0.05}]),
    "HMM": (ig.HMM, sentences, [{}, {"alpha": 0.1, "decoder": "mpm"}]),
}
CONVERGED: dict[str, Options] = {"GraphCRF": ENVELOPE, "GridCRF": ENVELOPE, "ChainCRF": {}, "MEMM": {}}


class Probe(optimizers.Lbfgs):
    """L-BFGS that keeps, for each stage of training, what it evaluates at two points, and its first evaluations."""

    seen: ClassVar[list[Answer]] = []

    def minimise(self, f: Any, x0: Any = None, **more: Any) -> Any:
        """Evaluate, then minimise."""
        points = np.array([x0, x0 + 0.3 * np.sin(1 + np.arange(len(x0)))])
        found = [f(x) for x in points]
        tried: list[tuple[np.ndarray, float]] = []

        def recorded(x: np.ndarray) -> Any:
            value, gradient = f(x)
            tried.append((np.array(x), value))
            return value, gradient

        result = super().minimise(recorded, x0, **more)
        firsts = {"points": [x for x, _ in tried[:3]], "values": [v for _, v in tried[:3]]}
        Probe.seen.append({"value": [v for v, _ in found], "gradient": [g for _, g in found], **firsts})
        return result


def fitted(name: str, options: Options) -> Answer:
    """Return what an estimator learns in a few iterations, and predicts."""
    of, data, _ = ESTIMATORS[name]
    X, Y = data(np.random.default_rng(5))
    e = of(**({} if name == "HMM" else {"l2": 0.1, "max_iter": 3}) | dict(options)).fit(X, Y)
    return {"theta": e.theta_, "objective": e.objective_} | each(
        labels=lambda: " ".join(str(label) for y in e.predict(X) for label in np.ravel(y)),
        marginals=lambda: flat(e.predict_proba(X) if name == "MultiLabelCRF" else e.predict_marginals(X)),
        likelihood=lambda: e.log_likelihood(X, Y),
        score=lambda: e.score(X, Y),
        best=lambda: [score for _, score in e.predict_n_best(X[:1], 3)[0]],
    )


def dependent() -> np.ndarray:
    """Return samples of four variables that depend on each other."""
    X = np.random.default_rng(6).integers(0, FIELD.cards, (150, 4))
    X[:90, 2] = X[:90, 3]
    X[:60, 1] = X[:60, 0] + X[:60, 2]
    return X


def field(options: Options, missing: float = 0.0) -> Answer:
    """Return a field that is learned from samples."""
    X = dependent() % [2, 2 if options.get("graph") is ISING else 3, 2, 2]
    m = ig.MRF(**{"graph": FIELD, "max_iter": 10, **options}).fit(np.where(np.eye(150, 4) * missing, -1, X))
    r = ig.infer(m.potentials_, "exact")
    return {"log_z": r.log_z, "variables": r.variables.flat, "factors": r.factors.flat, "X": m.score_samples(X[:9])}


def probed(name: str, options: Options, parts: Sequence[str]) -> Answer:
    """Return parts of what `Probe` sees in each stage of a fit."""
    Probe.seen.clear()
    if name == "MRF":
        field({**options, "optimizer": Probe(max_iter=3)})
    else:
        fitted(name, {**options, "optimizer": Probe(max_iter=3)})
    return {f"{part} {i}": seen[part] for i, seen in enumerate(Probe.seen) for part in parts}


def outputs(options: Options) -> Answer:
    """Return a field that learns to predict its last two variables from the others."""
    X, mask = dependent(), np.array([False, False, True, True])
    m = ig.MRF(**{"graph": FIELD, "max_iter": 10, "l2": 0.1, **options}).fit(X, outputs=mask)
    proba = m.predict_proba([[0, 1, -1, -1], [1, 2, -1, -1]])
    return {"theta": m.theta_, "proba": flat(proba[2:]), "states": m.predict(X[:20], outputs=mask)}


def tagged() -> Answer:
    """Return what a tagger says under constraints, and what it learns sentence by sentence."""
    X, Y = sentences(np.random.default_rng(5))
    crf = ig.ChainCRF(l2=0.1, max_iter=5).fit(X, Y)
    forced = [[y[0], *[None] * (len(y) - 1)] for y in Y]
    few = ig.ChainCRF(l2=0.1, optimizer=optimizers.Sgd(**BATCHES))
    return {
        "forced": flat(crf.predict_marginals(X, forced=forced)),
        "forbidden": flat(crf.predict_marginals(X, forbidden=[("N", "N"), (None, "D")])),
        "allowed": flat(crf.predict_marginals(X, allowed=[[{"N", "V"} for _ in x] for x in X])),
        "labels": str(crf.predict(X, forced=forced)),
        "partial": few.partial_fit(X[:6], Y[:6], classes=["D", "N", "V"]).theta_,
        "weights": crf.weights_frame()["weight"].to_numpy(),
    }


def families() -> Answer:
    """Return the tables of model families, of a canonical form, and of a Bayesian network in two forms."""
    patterns = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 1, 0, 1, 0]])
    memory = ig.models.Hopfield.store(patterns)
    machine = ig.models.BoltzmannMachine(3, 2, "restricted").potentials(coupling=0.5, field=-0.1)
    tables = [[0.4, 0.6], [0.7, 0.3], [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [1.0, 0.0]]]]
    network = ig.from_bayesian_network([[], [], [0, 1]], tables)
    named = ig.from_bayesian_network({"a": (), "b": (), "c": ("a", "b")}, dict(zip("abc", tables, strict=True)))
    table = np.random.default_rng(1).random((2, 3, 2))
    return {
        "recall": memory.recall([1, 1, 1, 0, 0, 0, 0, 0]).energies,
        "machine": ig.infer(machine, "exact").factors.flat,
        "canonical": flat(ig.canonical_potentials(table).log_tables),
        "network": [ig.infer(n, "exact", evidence={2: 1}).log_z for n in (network, named)],
        "posterior": ig.infer(network, "exact", evidence={2: 1}).joint([0, 1]),
        "trace": ig.trace(model("tree"), "bp", iterations=3, schedule="flooding").variable(0),
        "moral": str(ig.moralise([(), (), (0, 1), (2,)]).scopes[:]),
        "d-separated": [ig.d_separated([(), (), (0, 1), (2,)], [0], [1], given) for given in ([], [2], [3])],
    }


def wordy() -> Answer:
    """Return attributes of words, and schemes of spans."""
    columns = ig.features.with_forms({"w": ["The", "McDonald-42", "x"]}, {"w": ["lower", "shape", "suffix2"]})
    return {
        "attributes": str(ig.features.window_attributes(columns, {"w": [(0,), (-1, 0)], "w.shape": [(1,)]})),
        "bio": str(ig.features.to_bio(["B-NP", "E-NP", "O", "S-VP", "I-NP"])),
        "bioes": str(ig.features.to_bioes(["B-NP", "I-NP", "O", "B-VP", "I-NP"])),
    }


def framed() -> Answer:
    """Return what is learned from a data frame, and a graph with the names of its columns."""
    import pandas as pd

    frame = pd.DataFrame(dependent(), columns=list("abcd")).replace({"d": {0: "no", 1: "yes"}})
    m = ig.MRF(edges=[("a", "b"), ("c", "d")], l2=0.1, max_iter=10).fit(frame)
    return {"table": m.conditional(["d"], given={"c": 0}), "scopes": str(ig.learn_structure(frame).scopes[:])}


def by_chance(method: str) -> Answer:
    """Return the marginals of a method that samples."""
    ising = ig.models.Ising(ig.grid_graph(2, 3, 2))
    X = np.random.default_rng(7).integers(0, 2, (200, 6))
    X[:80, 1] = X[:80, 0]
    fits = (ig.MRF(ising, name, max_iter=200, l2=0.1).fit(X) for name in (method, "ml"))
    found, truth = (ig.infer(m.potentials_, "exact").factors.flat for m in fits)
    return {"marginals": Estimate(found, truth, 0.1)}


def tagged_by_chance(loss: str) -> Answer:
    """Return the marginals of a conditional field whose loss samples."""
    X, Y = rings(np.random.default_rng(5))
    fits = (
        ig.GraphCRF(loss=name, inference="exact", gradient="envelope", max_iter=200).fit(X, Y) for name in (loss, "cl")
    )
    found, truth = (flat(crf.predict_marginals(X)) for crf in fits)
    return {"marginals": Estimate(found, truth, 0.1)}


def statistics() -> Answer:
    """Return the statistics of a log-linear model, and of a posterior."""
    m = ig.MRF(FIELD, "ipf", tol=1e-8).fit(dependent())
    posterior = ig.MRF(ig.chain_graph(4, [2, 3, 2, 2]), "ipf", prior="dirichlet").fit(dependent()).posterior()
    return {
        "criteria": [m.aic(), m.bic(), m.deviance(), m.degrees_of_freedom(), m.free_parameters()],
        "fisher": flat(list(m.standard_errors().values())),
        "sandwich": flat(list(m.standard_errors("sandwich").values())),
        "conditional": m.conditional(1, given={0: 1}),
        "proba": flat(m.predict_proba([[0, -1, 1, -1]])),
        "imputed": m.impute([[0, -1, 1, -1]]),
        "evidence": posterior.log_evidence(),
    }


def gaussian(options: Options) -> Answer:
    """Return a Gaussian field that is learned, and its answers."""
    rng = np.random.default_rng(8)
    X = shaken(rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + np.arange(5))
    m = ig.GaussianMRF(**options).fit(X)
    given = m.condition({1: 1.0, 3: 0.5})
    return {"precision": m.precision_.toarray(), "mean": m.mean_, "log_z": m.field_.log_z} | each(
        likelihood=lambda: [m.log_likelihood(X), m.deviance(), m.aic(), m.score(X)],
        conditional=lambda: [given.mean, given.variances()],
        marginal=lambda: m.marginal([0, 4]).covariance([0, 1]),
        partial=lambda: m.partial_correlations().toarray(),
        imputed=lambda: m.impute(np.where(np.eye(5), np.nan, X[:5])),
    )


def series(options: Options) -> Answer:
    """Return what is learned of a time series."""
    rng, X = np.random.default_rng(9), np.zeros((80, 3))
    for t in range(1, 80):
        X[t] = 0.4 * X[t - 1] + 0.3 * X[t - 1, ::-1] + rng.normal(size=3)
    m = ig.VectorAutoregression(**options).fit(X := shaken(X))
    learned = {"coefficients": m.coefficients_, "constant": m.constant_, "noise": m.noise_.covariance([0, 1, 2])}
    return {**learned, "forecast": m.forecast(X[:5], 3), "score": m.score(X)}


def structure(method: str, options: Options) -> Answer:
    """Return the edges that are found."""
    return {"scopes": str(ig.learn_structure(dependent(), method, **options).scopes)}


def induced(options: Options) -> Answer:
    """Return the features that are found."""
    grown = ig.induce_features(dependent(), most=3, **options)
    steps = [(step.gain, step.log_likelihood) for step in grown.steps]
    return {"features": str([sorted(f.items()) for f in grown.features]), "steps": steps}


DECODERS: list[tuple[str, Options]] = [
    *((name, {}) for name in ("mpm", "map", "bayes", "median", "f1", "soft", "identity", "distribution")),
    *(("f1", {"form": form}) for form in ("exact", "even-split")),
    ("bayes", {"cost": [[0, 1], [5, 0]]}),
]


def decided(name: str, decoder: str, options: Options) -> Answer:
    """Return decisions for the variables of a model."""
    found = decoding.make(decoder, **options)(ig.infer(model(name), "exact"))
    return {"decision": flat(list(found))}


def scored() -> Answer:
    """Return scores of predictions of labels, spans and probabilities."""
    rng = np.random.default_rng(10)
    proba, y = rng.dirichlet(np.ones(3), 40), rng.integers(0, 3, 40)
    report = metrics.report([y], [proba.argmax(1)], proba=[proba])
    tags = ["O", "B-x", "I-x", "B-y", "I-y"]
    Y, P = ([[tags[k] for k in rng.integers(5, size=n)] for n in (9, 7, 12)] for _ in range(2))
    of_spans = {str(k): [v.precision, v.recall, v.f1] for k, v in metrics.span_scores(Y, P).items()}
    return {
        "accuracy": report.accuracy,
        "per class": [[c.precision, c.recall, c.f1, c.support] for c in report.per_class.values()],
        "calibration": metrics.calibration_error(y, proba),
        "sequences": metrics.sequence_accuracy(Y, [Y[0], *P[1:]]),
        "spans": [of_spans[k] for k in sorted(of_spans)],
    }


def learning_cases() -> Cases:
    """Yield all estimators, and what surrounds them."""
    tables = [(name, choices) for name, (_, _, choices) in ESTIMATORS.items()]
    for name, choices in [*tables, ("MRF", FIELDS)]:
        for options in choices:
            key = called(name, options)
            yield f"fit/{key}", partial(field, options) if name == "MRF" else partial(fitted, name, options)
            if name != "HMM" and not {"optimizer", "l1"} & set(options):
                yield f"objective/{key}", partial(probed, name, options, ("value", "gradient"))
                yield f"evaluations/{key}", partial(probed, name, options, ("points", "values"))
    for options in UPDATES:
        yield f"fit/{called('MRF', options)}", partial(field, options)
    for method in ("ml", "em"):
        yield f"fit/MRF of missing(method={method})", partial(field, {"method": method, "l2": 0.1}, 1.0)
    tight = {"tol": 1e-6, "max_iter": 500}
    for name, options in CONVERGED.items():
        yield f"converged/{name}", partial(fitted, name, {**options, **tight})
    for name in ("ml", "pseudo", "em"):
        yield f"converged/MRF(method={name})", partial(field, {"method": name, "l2": 0.1, **tight})
    for method in ("cd", "pcd", "sml", "importance"):
        yield f"chance/MRF(method={method})", partial(by_chance, method)
    for loss in ("pcd", "sml"):
        yield f"chance/GraphCRF(loss={loss})", partial(tagged_by_chance, loss)
    yield "fit/statistics", statistics
    yield "fit/frame", framed
    for options in GAUSSIAN:
        yield f"fit/{called('GaussianMRF', options)}", partial(gaussian, options)
    for options in ({}, {"lags": 2}, {"graph": [(0, 1)]}):
        yield f"fit/{called('VectorAutoregression', options)}", partial(series, options)
    for method, options in STRUCTURES:
        yield f"structure/{called(method, options)}", partial(structure, method, options)
    for options in ({}, {"given": [0]}, {"criterion": "aic", "order": 2}):
        yield f"structure/{called('induce_features', options)}", partial(induced, options)
    for decoder, options in DECODERS:
        for name in ("grid", "mixed", "frustrated"):
            yield f"decoding/{called(decoder, options)}/{name}", partial(decided, name, decoder, options)
    for options in ({"loss": "cl"}, {"loss": "pseudo"}, {"loss": "ucl", "gradient": "unrolled"}):
        yield f"fit/{called('MRF of outputs', options)}", partial(outputs, options)
    yield "fit/tagger", tagged
    yield "models/all", families
    yield "features/all", wordy
    yield "metrics/all", scored
