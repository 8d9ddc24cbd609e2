"""Run python-crfsuite on the tagging problem; print the seconds of an iteration and tokens a second, as JSON.

``python crfsuite_script.py [ITERATIONS]``, in an environment that has NumPy and python-crfsuite. Times are those of the
processor's clock.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import pycrfsuite

from tagging_problem import tagging_problem

PARAMETERS = {
    "c1": 0.0, "c2": 1.0, "feature.possible_transitions": True, "epsilon": 1e-12, "delta": 1e-12,
}  # fmt: skip


class Trainer(pycrfsuite.Trainer):
    """Keeps the time of each iteration."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.stamps: list[float] = []

    def message(self, text: str) -> None:
        """Look at the processor's clock after each iteration."""
        if "Seconds required for this iteration" in text:
            self.stamps.append(time.process_time())


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
    seconds = [b - a for a, b in pairwise(trainer.stamps)]
    print(json.dumps({"iteration": statistics.median(seconds), **rates}))


def _seconds(tagger: pycrfsuite.Tagger, sequences: list) -> float:
    start = time.process_time()
    for one in sequences:
        tagger.tag(one)
    return time.process_time() - start


if __name__ == "__main__":
    main()
