"""From raw data to features: attributes of tokens, what words look like, schemes of labels."""

from isinglass.features.schemes import to_bio, to_bioes
from isinglass.features.windows import window_attributes
from isinglass.features.words import with_forms, word_form
from isinglass.removed import missing_attribute

__all__ = [
    "to_bio",
    "to_bioes",
    "window_attributes",
    "with_forms",
    "word_form",
]

__getattr__ = missing_attribute(__name__)
