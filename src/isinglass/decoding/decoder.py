"""What a decoder is: from what inference says, or from the potentials themselves, to one state for each variable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from isinglass.inference.result import Result
from isinglass.potentials import Potentials
from isinglass.registry import Registry, choose, require_declared
from isinglass.typing import IntArray


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
    """

    formula: str
    uses: Literal["beliefs", "potentials"]
    optimal: str


class Decoder(ABC):
    """Base class of decoders; subclasses are frozen dataclasses of their options."""

    name: ClassVar[str]
    facts: ClassVar[DecoderFacts]

    @abstractmethod
    def __call__(self, given: Result | Potentials) -> IntArray:
        """Return a state for each variable, an int array (variables,).

        Parameters
        ----------
        given : Result or Potentials
            Decoders of beliefs need a result; others use its potentials, or potentials directly.
        """


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
    """
    return choose(DECODERS, Decoder, decoder, options, "mpm")  # type: ignore[type-abstract]
