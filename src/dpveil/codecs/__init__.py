"""Codecs: one file each, a table of them, and what is publicly known of their codes."""

from dpveil.codecs.aam import AAM
from dpveil.codecs.base import Codec
from dpveil.codecs.dictionary import Dictionary
from dpveil.codecs.files import StoredCodec
from dpveil.codecs.pair_distances import PairDistances
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Bounds, Statistics
from dpveil.codecs.table import CODEC, TABLE, load

__all__ = [
    "AAM",
    "CODEC",
    "PCA",
    "TABLE",
    "Bounds",
    "Codec",
    "Dictionary",
    "PairDistances",
    "Statistics",
    "StoredCodec",
    "load",
]
