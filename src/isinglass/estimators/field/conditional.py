"""Markov random fields that predict some variables from others: training and prediction by patterns of observation.

A sample has inputs, whose values are given; outputs, to be predicted; and hidden variables, which are neither, and
whose value nobody knows. Which variables are which may differ from sample to sample. Inputs are conditioned out of the
graph (`isinglass.models.conditioning`); any loss of conditional random fields then measures how well the outputs are
predicted (Stoyanov, Ropson and Eisner 2011, section 3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from isinglass import losses
from isinglass.errors import InputError, no_convergence_warnings
from isinglass.estimators.estimator import Estimator
from isinglass.gradients import rule
from isinglass.graph.message_graph import share_pool
from isinglass.inference import Algorithm, infer
from isinglass.inference.algorithm import threaded
from isinglass.learning.combinations import require_valid
from isinglass.learning.markov import Copies, Samples
from isinglass.learning.markov.data import Categories, decode, encode
from isinglass.learning.markov.priors import Penalties
from isinglass.learning.total import blocks
from isinglass.learning.training.checks import example_weights, refuse_spins, renamed, variable_weights
from isinglass.learning.training.choices import GraphChoices, Penalty, decoder_for, training_choices
from isinglass.learning.training.problem import Data, GraphProblem
from isinglass.learning.training.stages import stages_of
from isinglass.losses.conditioned import ConditionedLikelihood
from isinglass.models import ConditionedModel, Conditioning, Model
from isinglass.potentials import Potentials
from isinglass.runtime.array_pool import Pool
from isinglass.runtime.cached_property import cached_property
from isinglass.typing import Array, IntArray, Mask
from isinglass.validation import array_of

AT_ONCE = 4096  # variables in one inference, whose messages fit in a cache
POOLED = 2**24  # bytes of messages that are kept from one block to the next


def outputs_of(outputs: Any, states: IntArray) -> Mask:
    """Check a mask of outputs, of all samples or of each.

    Examples
    --------
    >>> outputs_of([False, True], np.array([[0, 1], [1, -1]])).tolist()
    [[False, True], [False, True]]
    """
    expected = f"a bool array {states.shape}, or ({states.shape[1]},) for all samples alike"
    mask = array_of(outputs, "outputs", expected)
    if mask.dtype != bool or mask.shape not in (states.shape, states.shape[1:]):
        raise InputError("outputs", expected, f"shape {mask.shape} of dtype {mask.dtype}")
    return np.array(np.broadcast_to(mask, states.shape))


def _require_outputs(mask: Mask, what: str, remedy: str) -> None:
    empty = ~mask.any(axis=1)
    if empty.any():
        raise InputError("outputs", f"at least one {what} in each sample", f"none in sample {np.argmax(empty)}", remedy)


def require_outputs(mrf: Any, counts: Any, outputs: Any) -> None:
    """Refuse a loss, or stages, without anything to predict; and what has no use where something is predicted."""
    if counts is not None and outputs is not None:
        raise InputError("counts", "None where outputs are predicted", type(counts).__name__, "give samples, X=")
    stages = mrf.stages if isinstance(mrf.stages, list | tuple) else ()
    for i, stage in enumerate(stages):
        for name in {"graph", "tied", "edges"} & (set(stage) if isinstance(stage, Mapping) else set()):
            raise InputError(f"stages[{i}]", "parameters of training, which leave the model as it is", repr(name))
    for name in ("loss", "stages"):
        given = getattr(mrf, name)
        if given is not None and outputs is None:
            remedy = f"fit(X, outputs=mask), or leave out {name}="
            if name == "loss" and losses.make(given).facts.optimizer == "averaged-perceptron":
                remedy += "; without inputs this loss is least at zero parameters"
            raise InputError(
                "outputs", f"a mask of the variables to predict, with {name}={given!r:.40}", "none", remedy
            )


def conditional_choices(mrf: Any, penalties: Penalties, algorithm: Algorithm) -> GraphChoices:
    """Check the parameters of a Markov random field that predicts outputs."""
    if not isinstance(mrf.method, str) or mrf.method != "ml":
        remedy = "leave out loss= and outputs=, or the method"
        raise InputError("method", "'ml' where outputs are predicted", f"{mrf.method!r:.40}", remedy)
    if not algorithm.splits:
        expected, remedy = "no options that are arrays over factors, where outputs are predicted", "give numbers"
        raise InputError("inference", expected, f"{algorithm.name!r} with some", remedy)
    if penalties.virtual or penalties.groups:
        raise InputError("prior", "'gaussian' or 'laplace' where outputs are predicted", f"{mrf.prior!r:.40}")
    given = losses.make("cl" if mrf.loss is None else mrf.loss)
    decoder = decoder_for(mrf.decoder, given)
    loss = given.for_decoder(decoder)
    if type(loss) is losses.Likelihood:
        loss = ConditionedLikelihood()
    l1 = Penalty(penalties.l1, penalties.l1) if penalties.l1 else None
    made = GraphChoices(
        **vars(training_choices(mrf, loss, penalties.l1)) | {"l2": penalties.l2, "remark": given.remark(decoder)},
        algorithm=algorithm,
        rule=rule(mrf.gradient),
        decoder=decoder,
        edge_l2=None,
        l1=l1,
    )
    require_valid(made.loss, made.algorithm, made.rule)
    return made


@dataclass(frozen=True, eq=False, kw_only=True)
class Patterns(Data):
    """Samples with inputs; `model` is that of the first alone, as all together may take much memory."""

    n_free: IntArray

    @cached_property
    def sizes(self) -> IntArray:
        """How many variables of each sample are no inputs."""
        return self.n_free

    def split(self) -> list[Data]:
        """Cut the samples into blocks, each with a model of its own."""
        examples = np.arange(len(self.n_free))
        return [self.rows(examples[block]) for block in blocks(self.n_free, AT_ONCE)]


@dataclass(frozen=True, eq=False, kw_only=True)
class ConditionalProblem(GraphProblem):
    """The training of a Markov random field that predicts outputs.

    Attributes
    ----------
    model : Model
        Of a whole sample.
    categories : list of arrays, or None
    hidden : bool array (variables,)
        Which variables are no input of any sample, and no output whose value is known.
    """

    model: Model
    categories: Categories | None
    hidden: Mask


def conditional_problem(
    chosen: GraphChoices, model: Model, X: Any, sample_weight: Any, outputs: Any
) -> ConditionalProblem:
    """Check the samples, and make them conditioned models, block by block."""
    if X is None:
        raise InputError("X", "samples", "nothing", "counts= does not go with outputs=")
    states, categories = encode(X, model.graph)
    with renamed("Y", "X"):
        refuse_spins(states)
    asked = outputs_of(outputs, states) & (states >= 0)
    _require_outputs(asked, "output whose value is known", "leave the sample out")
    inputs, labels = np.where(outputs_of(outputs, states), -1, states), np.where(asked, states, -1)
    with renamed("Y", "X"):
        chosen = chosen.for_labels(np.where(inputs < 0, labels, 0))
    sample = None if sample_weight is None else example_weights(sample_weight, len(states))
    if sample is not None and not sample.any():
        raise InputError("sample_weight", "a positive weight of at least one sample", "zeros alone")
    chosen.algorithm.check(model.graph)
    hidden = np.all((inputs < 0) & (labels < 0), axis=0)
    first, flat, sizes = ConditionedModel(model, inputs[:1]), labels[inputs < 0], (inputs < 0).sum(axis=1)
    pool = Pool(POOLED, latest=True)
    data = Patterns(
        first,
        flat,
        variable_weights(flat, sizes, sample, None),
        part=lambda rows, like: _block(model, inputs[rows], pool),
        arrays=lambda: iter((states, inputs)),
        n_free=sizes,
    )
    return ConditionalProblem(chosen.for_model(first), data, None, model=model, categories=categories, hidden=hidden)


def _block(model: Model, inputs: IntArray, pool: Pool) -> ConditionedModel:
    """Return the model of a block of samples; blocks share the memory of their messages."""
    made = ConditionedModel(model, inputs)
    share_pool(made.graph, pool)
    return made


class Predictions(Estimator):
    """The predictions of a Markov random field."""

    potentials_: Potentials
    model_: Model
    categories_: Categories | None
    decoder: Any = "auto"

    def _algorithm(self) -> Algorithm:
        raise NotImplementedError

    def _encoded(self, X: Any) -> IntArray:
        raise NotImplementedError

    def predict(self, X: Any, outputs: Any = None) -> Array:
        """Return samples with their outputs decided by the decoder.

        Parameters
        ----------
        X : array (samples, variables)
            As in `fit`; -1, NaN, None or masked where a value is missing. The values of outputs are not looked at.
        outputs : bool array (samples, variables) or (variables,), optional
            What to predict; by default all missing values. Other missing values are hidden, and stay -1 (or nan).

        Returns
        -------
        array (samples, variables)
            States, or labels, where `fit` saw labels; real numbers with ``decoder="identity"``.

        Examples
        --------
        >>> import isinglass as ig
        >>> mrf = ig.MRF(ig.FactorGraph([2, 2], [(0, 1)]), method="ipf").fit(counts=[[3, 1], [2, 4]])
        >>> mrf.predict([[0, -1], [1, 0]], outputs=[False, True]).tolist()
        [[0, 0], [1, 1]]
        """
        self._require_fitted()
        last = stages_of(self)[-1]
        chosen = decoder_for(last.decoder, losses.make("cl" if last.loss is None else last.loss))
        if not self._algorithm().splits:
            raise InputError(
                "inference", "no options that are arrays over factors, for predict", "some", "give numbers"
            )
        if chosen.facts.output == "distributions":
            raise InputError("decoder", "one of states or numbers", repr(chosen.name), "use predict_proba")
        states = self._encoded(X)
        mask = states < 0 if outputs is None else outputs_of(outputs, states)
        _require_outputs(mask, "missing value" if outputs is None else "output", "leave the sample out")
        inputs = np.where(mask, -1, states)
        reals = chosen.facts.output == "values"
        found = np.where(inputs < 0, np.nan, inputs) if reals else inputs.copy()
        flat = found.ravel()
        for first, potentials, where in self._conditioned(inputs):
            with no_convergence_warnings():
                result = infer(potentials, threaded(self._algorithm(), self.n_jobs))
            flat[first + where] = np.asarray(chosen(result, mask.ravel()[first + where]))
        return found if reals else decode(found, self.categories_)

    def _conditioned(self, inputs: IntArray) -> Iterator[tuple[int, Potentials, IntArray]]:
        """Return what the inputs leave, some samples at a time: their first value, potentials, and variables."""
        n_variables = inputs.shape[1]
        step = max(1, AT_ONCE // max(n_variables, 1))
        for start in range(0, len(inputs), step):
            part = inputs[start : start + step]
            copies = Copies(self.model_, Samples(part, np.ones(len(part))))
            p = copies.potentials(self.potentials_)
            made = Conditioning(p.graph, p.table_ids, [len(tables) for tables in p.groups], part.ravel())
            yield start * n_variables, made.potentials(p), made.variables
