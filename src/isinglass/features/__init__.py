"""From raw data to features: attributes of tokens."""

from isinglass.features.windows import window_attributes

__all__ = ["window_attributes"]
