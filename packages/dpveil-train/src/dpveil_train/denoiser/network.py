"""The denoiser: a small U-Net. It sees released pixels only, so skip connections leak nothing."""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

GROUPS: Final = 8
SLOPE: Final = 0.2


def block(before: int, width: int) -> nn.Sequential:
    """Return two convolutions of the same side."""
    return nn.Sequential(
        nn.Conv2d(before, width, 3, padding=1),
        nn.GroupNorm(GROUPS, width),
        nn.LeakyReLU(SLOPE),
        nn.Conv2d(width, width, 3, padding=1),
        nn.GroupNorm(GROUPS, width),
        nn.LeakyReLU(SLOPE),
    )


class UNet(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × s × s from -1 to 1 to pictures; s is a multiple of 2^(number of widths - 1)."""

    def __init__(self, widths: tuple[int, ...]) -> None:
        super().__init__()
        self.down = nn.ModuleList(block(a, b) for a, b in zip((3, *widths[:-1]), widths, strict=True))
        pairs = list(zip(widths[::-1][:-1], widths[::-1][1:], strict=True))
        self.up = nn.ModuleList(block(deep + fine, fine) for deep, fine in pairs)
        self.halve = nn.ModuleList(nn.Conv2d(w, w, 2, stride=2) for w in widths[:-1])
        self.last = nn.Conv2d(widths[0], 3, 3, padding=1)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the pictures without noise."""
        x, seen = pictures, []
        for number, stage in enumerate(self.down):
            x = stage(x)
            if number < len(self.halve):
                seen.append(x)
                x = self.halve[number](x)
        for stage, fine in zip(self.up, reversed(seen), strict=True):
            x = stage(torch.cat([interpolate(x, scale_factor=2.0, mode="nearest"), fine], dim=1))
        out: Tensor = torch.tanh(self.last(x))
        return out
