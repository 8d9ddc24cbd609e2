"""Small data sets and models that come with the library; nothing is downloaded."""

from isinglass.datasets.digits import NoisyDigits, binary_digits, noisy_digits
from isinglass.datasets.glyph import denoising_model, glyph, noisy_glyph
from isinglass.datasets.textbook import misconception
from isinglass.removed import missing_attribute

__all__ = [
    "NoisyDigits",
    "binary_digits",
    "denoising_model",
    "glyph",
    "misconception",
    "noisy_digits",
    "noisy_glyph",
]

__getattr__ = missing_attribute(__name__)
