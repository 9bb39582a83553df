"""Mosaic, plain pixelation: a baseline that promises nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.core.numbers import Json
from dpveil.core.parameters import Count
from dpveil.mechanisms.pixel.baseline import Baseline
from dpveil.mechanisms.pixel.cells import pixelise
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class Mosaic(Baseline):
    """Cells of `block` × `block` pixels show their mean level, without noise; nothing is promised.

    DP-Pix without the noise, for comparison only. `block` has no default; cells at the right and bottom may
    be smaller. Raises `InvalidParameter`. Source: common practice.

    >>> Mosaic(block=16).guarantee(height=120, width=88, channels=3).kind
    'heuristic'
    """

    name: ClassVar[str] = "mosaic"
    summary: ClassVar[str] = "mean level of each block without noise, a baseline that promises nothing"
    source: ClassVar[str] = "common practice"
    typical: ClassVar[dict[str, Json]] = {"block": 16}
    broken_by: ClassVar[tuple[str, ...]] = (
        "comparing: known faces and texts, pixelated alike, are matched with the release (parrot attack:"
        " Newton, Sweeney and Malin 2005; Hill et al. 2016)",
        "learning: networks trained on mosaics recognise faces and digits (McPherson, Shokri and"
        " Shmatikov 2016)",
        "adding up: mosaics of several frames or offsets are joined to a sharp picture (super-resolution)",
    )

    block: Count = Count()

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        return pixelise(image, self.block, lambda cells: np.zeros(cells, np.int64))
