"""From beliefs, or from potentials, to a decision for each variable."""

from isinglass.decoding.bayes import Bayes, Median
from isinglass.decoding.decoder import DECODERS, Decoder, DecoderFacts, make, register
from isinglass.decoding.f1 import F1
from isinglass.decoding.identity import Distribution, Identity
from isinglass.decoding.map import MAP
from isinglass.decoding.mpm import MPM, Soft
from isinglass.decoding.relaxation import Relaxed
from isinglass.decoding.sampled import Sampled

__all__ = [
    "DECODERS",
    "F1",
    "MAP",
    "MPM",
    "Bayes",
    "Decoder",
    "DecoderFacts",
    "Distribution",
    "Identity",
    "Median",
    "Relaxed",
    "Sampled",
    "Soft",
    "make",
    "register",
]
