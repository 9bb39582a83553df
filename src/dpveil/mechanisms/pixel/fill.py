"""Solid fill: one level for every pixel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Whole
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class Fill(PixelMethod):
    """Every pixel of the region gets the same grey level: 0-DP for any two images.

    `level` is used for all channels, 0 (black, the default) to 255. No pixel is read, so no two regions can
    be distinguished. As with every method, the surroundings, the outline and the position of the region stay
    in the clear. Raises `InvalidParameter`. Source: common practice.

    >>> str(Fill(level=127).guarantee(height=120, width=88, channels=3))
    '0-DP, any-image'
    """

    name: ClassVar[str] = "fill"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "one level for the whole region: shows nothing of it, and costs nothing"
    source: ClassVar[str] = "common practice"
    help: ClassVar[Mapping[str, str]] = {
        "level": "Grey level of the fill, from 0, black, to 255.",
    }

    level: Whole = Whole(0, 255, default=0)

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ε = 0, for any two images: the output is a constant."""
        height, width, channels = check_size(height, width, channels)
        scope = Scope(f"{width}×{height} pixels, {channels} channels")
        return Guarantee(kind="pure", epsilon=0, relation=Relation("any-image"), scope=scope)

    def noise_scale(self, *, height: int, width: int, channels: int) -> None:
        """Return None: there is no noise."""
        return

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        return np.full(image.shape, self.level, np.uint8)
