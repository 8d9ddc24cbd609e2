"""How good sets of labels are: arrays (examples, labels) of 0 and 1.

    Hamming loss     =  the share of entries that are wrong
    subset accuracy  =  the share of examples whose labels are all right
    F1 of a label    =  2 right / (predicted + true), over examples
    micro F1         =  the same over all entries;  macro F1  =  the mean over labels

-1 in the truth is not observed. A label that is neither predicted nor true has F1 = 0, as in scikit-learn.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from isinglass.errors import InputError
from isinglass.typing import FloatArray, IntArray
from isinglass.validation import integers


@dataclass(frozen=True, eq=False)
class MultiLabelScores:
    """Scores of sets of labels.

    Attributes
    ----------
    hamming_loss, subset_accuracy, micro_f1, macro_f1 : float
    f1 : array (labels,)
    """

    hamming_loss: float
    subset_accuracy: float
    micro_f1: float
    macro_f1: float
    f1: FloatArray

    def __repr__(self) -> str:
        named = ("hamming_loss", "subset_accuracy", "micro_f1", "macro_f1")
        return f"MultiLabelScores({', '.join(f'{name}={getattr(self, name):.4f}' for name in named)})"


def multilabel_scores(Y_true: ArrayLike, Y_pred: ArrayLike) -> MultiLabelScores:
    """Compare predicted sets of labels with the true ones.

    Parameters
    ----------
    Y_true, Y_pred : int arrays (examples, labels) of 0 and 1

    Examples
    --------
    >>> multilabel_scores([[1, 0, 1], [0, 1, 0]], [[1, 0, 0], [0, 1, 0]])
    MultiLabelScores(hamming_loss=0.1667, subset_accuracy=0.5000, micro_f1=0.8000, macro_f1=0.6667)
    """
    truth, guess = _binary(Y_true, "Y_true", -1), _binary(Y_pred, "Y_pred", 0)
    if truth.shape != guess.shape:
        raise InputError("Y_pred", f"shape {truth.shape}, as Y_true", f"shape {guess.shape}")
    seen = truth >= 0
    if not seen.any():
        raise InputError("Y_true", "at least one observed label", "none")
    wrong = (truth != guess) & seen
    right, both = ((truth * guess == 1) & seen).sum(axis=0), ((truth == 1) & seen).sum(axis=0)
    both = both + ((guess == 1) & seen).sum(axis=0)
    f1 = np.divide(2.0 * right, both, out=np.zeros(truth.shape[1]), where=both > 0)
    micro = 2.0 * right.sum() / both.sum() if both.sum() else 0.0
    subset = float((~wrong.any(axis=1)).mean())
    return MultiLabelScores(float(wrong.sum() / seen.sum()), subset, float(micro), float(f1.mean()), f1)


def _binary(values: ArrayLike, argument: str, least: int) -> IntArray:
    array = integers(values, argument, 2)
    if array.size == 0 or array.min() < least or array.max() > 1:
        got = "an empty array" if array.size == 0 else f"{array.min()} to {array.max()}"
        raise InputError(argument, "0 and 1 for each example and label", got)
    return array
