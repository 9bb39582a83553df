"""Latent mechanisms: each a class, and a row in `core.registry`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.mechanisms.latent.base import CodeSpace, LatentMechanism
    from dpveil.mechanisms.latent.directional import Directional
    from dpveil.mechanisms.latent.laplace import (
        BoxGaussian,
        BoxLaplace,
        BoxTruncatedLaplace,
        CroftMetric,
        PCABasis,
    )

TABLE: "Final[Mapping[str, type[LatentMechanism]]]" = registry.LATENT

__all__ = [
    "TABLE",
    "BoxGaussian",
    "BoxLaplace",
    "BoxTruncatedLaplace",
    "CodeSpace",
    "CroftMetric",
    "Directional",
    "LatentMechanism",
    "PCABasis",
]

__getattr__, __dir__ = lazy(__name__, {"base": "CodeSpace LatentMechanism"}, registry.LATENT.homes)
