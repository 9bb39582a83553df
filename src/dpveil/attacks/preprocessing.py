"""Attackers who undo something first, and then do as another attacker does on what that gives."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Final

import cv2
import numpy as np

from dpveil.attacks.base import SEES, Attack, Background, Fitted, Scores, View
from dpveil.attacks.networks import NetworkAttack
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.core.arrays import UInt8

if TYPE_CHECKING:
    import torch


Undo = Callable[[Sequence[View]], tuple[View, ...]]
"""Takes releases, and gives what the inner attack sees in their place."""


@dataclass(frozen=True)
class Wrapped(Attack):
    """An attack that changes releases, its own and others', before `inner` learns from them and scores."""

    sees: ClassVar[tuple[str, ...]] = SEES
    photos: ClassVar[bool] = False
    """Whether clean photos are changed as releases are."""

    inner: Attack = field(default_factory=PixelDiscriminant)

    @property
    def label(self) -> str:
        """Its name, and in brackets that of the inner attack."""
        return f"{self.name}({self.inner.label})"

    @property
    def reads(self) -> tuple[str, ...]:
        return self.inner.reads

    @property
    def about(self) -> str:
        return self.inner.about

    @property
    def opens(self) -> bool:
        return self.inner.opens

    @property
    def enrols(self) -> bool:
        return self.inner.enrols

    @property
    def joint(self) -> bool:
        return self.inner.joint

    @property
    def extras(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().extras, *self.inner.extras)))

    @abstractmethod
    def undo(self, background: Background) -> Undo:
        """Return what changes releases, learnt from a background."""

    def fit(self, background: Background) -> Fitted:
        """Return the inner attacker, fitted to changed releases; raises as it does."""
        undo = self.undo(background)
        changed = replace(background, released=self.held_out(background, undo))
        if self.photos:
            changed = replace(changed, clean=undo(background.originals))
        return _Undone(undo, self.inner.fit(changed), self.photos)

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return the attacker's own releases as changed ones of others will look."""
        return undo(background.released)


@dataclass(frozen=True, eq=False)
class _Undone(Fitted):
    undo: Undo
    inner: Fitted
    photos: bool

    def score(self, releases: Sequence[View]) -> Scores:
        return self.inner.score(self.undo(releases))

    def enrol(self, gallery: Background) -> Fitted:
        """Return the inner attacker that knows a gallery, whose releases are changed, and photos perhaps.

        Either may stand for the other, such as releases for clean photos: certificates tell them apart.
        """
        clean = gallery.originals if self.photos else gallery.clean
        known = replace(gallery, clean=self._undo_views(clean), released=self._undo_views(gallery.released))
        return _Undone(self.undo, self.inner.enrol(known), self.photos)

    def _undo_views(self, views: Sequence[View]) -> tuple[View, ...]:
        every = self.photos
        return tuple(self.undo([one])[0] if every or one.certificate is not None else one for one in views)


SPREAD: Final = 1.5  # standard deviation of the window over which shown pixels are averaged, in pixels
SHARE: Final = 0.1  # share of a picture that one level takes at least, so that it is taken for paint
LEAST: Final = 1e-3  # least weight of shown pixels around one that is filled
Image = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True)
class Filled(Wrapped):
    """Takes the most frequent level of a release for paint, and fills it by the means of pixels around.

    A pixel that has this level by itself is filled, too. Where no level takes a tenth of the picture, the
    release stays as it is. Source: Reilly & Fan 2021, algorithm 4, whose level tells which pixels it shows.
    """

    name: ClassVar[str] = "filled"
    summary: ClassVar[str] = "painted pixels filled from those around, then another attack"

    def undo(self, background: Background) -> Undo:
        return lambda views: tuple(replace(view, image=fill_commonest(view.image)) for view in views)


def fill_commonest(image: Image) -> Image:
    """Return a picture with its most frequent level, in each channel, filled from the pixels around."""
    return np.stack([_plane(np.ascontiguousarray(one)) for one in np.moveaxis(image, 2, 0)], axis=2)


def _plane(levels: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    counts = np.bincount(levels.ravel(), minlength=256)
    paint = int(counts.argmax())
    if not SHARE <= counts[paint] / levels.size < 1:
        return levels
    shown = (levels != paint).astype(np.float32)
    sums = cv2.GaussianBlur(levels * shown, (0, 0), SPREAD)
    weight = cv2.GaussianBlur(shown, (0, 0), SPREAD)
    found = np.where(weight > LEAST, sums / np.maximum(weight, LEAST), paint)
    return np.where(shown > 0, levels, np.rint(found)).astype(np.uint8)


WIDTHS: Final = (16, 32, 64)  # channels of the blocks; each halves the picture


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
