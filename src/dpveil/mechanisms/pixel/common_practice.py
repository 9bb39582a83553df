"""Snow and Fill, and the baselines Mosaic and Blur, which promise nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from dpveil.core.array_types import UInt8
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Between, Count, Probability
from dpveil.core.rationals import Json, show
from dpveil.mechanisms.pixel.base import PixelMethod, check_size, pixelise
from dpveil.noise.bits import BitSource
from dpveil.opencv import cv2

GREY: Final = 127
BAND: Final = 1 << 16  # values processed at once, so that they stay in the cache


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
    help: ClassVar[Mapping[str, str]] = {"delta": "The share of pixels that are shown as they are."}

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
        from dpveil.noise.bernoulli import bernoulli

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


@dataclass(frozen=True, kw_only=True)
class Fill(PixelMethod):
    """Every pixel of the region gets the same grey level: 0-DP for any two images.

    `level` is used for all channels, 0 (black) to 255 (white). No pixel is read, so no two regions can be
    distinguished. As with every method, the surroundings, the outline and the position of the region stay
    in the clear. Raises `InvalidParameter`. Source: common practice.

    >>> str(Fill().guarantee(height=120, width=88, channels=3))
    '0-DP, any-image'
    """

    name: ClassVar[str] = "fill"
    kinds: ClassVar[tuple[str, ...]] = ("pure",)
    summary: ClassVar[str] = "one level for the whole region: shows nothing of it, and costs nothing"
    source: ClassVar[str] = "common practice"
    help: ClassVar[Mapping[str, str]] = {"level": "Grey level of the fill, from 0, black, to 255."}
    regions: ClassVar[str] = "faces"

    level: Count = Count(low=0, high=255, default=GREY)

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return ε = 0, for any two images: the output is a constant."""
        height, width, channels = check_size(height, width, channels)
        scope = Scope(f"{width}×{height} pixels, {channels} channels")
        return Guarantee(kind="pure", epsilon=0, relation=Relation("any-image"), scope=scope)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        return np.full(image.shape, self.level, np.uint8)


@dataclass(frozen=True, kw_only=True)
class Baseline(PixelMethod):
    """A deterministic function of the region, of the heuristic kind; `broken_by` lists known attacks."""

    kinds: ClassVar[tuple[str, ...]] = ("heuristic",)
    broken_by: ClassVar[tuple[str, ...]]

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the heuristic guarantee, with the known attacks."""
        height, width, channels = check_size(height, width, channels)
        return Guarantee(
            kind="heuristic",
            relation=Relation("any-image"),
            scope=Scope(f"{width}×{height} pixels, {channels} channels"),
            broken_by=self.broken_by,
        )


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


@dataclass(frozen=True, kw_only=True)
class Blur(Baseline):
    """Gaussian blur within the region; nothing is promised.

    `sigma` is the standard deviation in pixels, 0.001 to 1000, with no default. Edge pixels are replicated,
    so nothing outside the region is read. For comparison only, as without noise there is no guarantee. Raises
    `InvalidParameter`. Source: common practice; OpenCV.

    >>> Blur(sigma=8).guarantee(height=120, width=88, channels=3).kind
    'heuristic'
    """

    name: ClassVar[str] = "blur"
    summary: ClassVar[str] = "Gaussian blur, a baseline that promises nothing"
    source: ClassVar[str] = "common practice"
    help: ClassVar[Mapping[str, str]] = {"sigma": "Standard deviation of the blur in pixels."}
    typical: ClassVar[dict[str, Json]] = {"sigma": 8}
    broken_by: ClassVar[tuple[str, ...]] = (
        "deblurring: a blur with a known kernel is a linear map, undone but for rounding",
        "comparing: known faces, blurred alike, are matched with the release (parrot attack: Newton, Sweeney"
        " and Malin 2005; Hill et al. 2016)",
        "learning: networks trained on blurred photos recognise faces and digits (McPherson, Shokri and"
        " Shmatikov 2016)",
    )

    sigma: Between = Between("0.001", 1000, hint="in pixels, such as 8")

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        blurred = cv2.GaussianBlur(image, (0, 0), float(self.sigma), borderType=cv2.BORDER_REPLICATE)
        return np.asarray(blurred, np.uint8).reshape(image.shape)
