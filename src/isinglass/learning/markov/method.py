"""Methods: the ways to learn a Markov random field, each with a name and its facts (Murphy 2012, table 19.1).

A method turns a model and samples into an objective. Most are minimised by an optimizer of the user's choice; those
with an update of their own (`facts.update`), such as iterative proportional fitting, go from one fixed-point step to
the next.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from isinglass.errors import InputError, UnknownNameError
from isinglass.learning.markov.objective import MarkovObjective, Task
from isinglass.learning.markov.samples import TermCounts
from isinglass.learning.optimizers import Optimizer
from isinglass.losses import LOSSES, Likelihood, Loss
from isinglass.registry import Registry, choose, require_declared
from isinglass.typing import FloatArray


@dataclass(frozen=True)
class MethodFacts:
    """What is true of a method.

    Attributes
    ----------
    formula : str
        What is minimised, or solved.
    consistent : bool
        Whether it finds the true parameters in the limit of many samples of a model of the family.
    convex : bool
    log_z : bool
        Whether it needs inference.
    missing : bool
        Whether samples may have missing values.
    constants : bool
        Whether a model may have constant tables, such as those of structural zeros.
    tables : bool
        Whether it needs a table of its own for each factor: no features, and none that are tied.
    penalised : bool
        Whether it goes with l2.
    virtual : bool
        Whether it goes with a Dirichlet prior.
    likelihood : bool
        Whether it maximises the likelihood itself: only then do tests and standard errors hold, and cells that lose
        their mass at a maximum at infinity are looked for beforehand.
    update : bool
        Whether it has an update of its own, and so no use for an optimizer.
    sampled : bool
        Whether its gradients are estimates, from chains that go on from one to the next: for optimizers that take
        minibatches.
    note : str
    """

    formula: str
    consistent: bool
    convex: bool = False
    log_z: bool = True
    missing: bool = False
    constants: bool = True
    tables: bool = False
    penalised: bool = True
    virtual: bool = True
    likelihood: bool = False
    update: bool = False
    sampled: bool = False
    note: str = ""


class Method(ABC):
    """Base class of methods; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[MethodFacts]

    @abstractmethod
    def objective(self, task: Task) -> MarkovObjective:
        """Return what is minimised."""

    @property
    def loss(self) -> Loss:
        """The loss that says which inferences and gradients the method goes with."""
        return Likelihood()

    def terms(self, objective: MarkovObjective) -> TermCounts | None:
        """Count the terms of the objective, where some may be left out."""
        return None

    def start(self, objective: MarkovObjective, theta: FloatArray) -> FloatArray:
        """Return where to begin: by default at zero, or with the parameters of the last fit."""
        return theta

    def default_optimizer(self, max_iter: int, task: Task) -> Optimizer[Any]:
        """Return the optimizer that is taken where none is named; for methods that sample (`facts.sampled`)."""
        raise NotImplementedError

    def check(self, task: Task) -> None:
        """Refuse what the method cannot do, before any work."""
        facts, name = self.facts, self.name
        if not facts.missing and not task.samples.whole.all():
            row = int(np.argmin(task.samples.whole))
            got = f"a sample with missing values, {task.samples.states[row].tolist()!r:.60}"
            raise InputError("X", f"no missing values for method={name!r}", got, "use method='em', 'ml' or 'pseudo'")
        if not facts.penalised and np.any(task.l2):
            remedy = "use method='ml', or a Dirichlet prior" if facts.virtual else "use method='ml'"
            raise InputError("l2", f"0 for method={name!r}", f"{task.l2!r:.40}", remedy)
        if not facts.virtual and task.virtual:
            raise InputError("prior", f"no Dirichlet prior for method={name!r}", "one", "use method='ml'")
        if facts.tables and not task.model.is_table_model:
            expected = f"a graph, with a table for each factor, for method={name!r}"
            raise InputError("graph", expected, "tied tables or features", "use method='ml' or 'scaling'")
        if not facts.constants and any(t.any() for t in task.model.potentials(np.zeros(task.model.size)).groups):
            expected = f"a model without constant tables, for method={name!r}"
            raise InputError("graph", expected, "constants, or impossible configurations", "use method='ipf'")


METHODS: Registry[type[Method]] = Registry("method")

M = TypeVar("M", bound=type[Method])


def register(cls: M) -> M:
    """File a method under its name (a class decorator, the outermost)."""
    require_declared(cls, name=str, facts=MethodFacts)
    METHODS.register(cls.name)(cls)
    return cls


def make_method(method: str | Method, **options: object) -> Method:
    """Return the method that a name or an object, and further options, stand for.

    Examples
    --------
    >>> make_method("ml").facts.consistent
    True
    """
    if isinstance(method, str) and method in LOSSES and method not in METHODS:
        remedy = f"it is a loss: use loss={method!r}, and outputs= in fit"
        raise UnknownNameError("method", f"one of {', '.join(map(repr, METHODS))}", repr(method), remedy)
    return choose(METHODS, Method, method, options, "ml")  # type: ignore[type-abstract]
