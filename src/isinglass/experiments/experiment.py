"""What an experiment is: options, a run, and a report that a table, a file or a page can be made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from isinglass.registry import Registry, choose

Progress = Callable[[str, float], None]
"""Told what is being done, and the fraction that is done."""


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
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str]
    data: Mapping[str, Any] = field(repr=False)
    pictures: Mapping[str, list[tuple[str, Any]]] = field(repr=False)


class Experiment(ABC):
    """Base class of experiments; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    summary: ClassVar[str]

    @abstractmethod
    def run(self, progress: Progress | None = None) -> Report:
        """Run it, telling `progress` what is being done."""


EXPERIMENTS: Registry[type[Experiment]] = Registry("experiment")


def register(cls: type[Experiment]) -> type[Experiment]:
    """File an experiment under its name (a class decorator)."""
    return EXPERIMENTS.register(cls.name)(cls)


def make(name: str, **options: Any) -> Experiment:
    """Return the experiment of a name with options.

    Examples
    --------
    >>> make("digits", quick=True).quick
    True
    """
    return choose(EXPERIMENTS, Experiment, name, options, "digits")  # type: ignore[type-abstract]
