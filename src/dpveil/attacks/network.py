"""A convolutional network that is trained on releases: the parrot of McPherson et al."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from dpveil.attacks.networks import SIDE, NetworkAttack

if TYPE_CHECKING:
    import torch

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
