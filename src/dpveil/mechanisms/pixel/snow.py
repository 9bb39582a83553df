"""Snow: every pixel is either kept or turned grey (Reilly & Fan 2021 §3.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np
from jaxtyping import UInt8

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.numbers import Json, show
from dpveil.core.parameters import Probability
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.noise.bernoulli import bernoulli
from dpveil.noise.bits import BitSource

GREY: Final = 127
BAND: Final = 1 << 16
"""Values processed at once, so that they stay in the cache."""


@dataclass(frozen=True, kw_only=True)
class Snow(PixelMethod):
    """Every pixel turns grey, 127 in all channels together, with probability exactly 1 - δ.

    With probability `delta` a pixel is shown **unchanged**, with no other protection. So δ is the risk of one
    pixel; of m pixels, at least one is shown with probability 1 - (1 - δ)^m, and a picture of useful quality
    shows most of them. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.4.

    >>> str(Snow(delta=0.3).guarantee(height=112, width=92, channels=1))
    '(0, 0.3)-DP, m-pixels (m = 1)'
    """

    name: ClassVar[str] = "snow"
    kinds: ClassVar[tuple[str, ...]] = ("approximate",)
    summary: ClassVar[str] = "each pixel is shown with probability δ, and grey otherwise"
    source: ClassVar[str] = "Reilly & Fan 2021 §3.4"
    typical: ClassVar[Mapping[str, Json]] = {"delta": "0.3"}
    help: ClassVar[Mapping[str, str]] = {
        "delta": "The share of pixels that are shown as they are.",
    }

    delta: Probability = Probability(
        hint="delta is the share of pixels that are shown as they are: 0.1 to 0.8 in the paper"
    )

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return (0, δ) for images that differ in one pixel."""
        height, width, channels = check_size(height, width, channels)
        delta = show(self.delta)
        return Guarantee(
            kind="approximate",
            epsilon=0,
            delta=self.delta,
            relation=Relation("m-pixels", 1),
            scope=Scope(
                f"{width}×{height} pixels, {channels} channels",
                (
                    f"each pixel as it is with probability {delta}, and one or more of any m pixels with "
                    f"1 - (1 - {delta})^m",
                ),
            ),
        )

    def noise_scale(self, *, height: int, width: int, channels: int) -> float:
        """Return the root mean squared error over all levels, as on mid-grey alone it is 0."""
        errors = (np.arange(256) - GREY) ** 2
        return sqrt((1 - self.delta) * float(errors.mean()))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        shown = bernoulli(self.delta, height * width, bits)
        pixels = np.ascontiguousarray(image).reshape(height * width, channels)
        out = np.empty_like(pixels)
        for start in range(0, len(out), BAND):
            part = slice(start, start + BAND)
            kept = np.negative(shown[part].view(np.uint8)).repeat(channels)  # 255 where shown
            levels = np.bitwise_xor(pixels[part].reshape(-1), GREY, out=out[part].reshape(-1))
            levels &= kept
            levels ^= GREY
        return out.reshape(image.shape)
