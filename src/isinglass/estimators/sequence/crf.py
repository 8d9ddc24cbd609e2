"""Linear-chain conditional random fields, with exact inference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.estimators.parameters import LossLike
from isinglass.estimators.persistence import register
from isinglass.estimators.sequence.log_linear import LogLinearSequence


@register
@dataclass(eq=False, repr=False)
class ChainCRF(LogLinearSequence):
    """A linear-chain conditional random field for labelling sequences, with exact inference.

    The objective is the sum over sequences of the loss, plus ``l2`` times the squares and ``l1`` times the absolute
    values of all parameters, as CRFsuite's c2 and c1.

    Parameters
    ----------
    loss : str or Loss, default="cl"
        "cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass". The last two start from "ucl" and "ccl".
        "expected": the expected cost of labels. Hinge losses, by Viterbi: "margin", "slack", "perceptron", "viterbi".
    forbidden : collection of (before, after), optional
        Forbidden transitions, in training and prediction; (None, y): y may not be first, (x, None): x may not be last.
    class_weight : "balanced" or dict, optional
        Weights of the labels, for losses that are sums over labels. Labels that are not in the dict have weight 1.

    Attributes
    ----------
    parameters_ : dict of str to array
        "state" (weights,), "transition" (labels, labels), rows: the earlier label; "start" and "end" with `boundary`.
    started_from_ : str or None
        The loss that was minimised first, as `loss` declares it; it is stage 0 in `history_`. None after a warm start.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> crf = ChainCRF(l2=0.1).fit(X, Y)
    >>> crf.predict([[["w=a"], ["w=cat"], ["w=barks"]]])
    [['D', 'N', 'V']]
    >>> crf.predict_marginals(X)[0].shape
    (2, 3)
    """

    schema: ClassVar[str] = "chain-crf"

    loss: LossLike = "cl"
