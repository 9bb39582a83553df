"""Latent mechanisms: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.mechanisms.latent.base import CodeSpace, LatentMechanism
from dpveil.mechanisms.latent.laplace import BoxLaplace, CroftMetric

TABLE: Final[dict[str, type[LatentMechanism]]] = {m.name: m for m in (CroftMetric, BoxLaplace)}

__all__ = ["TABLE", "BoxLaplace", "CodeSpace", "CroftMetric", "LatentMechanism"]
