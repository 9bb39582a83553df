"""Methods as their papers print them, where these are not private: for experiments only.

None is in the table of methods, so neither `dpveil obfuscate` nor its options reach them, and all are of the
heuristic kind, whatever their ε.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.core.parameters import Count, Flag, Positive
from dpveil.mechanisms.pixel import DPPix, SSIMExponential
from dpveil.mechanisms.pixel.base import TOP, cell_areas, cell_sums, expand_cells, mean_levels, pixelise
from dpveil.mechanisms.pixel.common_practice import Baseline
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import discrete_laplace

WINDOW: Final = 3
C1: Final = (0.01 * TOP) ** 2
C2: Final = (0.03 * TOP) ** 2


@dataclass(frozen=True, kw_only=True)
class PublishedDPPix(Baseline):
    """DP-Pix with one noise scale, 255·m/(b²·ε), on the **means** of all cells, smaller ones included.

    `epsilon`, `block` and `neighbourhood` as for `DPPix`; grey images. Cells at the edge cost up to b² times
    what is claimed. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.1, algorithm 1; errata E12.

    >>> method = PublishedDPPix(epsilon=1, block=16, neighbourhood=1)
    >>> str(method.guarantee(height=17, width=17, channels=1))
    'no formal guarantee'
    """

    name: ClassVar[str] = "dp-pix as published"
    summary: ClassVar[str] = "one noise scale for the means of all cells"
    source: ClassVar[str] = "Reilly & Fan 2021 algorithm 1"
    broken_by: ClassVar[tuple[str, ...]] = ("a pixel of a smaller cell at the edge (erratum E12)",)

    epsilon: Positive = Positive()
    block: Count = Count()
    neighbourhood: Count = Count()

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width, channels = image.shape
        areas = cell_areas(height, width, self.block).repeat(channels, axis=2)
        scale = TOP * self.neighbourhood / (self.block**2 * self.epsilon)

        def noise(count: int) -> Int64[np.ndarray, " cells"]:
            drawn = np.zeros(count, np.int64)
            for area in np.unique(areas):
                here = areas.reshape(-1) == area
                drawn[here] = discrete_laplace(scale * int(area), int(here.sum()), bits)
            return drawn

        return pixelise(image, self.block, noise)


@dataclass(frozen=True, kw_only=True)
class PublishedSSIM(Baseline):
    """The SSIM exponential mechanism with unclipped SSIM in -1..1, where its proof assumes 0..1.

    Windows of 3×3 cells with 4 levels cover the largest possible part of the grid of cells, with ε′ =
    ε·p²·b²/(2·n·c); the remaining cells get DP-Pix at the scale 255·n·c/(ε·b²). `epsilon` and `block` as for
    `SSIMExponential`. Unclipped draws are clipped ones, of which those with SSIM s < 0 are kept with
    probability e^(ε′s); with `clip`, all are kept. Then, if `block` divides both sides, windows and remaining
    cells cost ε together. Raises `InvalidParameter`. Source: Croft 2022 §5.3, errata E2.

    >>> str(PublishedSSIM(epsilon=1, block=4).guarantee(height=128, width=128, channels=3))
    'no formal guarantee'
    """

    name: ClassVar[str] = "ssim-exponential as published"
    summary: ClassVar[str] = "SSIM without the clip at 0, Laplace noise where windows do not fit"
    source: ClassVar[str] = "Croft 2022 theorem 2"
    broken_by: ClassVar[tuple[str, ...]] = (
        "windows of negative SSIM, without the clip, and smaller cells at the edge (errata E2, E12)",
    )

    epsilon: Positive = Positive()
    block: Count = Count()
    clip: Flag = Flag(default=False)

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        height, width = image.shape[:2]
        cells = mean_levels(cell_sums(image, self.block), cell_areas(height, width, self.block))
        rest = DPPix(epsilon=self.epsilon, block=self.block).release(image, bits=bits).reshape(image.shape)
        shown = rest[:: self.block, :: self.block].copy()
        rows, columns = (side // WINDOW * WINDOW for side in cells.shape[:2])
        if rows and columns:
            covered = self.epsilon * rows * columns * self.block**2 / (height * width)
            method = SSIMExponential(epsilon=covered, window=WINDOW)
            draw = method.release if self.clip else _unclipped(method)
            shown[:rows, :columns] = draw(cells[:rows, :columns], bits=bits)
        return expand_cells(shown, self.block, height, width)


def _unclipped(method: SSIMExponential) -> Callable[..., UInt8[np.ndarray, "rows columns c"]]:
    """Return a sampler of P(y) ∝ exp(ε′·SSIM(x, y)), by rejection from clipped draws."""

    def release(
        cells: UInt8[np.ndarray, "rows columns c"], *, bits: BitSource
    ) -> UInt8[np.ndarray, "rows columns c"]:
        rows, columns, channels = cells.shape
        exponent = float(method.exponent(height=rows, width=columns, channels=channels))
        shown = np.empty_like(cells)
        pending = np.ones(window_ssim(cells, cells).shape, bool)
        while pending.any():
            drawn = method.release(cells, bits=bits)
            near = window_ssim(cells, drawn)
            uniform = bits.words(near.size).reshape(near.shape) / 2.0**64
            kept = pending & (uniform < np.exp(exponent * np.minimum(near, 0)))
            wide = kept.repeat(WINDOW, axis=0).repeat(WINDOW, axis=1)
            shown[wide] = drawn[wide]
            pending &= ~kept
        return shown

    return release


def window_ssim(
    one: UInt8[np.ndarray, "rows columns c"], other: UInt8[np.ndarray, "rows columns c"]
) -> Float64[np.ndarray, "tall wide c"]:
    """Return the unclipped SSIM of adjacent 3×3 windows (Wang et al. 2004, equation 13)."""
    x, y = (
        cells.reshape(len(cells) // WINDOW, WINDOW, -1, WINDOW, cells.shape[2]).astype(np.float64)
        for cells in (one, other)
    )
    mean_x, mean_y = (cells.mean(axis=(1, 3)) for cells in (x, y))
    spreads = x.var(axis=(1, 3)) + y.var(axis=(1, 3))
    both = (x * y).mean(axis=(1, 3)) - mean_x * mean_y
    likeness = (2 * mean_x * mean_y + C1) / (mean_x**2 + mean_y**2 + C1)
    near: Float64[np.ndarray, "tall wide c"] = likeness * (2 * both + C2) / (spreads + C2)
    return near
