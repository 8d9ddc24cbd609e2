"""What a decoder is: from what inference says, or from the potentials themselves, to a decision for each variable.

A minimum-Bayes-risk decoder takes, of all decisions, one of least expected loss under the model,

    d*  =  argmin_d E_{x ~ p} loss(d, x)                  (Stoyanov, Ropson and Eisner 2011, eq. 7).

Decisions jump, so they have no useful derivative. For training, a decoder may have a relaxed version: a distribution
q_i over the states of each variable instead of one state, which is a smooth function of the beliefs and tends to the
decision as its temperature goes to zero (`Decoder.relaxed`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from isinglass.decoding.relaxation import Relaxed
from isinglass.errors import InputError
from isinglass.inference.result import Result, VariableBeliefs
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose, require_declared
from isinglass.typing import Array, FloatArray


@dataclass(frozen=True)
class DecoderFacts:
    """What is true of a decoder.

    Attributes
    ----------
    formula : str
    uses : {"beliefs", "potentials"}
        Whether it needs the beliefs of an inference, or only the potentials.
    optimal : str
        What it does best, were inference exact.
    output : {"states", "values", "distributions"}
        What a decision is: a state, a real number, or a distribution over states.
    relaxed : str
        The formula of its differentiable version; empty where it has none.
    """

    formula: str
    uses: Literal["beliefs", "potentials"]
    optimal: str
    output: Literal["states", "values", "distributions"] = "states"
    relaxed: str = ""


class Decoder(ABC):
    """Base class of decoders; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[DecoderFacts]

    @property
    def jumps(self) -> bool:
        """Whether the relaxed version jumps where the decision changes."""
        return False

    @abstractmethod
    def __call__(self, given: Result | Potentials, outputs: ArrayLike | None = None) -> Array | VariableBeliefs:
        """Return a decision for each variable: states, an int array (variables,), unless the facts say otherwise.

        Parameters
        ----------
        given : Result or Potentials
            Decoders of beliefs need a result; others use its potentials, or potentials directly.
        outputs : bool array (variables,), optional
            The variables to decide on; by default all. Others are hidden, and get the state -1 (or nan).
        """

    def by_rows(self) -> Callable[[FloatArray], Array] | None:
        """Return a function from beliefs (variables, states) to decisions, where these depend on nothing else.

        None, by default: decisions depend on more.
        """
        return None

    def relaxed(self, result: Result, outputs: ArrayLike | None = None, temperature: float = 1.0) -> Relaxed:
        """Return the differentiable version of the decision, for training; only where the facts have a formula.

        Parameters
        ----------
        result : Result
        outputs : bool array (variables,), optional
        temperature : float
            Positive; the decision itself is the limit of zero.
        """
        able = " or ".join(repr(name) for name, cls in DECODERS.items() if cls.facts.relaxed)
        raise InputError("decoder", f"one with a differentiable version, such as {able}", repr(self.name))


DECODERS: Registry[type[Decoder]] = Registry("decoder")


def register(cls: type[Decoder]) -> type[Decoder]:
    """File a decoder under its name (a class decorator)."""
    require_declared(cls, name=str, facts=DecoderFacts)
    return DECODERS.register(cls.name)(cls)


def make(decoder: str | Decoder, **options: Any) -> Decoder:
    """Return the decoder that a name or an object, and further options, stand for.

    Examples
    --------
    >>> from isinglass import decoding
    >>> decoding.make("map", algorithm="max-product")
    MAP(algorithm='max-product')
    >>> decoding.make("f1", form="even-split")
    F1(form='even-split', positive=1, beta=1.0)
    """
    return choose(DECODERS, Decoder, decoder, options, "mpm")  # type: ignore[type-abstract]
