"""The choices of an estimator, checked: from names and numbers to the objects that do the work."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np

from isinglass import decoding, losses
from isinglass.errors import InputError, require
from isinglass.gradients import GradientRule, rule
from isinglass.inference import ALGORITHMS, Algorithm
from isinglass.inference.algorithm import make
from isinglass.inference.free_energy.entropies import FIT, with_entropy
from isinglass.inference.message_passing.algorithms.base import SCHEDULES
from isinglass.io.files import checked_path
from isinglass.learning.combinations import require_valid
from isinglass.learning.optimizers import OPTIMIZERS, AdaGrad, Lbfgs, Optimizer, OwlQn, make_optimizer
from isinglass.learning.optimizers.descent import Descent
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.learning.training.checks import refuse_hidden, renamed
from isinglass.models import Model
from isinglass.removed import refuse_removed
from isinglass.typing import Array, FloatArray, IntArray
from isinglass.validation import flag, jobs_of, number, whole_number

AUTOMATIC = "auto"
RATE, DECAY = 0.3, 0.1  # of AdaGrad, where gradients are estimates and no optimizer is chosen
GAP = 100.0  # times tol is the relative duality gap that ends a run, where no optimizer is chosen
USUAL = 1e-4  # the tol of estimators, for which the ftol of optimizers is; decreases fall as squares of gradients
MOST_ITERATIONS = 10  # of an inference by name that training goes back through, unless the user gives a number


class Penalty(NamedTuple):
    """A number for node parameters, and one for edge parameters."""

    node: float
    edge: float

    def of(self, model: Model) -> FloatArray:
        """Return the penalty of each parameter."""
        return np.where(model.mask("node"), self.node, self.edge)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What the parameters of an estimator stand for, whatever is trained.

    `suited`: the optimizer was left to the library. `remark`: what `fit` says of the loss, if anything.
    """

    loss: losses.Loss
    optimizer: Optimizer[Any]
    l2: float
    jobs: int
    suited: bool = False
    remark: str | None = None

    def for_labels(self, labels: IntArray) -> Self:
        """Return the choices with an optimizer for hidden labels, where none was chosen; else refuse these labels."""
        chosen = self
        if self.suited and self.optimizer.convex and (labels < 0).any():
            limits = {name: getattr(self.optimizer, name) for name in ("l2", "tol", "max_iter")}
            chosen = replace(self, optimizer=make_optimizer("cccp", **limits))
        refuse_hidden(labels, chosen.optimizer)
        return chosen


@dataclass(frozen=True, kw_only=True)
class GraphChoices(Choices):
    """What the parameters of a conditional random field stand for.

    `l1` is None where the optimizer has its own, or none; `edge_l2` where it is `l2`. `per_iteration` is how many
    iterations have parameters of their own: one, where all share them. `limited`: inference is to end after
    `MOST_ITERATIONS`, unless the graph makes it exact.
    """

    algorithm: Algorithm
    rule: GradientRule
    decoder: decoding.Decoder
    edge_l2: float | None
    l1: Penalty | None
    per_iteration: int = 1
    limited: bool = False

    def for_model(self, model: Model) -> GraphChoices:
        """Return the choices with the l1 penalty of each parameter, and with an inference that ends soon enough."""
        chosen = self
        if self.l1 is not None:
            l1 = np.tile(self.l1.of(model), self.per_iteration)
            chosen = replace(self, optimizer=make_optimizer(self.optimizer, l1=l1))
        chosen = replace(chosen, optimizer=with_penalty(chosen.optimizer, self._penalties(model)))
        if not self.limited:
            return chosen
        if self.algorithm.facts.exact == "forests" and model.graph.is_forest:
            return replace(chosen, limited=False)
        return replace(chosen, algorithm=with_limit(self.algorithm, MOST_ITERATIONS))

    def _penalties(self, model: Model) -> FloatArray:
        return np.tile(self.penalty.of(model), self.per_iteration)

    @property
    def penalty(self) -> Penalty:
        """The penalties of squares."""
        return Penalty(self.l2, self.l2 if self.edge_l2 is None else self.edge_l2)

    @property
    def iterations(self) -> int | None:
        """How many iterations inference has at most, by the user's choice or, where it is limited, ours; or None."""
        return self.algorithm.max_iter if self.limited else self.algorithm.iterations


def choices_of(crf: Any) -> GraphChoices:
    """Check every parameter of a conditional random field, and that they go together."""
    l1 = _penalty(crf, "l1")
    loss = losses.make(crf.loss)
    decoder = decoder_for(crf.decoder, loss)
    chosen = GraphChoices(
        **vars(training_choices(crf, loss.for_decoder(decoder), any(l1))) | {"remark": loss.remark(decoder)},
        algorithm=algorithm_of(crf),
        rule=rule(crf.gradient),
        decoder=decoder,
        edge_l2=None if crf.edge_l2 is None else number(crf.edge_l2, "edge_l2", 0, math.inf),
        l1=l1 if any(l1) else None,
    )
    require_valid(chosen.loss, chosen.algorithm, chosen.rule)
    if fits_inference(crf) and (not chosen.rule.of_parameters or chosen.loss.facts.uses == "potentials"):
        got = f"{crf.gradient!r} with loss {chosen.loss.name!r}"
        raise InputError("gradient", "'implicit', and a loss of an inference, for entropy='fit'", got)
    if crf.n_states is not None:
        whole_number(crf.n_states, "n_states", 2)
    for name in ("bias", "edge_bias"):
        flag(getattr(crf, name, False), name)
    chosen = replace(
        chosen, limited=is_automatic(crf.iterations) and isinstance(crf.inference, str) and _goes_back(chosen)
    )
    own = flag(crf.own_parameters, "own_parameters")
    return replace(chosen, per_iteration=_with_parameters(chosen)) if own else chosen


def training_choices(
    estimator: Any, loss: losses.Loss, sparse: object = False, *, compiled_passes: bool = False
) -> Choices:
    """Check what belongs to training, whatever is trained.

    `sparse`: whether there is an l1 penalty; `compiled_passes`: whether block-coordinate Frank-Wolfe has compiled ones.
    """
    check_run(estimator)
    check_class_weight(estimator.class_weight, loss)
    name = suited_optimizer(estimator, loss, bool(sparse), compiled_passes)
    optimizer = optimizer_of(estimator, bool(sparse), name)
    if loss.facts.sampled:
        optimizer = for_estimates(estimator, loss, optimizer)
    if optimizer.convex and not loss.facts.convex:
        able = " or ".join(repr(name) for name, cls in losses.LOSSES.items() if cls.facts.convex)
        raise InputError("loss", f"a convex one ({able}) for optimizer {optimizer.name!r}", repr(loss.name))
    if optimizer.latent and not loss.facts.completes:
        able = " or ".join(repr(name) for name, cls in losses.LOSSES.items() if cls.facts.completes)
        raise InputError("loss", f"a hinge ({able}) for optimizer {optimizer.name!r}", repr(loss.name), "use 'lbfgs'")
    return Choices(
        loss=loss,
        optimizer=optimizer,
        l2=l2_of(estimator),
        jobs=jobs_of(estimator.n_jobs),
        suited=is_automatic(estimator.optimizer),
    )


def is_automatic(given: object) -> bool:
    """Tell whether a parameter is left to the library."""
    return isinstance(given, str) and given == AUTOMATIC


def decoder_for(given: str | decoding.Decoder, loss: losses.Loss) -> decoding.Decoder:
    """Return the decoder; "auto" is the one that the loss fits, or "mpm"."""
    if is_automatic(given):
        return loss.decides_by or decoding.make("mpm")
    return decoding.make(given)


def l2_of(estimator: Any) -> float:
    """Return the penalty of squares."""
    if is_automatic(estimator.l2):
        refuse_removed("l2='auto'")
    return number(estimator.l2, "l2", 0, math.inf)


def algorithm_of(crf: Any) -> Algorithm:
    """Return the inference that will be run."""
    options: dict[str, Any] = {}
    if crf.iterations is not None and not is_automatic(crf.iterations):
        options["iterations"] = _number_of_iterations(crf.iterations)
    if getattr(crf, "schedule", None) is not None:
        refuse_removed(f"schedule={crf.schedule!r}")
        expected = f"one of {', '.join(map(repr, SCHEDULES))}"
        require(crf.schedule in SCHEDULES, "schedule", expected, repr(crf.schedule), "'grid' is the sweep over images")
        if _has_schedule(crf.inference):
            options["schedule"] = crf.schedule
    if "iterations" in options and isinstance(crf.inference, str) and crf.inference in ("exact", "brute"):
        got = f"{crf.iterations} with inference {crf.inference!r}"
        raise InputError("iterations", "None where inference is exact", got, "leave it out, or use inference='bp'")
    with renamed("algorithm", "inference"):
        algorithm = make(crf.inference, options)
    with renamed("weights", "inference.weights" if crf.entropy is None else "entropy"):
        return with_entropy(algorithm, crf.entropy, _earlier(crf), _is_symmetric(crf))


def with_limit(algorithm: Algorithm, most: int | None) -> Algorithm:
    """Return an inference by its tolerance that ends after so many iterations at the latest."""
    if most is None or not algorithm.facts.iterative:
        return algorithm
    return replace(algorithm, max_iter=most)  # type: ignore[type-var]


def predicting_of(crf: Any, most: int | None) -> Algorithm:
    """Return the inference of predictions; `most`: the iterations that were chosen in training, where it chose them."""
    algorithm = algorithm_of(crf)
    return with_limit(algorithm, most) if is_automatic(crf.iterations) and isinstance(crf.inference, str) else algorithm


def _number_of_iterations(given: Any) -> int:
    if isinstance(given, str):
        raise InputError("iterations", f"a whole number, None or {AUTOMATIC!r}", f"{given!r:.40}")
    return whole_number(given, "iterations", 1)


def _goes_back(chosen: GraphChoices) -> bool:
    """Tell whether training goes back through the iterations of an inference that runs until a tolerance."""
    algorithm = chosen.algorithm
    return chosen.rule.of_iterations and chosen.loss.facts.uses == "beliefs" and algorithm.facts.iterative


def fits_inference(crf: Any) -> bool:
    """Tell whether parameters of inference are learned."""
    return isinstance(crf.entropy, str) and crf.entropy == FIT


def _earlier(crf: Any) -> Iterator[Algorithm]:
    """Return the inferences of earlier stages, the latest first."""
    before = getattr(crf, "_before", None)
    while before is not None:
        yield algorithm_of(before)
        before = getattr(before, "_before", None)


def _is_symmetric(crf: Any) -> bool:
    """Tell whether all tables of edges are symmetric in the two labels."""
    given = getattr(crf, "symmetric", False)
    return isinstance(given, bool | np.bool_) and bool(given)


def entropy_of(crf: Any, named: Mapping[str, Array], n_states: int) -> dict[str, FloatArray] | None:
    """Return the entropy weights of states and of pairs of states; None where an inference has no such tables."""
    return algorithm_of(crf).fitted_values(named, n_states)


def _has_schedule(inference: Any) -> bool:
    """Tell whether an inference, given by name, has schedules; an object has its own."""
    if not isinstance(inference, str) or inference not in ALGORITHMS:
        return False
    return "schedule" in {field.name for field in fields(ALGORITHMS[inference])}  # type: ignore[arg-type]


def _penalty(crf: Any, name: str) -> Penalty:
    """Check the penalties of nodes and edges; that of edges is by default that of nodes."""
    node, edge = getattr(crf, name), getattr(crf, f"edge_{name}")
    return Penalty(number(node, name, 0, math.inf), number(node if edge is None else edge, f"edge_{name}", 0, math.inf))


def suited_optimizer(estimator: Any, loss: losses.Loss, sparse: bool, compiled_passes: bool) -> str:
    """Return the name of an optimizer that suits a loss: the one that it declares, if it can be used, or L-BFGS.

    Those with a duality gap need a squared penalty of every parameter, and no l1 penalty. Block-coordinate Frank-Wolfe
    is the quickest of them where its pass is compiled; elsewhere cutting planes are.
    """
    name = loss.facts.optimizer
    if name is None or sparse:
        return "lbfgs"
    if not OPTIMIZERS[name].convex:
        return name
    edge = getattr(estimator, "edge_l2", None)
    if not l2_of(estimator) > 0 or (edge is not None and not number(edge, "edge_l2", 0, math.inf) > 0):
        return "lbfgs"
    return "bcfw" if compiled_passes else name


def optimizer_of(estimator: Any, sparse: bool = False, suited: str = "lbfgs") -> Optimizer[Any]:
    """Return the optimizer; one given by name has the estimator's `tol` and `max_iter`, and is for an l1 penalty.

    L-BFGS by name stands for the quasi-Newton method, which with an l1 penalty is OWL-QN. A `tol` below 1e-4 lowers the
    `ftol` of an optimizer that has one, too, as that would end training first. "auto" is the one that is `suited`; if
    it has a duality gap, it ends by a gap of `GAP` times `tol`.
    """
    steps, tol = whole_number(estimator.max_iter, "max_iter", 1), number(estimator.tol, "tol", 0, math.inf)
    given = estimator.optimizer
    if is_automatic(given):
        given, tol = suited, tol * GAP if OPTIMIZERS[suited].convex else tol
    if not isinstance(given, str):
        made = make_optimizer(given)
    elif OPTIMIZERS[given].minibatch:
        made = make_optimizer(given, epochs=steps, tol=tol, random_state=0)
    elif given in ("lbfgs", "owlqn"):
        made = OwlQn(max_iter=steps, tol=tol, l1=0.0) if sparse else Lbfgs(max_iter=steps, tol=tol)
    else:
        made = make_optimizer(given, max_iter=steps, tol=tol)
    if isinstance(given, str) and isinstance(made, Descent):
        made = replace(made, ftol=made.ftol * min(1.0, tol / USUAL) ** 2)
    if sparse and not made.sparse:
        able = [name for name, cls in OPTIMIZERS.items() if cls.sparse]
        remedy = f"use 'lbfgs' by name, or {' or '.join(map(repr, able))}, or l1=0"
        raise InputError("optimizer", "one for l1 penalties", f"{made.name!r}", remedy)
    return made


def for_estimates(estimator: Any, loss: losses.Loss, given: Optimizer[Any]) -> Optimizer[Any]:
    """Return an optimizer for gradients that are estimates: AdaGrad, where none is chosen.

    With its rate it falls as 1 / t in the end: the sum of steps is infinite, that of their squares is not (Robbins and
    Monro 1951). One that is named takes all its steps: two values that are alike tell nothing where both are estimates.
    """
    named = isinstance(estimator.optimizer, str)
    if named and estimator.optimizer in (AUTOMATIC, "lbfgs") and not isinstance(given, OwlQn):
        given = AdaGrad(RATE, estimator.max_iter, schedule="sqrt", decay=DECAY, random_state=0)
    if not isinstance(given, MiniBatch):
        expected = f"one for gradients that are estimates, with loss {loss.name!r}, and no l1"
        raise InputError("optimizer", expected, f"{given.name!r}", "use 'sgd', 'adagrad' or 'adam'")
    refuse_tol(estimator, f"loss {loss.name!r}")
    if not named:
        return given
    steps = replace(given, tol=0.0)
    return replace(steps, averaging=True, burn_in=steps.epochs // 4) if loss.facts.averaged else steps


def refuse_tol(estimator: Any, what: str) -> None:
    """Refuse a tolerance where gradients are estimates, and all steps are made."""
    if isinstance(estimator.optimizer, str) and estimator.tol != type(estimator).tol:
        expected = f"the default for {what}, which makes max_iter steps"
        raise InputError("tol", expected, f"{estimator.tol!r:.40}", "leave it out")


def with_penalty(optimizer: Optimizer[Any], l2: float | FloatArray) -> Optimizer[Any]:
    """Return the optimizer with the squared penalties of the problem, where it needs to know them."""
    known = {field.name for field in fields(optimizer)}  # type: ignore[arg-type]
    return make_optimizer(optimizer, l2=l2) if "l2" in known else optimizer


def _with_parameters(chosen: GraphChoices) -> int:
    """Return how many iterations have parameters of their own, or say why they cannot."""
    algorithm = chosen.algorithm
    if not algorithm.takes_stages:
        got, remedy = f"True with inference {algorithm.name!r}", "use message passing, such as 'bp'"
    elif algorithm.iterations is None:
        got, remedy = "True without a number of iterations", "give iterations"
    elif chosen.loss.facts.uses != "beliefs":
        got, remedy = f"True with loss {chosen.loss.name!r}", "use a loss of beliefs, such as 'ucl'"
    elif not chosen.rule.of_iterations:
        got, remedy = f"True with gradient {chosen.rule.name!r}", "use 'unrolled', which needs no fixed point"
    else:
        return whole_number(algorithm.iterations, "iterations", 1)
    raise InputError("own_parameters", "False", got, remedy)


def check_run(estimator: Any) -> None:
    """Check what belongs to a run of training."""
    whole_number(estimator.patience, "patience", 1)
    for name in ("warm_start", "verbose"):
        flag(getattr(estimator, name), name)
    callback = estimator.callback
    if callback is not None and not callable(callback):
        raise InputError("callback", "a function of the progress", type(callback).__name__, "or leave it out")
    if estimator.checkpoint is not None:
        _check_file(estimator.checkpoint)


def check_class_weight(given: Any, loss: losses.Loss) -> None:
    """Refuse weights of labels for a loss that is no sum over labels."""
    if given is not None and (loss.facts.uses == "log_z" or loss.facts.sampled):
        expected = f"None with loss {loss.name!r}, which is no sum over labels"
        raise InputError("class_weight", expected, f"{given!r:.40}", "use a loss such as 'ucl'")


def _check_file(path: Any) -> None:
    """Check that a checkpoint could be written."""
    with renamed("path", "checkpoint"):
        folder = os.path.dirname(os.fspath(checked_path(path)))
    if folder and not os.path.isdir(folder):
        got = f"one in {folder!r:.100}, which does not exist"
        raise InputError("checkpoint", "a file in a folder that exists", got, "create the folder first")
