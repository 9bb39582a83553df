"""The network of DeconvFaces, which Croft 2022 takes, for codes and whatever it is told beside them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from dpveil.codecs.upconv import SLOPE
from dpveil_train.gan import Doubling


class UpConvolution(nn.Module):  # type: ignore[misc,unused-ignore]
    """Codes with what is told behind, n × (m + t), to pictures n × 3 × side × side from -1 to 1."""

    def __init__(self, length: int, told: int, hidden: int, widths: Sequence[int], side: int) -> None:
        super().__init__()
        self.told, self.small, self.deep = told, side >> len(widths), widths[-1]
        self.hidden = nn.Linear(length + told, hidden)
        self.start = nn.Linear(hidden, self.deep * self.small**2)
        down = widths[::-1]
        pairs = zip((down[0], *down[:-1]), down, strict=True)
        self.stages = nn.Sequential(*(Doubling(a, b) for a, b in pairs))
        self.last = nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, given: Tensor) -> Tensor:
        x = leaky_relu(self.start(leaky_relu(self.hidden(given), SLOPE)), SLOPE)
        out: Tensor = torch.tanh(
            self.last(self.stages(x.view(len(given), self.deep, self.small, self.small)))
        )
        return out
