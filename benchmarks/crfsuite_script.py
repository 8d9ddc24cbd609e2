"""Run python-crfsuite on the tagging problem, and print the seconds of an iteration and tokens a second, as JSON.

``python crfsuite_script.py [ITERATIONS]``, in an environment that has NumPy and python-crfsuite.
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import pycrfsuite

from tagging_problem import tagging_problem

PARAMETERS = {
    "c1": 0.0, "c2": 1.0, "feature.possible_transitions": True, "epsilon": 1e-12, "delta": 1e-12,
}  # fmt: skip


class Trainer(pycrfsuite.Trainer):
    """Keeps what it would print."""

    log = ""

    def message(self, text: str) -> None:
        """Take a piece of the log."""
        self.log += text


def main() -> None:
    X, Y = tagging_problem()
    trainer = Trainer(algorithm="lbfgs", verbose=True)
    for x, y in zip(X, Y, strict=True):
        trainer.append(x, y)
    trainer.set_params({**PARAMETERS, "max_iterations": int(sys.argv[1]) if len(sys.argv) > 1 else 20})
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "model"))
        trainer.train(path)
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        ready = [pycrfsuite.ItemSequence(x) for x in X[:2000]]
        tokens = sum(map(len, X[:2000]))
        rates = {name: tokens / min(_seconds(tagger, some) for _ in range(3))
                 for name, some in (("lists", X[:2000]), ("ready", ready))}  # fmt: skip
    seconds = [float(v) for v in re.findall(r"Seconds required for this iteration: ([0-9.]+)", trainer.log)]
    print(json.dumps({"iteration": statistics.median(seconds), **rates}))


def _seconds(tagger: pycrfsuite.Tagger, sequences: list) -> float:
    start = time.perf_counter()
    for one in sequences:
        tagger.tag(one)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
