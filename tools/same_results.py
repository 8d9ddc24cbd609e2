"""Compare the results of two source trees of the library, bit by bit: ``python tools/same_results.py OLD NEW``.

Each tree has a process of its own, which computes the same results: 20 of every algorithm (beliefs, log Z, derivatives,
assignments) and 20 fits of every estimator (parameters, predictions, marginals). A row counts those whose bits differ
and shows the largest difference. ``--chains TOL`` allows a difference in what is learned for sequences.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

COUNT = 20
Results = dict[str, list[np.ndarray]]


def potentials(seed: int) -> object:
    """Return a batch of a grid, a chain and a graph with a ternary factor, in turn alone."""
    import isinglass as ig

    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 4))
    graphs = [
        ig.grid_graph(3, 4, k),
        ig.chain_graph(6, k),
        ig.FactorGraph([2, k, 3, 2, k], [(0, 1, 2), (2, 3), (3, 4), (4, 0), (1,), (2,)]),
        ig.grid_graph(4, 4, 2),
    ]
    graph = graphs[seed % 4]
    tables = [rng.normal(0, 1, (1 if seed % 3 == 0 else len(g), *g.shape)) for g in graph.groups]
    if seed % 5 == 4:
        tables[-1][..., 0, 0] = -np.inf
    p = ig.Potentials.from_groups(graph, tables)
    return p.repeat(3) if seed % 2 else p


def of_algorithm(name: str, seed: int) -> list[np.ndarray]:
    """Return what an algorithm finds on one problem, with derivatives where it has them."""
    import isinglass as ig
    from isinglass.inference.algorithm import make

    p = potentials(seed)
    options = {"iterations": 5} if seed % 2 and name in ("bp", "trw", "fbp") else {}
    if name == "bp" and seed % 4 > 1:
        options["schedule"] = ("residual", "sequential", "random", "flooding")[seed // 4 % 4]
    if make(name, {}).facts.stochastic:
        options["random_state"] = seed
    r = ig.infer(p, name, **options)
    found = [np.asarray(r.component_log_z), *r.variables, *r.factors, np.array([r.info.residual], float)]
    rng = np.random.default_rng(seed)
    bars = [rng.normal(size=len(b)) for b in r.variables]
    for rule in ("tape", "perturbation"):
        try:
            if rule == "tape":
                d = ig.infer(p, name, tape=True, **options).backward(log_z=1.0, variables=bars)
            else:
                d = ig.perturbation(p, name, variables=bars)
            found += list(d.groups)
        except (ig.InputError, ig.IsinglassError, TypeError) as error:
            found.append(np.array([len(str(error)) > 0], float))
    return found


def of_map(name: str, seed: int) -> list[np.ndarray]:
    """Return an assignment."""
    import isinglass as ig

    m = ig.map_assignment(potentials(seed), name)
    return [np.asarray(m.states, float), np.array([m.score, m.bound, m.optimal], float)]


def of_estimator(name: str, seed: int) -> list[np.ndarray]:
    """Return what an estimator learns from one random data set."""
    import isinglass as ig

    rng = np.random.default_rng(seed)
    if name == "GridCRF":
        loss = ("ucl", "cl", "pseudo", "uquad", "ccl", "suclass")[seed % 6]
        X = rng.normal(size=(4, 5, 5, 3))
        Y = (X.sum(-1) + rng.normal(size=X.shape[:3]) > 0).astype(int)
        crf = ig.GridCRF(loss=loss, max_iter=8, l2=0.1, **({"iterations": 4} if loss != "pseudo" else {}))
        crf.fit(X, Y)
        return [*learned(crf), *crf.predict(X), *map(np.asarray, crf.predict_marginals(X))]
    if name == "GraphCRF":
        optimizer = ("lbfgs", "adam", "sgd", "owlqn")[seed % 4]
        X = [(rng.normal(size=(6, 3)), np.array([(i, (i + 1) % 6) for i in range(6)])) for _ in range(6)]
        Y = [(x[0].sum(1) > 0).astype(int) + (x[0][:, 0] > 1) for x in X]
        penalty = {"l1": 0.05} if optimizer == "owlqn" else {}
        inference = ("bp", "trw", "mf", "exact", "convex")[seed % 5]
        if inference == "convex":
            penalty["gradient"] = "implicit"
        crf = ig.GraphCRF(inference=inference, optimizer=optimizer, l2=0.1, max_iter=6, **penalty)
        crf.fit(X, Y)
        return [*learned(crf), *crf.predict(X), *map(np.asarray, crf.predict_marginals(X))]
    if name == "MRF":
        graph = ig.grid_graph(3, 3, 2)
        X = rng.integers(0, 2, (40, 9))
        if seed % 2:
            X[rng.random(X.shape) < 0.1] = -1
        mrf = ig.MRF(graph, method=("ml", "pseudo")[seed % 4 == 0], l2=0.01, max_iter=20).fit(X)
        return [*learned(mrf), mrf.score_samples(X)]
    words = [[f"w{rng.integers(12)}" for _ in range(rng.integers(1, 8))] for _ in range(20)]
    X = [[{"word": w, "shape": len(w) + 0.5} for w in sentence] for sentence in words]
    Y = [[("N", "V", "D")[(int(w[1:]) + int(rng.integers(2))) % 3] for w in sentence] for sentence in words]
    if name == "HMM":
        X = [[[w] for w in sentence] for sentence in words]
        tagger = ig.HMM().fit(X, Y)
    elif name == "MEMM":
        tagger = ig.MEMM(l2=0.1, max_iter=15).fit(X, Y)
    else:
        loss = ("cl", "ucl", "pseudo", "uquad", "suclass")[seed % 5]
        optimizer = "lbfgs" if seed % 2 else ("adam" if loss == "cl" else "lbfgs")
        tagger = ig.ChainCRF(loss=loss, optimizer=optimizer, l2=0.1, max_iter=10)
        tagger.fit(X, Y)
    found = [np.array([hash_of(y) for y in tagger.predict(X)], float)]
    if name != "MEMM":
        found += [np.asarray(m, float) for m in tagger.predict_marginals(X)]
    return [*learned(tagger), *found]


def learned(estimator: object) -> list[np.ndarray]:
    """Return the parameters of an estimator."""
    return [np.asarray(value, float) for _, value in sorted(estimator.parameters_.items())]


def hash_of(labels: object) -> float:
    """Return a number that stands for some labels."""
    return float(int.from_bytes(repr(list(labels)).encode()[-6:], "big"))


def cases() -> Iterator[tuple[str, Callable[[str, int], list[np.ndarray]], str]]:
    """Yield everything that has results."""
    import isinglass as ig

    for name in ig.algorithms():
        if name not in ("max-product",):
            yield f"infer {name}", of_algorithm, name
    for name in ("exact", "brute", "max-product"):
        yield f"map {name}", of_map, name
    for name in ("GridCRF", "GraphCRF", "MRF", "ChainCRF", "HMM", "MEMM"):
        yield name, of_estimator, name


def compute(path: Path) -> None:
    """Compute all results, and write them to a file."""
    warnings.simplefilter("ignore")
    found: dict[str, list[list[np.ndarray] | str]] = {}
    for row, of, name in cases():
        found[row] = []
        for seed in range(COUNT):
            try:
                found[row].append([np.asarray(a) for a in of(name, seed)])
            except Exception as error:
                found[row].append(f"{type(error).__name__}: {error}")
    path.write_bytes(pickle.dumps(found))


def run(tree: str, path: Path) -> dict[str, list[list[np.ndarray] | str]]:
    """Compute the results of one tree."""
    environment = {**os.environ, "PYTHONPATH": tree, "PYTHONHASHSEED": "0"}
    subprocess.run([sys.executable, __file__, "--compute", str(path)], env=environment, check=True)
    return pickle.loads(path.read_bytes())


def difference(old: list[np.ndarray] | str, new: list[np.ndarray] | str) -> float:
    """Return 0 where all bits agree, else the largest difference."""
    if isinstance(old, str) or isinstance(new, str):
        return 0.0 if isinstance(old, str) and isinstance(new, str) and old == new else np.inf
    if len(old) != len(new) or any(a.shape != b.shape for a, b in zip(old, new, strict=True)):
        return np.inf
    pairs = [(a, b) for a, b in zip(old, new, strict=True) if not np.array_equal(a, b, equal_nan=True)]
    with np.errstate(invalid="ignore"):
        return max((float(np.nanmax(np.abs(a - b))) for a, b in pairs), default=0.0)


def main() -> int:
    """Compare, and print a row for each algorithm and estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="*")
    parser.add_argument("--compute", type=Path)
    parser.add_argument("--chains", type=float, default=0.0)
    given = parser.parse_args()
    if given.compute:
        compute(given.compute)
        return 0
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        old, new = (run(tree, Path(folder) / f"{i}") for i, tree in enumerate(given.trees))
    bad = 0
    for row, results in old.items():
        apart = [difference(a, b) for a, b in zip(results, new[row], strict=True)]
        limit = given.chains if row in ("ChainCRF", "MEMM") else 0.0
        failed = [r for r in results if isinstance(r, str)]
        bad += sum(a > limit for a in apart)
        note = f"  (both raise in {len(failed)}: {failed[0][:90]})" if failed else ""
        print(f"{row:24s} {sum(a > 0 for a in apart):2d} of {COUNT} differ, at most {max(apart):.1e}{note}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
