"""A small residual network that is trained on releases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.attacks.networks import NetworkAttack
from dpveil.attacks.wrapped import Undo, Wrapped

if TYPE_CHECKING:
    import torch


TOP: Final = 255


@dataclass(frozen=True)
class Subtracted(Wrapped):
    """Sees what is left of a mean of m people without the other m - 1, whose very pictures it has.

    m times the mean, minus the others, is the remaining face, up to m/2 levels of rounding. The attacker
    knows who the others are and has the photos of them that were averaged, as `View.others`; of the person
    under attack it has other photos alone. Releases of one person are left as they are. No bound is known,
    and k-same promises nothing. Source: Croft 2022 §3.1; Newton, Sweeney & Malin 2005 exclude it.
    """

    name: ClassVar[str] = "subtracted"
    summary: ClassVar[str] = (
        "a mean of several people less the others, whose very photos it has, then another"
    )

    def undo(self, background: Background) -> Undo:
        """Return what takes the others away; nothing is learnt."""
        return _all_left


def _all_left(views: Sequence[View]) -> tuple[View, ...]:
    return tuple(map(_left, views))


def _left(view: View) -> View:
    if not view.others:
        return replace(view, more=_all_left(view.more))
    whole = (1 + len(view.others)) * view.image.astype(np.int64)
    rest = whole - np.sum(view.others, axis=0, dtype=np.int64)
    image = np.clip(rest, 0, TOP).astype(np.uint8)
    return replace(view, image=image, more=_all_left(view.more), others=())


WIDTHS: Final = (16, 32, 64)
"""Channels of the blocks; each halves the picture."""


@dataclass(frozen=True)
class ResidualParrot(NetworkAttack):
    """A stem, three residual blocks and a mean over places, trained on releases; settings as in
    `NetworkAttack`.

    Source: He et al. 2016 (residual networks), much smaller.
    """

    name: ClassVar[str] = "residual"
    summary: ClassVar[str] = "small residual network of the picture, 46 × 56 pixels, trained on releases"

    seed: int = 0
    epochs: int = 30

    def network(self, people: int, channels: int) -> torch.nn.Sequential:
        """Return the stem, the blocks, and a linear layer on means of 3 × 3 places."""
        from torch import nn

        stem = [
            nn.Conv2d(channels, WIDTHS[0], 5, stride=2, padding=2, bias=False),
            nn.BatchNorm2d(WIDTHS[0]),
            nn.ReLU(),
        ]
        before, blocks = WIDTHS[0], []
        for width in WIDTHS:
            blocks.append(_block(before, width))
            before = width
        return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Dropout(0.3),
                             nn.Linear(9 * before, people))  # fmt: skip


def _block(before: int, width: int) -> torch.nn.Module:
    from torch import nn

    class Block(nn.Module):  # type: ignore[misc,unused-ignore]
        """Two convolutions beside a shortcut."""

        def __init__(self) -> None:
            super().__init__()
            stride = 1 if before == width else 2
            self.main = nn.Sequential(
                nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
            )
            self.short = nn.Conv2d(before, width, 1, stride=stride, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """Return the sum of both ways, without what is negative."""
            return nn.functional.relu(self.main(x) + self.short(x))

    return Block()
