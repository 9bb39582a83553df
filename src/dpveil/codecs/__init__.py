"""Codecs: each a class and a row in `core.registry`, and the public statistics of their codes."""

from typing import TYPE_CHECKING

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.codecs.aam import AAM
    from dpveil.codecs.base import CODEC, Codec, StoredCodec, load
    from dpveil.codecs.network_codecs import GAN, StyleGAN
    from dpveil.codecs.pca import PCA, Dictionary, Mixture
    from dpveil.codecs.statistics import Bounds, PairDistances, Statistics
    from dpveil.codecs.upconv import UpConv

__all__ = [
    "AAM",
    "CODEC",
    "GAN",
    "PCA",
    "Bounds",
    "Codec",
    "Dictionary",
    "Mixture",
    "PairDistances",
    "Statistics",
    "StoredCodec",
    "StyleGAN",
    "UpConv",
    "load",
]

__getattr__, __dir__ = lazy(
    __name__,
    {"base": "CODEC Codec StoredCodec load", "statistics": "Bounds PairDistances Statistics"},
    registry.CODECS.homes,
)
