"""Maximum entropy Markov models: logistic regression of each label on the token and the label before it.

    p(y | X)  =  prod_t p(y_t | y_{t-1}, X),      p(y_t = y | y_{t-1} = x, X)  =  exp(f_t(y) + g(x, y)) / sum_y' ...

The parameters are those of a chain CRF, but each factor is normalised separately, so training needs no inference.
Labels before t do not depend on token t, so later tokens cannot correct earlier labels. This is the label bias problem
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
    """A maximum entropy Markov model for labelling sequences: each label depends on the one before it.

    It has the parameters of `ChainCRF`, except `loss`. The objective is the sum of -log p(y_t | y_{t-1}, X) over all
    tokens whose label and previous label are observed, plus penalties.

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

    Later tokens do not change the probabilities of earlier labels (except, with `boundary`, whether a token is last):

    >>> memm = MEMM(l2=0.1, boundary=False).fit(X, Y)
    >>> one, two = memm.predict_marginals([[["w=a"]], [["w=a"], ["w=barks"]]])
    >>> bool(abs(one[0] - two[0]).max() < 1e-12)
    True
    """

    schema: ClassVar[str] = "memm"
    loss = LocalLikelihood()

    def _normalise(self, scores: FloatArray, offsets: IntArray, transition: Transition) -> None:
        subtract_local(scores, offsets, transition)
