"""Training faces in memory, with what a decoder is given: gender, yaw and pitch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

import cv2
import numpy as np
import torch
from jaxtyping import Float32, UInt8
from torch import Tensor

from dpveil.codecs.gan import CONDITIONS
from dpveil.codecs.neural import shown

EVERY: Final = 20
"""One picture in this many is held out."""


class Shown(Protocol):
    """What a plan says of pictures."""

    @property
    def side(self) -> int:
        """Their side, in pixels."""

    @property
    def masked(self) -> bool:
        """Whether what lies beyond the public ellipse is hidden."""

    @property
    def seed(self) -> int:
        """The seed."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Pictures n × 3 × s × s from -1 to 1, their conditions n × 3, and whether their pose is `known`."""

    pictures: Tensor
    conditions: Tensor
    known: Tensor

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device."""
        return Batch(self.pictures.to(device), self.conditions.to(device), self.known.to(device))


class Faces:
    """Crops n × s × s × 3 and conditions n × 3, NaN where unknown; `generator` is the only randomness."""

    def __init__(
        self,
        crops: UInt8[np.ndarray, "n s s 3"],
        conditions: Float32[np.ndarray, "n 3"],
        plan: Shown,
        generator: torch.Generator,
    ) -> None:
        self.crops = np.stack([_sized(crop, plan.side) for crop in crops])
        self.conditions = torch.from_numpy(conditions)
        self.plan, self.generator = plan, generator
        self.mask = torch.from_numpy(shown(plan.side)) if plan.masked else torch.ones(())
        held = np.arange(len(crops)) % EVERY == 0
        self.held_out, self.rows = np.flatnonzero(held), np.flatnonzero(~held)

    def random(self, count: int) -> Batch:
        """Return a batch of training faces, half of them mirrored."""
        picks = self.rows[torch.randint(len(self.rows), (count,), generator=self.generator).numpy()]
        return self.of(picks, torch.rand(count, generator=self.generator) < 0.5)

    def of(self, rows: np.ndarray, mirrored: Tensor | None = None) -> Batch:
        """Return the faces of these rows; of the `mirrored` ones yaw changes its sign."""
        pictures = torch.from_numpy(self.crops[rows]).permute(0, 3, 1, 2).float() / 127.5 - 1
        conditions = self.conditions[rows].clone()
        if mirrored is not None:
            pictures = torch.where(mirrored[:, None, None, None], pictures.flip(3), pictures)
            yaw = CONDITIONS.index("yaw")
            conditions[:, yaw] *= 1 - 2 * mirrored.float()
        known = conditions.isfinite().all(dim=1)
        return Batch(pictures * self.mask, conditions.nan_to_num(), known)


def _sized(crop: UInt8[np.ndarray, "h w 3"], side: int) -> UInt8[np.ndarray, "s s 3"]:
    way = cv2.INTER_AREA if len(crop) > side else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(crop, (side, side), interpolation=way))
