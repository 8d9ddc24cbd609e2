"""From raw data to features: attributes of tokens, features of pixels and regions, schemes of labels."""

from isinglass.features.images import ImageFeatures
from isinglass.features.regions import RegionGraph, region_graph
from isinglass.features.schemes import to_bio, to_bioes
from isinglass.features.windows import window_attributes
from isinglass.features.words import with_forms, word_form

__all__ = [
    "ImageFeatures",
    "RegionGraph",
    "region_graph",
    "to_bio",
    "to_bioes",
    "window_attributes",
    "with_forms",
    "word_form",
]
