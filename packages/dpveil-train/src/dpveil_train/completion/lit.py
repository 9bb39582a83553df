"""Colour augmentation of training scenes: the light of the photo, and of the face in it."""

from __future__ import annotations

import torch
from torch import Tensor


def coloured(
    photo: Tensor, face: Tensor, own: Tensor, oval: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return photos with a slight colour augmentation, and faces with one that often differs from it."""
    n = len(photo)
    u = torch.rand(n, 16, 1, 1, 1, generator=generator)
    gain, gamma = 0.85 + 0.3 * u[:, 0], 0.85 + 0.35 * u[:, 1]
    tint = 1 + 0.12 * (u[:, 2:5, 0] - 0.5)
    some, grey = (u[:, 5] < 0.5).float(), (u[:, 6] < 0.05).float()

    def lit(x: Tensor) -> Tensor:
        out = (x.clamp(1e-4, 1) ** gamma * gain * tint).clamp(0, 1)
        out = x + some * (out - x)
        return out + grey * (out.mean(dim=1, keepdim=True) - out)

    photo, face = lit(photo), torch.where(own[:, None, None, None], lit(face), face)
    other = (face.roll(1, 0) * oval.roll(1, 0)).sum((2, 3), keepdim=True)
    other = other / oval.roll(1, 0).sum((2, 3), keepdim=True).clamp(min=1)
    mean = (face * oval).sum((2, 3), keepdim=True) / oval.sum((2, 3), keepdim=True).clamp(min=1)
    recolour = (other + 0.02) / (mean + 0.02)
    face = face * torch.where(u[:, 7] < 0.3, recolour.clamp(0.4, 2.5), torch.ones_like(recolour))
    gain, gamma = 0.7 + 0.6 * u[:, 8], 0.75 + 0.5 * u[:, 9]
    tint = 1 + 0.2 * (u[:, 10:13, 0] - 0.5)
    moved = face.clamp(1e-4, 1) ** gamma * gain * tint
    face = torch.where(u[:, 13] < 0.5, moved, face).clamp(0, 1)
    soft = torch.nn.functional.avg_pool2d(face, 3, stride=1, padding=1, count_include_pad=False)
    return photo, torch.where(u[:, 14] < 0.3, soft, face)
