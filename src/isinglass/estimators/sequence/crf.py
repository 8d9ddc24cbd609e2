"""Conditional random fields on sequences, exact."""

from __future__ import annotations

from typing import Any, ClassVar

from isinglass.estimators.sequence.log_linear import LogLinearSequence


class ChainCRF(LogLinearSequence):
    """A linear-chain conditional random field: labels of sequences, with exact inference.

    The objective is the sum over sequences of the loss, plus ``l2`` times the squares and ``l1`` times the absolute
    values of all parameters, as CRFsuite's c2 and c1.

    Parameters
    ----------
    loss : str or Loss, default="cl"
        "cl", "pseudo", "ucl", "ccl", "uquad", "cquad", "suclass", "scclass". The last two start from "ucl" and "ccl".
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
    order : 1 or 2, default=1
        With 2 triples of labels have parameters, too. Inference is exact, but a token takes (labels * (labels + 1))²
        steps: for a dozen labels or two. Losses of pairs of labels become those of triples; not for "pseudo".
    forbidden : collection of (before, after), optional
        Labels that may not follow one another, in training and prediction; (None, y): y may not be first, (x, None): x
        may not be last.
    decoder : "map" or "mpm", default="map"
        The best labelling as a whole, or the best label of each token.
    class_weight : "balanced" or dict, optional
        For losses that are sums over labels. Those that a dict does not name have the weight 1.
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
        "state" (weights,), "transition" (labels, labels), rows: the earlier label; "start" and "end" with `boundary`;
        "second" (labels + 1, labels, labels) with `order` 2, the last of the first axis: no label.
    state_features_ : dict
        From (attribute, label) to weight.
    theta_ : array
    history_ : list of Epoch
    started_from_ : str or None
        The loss that was minimised first, as `loss` declares it: stage 0 in `history_`. None after a warm start.
    n_iter_, converged_, objective_, message_, n_features_in_

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

    def __init__(
        self,
        loss: Any = "cl",
        optimizer: Any = "lbfgs",
        l2: Any = 1.0,
        l1: Any = 0.0,
        state_features: Any = "seen",
        min_count: Any = 1,
        boundary: Any = False,
        bias: Any = False,
        order: Any = 1,
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
        self.loss = loss
        self.optimizer = optimizer
        self.l2 = l2
        self.l1 = l1
        self.state_features = state_features
        self.min_count = min_count
        self.boundary = boundary
        self.bias = bias
        self.order = order
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
