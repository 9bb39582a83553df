"""Solid fill: a baseline that shows nothing of what it covers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from dpveil.core.parameters import Whole
from dpveil.mechanisms.pixel.baseline import Baseline
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class Fill(Baseline):
    """Every pixel of the region gets one grey level; a baseline like the others, although it hides all.

    `level` is that of all channels, 0 (black, the default) to 255. No pixel is read, so that no two regions
    can be told apart: with ε it would be 0. It states no guarantee all the same, as it is here to be compared
    with, and one that costs nothing would win every comparison of promises by showing nothing; see its page.
    Raises `InvalidParameter`. Source: common practice.

    >>> Fill(level=127).guarantee(height=120, width=88, channels=3).kind
    'heuristic'
    """

    name: ClassVar[str] = "fill"
    summary: ClassVar[str] = "one level for the whole region, a baseline that shows nothing"
    source: ClassVar[str] = "common practice"
    broken_by: ClassVar[tuple[str, ...]] = (
        "nothing brings covered pixels back: what is recognised is around them, the outline, body and place",
        "missing some: one frame, one copy, one reflection or thumbnail that was not covered",
    )

    level: Whole = Whole(0, 255, default=0)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        return np.full(image.shape, self.level, np.uint8)
