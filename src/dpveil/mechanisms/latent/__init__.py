"""Latent mechanisms: each a class, and a row in `core.registry`."""

from typing import TYPE_CHECKING

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.mechanisms.latent.base import CodeSpace, LatentMechanism
    from dpveil.mechanisms.latent.coordinate_noise import (
        BoxGaussian,
        BoxLaplace,
        BoxTruncatedLaplace,
        CroftMetric,
        PCABasis,
    )
    from dpveil.mechanisms.latent.directional import Directional

__all__ = [
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
