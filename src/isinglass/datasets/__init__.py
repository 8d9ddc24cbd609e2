"""Small data sets and models that come with the library; nothing is downloaded."""

from isinglass.datasets.glyph import denoising_model, glyph, noisy_glyph
from isinglass.datasets.textbook import misconception

__all__ = ["denoising_model", "glyph", "misconception", "noisy_glyph"]
