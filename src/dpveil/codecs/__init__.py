"""Codecs: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.codecs.aam import AAM
from dpveil.codecs.pair_distances import Apart
from dpveil.codecs.base import Bounds, Card, Codec
from dpveil.codecs.dictionary import Dictionary
from dpveil.codecs.gallery import FaceGallery, load_gallery, save_gallery
from dpveil.codecs.pca import PCA
from dpveil.assets.store import card_path, load, save

TABLE: Final[dict[str, type[Codec]]] = {codec.name: codec for codec in (PCA, Dictionary, AAM)}

__all__ = [
    "AAM",
    "PCA",
    "TABLE",
    "Apart",
    "Bounds",
    "Card",
    "Codec",
    "Dictionary",
    "FaceGallery",
    "card_path",
    "load",
    "load_gallery",
    "save",
    "save_gallery",
]
