"""Maximum entropy Markov models: logistic regression of each label on the token and the label before it.

    p(y | X)  =  prod_t p(y_t | y_{t-1}, X),      p(y_t = y | y_{t-1} = x, X)  =  exp(f_t(y) + g(x, y)) / sum_y' ...

The parameters are those of a chain CRF, but each factor is normalised by itself. Training needs no inference. As labels
before t do not depend on the token t, what comes late in a sequence cannot correct what came early: the label bias
(McCallum, Freitag and Pereira 2000; Lafferty, McCallum and Pereira 2001; Murphy 2012, section 19.6.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from isinglass.estimators.persistence import register
from isinglass.estimators.sequence.log_linear import LogLinearSequence
from isinglass.inference.chain.exact import Transition, subtract_local
from isinglass.learning.chain_losses import LocalLikelihood
from isinglass.typing import FloatArray, IntArray


@register
@dataclass(eq=False, repr=False)
class MEMM(LogLinearSequence):
    """A maximum entropy Markov model: labels of sequences, each given the one before it.

    It has the parameters of `ChainCRF` but `loss`: what is minimised is minus the logarithm of p(y_t | y_{t-1}, X),
    summed over tokens whose label and the one before it are observed, plus penalties.

    Parameters
    ----------
    class_weight : "balanced" or dict, optional

    Attributes
    ----------
    parameters_ : dict of str to array
        "state" (weights,), "transition" (labels, labels), rows: the earlier label; "start" and "end" with `boundary`.

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> memm = MEMM(l2=0.1).fit(X, Y)
    >>> memm.predict([[["w=a"], ["w=cat"], ["w=barks"]]])
    [['D', 'N', 'V']]

    Later tokens say nothing about earlier labels (but, with `boundary`, that a token is the last one):

    >>> memm = MEMM(l2=0.1, boundary=False).fit(X, Y)
    >>> one, two = memm.predict_marginals([[["w=a"]], [["w=a"], ["w=barks"]]])
    >>> bool(abs(one[0] - two[0]).max() < 1e-12)
    True
    """

    schema: ClassVar[str] = "memm"
    loss = LocalLikelihood()
    order = 1

    def _normalise(self, scores: FloatArray, offsets: IntArray, transition: Transition) -> None:
        subtract_local(scores, offsets, transition)
