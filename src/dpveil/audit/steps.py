"""Pixelisation taken apart into its steps, so that each can be audited, and exchanged for a wrong one.

The intact steps use the method's own functions and give, bit for bit, what its `release` gives (the first
gate holds them to that). Many releases of one image are drawn at once, side by side as more channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final

import numpy as np
from jaxtyping import Int64, UInt8

from dpveil.audit.divergence import Move
from dpveil.audit.exact import Images, Pairs, ProductLaw, product_law
from dpveil.audit.noises import GAUSSIAN, LAPLACE, NoiseKind
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.cells import cell_areas, cell_sums, mean_levels, spread
from dpveil.noise.bits import BitSource

Method = Any
"""`DPPix` for some steps and `DPPixGaussian` for others: a step reads the fields that it needs."""

Image = UInt8[np.ndarray, "h w c"]
Size = tuple[int, int, int]
Sums = Int64[np.ndarray, "rows columns c"]
Areas = Int64[np.ndarray, "rows columns 1"]
Noise = Int64[np.ndarray, "cells n c"]
Releases = UInt8[np.ndarray, "n h w c"]
MOST_MOVES: Final = 4000


def method_sums(method: Method, image: Image) -> Sums:
    """Return what the noise is added to."""
    return cell_sums(image, method.block)


def method_areas(method: Method, size: Size) -> Areas:
    """Return what noised sums are divided by."""
    return cell_areas(size[0], size[1], method.block)


def laplace_scales(method: DPPix, size: Size) -> list[Fraction]:
    """Return the noise scale of every cell, row by row."""
    scale = method.sum_scale(height=size[0], width=size[1], channels=size[2])
    return [scale] * method_areas(method, size).size


def gaussian_variances(method: DPPixGaussian, size: Size) -> list[Fraction]:
    """Return the variance parameter of the noise of every cell, row by row."""
    variance = method.sum_variance(height=size[0], width=size[1], channels=size[2])
    return [variance] * method_areas(method, size).size


def fresh_noise(
    kind: NoiseKind, parameters: Sequence[Fraction], count: int, channels: int, bits: BitSource
) -> Noise:
    """Return independent noise for `count` releases of every cell and channel."""
    if len(set(parameters)) == 1:
        flat = kind.draw(parameters[0], len(parameters) * count * channels, bits)
        return flat.reshape(len(parameters), count, channels)
    parts = [kind.draw(parameter, count * channels, bits) for parameter in parameters]
    return np.stack(parts).reshape(len(parameters), count, channels)


def nothing_after(releases: Releases, image: Image, block: int) -> Releases:
    """Return the releases as they are."""
    return releases


@dataclass(frozen=True, kw_only=True)
class Steps:
    """One way to pixelise: the intact one, or a mutant with one wrong step."""

    name: str
    kind: NoiseKind
    parameters: Callable[[Method, Size], list[Fraction]]
    sums: Callable[[Method, Image], Sums] = method_sums
    areas: Callable[[Method, Size], Areas] = method_areas
    noise: Callable[[NoiseKind, Sequence[Fraction], int, int, BitSource], Noise] = fresh_noise
    after: Callable[[Releases, Image, int], Releases] = nothing_after

    def with_parameters(self, name: str, parameters: Callable[[Method, Size], list[Fraction]]) -> Steps:
        """Return a mutant that draws its noise with other parameters."""
        return replace(self, name=name, parameters=parameters)

    def releases(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases of one image, n × h × w × c."""
        height, width, channels = image.shape
        sums = self.sums(method, image)
        rows, columns = sums.shape[:2]
        noise = self.noise(self.kind, self.parameters(method, image.shape), count, channels, bits)
        noisy = (sums.reshape(rows * columns, 1, channels) + noise).reshape(rows, columns, count * channels)
        levels = mean_levels(noisy, self.areas(method, image.shape))
        shown = spread(levels, method.block, height, width).reshape(height, width, count, channels)
        return self.after(np.ascontiguousarray(np.moveaxis(shown, 2, 0)), image, method.block)

    def drawer(self, method: Method) -> Callable[[Image, int, BitSource], Releases]:
        """Return `releases` for one setting of the method, as the gates take it."""
        return partial(self.releases, method)

    def law(self, method: Method, images: Images) -> ProductLaw:
        """Return the law of the released cell levels of all `images`, by these steps, without drawing.

        Takes noise to be independent and leaves `after` out: the other gates look at those.
        """
        sums, parameters = self._parts(method, images)
        areas = np.repeat(self.areas(method, images.shape[1:]).ravel(), images.shape[3])
        masses = {
            part: np.stack([self._masses(int(s), int(areas[part]), parameters[part]) for s in np.unique(col)])
            for part, col in enumerate(sums.T)
        }
        return product_law(sums, masses)

    def sum_losses(self, method: Method, images: Images, pairs: Pairs) -> Fraction:
        """Return the exact largest loss of Laplace noise before division and clamping, a rational number."""
        sums, scales = self._parts(method, images)
        gaps = np.unique(np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]]), axis=0)
        losses = [sum(int(gap) / scale for gap, scale in zip(row, scales, strict=True)) for row in gaps]
        return max(Fraction(loss) for loss in losses)

    def moves(self, method: Method, images: Images, pairs: Pairs) -> list[Move]:
        """Return how far the parts of neighbours move, without those that move less far than another.

        Less far in every part with the same noise is never worse, since the noise has one peak.
        """
        sums, parameters = self._parts(method, images)
        gaps = np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]])
        if len(set(parameters)) == 1:
            gaps = -np.sort(-gaps, axis=1)
        rows = np.unique(gaps, axis=0)[::-1][:MOST_MOVES]
        beaten = [bool(np.any(np.all(rows >= row, axis=1) & np.any(rows > row, axis=1))) for row in rows]
        kept = rows[~np.array(beaten)]
        return [tuple((int(g), p) for g, p in zip(row, parameters, strict=True) if g) for row in kept]

    def _parts(self, method: Method, images: Images) -> tuple[Int64[np.ndarray, "n parts"], list[Fraction]]:
        size = images.shape[1:]
        sums = np.stack([self.sums(method, image) for image in images]).reshape(len(images), -1)
        return sums, [p for p in self.parameters(method, size) for _ in range(size[2])]

    def _masses(self, total: int, area: int, parameter: Fraction) -> np.ndarray:
        """Return the chance of each level by running every noisy sum through the method's own division."""
        noisy = np.arange(-1, 255 * area + 2)  # both ends stand for their whole tail: it clamps to one level
        law = self.kind.law(parameter)
        chances = law.between(noisy - total - 1, noisy - total)
        chances[0] = law.cdf(noisy[:1] - total)[0]
        chances[-1] = law.survival(noisy[-1:] - total - 1)[0]
        levels = mean_levels(noisy.reshape(1, -1, 1), np.full((1, len(noisy), 1), area))
        return np.bincount(levels.ravel(), weights=chances, minlength=256)


INTACT: Final = Steps(name="dp-pix", kind=LAPLACE, parameters=laplace_scales)
INTACT_GAUSSIAN: Final = Steps(name="dp-pix-gaussian", kind=GAUSSIAN, parameters=gaussian_variances)
