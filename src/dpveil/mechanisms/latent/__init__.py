"""Latent mechanisms: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.mechanisms.latent.base import CodeSpace, LatentMechanism
from dpveil.mechanisms.latent.directional import Directional
from dpveil.mechanisms.latent.gaussian import BoxGaussian
from dpveil.mechanisms.latent.laplace import BoxLaplace, CroftMetric
from dpveil.mechanisms.latent.principal import PCABasis
from dpveil.mechanisms.latent.truncated import BoxTruncatedLaplace

TABLE: Final[dict[str, type[LatentMechanism]]] = {
    mechanism.name: mechanism
    for mechanism in (CroftMetric, PCABasis, BoxLaplace, BoxTruncatedLaplace, BoxGaussian, Directional)
}

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
