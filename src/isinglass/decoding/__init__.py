"""From beliefs, or from potentials, to a decision: one state for each variable."""

from isinglass.decoding.decoder import DECODERS, Decoder, DecoderFacts, make, register
from isinglass.decoding.map import MAP
from isinglass.decoding.mpm import MPM

__all__ = ["DECODERS", "MAP", "MPM", "Decoder", "DecoderFacts", "make", "register"]
