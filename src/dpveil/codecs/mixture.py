"""Eigenfaces with a mixture of factor analysers as the distribution of their codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from jaxtyping import Float32

from dpveil.assets.cards import Card
from dpveil.assets.store import Tensors
from dpveil.codecs.base import Canvas, Crops, StoredCodec
from dpveil.codecs.factors import Factors
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, eq=False)
class Mixture(StoredCodec):
    """A code holds coordinates along principal components, as in `pca`; `factors` is how faces lie there.

    Private codes become likely ones under this public mixture before they are decoded, and `samples` are
    faces of nobody. Source: Richardson & Weiss 2018; Ghahramani & Hinton 1996.
    """

    name: ClassVar[str] = "mixture"
    summary: ClassVar[str] = "eigenfaces, and a mixture of factor analysers of their codes"
    source: ClassVar[str] = "Richardson & Weiss 2018; Ghahramani & Hinton 1996"
    likely: ClassVar[bool] = True

    mean: Float32[np.ndarray, " pixels"]
    components: Float32[np.ndarray, "m pixels"]
    factors: Factors
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """The number of principal components."""
        return len(self.components)

    @property
    def prior(self) -> Factors:
        """The public distribution of codes."""
        return self.factors

    def samples(self, count: int, bits: BitSource) -> Crops:
        """Return faces of nobody: decoded draws from the mixture, which has seen public faces only.

        Raises `InvalidParameter` for a `count` below 1.
        """
        return self.decode(self.factors.draw(count, bits))

    @property
    def _eigenfaces(self) -> PCA:
        return PCA(self.mean, self.components, self.statistics, self.canvas, self.card)

    def _encode(self, crops: Crops) -> Codes:
        return self._eigenfaces.codes_of(crops)

    def _decode(self, codes: Codes) -> Crops:
        return self._eigenfaces._decode(codes)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: those of eigenfaces, and the mixture."""
        return {**self._eigenfaces.tensors(), **self.factors.tensors()}

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the codec stored in a file; raises `ModelError` for contents that do not fit together."""
        own = PCA.of_file(facts, tensors, card)
        factors = Factors.of_tensors(tensors, own.length)
        return cls(own.mean, own.components, factors, own.statistics, own.canvas, card)
