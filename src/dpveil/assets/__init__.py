"""Trained files by hash: writing and reading them, their model cards, and how methods refer to them.

The contents are defined where they are used: codecs in `dpveil.codecs`, galleries and attribute models in
`dpveil.faces`. Each is a `TrainedFile`, and a `Kind` describes it to `AssetField`.
"""

from dpveil.assets.file_reference import AssetField, Kind, Reference
from dpveil.assets.model_cards import Card, CardWords
from dpveil.assets.trained_files import TrainedFile, card_path, default_path, load, save

__all__ = [
    "AssetField",
    "Card",
    "CardWords",
    "Kind",
    "Reference",
    "TrainedFile",
    "card_path",
    "default_path",
    "load",
    "save",
]
