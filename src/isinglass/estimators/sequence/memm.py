"""Maximum entropy Markov models: logistic regression of each label on the token and the label before it.

    p(y | X)  =  prod_t p(y_t | y_{t-1}, X),      p(y_t = y | y_{t-1} = x, X)  =  exp(f_t(y) + g(x, y)) / sum_y' ...

The parameters are those of a chain CRF, but each factor is normalised by itself. Training needs no inference. As labels
before t do not depend on the token t, what comes late in a sequence cannot correct what came early: the label bias
(McCallum, Freitag and Pereira 2000; Lafferty, McCallum and Pereira 2001; Murphy 2012, section 19.6.1).
"""

from __future__ import annotations

from typing import Any, ClassVar

from isinglass.estimators.sequence.log_linear import LogLinearSequence
from isinglass.inference.chain import Transition, subtract_local
from isinglass.learning.chain import LocalLikelihood
from isinglass.typing import FloatArray, IntArray


class MEMM(LogLinearSequence):
    """A maximum entropy Markov model: labels of sequences, each given the one before it.

    It has the parameters of `ChainCRF` but `loss`: what is minimised is minus the logarithm of p(y_t | y_{t-1}, X),
    summed over tokens whose label and the one before it are observed, plus penalties.

    Parameters
    ----------
    optimizer : str or Optimizer, default="lbfgs"
    l2, l1 : float
        With `l1` the optimiser is OWL-QN, and many parameters are zero.
    state_features : "seen" or "all", default="seen"
        Which pairs of attribute and label have a weight: those that occur in the training data, or all.
    min_count : int, default=1
        Pairs ("seen") or attributes ("all") that occur less often have no weight.
    boundary : bool, default=False
        Whether the first and the last label of a sequence have parameters of their own.
    bias : bool, default=False
        Append an attribute that is always there.
    forbidden : collection of (before, after), optional
        Labels that may not follow one another: the others share their probability. (None, y): y may not be first,
        (x, None): x may not be last.
    decoder : "map" or "mpm", default="map"
        The best labelling as a whole, or the best label of each token.
    class_weight : "balanced" or dict, optional
    tol, max_iter
        Of an optimiser that is given by name (`max_iter`: epochs, for those that go through minibatches).
    patience : int, default=5
        With validation data: how many looks at them without a lower loss end training.
    n_jobs : int, default=1
        Threads; -1: one for each processor. Results have the same bits for any number.
    warm_start : bool
        Begin a further `fit` with the parameters, attributes and classes of the last.
    checkpoint : str or os.PathLike, optional
        A file that training keeps its state in; if it is there, training goes on from it.
    callback : callable, optional
        Called with the progress of each iteration; training ends if it returns True.
    verbose : bool

    Attributes
    ----------
    classes_ : list
        The labels, in order if they have one.
    parameters_ : dict of str to array
        "state" (weights,), "transition" (labels, labels), rows: the earlier label; "start" and "end" with `boundary`.
    state_features_ : dict
        From (attribute, label) to weight.
    theta_ : array
    history_ : list of Epoch
    n_iter_, converged_, objective_, message_, n_features_in_

    Examples
    --------
    >>> X = [[["w=the"], ["w=dog"]], [["w=a"], ["w=dog"], ["w=barks"]]]
    >>> Y = [["D", "N"], ["D", "N", "V"]]
    >>> memm = MEMM(l2=0.1).fit(X, Y)
    >>> memm.predict([[["w=a"], ["w=cat"], ["w=barks"]]])
    [['D', 'N', 'V']]

    Later tokens say nothing about earlier labels:

    >>> one, two = memm.predict_marginals([[["w=a"]], [["w=a"], ["w=barks"]]])
    >>> bool(np.allclose(one[0], two[0]))
    True
    """

    schema: ClassVar[str] = "memm"
    loss = LocalLikelihood()

    def __init__(
        self,
        optimizer: Any = "lbfgs",
        l2: Any = 1.0,
        l1: Any = 0.0,
        state_features: Any = "seen",
        min_count: Any = 1,
        boundary: Any = False,
        bias: Any = False,
        forbidden: Any = None,
        decoder: Any = "map",
        class_weight: Any = None,
        tol: Any = 1e-4,
        max_iter: Any = 200,
        patience: Any = 5,
        n_jobs: Any = 1,
        warm_start: Any = False,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: Any = False,
    ) -> None:
        self.optimizer = optimizer
        self.l2 = l2
        self.l1 = l1
        self.state_features = state_features
        self.min_count = min_count
        self.boundary = boundary
        self.bias = bias
        self.forbidden = forbidden
        self.decoder = decoder
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.patience = patience
        self.n_jobs = n_jobs
        self.warm_start = warm_start
        self.checkpoint = checkpoint
        self.callback = callback
        self.verbose = verbose

    def _normalise(self, scores: FloatArray, offsets: IntArray, transition: Transition) -> None:
        subtract_local(scores, offsets, transition)
