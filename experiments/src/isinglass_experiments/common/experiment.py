"""What an experiment is: options, a run, and a report that a table, a file or a page can be made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

from isinglass.errors import no_convergence_warnings, require
from isinglass.registry import Registry, choose
from isinglass.runtime.interrupts import ending_all
from isinglass.typing import Array
from isinglass.validation import jobs_of

T = TypeVar("T")
E = TypeVar("E", bound="Fittable")
Row = dict[str, object]  # of a table, ready for JSON
Pictures = Mapping[str, Sequence[tuple[str, Array]]]

Progress = Callable[[str, float], None]
"""Told what is being done, and the fraction that is done."""


class Fittable(Protocol):
    """An estimator."""

    def fit(self, X: Any, Y: Any) -> object:
        """Learn."""


class Plot(NamedTuple):
    """Lines of a picture: what its axes are, and the name, places and heights of each line."""

    across: str
    upwards: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    log: bool = False  # both axes


@dataclass(frozen=True, eq=False)
class Report:
    """What an experiment found.

    Attributes
    ----------
    title : str
    columns : sequence of str
    rows : sequence of sequences of str
        A table of ours beside the published values.
    notes : sequence of str
        How it was done, what did not converge, what is published of methods that were not run.
    data : mapping
        Everything measured, ready for JSON.
    pictures : mapping of str to list of (title, array (n, height, width))
        The columns of picture panels, by the name of the panel.
    plots : mapping of str to Plot
        Curves, by the name of the picture.
    varied : str
        What the panels of pictures differ in, such as noise; their names end with it.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    data: Mapping[str, object] = field(repr=False)
    pictures: Pictures = field(default_factory=dict, repr=False)
    plots: Mapping[str, Plot] = field(default_factory=dict, repr=False)
    varied: str = ""


@dataclass(frozen=True, kw_only=True)
class Experiment(ABC):
    """Base class of experiments; subclasses are frozen dataclasses of their further options.

    Parameters
    ----------
    quick : bool
        Fewer examples and iterations.
    n_jobs : int
        How many processes or threads share the work (-1: one for each processor). What it finds does not depend on
        them.
    """

    quick: bool = False
    n_jobs: int = 2

    name: ClassVar[str]
    summary: ClassVar[str]

    def __init_subclass__(cls) -> None:
        """Let Ctrl-C end an experiment, not one fit in it."""
        if "run" in vars(cls):
            cls.run = ending_all()(cls.run)  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_jobs", jobs_of(self.n_jobs))

    @abstractmethod
    def run(self, progress: Progress | None = None) -> Report:
        """Run it, telling `progress` what is being done."""


@dataclass(frozen=True)
class DataExperiment(Experiment):
    """An experiment on files.

    Parameters
    ----------
    data : str, optional
        The folder of the data; else the one that ISINGLASS_DATA names.
    """

    data: str | None = None


def tell(progress: Progress | None, stage: str, fraction: float) -> None:
    """Report progress, if anyone listens."""
    if progress is not None:
        progress(stage, fraction)


def fit_quietly(estimator: E, X: object, Y: object) -> E:
    """Fit without convergence warnings: reports say what did not converge."""
    with no_convergence_warnings():
        estimator.fit(X, Y)
    return estimator


def chosen_rows(rows: Sequence[str] | None, known: Sequence[str], default: Sequence[str]) -> tuple[str, ...]:
    """Return the rows of a table that were asked for, each once; refuse unknown ones, and none.

    Examples
    --------
    >>> chosen_rows(["b", "b"], known=["a", "b"], default=["a"])
    ('b',)
    """
    chosen = tuple(dict.fromkeys(default if rows is None else rows))
    unknown = [repr(row) for row in chosen if row not in known]
    require(not unknown and chosen, "rows", f"some of {', '.join(known)}", ", ".join(unknown) or "none")
    return chosen


def parallel_map(function: Callable[..., T], work: Sequence[tuple[object, ...]], n_jobs: int) -> Iterator[T]:
    """Yield the function's value for each tuple of arguments, in order, computed by some processes.

    Examples
    --------
    >>> list(parallel_map(pow, [(2, 3), (3, 2)], n_jobs=1))
    [8, 9]
    """
    from sklearn.utils.parallel import Parallel, delayed

    jobs = min(n_jobs, max(1, len(work)))
    yield from Parallel(n_jobs=jobs, return_as="generator")(delayed(function)(*one) for one in work)


EXPERIMENTS: Registry[type[Experiment]] = Registry("experiment")


def register(cls: type[Experiment]) -> type[Experiment]:
    """File an experiment under its name (a class decorator)."""
    return EXPERIMENTS.register(cls.name)(cls)


def make(name: str, **options: object) -> Experiment:
    """Return the experiment of a name with options.

    Examples
    --------
    >>> make("digits", quick=True).quick
    True
    """
    return choose(EXPERIMENTS, Experiment, name, options, "digits")  # type: ignore[type-abstract]
