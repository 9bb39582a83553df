"""What the tests of faces share: a small codec, a photo with a face, and a method that keeps what it saw."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from PIL import Image, ImageDraw
from skimage import data

from dpveil.assets.model_cards import Card
from dpveil.codecs import PCA
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.faces import FaceMethod
from dpveil.faces.geometry.align import Frame
from dpveil_train import train_pca

SIDE = 32
CARD = Card("pca", data="made faces", terms="none", seed=1)
FACE = "177,65,88,108"
"""Where the astronaut's face is, from the forehead to the chin."""
HEAD = Box(155, 22, 142, 192)
"""Most of the astronaut's head."""


def astronaut() -> np.ndarray:
    return np.asarray(data.astronaut())


def captioned(height: float) -> tuple[Photo, Box]:
    """Return a photo of two faces with a caption over the left one, and about where that is."""
    image = Image.fromarray(np.hstack([astronaut(), astronaut()]))
    at = HEAD.x - 20, round(HEAD.y + HEAD.h * height)
    white = {"fill": "white", "stroke_width": 2, "stroke_fill": "black"}
    ImageDraw.Draw(image).text(at, "BREAKING NEWS", font_size=42, **white)
    return Photo(np.asarray(image)), Box(at[0] - 20, at[1], 381, 56)


def replaced(regions: tuple[Region, ...], size: tuple[int, int]) -> np.ndarray:
    """Return which pixels get another face."""
    where = np.zeros(size, bool)
    for region in regions:
        if region.origin.kind == "face":
            where[region.box.slices] |= True if region.mask is None else region.mask
    return where


@cache
def codec(channels: int = 3) -> PCA:
    """Eigenfaces of smooth random pictures, 32 × 32, eight numbers a code."""
    rng = np.random.default_rng(5)
    coarse = rng.uniform(0, 255, (60, 4, 4, channels))
    crops = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2).astype(np.uint8)
    return train_pca(lambda: iter([crops]), card=CARD, seed=1, length=8)


@dataclass(frozen=True, kw_only=True)
class Flat(FaceMethod):
    """Returns one level whatever it sees, and keeps what it saw: nothing of a face may come out of it."""

    name: ClassVar[str] = "flat"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "one level"
    source: ClassVar[str] = "tests"
    seen: ClassVar[list[Any]] = []

    @property
    def frame(self) -> Frame:
        return Frame(SIDE)

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        return Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a face"))

    def _draw(self, crops: Any, bits: Any) -> Any:
        self.seen.append(crops)
        return np.full_like(crops, 90)
