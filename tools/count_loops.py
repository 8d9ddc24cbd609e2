"""Count the inner loops that the usual pieces of work need, for progress such as "compiling, once: 7 of 14".

    python tools/count_loops.py                    # write src/isinglass/runtime/compilation/loop_counts.py
    python tools/count_loops.py --check [NAME ...]   # compare; fail if it is stale

Each piece of work runs in a process of its own, on small models or data; the most loops of its examples count. It takes
a minute if all loops are in the cache, and ten if none is. Needs fork.
"""

import argparse
import os
import sys
import warnings
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numba
import numpy as np

import isinglass as ig
from isinglass.cli.denoising import train_demo
from isinglass.inference import ALGORITHMS, SOLVERS
from isinglass.runtime.compilation import jit, loop_counts  # noqa: F401  (Numba is imported once, before forks)
from isinglass.runtime.compilation.helper import SWITCH
from isinglass.runtime.compilation.progress import Count

TARGET = Path(loop_counts.__file__)
ELSEWHERE = {"toulbar2"}  # another program
LOSSES = ("cl", "ucl", "uquad", "pseudo")
TEXT = '''"""How many inner loops the usual work needs; written and checked by ``tools/count_loops.py``."""

ALWAYS = {always}
"""Work that is always the same."""

USUALLY = {usually}
"""Work that depends on a model or on data: the most of some small examples."""
'''


def random(graph):
    rng = np.random.default_rng(0)
    return ig.Potentials.from_groups(graph, [rng.normal(0, 0.5, (len(g), *g.shape)) for g in graph.groups])


MODELS = {
    "grid": lambda: random(ig.grid_graph(4, 4, 2)),
    "large tables": lambda: random(ig.grid_graph(12, 12, 2)),
    "chain": lambda: random(ig.chain_graph(5, 3)),
    "mixed": lambda: random(ig.FactorGraph([2, 3, 2, 6, 2], [(0,), (0, 1, 2), (1, 2), (2, 3), (3, 0), (4, 0)])),
}


def infer(algorithm, model):
    ig.infer(MODELS[model](), algorithm).variables.flat  # noqa: B018


def maximise(algorithm, model):
    ig.map_assignment(MODELS[model](), algorithm)


def fit_grid(inference, loss, states):
    rng = np.random.default_rng(0)
    ig.GridCRF(inference, loss=loss, max_iter=3).fit(rng.normal(size=(4, 5, 6, 2)), rng.integers(0, states, (4, 5, 6)))


def fit_graph(inference, loss, states):
    rng = np.random.default_rng(0)
    X = [(rng.normal(size=(5, 2)), np.array([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)])) for _ in range(4)]
    ig.GraphCRF(inference, loss=loss, max_iter=3).fit(X, [rng.integers(0, states, 5) for _ in X])


def fit_sequence(cls, options):
    words = [[f"w{i % 5}" for i in range(j, j + 6)] for j in range(6)]
    labels = [["AB"[i % 2] for i in range(j, j + 6)] for j in range(6)]
    cls(**options).fit([[[word] for word in sentence] for sentence in words], labels)


def fit_field(method):
    X = np.random.default_rng(0).integers(0, 2, (50, 9))
    ig.MRF(ig.grid_graph(3, 3, 2), method=method).fit(X)


def works():
    """Return, for each name, the functions that do such work."""
    found = {"demo": [train_demo], "warmup": [ig.warmup]}
    for name in ALGORITHMS:
        found[f"infer {name}"] = [partial(infer, name, model) for model in MODELS]
    for name in [n for n, cls in ALGORITHMS.items() if cls.facts.maximises] + [
        n for n in SOLVERS if n not in ELSEWHERE
    ]:
        found[f"MAP {name}"] = [partial(maximise, name, model) for model in MODELS]
    for inference in ("bp", "trw", "mf", "exact"):
        for loss in LOSSES:
            found[f"fit GridCRF {inference} {loss}"] = [partial(fit_grid, inference, loss, k) for k in (2, 3)]
            found[f"fit GraphCRF {inference} {loss}"] = [partial(fit_graph, inference, loss, k) for k in (2, 3)]
    found |= {f"fit ChainCRF {loss}": [partial(fit_sequence, ig.ChainCRF, {"loss": loss})] for loss in LOSSES}
    found |= {"fit MEMM local": [partial(fit_sequence, ig.MEMM, {})]}
    return found | {f"fit MRF {method} exact": [partial(fit_field, method)] for method in ("ml", "em", "pseudo")}


def count(run, answers):
    """Put how many loops were compiled or loaded, or none where the model is refused."""
    warnings.simplefilter("ignore")
    os.environ[SWITCH] = "0"
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  (until this process ends)
    try:
        run()
    except ig.errors.IsinglassError:
        answers.put(None)
    else:
        answers.put(Count.ready)


def counted(run):
    """Count in a process of its own."""
    context = get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=count, args=(run, answers))
    process.start()
    process.join()
    if process.exitcode:
        raise SystemExit(f"{run} failed")
    return answers.get()


def table(names):
    """Return the most loops of the examples of each work."""
    examples, found = works(), {}
    numba.njit(lambda x: x)(1)  # much of Numba is imported when it first compiles; once, before forks
    for name in names or examples:
        numbers = [n for n in map(counted, examples[name]) if n is not None]
        print(f"{name}: {', '.join(map(str, numbers)) or 'refused'}", flush=True)
        if max(numbers, default=0):
            found[name] = max(numbers)
    return found


def written(named):
    return "\n".join(["{", *(f'    "{name}": {number},' for name, number in named.items()), "}"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help="what to check (default: all)")
    arguments = parser.parse_args()
    found = table(arguments.names)
    if arguments.check:
        known = loop_counts.ALWAYS | loop_counts.USUALLY
        stale = {name: (known.get(name), number) for name, number in found.items() if known.get(name) != number}
        raise SystemExit(f"stale (name: table, counted): {stale}" if stale else 0)
    always = {name: found.pop(name) for name in loop_counts.ALWAYS}
    TARGET.write_text(TEXT.format(always=written(always), usually=written(found)))


if __name__ == "__main__":
    main()
