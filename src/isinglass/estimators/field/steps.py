"""What minimises the objective of a Markov random field: the optimizer of the user, or what a method brings along."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isinglass.errors import InputError
from isinglass.estimators.field.problem import MarkovChoices
from isinglass.gradients import rule
from isinglass.learning.markov import Method
from isinglass.learning.markov.priors import Penalties, parameter_groups
from isinglass.learning.optimizers import FixedPoint, Optimizer, Proximal, Sgd, make_optimizer
from isinglass.learning.optimizers.descent import Descent
from isinglass.learning.optimizers.stochastic.minibatch import MiniBatch
from isinglass.learning.training.choices import AUTOMATIC, refuse_tol
from isinglass.models import Model
from isinglass.typing import Mask


def unpenalised(chosen: MarkovChoices, size: int) -> Mask:
    """Tell which parameters have no penalty and no prior."""
    chosen.optimizer.check(size)
    groups, l1 = np.asarray(getattr(chosen.optimizer, "groups", ())), getattr(chosen.optimizer, "l1", 0.0)
    free = np.broadcast_to(np.asarray(l1) == 0, size) & (not chosen.l2 and not chosen.virtual)
    return np.asarray(free & (groups < 0) if groups.size else free)


def refuse_unused(mrf: Any, method: Method) -> None:
    """Refuse options that a method would not look at."""
    if not method.facts.log_z and rule(mrf.gradient).name != "envelope":
        expected = f"the default for method={method.name!r}, which differentiates no inference"
        raise InputError("gradient", expected, f"{mrf.gradient!r:.40}", "leave it out")
    if method.facts.sampled:
        refuse_tol(mrf, f"method={method.name!r}")


def optimizer_for(mrf: Any, method: Method, given: Optimizer[Any], penalties: Penalties) -> Optimizer[Any]:
    """Return what minimises; `given` is what the parameters of the estimator stand for."""
    facts = method.facts
    if (penalties.l1 or penalties.groups) and (facts.update or facts.sampled):
        what = "Laplace prior" if penalties.l1 else "prior of groups"
        expected = f"no {what} for method={method.name!r}"
        raise InputError("prior", expected, f"{mrf.prior!r:.40}", "use method='ml' or 'pseudo'")
    if facts.sampled:
        return _for_estimates(mrf, method, given)
    if facts.update:
        if not is_default(mrf):
            expected = f"the default for method={method.name!r}, which has an update of its own"
            raise InputError("optimizer", expected, f"{mrf.optimizer!r:.40}", "leave it out")
        return FixedPoint(tol=mrf.tol, max_iter=mrf.max_iter)
    if given.minibatch:
        remedy = "samples are added up before training, so that it is no slower for many"
        raise InputError("optimizer", "one for whole objectives, such as 'lbfgs'", f"{given.name!r}", remedy)
    if penalties.groups and not is_default(mrf):
        expected = "the default for a prior of groups, which brings its own"
        raise InputError("optimizer", expected, f"{mrf.optimizer!r:.40}", "leave it out")
    return make_optimizer(given, l1=penalties.l1) if penalties.l1 else given


def for_groups(model: Model, scale: float, tol: float, max_iter: int) -> Proximal:
    """Return what minimises with a penalty on the tables of a model."""
    return Proximal(tol=tol, max_iter=max_iter, groups=parameter_groups(model), scale=scale)


def for_weight(mrf: Any, optimizer: Optimizer[Any], total: float) -> Optimizer[Any]:
    """Return an optimizer whose tolerances suit a sum over samples of this total weight."""
    if isinstance(optimizer, FixedPoint):  # the tolerance is that of expectations over one sample
        return replace(optimizer, scale=total)
    if total < 1 and isinstance(optimizer, Descent) and isinstance(mrf.optimizer, str):
        return replace(optimizer, tol=optimizer.tol * total, ftol=optimizer.ftol * total)
    return optimizer


def is_default(mrf: Any) -> bool:
    """Tell whether the user has chosen no optimizer."""
    return isinstance(mrf.optimizer, str) and mrf.optimizer in (AUTOMATIC, "lbfgs")


def _for_estimates(mrf: Any, method: Method, given: Optimizer[Any]) -> Optimizer[Any]:
    """Return an optimizer for gradients that are estimates.

    One that is named takes all its steps: two values that are alike tell nothing where both are estimates. The default
    is replaced by the steps of the method as soon as the data are known.
    """
    if is_default(mrf):
        return Sgd(epochs=mrf.max_iter, random_state=0)
    if not isinstance(given, MiniBatch):
        expected = f"one for gradients that are estimates, with method={method.name!r}"
        raise InputError("optimizer", expected, f"{given.name!r}", "use 'sgd', 'adagrad' or 'adam'")
    return replace(given, tol=0.0) if isinstance(mrf.optimizer, str) else given
