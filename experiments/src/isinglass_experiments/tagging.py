"""Real sequences: chunks of English sentences (CoNLL 2000), and handwritten words, with a chain CRF.

Chunking: word and part-of-speech windows (`isinglass.datasets.chunk_attributes`), one weight for each attribute and
label that occur together, l2 = 1. Letters: 128 pixels and a constant, all weights, first and last letters with
parameters of their own, l2 = 1; trained on folds 1 to 7, tested on fold 0. For both, python-crfsuite's result with the
same attributes (L-BFGS, c2 = 1) is in the notes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isinglass import ChainCRF
from isinglass.metrics import sequence_accuracy, span_scores
from isinglass.typing import Array, JsonObject
from isinglass_experiments.common.experiment import DataExperiment, Progress, Report, fit_quietly, register, tell
from isinglass_experiments.data import load_conll2000, load_letters


@register
@dataclass(frozen=True)
class Conll2000(DataExperiment):
    """Chunking: phrases of English sentences.

    Parameters
    ----------
    quick : bool
        A tenth of the training sentences, and fewer iterations.
    data : str, optional
        The folder of text/conll2000_train.txt.gz; else the one that ISINGLASS_DATA names.
    """

    name: ClassVar[str] = "conll2000"
    summary: ClassVar[str] = "chunking: F1 of a chain CRF with word and part-of-speech windows"
    goal: ClassVar[float] = 93.5
    published: ClassVar[float] = 93.59

    def run(self, progress: Progress | None = None) -> Report:
        """Train, and test."""
        tell(progress, "reading", 0.0)
        began = time.perf_counter()
        data = load_conll2000(self.data)
        n, most = (len(data.X_train) // 10, 40) if self.quick else (len(data.X_train), 100)
        tell(progress, "training", 0.1)
        crf = ChainCRF(bias=False, boundary=False, max_iter=most, n_jobs=self.n_jobs)  # the parameters of CRFsuite
        fit_quietly(crf, data.X_train[:n], data.Y_train[:n])
        seconds = time.perf_counter() - began
        scores = span_scores(data.Y_test, crf.predict(data.X_test))
        accuracy = 100 * crf.score(data.X_test, data.Y_test)
        rows = [[kind or "all", *(f"{100 * v:.2f}" for v in (s.precision, s.recall, s.f1)), str(s.true)]
                for kind, s in scores.items()]  # fmt: skip
        notes = [
            f"goal: F1 of at least {self.goal}; python-crfsuite with the same attributes: {self.published}",
            f"token accuracy {accuracy:.2f} %; {crf.n_iter_} iterations, {len(crf.theta_)} weights; from files to "
            f"model in {seconds:.1f} s on {self.n_jobs} threads",
        ]
        title = f"CoNLL-2000 chunking, {n} training and {len(data.X_test)} test sentences, in percent"
        data_out = {"experiment": self.name, "f1": 100 * scores[None].f1, "accuracy": accuracy, "goal": self.goal,
                    "iterations": crf.n_iter_, "weights": len(crf.theta_), "seconds": seconds,
                    "objective": crf.objective_}  # fmt: skip
        return Report(title, ["chunk", "precision", "recall", "F1", "true"], rows, notes, data_out, {})


@register
@dataclass(frozen=True)
class LettersExperiment(DataExperiment):
    """Handwritten words.

    Parameters
    ----------
    quick : bool
        One training fold, and fewer iterations.
    data : str, optional
        The folder of letters_folds0-7.npz; else the one that ISINGLASS_DATA names.
    """

    name: ClassVar[str] = "letters"
    summary: ClassVar[str] = "handwritten words: letters right with and without neighbours"
    goal: ClassVar[float] = 0.875
    published: ClassVar[float] = 0.881

    def run(self, progress: Progress | None = None) -> Report:
        """Train with and without neighbours, and test."""
        letters = load_letters(self.data)
        folds, most = ((1,), 50) if self.quick else (range(1, 8), 100)
        X, Y = letters.part(*folds)
        X_test, Y_test = letters.part(0)
        found: list[JsonObject] = []
        for i, row in enumerate(("letters alone", "chain")):
            tell(progress, f"training {row}", i / 2)
            alone = row == "letters alone"
            crf = ChainCRF(state_features="all", bias=True, boundary=not alone, max_iter=most, n_jobs=self.n_jobs)
            parts = (_single(X), _single(Y), _single(X_test), _single(Y_test)) if alone else (X, Y, X_test, Y_test)
            began = time.perf_counter()
            fit_quietly(crf, parts[0], parts[1])
            seconds = time.perf_counter() - began
            flat = np.concatenate(crf.predict(parts[2]))
            words = np.split(flat, np.cumsum([len(y) for y in Y_test])[:-1])
            accuracy = crf.score(parts[2], parts[3])
            whole = sequence_accuracy([y.tolist() for y in Y_test], [w.tolist() for w in words])
            found.append({"row": row, "letters": accuracy, "words": whole, "seconds": seconds})
        rows = [[f["row"], f"{f['letters']:.4f}", f"{f['words']:.4f}", f"{f['seconds']:.1f}"] for f in found]
        notes = [
            f"goal: letters of at least {self.goal}; python-crfsuite, trained on folds 1-7: {self.published}",
            f"at most {most} iterations",
        ]
        title = f"Handwritten words: accuracy, {len(X)} training and {len(X_test)} test words"
        data = {"experiment": self.name, "goal": self.goal, "rows": found}
        return Report(title, ["model", "letters", "words", "seconds"], rows, notes, data, {})


def _single(sequences: Sequence[Array]) -> list[Array]:
    """Cut sequences into tokens of their own."""
    return [one[i : i + 1] for one in sequences for i in range(len(one))]
