"""A convolutional network that is trained on releases: the parrot of McPherson et al."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dpveil.attacks.base import SEES, View
from dpveil.attacks.networks import SIDE, NetworkAttack
from dpveil.attacks.vectors import VectorAttack, Vectors

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class FileFacts(VectorAttack):
    """Knows files by their size in bytes, the photo's size, and the regions that the certificate counts.

    The bytes of a file depend on all that the photo shows.
    """

    name: ClassVar[str] = "file"
    summary: ClassVar[str] = (
        "size of the file and of the photo, number and size of regions in the certificate"
    )
    sees: ClassVar[tuple[str, ...]] = SEES

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return six numbers of each file."""
        return np.array([_facts(view) for view in views], np.float64).reshape(len(views), -1)


def _facts(view: View) -> list[float]:
    regions: Any = (view.certificate or {}).get("regions") or ()
    masked = [float(one.get("masked") or one["box"][2] * one["box"][3]) for one in regions]
    height, width = view.image.shape[:2]
    size = float(np.log1p(view.size))
    return [size, height, width, len(masked), max(masked, default=0.0), sum(masked)]


WIDTHS: Final = (16, 32, 64)
"""Channels after each convolution."""
HIDDEN: Final = 256
"""Units of the layer before the last."""


@dataclass(frozen=True)
class NetworkParrot(NetworkAttack):
    """Three convolutions and two layers, trained on releases; settings as in `NetworkAttack`.

    Source: McPherson, Shokri & Shmatikov 2016, §4.
    """

    name: ClassVar[str] = "network"
    summary: ClassVar[str] = "convolutional network of the picture, 46 × 56 pixels, trained on releases"

    seed: int = 0
    epochs: int = 25

    def network(self, people: int, channels: int) -> torch.nn.Sequential:
        """Return three convolutions with pooling, and two layers with dropout."""
        from torch import nn

        layers: list[nn.Module] = []
        before = channels
        for width in WIDTHS:
            convolution = nn.Conv2d(before, width, 3, padding=1)
            layers += [convolution, nn.BatchNorm2d(width), nn.MaxPool2d(2), nn.ReLU()]
            before = width
        size = before * (SIDE[0] // 8) * (SIDE[1] // 8)
        rest = [nn.Flatten(), nn.Dropout(0.5), nn.Linear(size, HIDDEN), nn.ReLU(), nn.Dropout(0.5)]
        return nn.Sequential(*layers, *rest, nn.Linear(HIDDEN, people))
