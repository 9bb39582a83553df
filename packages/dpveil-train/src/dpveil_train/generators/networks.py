"""Encoder, decoder and critic of `gan` (Croft thesis tables 6.1 and 6.2).

No path leads from a picture to its decoding but the code: there are no skip connections, and pictures of one
batch do not mix, as they would by batch statistics.
"""

from __future__ import annotations

from typing import Final, Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from dpveil.codecs.gan import CONDITIONS
from dpveil_train.generators.plan import Plan

GROUPS: Final = 8
"""Groups of the group normalisation."""
SLOPE: Final = 0.2
"""Negative slope of leaky ReLUs."""


class Sizes(Protocol):
    """The part of a plan that a critic follows."""

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels, each at half the side of the one before."""

    @property
    def hidden(self) -> int:
        """Width of the heads."""

    @property
    def small(self) -> int:
        """Side of the last map."""


def halving(before: int, width: int) -> nn.Sequential:
    """Return a stage that halves the side of a map."""
    return nn.Sequential(
        nn.Conv2d(before, width, 4, stride=2, padding=1), nn.GroupNorm(GROUPS, width), nn.LeakyReLU(SLOPE)
    )


class Encoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Pictures n × 3 × s × s from -1 to 1 to codes n × m."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        self.stages = nn.Sequential(*(halving(a, b) for a, b in zip(befores, plan.widths, strict=True)))
        last, cells = plan.widths[-1], plan.small**2
        self.code: nn.Module = (
            nn.Conv2d(last, plan.length // cells, 1)
            if plan.spatial
            else nn.Conv2d(last, plan.length, plan.small)
        )

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the codes, not bounded."""
        out: Tensor = self.code(self.stages(pictures)).flatten(1)
        return out


class Doubling(nn.Module):  # type: ignore[misc,unused-ignore]
    """A stage that doubles the side of a map."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(before, width, 3, padding=1),
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


class Decoder(nn.Module):  # type: ignore[misc,unused-ignore]
    """Codes n × m and conditions n × `CONDITIONS` to pictures n × 3 × s × s from -1 to 1."""

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self.plan = plan
        last, cells = plan.widths[-1], plan.small**2
        if plan.spatial:
            self.start: nn.Module = nn.Conv2d(plan.length // cells + len(CONDITIONS), last, 1)
        else:
            self.start = nn.Linear(plan.length + len(CONDITIONS), last * cells)
        widths = plan.widths[::-1]
        afters = (*widths[1:], widths[-1])
        self.stages = nn.Sequential(*(Doubling(a, b) for a, b in zip(widths, afters, strict=True)))
        self.last = nn.Conv2d(afters[-1], 3, 3, padding=1)

    def forward(self, codes: Tensor, conditions: Tensor) -> Tensor:
        """Return the pictures."""
        plan, small = self.plan, self.plan.small
        if plan.spatial:
            cells = codes.view(len(codes), -1, small, small)
            # A product instead of `expand`, whose operator in ONNX none of dpveil's networks needs otherwise.
            ones = torch.ones(1, 1, small, small, device=codes.device)
            wide = conditions.view(len(codes), -1, 1, 1) * ones
            x = self.start(torch.cat([cells, wide], dim=1))
        else:
            x = self.start(torch.cat([codes, conditions], dim=1)).view(len(codes), -1, small, small)
        out: Tensor = torch.tanh(self.last(self.stages(x)))
        return out


class Critic(nn.Module):  # type: ignore[misc,unused-ignore]
    """A critic of realism, a classifier of gender and a regressor of pose, or of what `others` are, on a
    shared trunk.
    """

    def __init__(self, plan: Sizes, others: int = 2) -> None:
        super().__init__()
        befores = (3, *plan.widths[:-1])
        self.stages = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(a, b, 4, stride=2, padding=1),
                nn.InstanceNorm2d(b, affine=True),
                nn.LeakyReLU(SLOPE),
            )
            for a, b in zip(befores, plan.widths, strict=True)
        )
        flat = plan.widths[-1] * plan.small**2
        self.heads = nn.ModuleList(
            nn.Sequential(nn.Linear(flat, plan.hidden), nn.LeakyReLU(SLOPE), nn.Linear(plan.hidden, count))
            for count in (1, 1, others)
        )

    def forward(self, pictures: Tensor) -> tuple[Tensor, Tensor, Tensor, list[Tensor]]:
        """Return scores, logits of gender, poses (n × 2, radians) or others, and each stage's features."""
        seen, x = [], pictures
        for stage in self.stages:
            x = stage(x)
            seen.append(x)
        score, gender, pose = (head(x.flatten(1)) for head in self.heads)
        return score[:, 0], gender[:, 0], pose, seen
