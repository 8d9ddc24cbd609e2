"""From raw data to features: attributes of tokens, features of pixels."""

from isinglass.features.images import ImageFeatures
from isinglass.features.windows import window_attributes

__all__ = ["ImageFeatures", "window_attributes"]
