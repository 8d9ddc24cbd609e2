"""What all estimators share: from data to a model, to an objective, to parameters, to predictions.

They keep scikit-learn's contract: nothing is checked in ``__init__``; `fit` checks everything before any work; what is
learned has a trailing underscore. Only orchestration is here: models, losses, gradient rules, optimisers and decoders
are those of their own packages.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, Self

import numpy as np

from isinglass import decoding
from isinglass.errors import InputError, no_convergence_warnings, warn_of_convergence
from isinglass.estimators import persistence as files
from isinglass.estimators.predicting import predicted
from isinglass.graph.layout import belief_entries
from isinglass.inference import Result
from isinglass.io.files import PathLike
from isinglass.learning.training.checks import class_weights, example_weights, refuse_spins, renamed, require_room
from isinglass.learning.training.choices import (
    Choices,
    algorithm_of,
    entropy_of,
    jobs_of,
    predicting_of,
    threaded,
)
from isinglass.learning.training.loop import Epoch, warning_of
from isinglass.learning.training.problem import Data, Problem, cut, sizes_of
from isinglass.learning.training.stages import (
    Known,
    Trained,
    check_starts,
    checked_stages,
    in_stage,
    stages_of,
    start_line,
    start_loss,
    train_stages,
)
from isinglass.models import Model
from isinglass.runtime.sklearn_base import BaseEstimator, NotFittedError
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import whole_number

# what the compiled data depend on
_OF_DATA = ("bias", "edge_bias", "edges", "symmetric", "class_weight", "entropy", "inference")


class CRF(BaseEstimator):  # type: ignore[misc]
    """Base class of conditional random fields with node and edge parameters."""

    inference: Any
    iterations: Any
    own_parameters: Any
    loss: Any
    gradient: Any
    optimizer: Any
    stages: Any
    l2: Any
    edge_l2: Any
    l1: Any
    edge_l1: Any
    bias: Any
    entropy: Any
    tol: Any
    max_iter: Any
    decoder: Any
    n_states: Any
    class_weight: Any
    warm_start: Any
    patience: Any
    n_jobs: Any
    checkpoint: Any
    callback: Any
    verbose: Any

    @abstractmethod
    def _examples(self, X: Any) -> Any:
        """Check that X is a sequence of examples, and return it so that it can be indexed."""

    @abstractmethod
    def _flat_labels(self, X: Any, Y: Any) -> IntArray:
        """Check labels and lay them out flat."""

    @abstractmethod
    def _plain_model(self, X: Any, n_states: int, like: Model | None) -> Model:
        """Check examples and compile their log-potentials; the structure of a `like` model may be used again."""

    @abstractmethod
    def _arrays(self, X: Any) -> Iterator[Array]:
        """Return what X is made of, one array after the other."""

    @abstractmethod
    def _shaped(self, X: Any, flat: Array, sizes: IntArray) -> Any:
        """Hand out one row for each variable in the shape of the data."""

    def fit(self, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Self:
        """Learn the parameters, in one stage or in several.

        Ctrl-C ends training in order: the best parameters of the stage so far are kept, with a warning.

        Parameters
        ----------
        X, Y
            Examples and their labels; -1 is "not observed".
        sample_weight : array (examples,), optional
            How often each example counts.
        validation : tuple (X, Y), optional
            Examples that nothing is learned from. Their loss is looked at after each iteration (each epoch, with
            minibatches): the parameters where it was least are kept, and after `patience` looks without a lower one
            training ends.

        Returns
        -------
        self
        """
        warm = bool(self.warm_start) and hasattr(self, "theta_")
        stages = stages_of(self, from_zero=not warm)
        problems = self._problems(stages, X, Y, sample_weight, validation)
        known = self._known(problems[0].data.model)
        check_starts(stages, problems, known)
        self.history_: list[Epoch] = []
        self.started_from_ = None if warm else start_loss(self)
        for stage in stages:
            stage.history_ = self.history_
        self._announce(problems)
        with no_convergence_warnings():  # whether inference converged is in history_
            trained = train_stages(stages, problems, known)
        self._keep(stages[trained.stage], trained)
        return self

    def _announce(self, problems: list[Problem]) -> None:
        """Keep, and print where the user wants to see progress, what was chosen in their place."""
        last = problems[-1]
        self.iterations_, self.tape_ = last.chosen.iterations, last.tape()
        lines = [
            (self.started_from_, start_line(last.chosen.loss)),
            (last.chosen.limited, f"inference: at most {self.iterations_} iterations; see the parameter iterations"),
            (self.tape_ == "sqrt", "inference: tape='sqrt', as a full one might take too much memory"),
        ]
        if self.verbose:
            print("".join(f"{line}\n" for said, line in lines if said), end="", flush=True)

    def infer(self, X: Any) -> Result:
        """Return the inference on new examples, all of them in one result."""
        return self._infer(X)[1]

    def predict_marginals(self, X: Any) -> Any:
        """Return the belief of each state, for each variable, in the shape of the data."""
        model, result = self._infer(X)
        return self._shaped(X, np.asarray(result.variables), sizes_of(model))

    def predict(self, X: Any) -> Any:
        """Return the decoded label of each variable."""
        model, result = self._infer(X)
        return self._shaped(X, self._decoded(result), sizes_of(model))

    def score(self, X: Any, Y: Any, sample_weight: Any = None) -> float:
        """Return the share of observed labels that `predict` gets right."""
        self._require_fitted()
        labels = self._flat_labels(self._examples(X), Y)
        model, result = self._infer(X)
        right = self._decoded(result) == labels
        seen = (labels >= 0).astype(np.float64)
        if sample_weight is not None:
            sizes = sizes_of(model)
            seen *= np.repeat(example_weights(sample_weight, len(sizes)), sizes)
        if seen.sum() == 0:
            raise InputError("Y", "at least one observed label", "none", "labels count from 0; -1 is not observed")
        return float((right * seen).sum() / seen.sum())

    def save(self, path: PathLike, notes: Mapping[str, Any] | None = None) -> None:
        """Write the fitted estimator to a file, all or nothing.

        The file holds arrays and JSON: nothing in it is run when it is read. `checkpoint` is not kept; a `callback`, or
        another object that the library does not know by name, is refused.

        Parameters
        ----------
        path : str or os.PathLike
        notes : mapping, optional
            JSON values that the file carries along; `isinglass.estimators.notes_of` reads them.
        """
        self._require_fitted()
        files.save(self, path, notes)

    @classmethod
    def load(cls, path: PathLike) -> Self:
        """Read an estimator that `save` wrote; safe for files of unknown origin.

        Parameters
        ----------
        path : str or os.PathLike

        Returns
        -------
        estimator
            Fitted; its predictions are those of the one that was saved.

        Raises
        ------
        FileFormatError
            If the file is damaged, or holds something else.
        """
        return files.load(cls, path)  # type: ignore[no-any-return]

    def _model(self, X: Any, n_states: int, like: Model | None = None) -> Model:
        """Check examples and compile their model, with those parameters of inference that are learned."""
        model = self._plain_model(X, n_states, None if like is None else like.without_inference())
        return algorithm_of(self).learned(model)

    def _problems(self, stages: list[CRF], X: Any, Y: Any, sample_weight: Any, validation: Any) -> list[Problem]:
        """Check everything, and compile the model of each stage; one that is the same in the next is used again."""
        found: list[Problem] = []
        before = self
        for i, (stage, chosen) in enumerate(zip(stages, checked_stages(self, stages), strict=True)):
            if found and all(getattr(stage, name, None) is getattr(before, name, None) for name in _OF_DATA):
                found.append(found[-1].with_choices(chosen))
            else:
                with in_stage(self, i):
                    found.append(stage._problem(chosen, X, Y, sample_weight, validation))
            before = stage
        return found

    def _problem(self, chosen: Choices, X: Any, Y: Any, sample_weight: Any = None, validation: Any = None) -> Problem:
        """Check the data, and compile the model."""
        examples = self._examples(X)
        labels = self._flat_labels(examples, Y)
        refuse_spins(labels)
        n_states = self._states(labels)
        require_room(n_states, n_states**2, 0, chosen.optimizer)
        sample = None if sample_weight is None else example_weights(sample_weight, len(examples))
        classes = None if self.class_weight is None else class_weights(self.class_weight, labels, n_states)
        data = self._data(examples, labels, n_states, sample, classes)
        beliefs = 0 if chosen.loss.facts.uses == "potentials" else belief_entries(data.model.graph) // len(examples)
        require_room(n_states, data.model.size * chosen.own, beliefs, chosen.optimizer)
        with renamed("weights", "entropy"):
            chosen.algorithm.check(data.model.graph)
        held_out = None if validation is None else self._held_out(validation, data.model, n_states, classes)
        return Problem(chosen.for_model(data.model), data, held_out)

    def _data(
        self, examples: Any, labels: IntArray, n_states: int, sample: FloatArray | None, classes: FloatArray | None
    ) -> Data:
        """Compile the model of all examples, and weigh each variable by its example and its label."""
        model = self._model(examples, n_states)
        weights = None
        if sample is not None or classes is not None:
            weights = np.ones(len(labels)) if sample is None else np.repeat(sample, sizes_of(model))
            weights = weights if classes is None else weights * classes[np.maximum(labels, 0)]
        return Data(
            model,
            labels,
            weights,
            part=lambda rows, like: self._model(_rows(examples, rows), n_states, like),
            arrays=lambda: self._arrays(examples),
        )

    def _held_out(self, validation: Any, model: Model, n_states: int, classes: FloatArray | None) -> Data:
        """Check validation data, which must be like those of training."""
        if not isinstance(validation, tuple | list) or len(validation) != 2:
            got = f"{len(validation)} parts" if isinstance(validation, tuple | list) else type(validation).__name__
            raise InputError("validation", "a tuple (X, Y)", got, "or leave it out")
        with renamed("X", "validation[0]"), renamed("Y", "validation[1]"):
            examples = self._examples(validation[0])
            labels = self._flat_labels(examples, validation[1])
            if not (labels >= 0).any() or labels.max() >= n_states:
                expected = f"labels from 0 to {n_states - 1}, as for training, and -1"
                raise InputError("Y", expected, f"labels up to {labels.max()}", "give n_states if there are more")
            data = self._data(examples, labels, n_states, None, classes)
            if data.model.parameters != model.parameters:
                expected = f"data for the parameters {model.parameters}"
                raise InputError("X", expected, f"{data.model.parameters}", "give the same features as for training")
        return data

    def _states(self, labels: IntArray) -> int:
        """Return the given number of states, or the largest label and one."""
        most = int(labels.max(initial=-1)) + 1
        if most == 0:
            raise InputError("Y", "at least one observed label", "none", "labels count from 0; -1 is not observed")
        if self.n_states is None:
            if most < 2:
                raise InputError("Y", "at least two labels", "0 alone", "or give n_states")
            return most
        n_states = whole_number(self.n_states, "n_states", 2)
        if most > n_states:
            got, remedy = f"{most - 1}", f"give n_states={most}, or number the labels from 0"
            raise InputError("Y", f"labels below n_states = {n_states}", got, remedy)
        return n_states

    def _known(self, model: Model) -> Known:
        """Return the parameters that training begins with, by name: none, or those of the last fit."""
        if not (self.warm_start and hasattr(self, "theta_")):
            return Known({})
        shapes = {name: array.shape for name, array in self.parameters_.items()} if hasattr(self, "parameters_") else {}
        own = max(1, len(self.theta_) // max(1, model.size))
        shapes = shapes or {name: (own, *shape) for name, shape in model.parameters.items()}  # set from outside
        if len(self.theta_) != sum(map(math.prod, shapes.values())):
            got = f"{len(self.theta_)} numbers for parameters {shapes}"
            raise InputError("warm_start", "the parameters of the last fit", got, "use warm_start=False")
        return Known(cut(self.theta_, shapes), getattr(self, "entropy_", None))

    def _shapes(self, model: Model) -> dict[str, tuple[int, ...]]:
        """Return the shapes of parameters, without iterations; those of the model where theta_ was set from outside."""
        if not hasattr(self, "parameters_"):
            return model.parameters
        own = self.parameters_["node"].ndim - 2
        return {name: array.shape[own:] for name, array in self.parameters_.items()}

    def _keep(self, stage: CRF, trained: Trained) -> None:
        """Set what is learned, and warn where training did not end by itself."""
        model, found = trained.problem.data.model, trained.found
        self.theta_: FloatArray = found.x
        self.parameters_ = stage._named(model, found.x)
        self.stage_, self.iterations_ = trained.stage, trained.problem.chosen.iterations
        self.n_states_ = int(model.graph.cards[0])
        self.entropy_ = entropy_of(stage, self.parameters_, self.n_states_)
        self.n_features_in_ = model.parameters["node"][0] - bool(stage.bias)
        self.n_iter_, self.converged_, self.objective_ = found.iterations, found.converged, found.value
        self.message_ = found.message
        where = "training" if self.stages is None else f"stage {trained.stage} of training"
        if self.started_from_ is not None and trained.stage == 0:
            where = f"the start of training, with loss {self.started_from_!r},"
        if (text := warning_of(found, where)) is not None:
            warn_of_convergence(text, stacklevel=3)

    def _named(self, model: Model, theta: FloatArray) -> dict[str, FloatArray]:
        """Return the named parameters; where each iteration has its own, that is their first axis."""
        vectors = [model.split(vector) for vector in theta.reshape(-1, model.size)]
        if not self.own_parameters:
            return vectors[0]
        return {name: np.stack([vector[name] for vector in vectors]) for name in model.parameters}

    def _require_fitted(self) -> None:
        if not hasattr(self, "theta_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first")

    def _stage(self) -> CRF:
        """Return the estimator of the stage that the parameters are of: the last, unless training was interrupted."""
        if self.stages is None:
            return self
        stages: list[CRF] = stages_of(self)
        return stages[min(getattr(self, "stage_", len(stages)), len(stages) - 1)]

    def _decoded(self, result: Result) -> Array:
        return decoding.make(self._stage().decoder)(result)

    def _infer(self, X: Any) -> tuple[Model, Result]:
        self._require_fitted()
        stage, examples = self._stage(), self._examples(X)
        model = stage._model(examples, self.n_states_)
        stage._require_same(model)
        chosen = predicting_of(stage, getattr(self, "iterations_", None))
        algorithm, vectors = threaded(chosen, stage.n_jobs), self.theta_.reshape(-1, model.size)
        if len(vectors) > 1 and algorithm.iterations != len(vectors):
            expected = f"{len(vectors)}, as many as have parameters"
            raise InputError("iterations", expected, f"{stage.iterations}", "fit anew to change it")
        with no_convergence_warnings():
            return model, predicted(
                model, vectors, algorithm, lambda rows: stage._model(_rows(examples, rows), self.n_states_),
                jobs_of(stage.n_jobs),
            )  # fmt: skip

    def _require_same(self, model: Model) -> None:
        """Refuse examples with other features than those of `fit`."""
        features = model.parameters["node"][0] - bool(self.bias)
        if features != self.n_features_in_:
            remedy = "give the same features as to fit, or fit anew"
            raise InputError("X", f"{self.n_features_in_} features, as in fit", f"{features}", remedy)
        known = self._shapes(model)
        if known != model.parameters or not len(self.theta_) or len(self.theta_) % model.size:
            got = f"{model.parameters}"
            raise InputError("X", f"data for the parameters {known}", got, "give the same edge features as to fit")


def _rows(examples: Any, rows: IntArray) -> Any:
    """Choose some examples."""
    return examples[rows] if isinstance(examples, np.ndarray) else [examples[i] for i in rows.tolist()]
