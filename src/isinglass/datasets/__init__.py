"""Small data sets and models that come with the library, and readers of some that do not; nothing is downloaded."""

from isinglass.datasets.chunking import Chunking, chunk_attributes, load_conll2000
from isinglass.datasets.digits import NoisyDigits, binary_digits, noisy_digits
from isinglass.datasets.entities import Entities, entity_attributes, load_wnut17
from isinglass.datasets.glyph import denoising_model, glyph, noisy_glyph
from isinglass.datasets.letters import Letters, load_letters
from isinglass.datasets.multilabel import MultiLabel, label_graph, load_scene_labels
from isinglass.datasets.photographs import Photographs, load_horses, load_street_scenes
from isinglass.datasets.snakes import Snakes, load_snakes, snake_graph
from isinglass.datasets.stereo import Stereo, load_stereo, stereo_model
from isinglass.datasets.tables import Alignment, Contingency, load_alignment, load_contingency
from isinglass.datasets.textbook import misconception
from isinglass.datasets.words import load_words

__all__ = [
    "Alignment",
    "Chunking",
    "Contingency",
    "Entities",
    "Letters",
    "MultiLabel",
    "NoisyDigits",
    "Photographs",
    "Snakes",
    "Stereo",
    "binary_digits",
    "chunk_attributes",
    "denoising_model",
    "entity_attributes",
    "glyph",
    "label_graph",
    "load_alignment",
    "load_conll2000",
    "load_contingency",
    "load_horses",
    "load_letters",
    "load_scene_labels",
    "load_snakes",
    "load_stereo",
    "load_street_scenes",
    "load_wnut17",
    "load_words",
    "misconception",
    "noisy_digits",
    "noisy_glyph",
    "snake_graph",
    "stereo_model",
]
