"""Codecs: one file each, and a row in `core.registry`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.codecs.aam import AAM
    from dpveil.codecs.apart import Apart
    from dpveil.codecs.base import Bounds, Card, Codec
    from dpveil.codecs.dictionary import Dictionary
    from dpveil.codecs.gallery import FaceGallery, load_gallery, save_gallery
    from dpveil.codecs.pca import PCA
    from dpveil.codecs.store import card_path, load, save

TABLE: "Final[Mapping[str, type[Codec]]]" = registry.CODECS

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

__getattr__, __dir__ = lazy(
    __name__,
    registry.CODECS.homes,
    Apart="apart",
    Bounds="base",
    Card="base",
    Codec="base",
    FaceGallery="gallery",
    load_gallery="gallery",
    save_gallery="gallery",
    card_path="store",
    load="store",
    save="store",
)
