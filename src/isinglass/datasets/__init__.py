"""Small data sets and models that come with the library, and readers of some that do not; nothing is downloaded."""

from isinglass.datasets.digits import NoisyDigits, binary_digits, noisy_digits
from isinglass.datasets.glyph import denoising_model, glyph, noisy_glyph
from isinglass.datasets.snakes import Snakes, load_snakes, snake_graph
from isinglass.datasets.textbook import misconception

__all__ = [
    "NoisyDigits",
    "Snakes",
    "binary_digits",
    "denoising_model",
    "glyph",
    "load_snakes",
    "misconception",
    "noisy_digits",
    "noisy_glyph",
    "snake_graph",
]
