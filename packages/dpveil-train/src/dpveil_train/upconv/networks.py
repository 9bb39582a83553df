"""The generator of `upconv` and its identity layer, in the layout of DeconvFaces.

Pictures of one batch do not mix, as they would by the batch normalisation of DeconvFaces.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor, nn
from torch.nn.functional import interpolate, leaky_relu

from dpveil.codecs.upconv import CONDITIONS, SLOPE
from dpveil_train.generators.networks import GROUPS
from dpveil_train.upconv.plan import Plan


class Identities(nn.Module):  # type: ignore[misc,unused-ignore]
    """The identity layer: a row for each person, which begins as their whitened embedding, turned."""

    def __init__(self, plan: Plan, gallery: Float32[np.ndarray, "p d"]) -> None:
        super().__init__()
        known = torch.from_numpy((gallery - gallery.mean(axis=0)) / gallery.std(axis=0).clip(1e-6))
        wide = max(plan.length, known.shape[1])
        turn = torch.linalg.qr(torch.randn(wide, wide))[0][: known.shape[1], : plan.length]
        start = known @ turn * (plan.length / known.shape[1]) ** 0.5
        self.register_buffer("start", start)
        self.rows = nn.Parameter(start.clone())

    def forward(self, rows: Tensor) -> Tensor:
        """Return the codes of rows, or of mixtures of them."""
        return leaky_relu(rows, SLOPE)


class Stage(nn.Module):  # type: ignore[misc,unused-ignore]
    """A stage that doubles the side of a map: an up-convolution and another convolution."""

    def __init__(self, before: int, width: int, kernel: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, width, kernel, padding=kernel // 2),
            nn.GroupNorm(GROUPS, width),
            nn.LeakyReLU(SLOPE),
            nn.Conv2d(width, width, 3, padding=1),
            nn.GroupNorm(GROUPS, width),
            nn.LeakyReLU(SLOPE),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of twice the side."""
        out: Tensor = self.inner(interpolate(x, scale_factor=2.0, mode="nearest"))
        return out


class Generator(nn.Module):  # type: ignore[misc,unused-ignore]
    """Codes with `CONDITIONS` behind, n × (m + 2), to pictures n × 3 × s × s from -1 to 1."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.small = plan.small
        self.given = nn.ModuleList(nn.Linear(1, plan.given) for _ in CONDITIONS)
        self.hidden = nn.Linear(plan.length + len(CONDITIONS) * plan.given, plan.hidden)
        self.start = nn.Linear(plan.hidden, plan.widths[-1] * plan.small**2)
        widths = plan.widths[::-1]
        pairs = zip((widths[0], *widths[:-1]), widths, strict=True)
        self.stages = nn.Sequential(*(Stage(a, b, plan.kernel) for a, b in pairs))
        self.last = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, given: Tensor) -> Tensor:
        """Return the pictures."""
        count = len(CONDITIONS)
        parts = [given[:, :-count]]
        for number, layer in enumerate(self.given):
            at = given.shape[1] - count + number
            parts.append(leaky_relu(layer(given[:, at : at + 1]), SLOPE))
        x = leaky_relu(self.hidden(torch.cat(parts, dim=1)), SLOPE)
        x = leaky_relu(self.start(x), SLOPE).view(len(given), -1, self.small, self.small)
        out: Tensor = torch.tanh(self.last(self.stages(x)))
        return out
