"""Readers of collected data, from the folder that ISINGLASS_DATA names, and features of pictures and their regions."""

from isinglass_experiments.data.files import Alignment, Contingency, load_alignment, load_contingency, load_words
from isinglass_experiments.data.images import ImageFeatures
from isinglass_experiments.data.pictures import (
    MULTI_LABELS,
    SCENE_LABELS,
    Letters,
    MultiLabel,
    Photographs,
    Stereo,
    label_graph,
    load_horses,
    load_letters,
    load_scene_labels,
    load_stereo,
    load_street_scenes,
    stereo_model,
)
from isinglass_experiments.data.regions import RegionGraph, region_graph
from isinglass_experiments.data.snakes import N_LABELS, Snakes, load_snakes, snake_graph
from isinglass_experiments.data.text import (
    Chunking,
    Entities,
    chunk_attributes,
    entity_attributes,
    load_conll2000,
    load_wnut17,
    read_chunking,
)

__all__ = [
    "MULTI_LABELS",
    "N_LABELS",
    "SCENE_LABELS",
    "Alignment",
    "Chunking",
    "Contingency",
    "Entities",
    "ImageFeatures",
    "Letters",
    "MultiLabel",
    "Photographs",
    "RegionGraph",
    "Snakes",
    "Stereo",
    "chunk_attributes",
    "entity_attributes",
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
    "read_chunking",
    "region_graph",
    "snake_graph",
    "stereo_model",
]
