"""The base class of conditional random fields on graphs: from data to a model, to an objective, to predictions.

It only connects models, losses, gradient rules, optimizers and decoders, which have their own packages.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from isinglass import decoding, losses
from isinglass.errors import InputError, MemoryLimitError, no_convergence_warnings, require
from isinglass.estimators.classes import Classes, classes_for, labels_of, named_weights, numbered
from isinglass.estimators.graph_files import graph_contents, restore_graph
from isinglass.estimators.joint import JointPredictions
from isinglass.estimators.parameters import (
    Callback,
    Checkpoint,
    ClassWeight,
    DecoderLike,
    Edges,
    Entropy,
    GradientLike,
    IgnoredLabel,
    InferenceLike,
    LossLike,
    OptimizerLike,
    StagesLike,
)
from isinglass.estimators.persistence import Saved
from isinglass.estimators.predicting import (
    Prediction,
    Reading,
    predicted,
    read_in_blocks,
    warn_of_one_label,
    warn_of_scores,
)
from isinglass.graph.layout import belief_entries
from isinglass.inference import Algorithm, Result
from isinglass.learning.training.checks import (
    class_weights,
    example_weights,
    renamed,
    require_room,
    require_terms,
    share_right,
    validation_pair,
    variable_weights,
)
from isinglass.learning.training.choices import (
    GraphChoices,
    algorithm_of,
    choices_of,
    decoder_for,
    entropy_of,
    predicting_of,
)
from isinglass.learning.training.problem import Data, GraphProblem, cut, sizes_of
from isinglass.learning.training.stages import ENDS_ALL, Trained, WarmStart, stages_of, start_of
from isinglass.models import Model
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import jobs_of

SHOWN = 50  # examples of the training data that are looked at after a fit
# what the compiled data depend on
_OF_DATA = ("bias", "edge_bias", "edges", "symmetric", "class_weight", "entropy", "inference")
_LABELS = "-1 is not observed, nor are ignore_label and, among strings, None"


@dataclass(eq=False, repr=False)
class CRF(JointPredictions):
    """Base class of conditional random fields with node and edge parameters.

    Parameters
    ----------
    inference : str or Algorithm, default="bp"
        The inference algorithm, used in training and in prediction.
    iterations : int, None or "auto", default="auto"
        The number of iterations of the inference. None: until its tolerance. "auto": until its tolerance, but at most
        10 if training differentiates through them (an inference given by name, a loss of beliefs, unrolled gradients),
        unless all graphs are forests and it is exact. Belief propagation is exact on every example that is a forest.
        See `iterations_`.
    own_parameters : bool, default=False
        Whether each of the `iterations` has its own parameters (Domke 2009, section 5.4). Only for message passing, a
        loss of beliefs and unrolled gradients. With `warm_start` they start from a fit with shared parameters.
    loss : str or Loss, default="ucl"
        The loss that is minimised. Some losses start from another one, see `started_from_`.
    gradient : str or GradientRule, default="unrolled"
        How derivatives are propagated back through the inference. A loss that needs no inference ("pseudo") ignores it.
    stages : sequence of str or mapping, optional
        Train in stages, each starting from the parameters of the one before. A stage is a mapping of the parameters
        that it changes, such as ``{"loss": "cl", "max_iter": 3}``, or the name of a loss. Predictions use the settings
        of the last stage.
    l2 : float, default=1
        The squared penalty of the parameters.
    edge_l2 : float, optional
        The squared penalty of edge parameters; by default `l2`.
    l1, edge_l1 : float
        Absolute-value penalties, which set parameters to zero (`edge_l1`: by default `l1`). With one of them,
        "lbfgs" and "auto" mean OWL-QN. They replace the penalties of an `OwlQn` object.
    bias : bool, default=True
        Append a constant feature.
    entropy : str or mapping, optional
        The entropy weights, with ``inference="convex"``. "A", "B", "C" or "bethe", see `EntropyWeights`; or a mapping
        such as ``{"variables": [0.1, 0.2], "factors": 1.0}``, with one number, or one for each state or pair of states;
        or "fit": the weights are learned, with ``gradient="implicit"``. Learning starts from the weights of the stage
        before, or else from those of the inference (A). Penalties apply to the logarithms relative to this start.
    decoder : str or Decoder, default="auto"
        How beliefs are turned into labels. "auto": "map" after hinge losses ("margin", "slack", "perceptron",
        "viterbi"), which fit the most probable labelling and no beliefs, else "mpm".
    n_states : int, optional
        The number of labels, where they are 0, 1, ..., n_states - 1 and some may have no examples. By default the
        labels that occur are the classes, see `classes_`.
    ignore_label : int or str, optional
        A further label that means "not observed", such as 255 for void pixels; -1, None and masked entries always do.
    warm_start : bool
        Whether `fit` starts from the parameters of the last `fit`; new parameters start at zero.

    Attributes
    ----------
    entropy_ : dict of str to array, or None
        With ``inference="convex"``: the entropy weights, given or learned, "variables" (states,) and "factors" (states,
        states); None for "bethe".
    iterations_ : int or None
        The maximal number of iterations of inference, given or chosen; None: until its tolerance.
    tape_ : "full", "sqrt" or None
        What training stores of the forward iterations. "sqrt" needs less memory and one more forward pass, and gives
        the same derivatives; it is chosen if a full tape might take more than 512 MiB. None: no tape is needed.
    started_from_ : str or None
        The loss that was minimised first, as `loss` declares it (``facts.starts_from``): "ucl" for "suclass". It is
        stage 0 in `history_`. None if `stages` is given, and after a warm start.
    stage_ : int
        The stage of the parameters: the last of the `stages`, unless training was interrupted.
    classes_ : array (states,)
        The labels that occur in `Y`, integers or strings, sorted; with `n_states` 0, 1, ..., n_states - 1.
    n_states_, n_features_in_
    """

    version: ClassVar[int] = 3  # 1 had no stages, 2 no tuples, sets and infinities

    inference: InferenceLike = "bp"
    iterations: int | str | None = "auto"
    own_parameters: bool = False
    loss: LossLike = "ucl"
    gradient: GradientLike = "unrolled"
    _labels: Classes = field(default=(), init=False)  # of `classes_`; none: theta_ was set from outside

    schedule: str = field(init=False)  # the places of parameters that some subclasses have
    optimizer: OptimizerLike = "auto"
    stages: StagesLike = None
    l2: float = 1.0
    edge_l2: float | None = None
    l1: float = 0.0
    edge_l1: float | None = None
    edges: Edges = field(init=False)
    bias: bool = True
    edge_bias: bool = field(init=False)
    symmetric: bool | Sequence[int] = field(init=False)
    entropy: Entropy = None
    decoder: DecoderLike = "auto"
    n_states: int | None = None
    ignore_label: IgnoredLabel = None
    class_weight: ClassWeight = None
    tol: float = 1e-4
    max_iter: int = 200
    warm_start: bool = False
    patience: int = 5
    n_jobs: int | None = None
    checkpoint: Checkpoint = None
    callback: Callback = None
    verbose: bool = False

    @abstractmethod
    def _plain_model(self, X: Any, n_states: int, like: Model | None) -> Model:
        """Check examples and compile their log-potentials; the structure of a `like` model may be used again."""

    @abstractmethod
    def _arrays(self, X: Any) -> Iterator[Array]:
        """Return what X is made of, one array after the other."""

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters, in one or several stages.

        Ctrl-C ends training cleanly: the best parameters of the current stage are kept, with a warning.

        Parameters
        ----------
        X, Y
            Examples and their labels. Labels are integers from 0, with -1 for "not observed", or strings, with None.
        sample_weight : array (examples,), optional
            The weight of each example.
        validation : tuple (X, Y), optional
            Validation data, for early stopping. Their loss is computed after each iteration (with minibatches: after
            each epoch). The parameters with the lowest validation loss are kept. Training ends after `patience`
            evaluations without a lower loss.

        Returns
        -------
        self
        """
        self._train(X, Y, sample_weight, validation)
        self._look_for_one_label(X, Y)
        return self

    def _look_for_one_label(self, X: Any, Y: Any) -> None:
        """Warn if some examples of the training data are all given the same label."""
        stage, decoder = self._stage(), self._decoder()
        random = algorithm_of(stage).facts.stochastic or hasattr(decoder, "random_state")
        if random or decoder.facts.output != "states" or self.message_ in ENDS_ALL or not hasattr(Y, "__getitem__"):
            return
        examples = self._examples(X)
        rows = np.unique(np.linspace(0, len(examples) - 1, SHOWN).astype(np.int64))
        some = _rows(examples, rows)
        labels = self._flat_labels(some, numbered(_rows(Y, rows), self._labels, self.ignore_label))
        with suppress(MemoryLimitError):  # a decoder may need more memory than training did
            warn_of_one_label(labels, lambda: self._read(some, self._decoding())[0], self._labels, 3)

    def _announcements(self, problems: list[Any]) -> list[str]:
        for one in problems:
            scopes = [group.scopes for group in one.data.model.graph.groups if group.arity > 1]
            require_terms(one.chosen.loss, one.data.labels, scopes, 4)
        last = problems[-1]
        self.iterations_, self.tape_ = last.chosen.iterations, last.tape()
        lines = [
            (last.chosen.limited, f"inference: at most {self.iterations_} iterations; see the parameter iterations"),
            (self.tape_ == "sqrt", "inference: tape='sqrt', as a full one might take too much memory"),
        ]
        return super()._announcements(problems) + [line for said, line in lines if said]

    def infer(self, X: Any) -> Result:
        """Run inference on new examples, and return one result for all of them."""
        self._require_fitted()
        stage, examples = self._stage(), self._examples(X)
        model = stage._model(examples, self.n_states_)
        with no_convergence_warnings():
            return predicted(model, self._prediction(stage, examples, model))

    def predict_marginals(self, X: Any) -> Any:
        """Return the belief of each state, for each variable, in the shape of the data."""
        warn_of_scores(self._stage().loss)
        return self._shaped(
            X, *self._read(X, Reading(lambda result: np.asarray(result.variables), lambda beliefs: beliefs))
        )

    def predict(self, X: Any) -> Any:
        """Return the decoded label of each variable."""
        flat, sizes = self._read(X, self._decoding())
        return self._shaped(X, labels_of(flat, self._labels), sizes)

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of observed labels that `predict` gets right."""
        self._require_fitted()
        decoder = self._decoder()
        if decoder.facts.output != "states":
            raise InputError("decoder", "one that decides on states, for score", repr(decoder.name), "use 'mpm'")
        labels = self._flat_labels(self._examples(X), numbered(Y, self._labels, self.ignore_label))
        found, sizes = self._read(X, self._decoding())
        return share_right(found, labels, sizes, sample_weight, _LABELS)

    def _model(self, X: Any, n_states: int, like: Model | None = None, inference: Algorithm | None = None) -> Model:
        """Check examples and compile their model, with those parameters of inference that are learned."""
        model = self._plain_model(X, n_states, None if like is None else like.without_inference())
        return (algorithm_of(self) if inference is None else inference).learned(model)

    def _choices(self) -> GraphChoices:
        return choices_of(self)

    def _has_data_of(self, other: Self) -> bool:
        return all(getattr(self, name, None) is getattr(other, name, None) for name in _OF_DATA)

    def _problem(
        self, chosen: GraphChoices, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None
    ) -> GraphProblem:
        """Check the data, and compile the model."""
        if self.n_states is not None:
            require_room(self.n_states, self.n_states**2, 0, chosen.optimizer)
        examples, known = self._examples(X), classes_for(self, Y)
        labels = self._flat_labels(examples, numbered(Y, known, self.ignore_label))
        require((labels >= 0).any(), "Y", "at least one observed label", "none", _LABELS)
        remedy = "None is a label that is not observed" if isinstance(known[0], str) else "or give n_states"
        require(len(known) > 1, "Y", "at least two labels", f"{known[0]!r} alone", remedy)
        chosen, n_states = chosen.for_labels(labels), len(known)
        require_room(n_states, n_states**2, 0, chosen.optimizer)
        if chosen.loss.facts.uses != "potentials" and chosen.algorithm.facts.exact == "always":
            self._require_room_for_inference(chosen.algorithm, examples, n_states)
        sample = None if sample_weight is None else example_weights(sample_weight, len(examples))
        weighed = named_weights(self.class_weight, known)
        classes = None if weighed is None else class_weights(weighed, labels, n_states)
        data = self._data(examples, labels, n_states, sample, classes)
        beliefs = 0 if chosen.loss.facts.uses == "potentials" else belief_entries(data.model.graph) // len(examples)
        require_room(n_states, data.model.size * chosen.per_iteration, beliefs, chosen.optimizer)
        with renamed("weights", "entropy"):
            chosen.algorithm.check(data.model.graph)
        if validation is not None and chosen.loss.facts.sampled:
            expected = f"none with loss {chosen.loss.name!r}, whose values are estimates"
            raise InputError("validation", expected, "some", "compare scores of fits with other max_iter instead")
        held_out = None if validation is None else self._held_out(validation, data.model, known, classes)
        return GraphProblem(chosen.for_model(data.model), data, held_out, classes=known)

    def _require_room_for_inference(self, algorithm: Algorithm, examples: Any, n_states: int) -> None:
        """Refuse, by one example, the largest where sizes are known, exact inference that does not fit in memory."""
        sizes = self._sizes(examples)
        largest = 0 if sizes is None else int(sizes.argmax())
        model = self._plain_model(examples[largest : largest + 1], n_states, None)
        if lack := algorithm.shortage(model.potentials(np.zeros(model.size))):
            raise MemoryLimitError(f"{lack}, or use an approximate inference, such as 'bp'")

    def _data(
        self, examples: Any, labels: IntArray, n_states: int, sample: FloatArray | None, classes: FloatArray | None
    ) -> Data:
        """Compile the model of all examples, and weigh each variable by its example and its label."""
        model = self._model(examples, n_states)
        return Data(
            model,
            labels,
            variable_weights(labels, sizes_of(model), sample, classes),
            part=lambda rows, like: self._model(_rows(examples, rows), n_states, like),
            arrays=lambda: self._arrays(examples),
        )

    def _held_out(self, validation: Any, model: Model, known: tuple[Any, ...], classes: FloatArray | None) -> Data:
        """Check validation data, which must be like those of training."""
        with validation_pair(validation) as (X, Y):
            examples = self._examples(X)
            labels = self._flat_labels(examples, numbered(Y, known, self.ignore_label))
            require((labels >= 0).any(), "Y", f"labels from {known[0]!r} to {known[-1]!r}", "none", _LABELS)
            data = self._data(examples, labels, len(known), None, classes)
            if data.model.parameters != model.parameters:
                expected = f"data for the parameters {model.parameters}"
                raise InputError("X", expected, f"{data.model.parameters}", "give the same features as for training")
        return data

    def _warm_start(self, problem: GraphProblem) -> WarmStart:
        """Return the parameters of the last fit by name."""
        model = problem.data.model
        shapes = {name: array.shape for name, array in self.parameters_.items()} if hasattr(self, "parameters_") else {}
        count = max(1, len(self.theta_) // max(1, model.size))
        shapes = shapes or {name: (count, *shape) for name, shape in model.parameters.items()}  # set from outside
        if len(self.theta_) != sum(map(math.prod, shapes.values())):
            got = f"{len(self.theta_)} numbers for parameters {shapes}"
            raise InputError("warm_start", "the parameters of the last fit", got, "use warm_start=False")
        return WarmStart(cut(self.theta_, shapes), getattr(self, "entropy_", None))

    def _start(self, problem: GraphProblem, before: WarmStart | None, stage: int) -> FloatArray:
        return start_of(problem, WarmStart({}) if before is None else before, stage)

    def _learned(self, problem: GraphProblem, theta: FloatArray) -> WarmStart:
        model = problem.data.model
        named = self._named(model, theta)
        return WarmStart(named, entropy_of(self, named, int(model.graph.cards[0])))

    def _shapes(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters, without iterations; those of the model where theta_ was set from outside."""
        if not hasattr(self, "parameters_"):
            return model.parameters
        axes = self.parameters_["node"].ndim - 2
        return {name: array.shape[axes:] for name, array in self.parameters_.items()}

    def _keep(self, stage: CRF, trained: Trained) -> None:
        problem = trained.problem
        assert isinstance(problem, GraphProblem)
        model = problem.data.model
        self.parameters_ = stage._named(model, self.theta_)
        self.stage_, self.iterations_ = trained.stage, problem.chosen.iterations
        self.n_states_ = int(model.graph.cards[0])
        self.entropy_ = entropy_of(stage, self.parameters_, self.n_states_)
        self._labels = problem.classes
        self.classes_ = np.array(self._labels)
        self.n_features_in_ = stage._feature_count(model)

    def _contents(self) -> tuple[dict[str, Any], Mapping[str, ArrayLike]]:
        return graph_contents(self), {}

    def _restore(self, saved: Saved) -> None:
        restore_graph(self, saved)

    def _named(self, model: Model, theta: FloatArray) -> dict[str, FloatArray]:
        """Return the named parameters; where each iteration has its own, that is their first axis."""
        vectors = [model.split(vector) for vector in theta.reshape(-1, model.size)]
        if not self.own_parameters:
            return vectors[0]
        return {name: np.stack([vector[name] for vector in vectors]) for name in model.parameters}

    def _stage(self) -> CRF:
        """Return the estimator of the stage that the parameters are of: the last, unless training was interrupted."""
        if self.stages is None:
            return self
        stages: list[CRF] = stages_of(self)
        return stages[min(getattr(self, "stage_", len(stages)), len(stages) - 1)]

    def _decoder(self) -> decoding.Decoder:
        stage = self._stage()
        return decoder_for(stage.decoder, losses.make(stage.loss))

    def _decoding(self) -> Reading:
        """Return how labels are read."""
        decoder = self._decoder()
        return Reading(lambda result: np.asarray(decoder(result)), decoder.by_rows())

    def _sizes(self, X: Any) -> IntArray | None:
        """Return how many variables each example has; None where that takes their model."""
        return None

    def _tables(self, X: Any, nodes: Array) -> Callable[[slice], FloatArray] | None:
        """Return the tables of `Prediction.tables`, given the parameters of nodes; None where examples differ more."""
        return None

    def _read(self, X: Any, reading: Reading) -> tuple[Array, IntArray]:
        """Return what is read from the inference on new examples, block by block, and their sizes."""
        self._require_fitted()
        stage, examples = self._stage(), self._examples(X)
        known = stage._sizes(examples)
        model = stage._model(examples if known is None else examples[:1], self.n_states_)
        sizes = sizes_of(model) if known is None else known
        with no_convergence_warnings():
            return read_in_blocks(sizes, self._prediction(stage, examples, model), reading), sizes

    def _prediction(self, stage: CRF, examples: Any, model: Model) -> Prediction:
        """Return how new examples are predicted; `model` is that of some of them."""
        stage._require_same(model)
        algorithm = predicting_of(stage, getattr(self, "iterations_", None))
        vectors = self.theta_.reshape(-1, model.size)
        if len(vectors) > 1 and algorithm.iterations != len(vectors):
            expected = f"{len(vectors)}, as many as have parameters"
            raise InputError("iterations", expected, f"{stage.iterations}", "fit anew to change it")

        def part(rows: IntArray, like: Model | None) -> Model:
            return stage._model(_rows(examples, rows), self.n_states_, like, algorithm)

        tables = stage._tables(examples, model.split(vectors[-1])["node"])
        return Prediction(vectors, algorithm, part, jobs_of(stage.n_jobs), tables)

    def _feature_count(self, model: Model) -> int:
        """Return how many features the data have, without the constant."""
        return int(model.parameters["node"][0]) - bool(self.bias)

    def _node_rows(self) -> int:
        """Return how many rows the parameters of nodes have."""
        return int(self.n_features_in_) + bool(self.bias)

    def _require_same(self, model: Model) -> None:
        """Refuse examples with other features than those of `fit`."""
        features = self._feature_count(model)
        if features != self.n_features_in_:
            remedy = "give the same features as to fit, or fit anew"
            raise InputError("X", f"{self.n_features_in_} features, as in fit", f"{features}", remedy)
        known = self._shapes(model)
        if known != model.parameters or not len(self.theta_) or len(self.theta_) % model.size:
            got = f"{model.parameters}"
            raise InputError("X", f"data for the parameters {known}", got, "give the same edge features as to fit")


def _rows(examples: Any, rows: IntArray) -> Any:
    """Choose some examples; a view of an array, if they follow each other."""
    if not isinstance(examples, np.ndarray):
        return [examples[i] for i in rows.tolist()]
    return examples[rows[0] : rows[-1] + 1] if len(rows) and (np.diff(rows) == 1).all() else examples[rows]
