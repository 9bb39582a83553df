"""Pixelisation in separate steps, each of which can be audited and replaced by a wrong one.

The intact steps use the method's own functions and reproduce its `release` bit for bit, which the first
gate checks. Their law is compared with one from first principles, for which cells are enumerated by loops.
Many releases of one image are drawn at once, side by side as more channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from math import sqrt
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, mean_levels, spread
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Move, NoiseKind, Pairs, ProductLaw, delta_of_zcdp
from dpveil_audit.engine import BY_DRAWS, BY_LAW
from dpveil_audit.pixel.case import DistributionOf, Image, Images, Method, Part, Releases, Size, cells
from dpveil_audit.pixel.case import Steps as MethodSteps


def largest_moves(method: DPPix | DPPixGaussian, size: Size) -> tuple[int, int]:
    """Return how far the sums of neighbours move in L1, and in squared L2: largest cells first.

    >>> largest_moves(DPPix(epsilon=1, block=2, neighbourhood=5), (3, 3, 1))
    (1275, 1105425)
    """
    height, width, channels = size
    left = method.neighbourhood or height * width
    absolute = squared = 0
    for area in sorted((len(c) for c in cells(height, width, method.block)), reverse=True):
        taken = min(area, left)
        left -= taken
        absolute += 255 * taken
        squared += (255 * taken) ** 2
    return absolute * channels, squared * channels


def right_scale(method: DPPix, size: Size) -> Fraction:
    """Return the Laplace scale by formula; for (ε, δ) there is none, and the method's own is taken.

    The hockey-stick divergence tests whether that one keeps its promise. For ρ it is the root of L2²/(2ρ)
    (Bun & Steinke 2016, proposition 1.4).
    """
    epsilon, delta, rho = method.budget
    if delta is not None:
        return method.sum_scale(height=size[0], width=size[1], channels=size[2])
    absolute, squared = largest_moves(method, size)
    return Fraction(sqrt(squared / (2 * rho))) if rho else absolute / (epsilon or Fraction(1))


def right_variance(method: DPPixGaussian, size: Size) -> Fraction:
    """Return the variance L2²/(2ρ), with ρ from (ε, δ) by an independent conversion."""
    epsilon, delta, rho = method.budget
    rho = rho or Fraction(largest_rho(float(epsilon or 0), float(delta or 0)))
    return largest_moves(method, size)[1] / (2 * rho)


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ whose δ at this ε is small enough."""
    low, high = 0.0, epsilon + 2 * sqrt(epsilon) + 1
    for _ in range(60):
        rho = (low + high) / 2
        low, high = (rho, high) if delta_of_zcdp(rho, epsilon) <= delta else (low, rho)
    return low


Sums = Int64[np.ndarray, "rows columns c"]
Areas = Int64[np.ndarray, "rows columns 1"]
Noise = Int64[np.ndarray, "cells n c"]
MOST_MOVES: Final = 4000
"""Most distinct moves of one setting; more are refused."""


def method_sums(method: Method, image: Image) -> Sums:
    """Return the sums to which noise is added."""
    return cell_sums(image, method.block)


def method_areas(method: Method, size: Size) -> Areas:
    """Return the divisors of noisy sums."""
    return cell_areas(size[0], size[1], method.block)


def method_levels(sums: Sums, areas: Areas) -> Sums:
    """Return the levels that the method shows for noisy sums."""
    return mean_levels(sums, areas).astype(np.int64)


def for_all_cells(
    parameter: Callable[[Method, Size], Fraction], method: Method, size: Size
) -> list[Fraction]:
    """Return the same noise parameter for every cell, row by row."""
    return [parameter(method, size)] * method_areas(method, size).size


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
    """Return the releases unchanged."""
    return releases


@dataclass(frozen=True, kw_only=True)
class Steps(MethodSteps):
    """One way to pixelise: intact, or a mutant with one wrong step."""

    kind: NoiseKind
    parameters: Callable[[Method, Size], list[Fraction]]
    sums: Callable[[Method, Image], Sums] = method_sums
    areas: Callable[[Method, Size], Areas] = method_areas
    levels: Callable[[Sums, Areas], Sums] = method_levels
    noise: Callable[[NoiseKind, Sequence[Fraction], int, int, BitSource], Noise] = fresh_noise
    after: Callable[[Releases, Image, int], Releases] = nothing_after

    def with_parameters(self, name: str, parameters: Callable[[Method, Size], list[Fraction]]) -> Steps:
        """Return a mutant whose noise has other parameters."""
        return replace(self, name=name, parameters=parameters)

    def with_parameter(self, name: str, parameter: Callable[[Any, Size], Fraction]) -> Steps:
        """Return a mutant with another noise parameter, the same for all cells."""
        return self.with_parameters(name, partial(for_all_cells, parameter))

    def releases(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases of one image, n × h × w × c."""
        height, width, channels = image.shape
        sums = self.sums(method, image)
        rows, columns = sums.shape[:2]
        noise = self.noise(self.kind, self.parameters(method, image.shape), count, channels, bits)
        noisy = (sums.reshape(rows * columns, 1, channels) + noise).reshape(rows, columns, count * channels)
        levels = self.levels(noisy, self.areas(method, image.shape)).astype(np.uint8)
        shown = spread(levels, method.block, height, width).reshape(height, width, count, channels)
        return self.after(np.moveaxis(shown, 2, 0), image, method.block)  # a copy would take long

    @property
    def added(self) -> Steps:  # type: ignore[override]
        """The noise of these steps."""
        return self

    def distribution(self, method: Method, images: Images) -> ProductLaw:
        """Return the law of the released cell levels of all `images`, by these steps, without drawing.

        Assumes independent noise and ignores `after`, which the other gates test.
        """
        sums, parameters = self._parts(method, images)
        height, width, channels = images.shape[1:]
        areas = np.repeat(self.areas(method, images.shape[1:]).ravel(), channels)
        index, masses = [], []
        for column, area, parameter in zip(sums.T, areas, parameters, strict=True):
            distinct, rank = np.unique(column, return_inverse=True)
            index.append(rank)
            masses.append(
                np.stack(
                    [level_masses(self.kind, int(s), int(area), parameter, self.levels) for s in distinct]
                )
            )
        parts = [
            Part.of_level([(*pixel, channel) for pixel in cell])
            for cell in cells(height, width, method.block)
            for channel in range(channels)
        ]
        return ProductLaw(np.stack(index, axis=1), masses, tuple(parts))

    def moves(self, method: Method, images: Images, pairs: Pairs) -> list[Move]:
        """Return how far the parts of neighbours move, without dominated moves.

        A move that is smaller in every part with the same noise costs no more, since the noise is unimodal.
        """
        sums, parameters = self._parts(method, images)
        gaps = np.abs(sums[pairs[:, 0]] - sums[pairs[:, 1]])
        if len(set(parameters)) == 1:
            gaps = -np.sort(-gaps, axis=1)
        rows = _distinct(gaps)[::-1]
        if len(rows) > MOST_MOVES:
            raise InvalidParameter("levels", None, f"make {len(rows)} moves", hint="take fewer levels")
        beaten = [bool(np.any(np.all(rows >= row, axis=1) & np.any(rows > row, axis=1))) for row in rows]
        kept = rows[~np.array(beaten)]
        return [tuple((int(g), p) for g, p in zip(row, parameters, strict=True) if g) for row in kept]

    def _parts(self, method: Method, images: Images) -> tuple[Int64[np.ndarray, "n parts"], list[Fraction]]:
        size = images.shape[1:]
        beside = images.transpose(1, 2, 0, 3).reshape(*size[:2], -1)  # all images as channels of one
        parts = self.sums(method, beside).reshape(-1, len(images), size[2]).transpose(1, 0, 2)
        sums = parts.reshape(len(images), -1)
        return sums, [p for p in self.parameters(method, size) for _ in range(size[2])]


def _distinct(rows: Int64[np.ndarray, "n parts"]) -> Int64[np.ndarray, "m parts"]:
    """Return distinct rows of counts in order, numbered where 64 bits suffice, which is far faster."""
    values = np.flatnonzero(np.bincount(rows.ravel()))
    if len(values) ** rows.shape[1] >= 2**63:
        return np.unique(rows, axis=0)
    rank = np.zeros(values[-1] + 1, np.int64)
    rank[values] = np.arange(len(values))
    numbers = rank[rows] @ len(values) ** np.arange(rows.shape[1])[::-1]
    return rows[np.unique(numbers, return_index=True)[1]]


@lru_cache(maxsize=20_000)
def level_masses(
    kind: NoiseKind, total: int, area: int, parameter: Fraction, levels: Callable[[Sums, Areas], Sums]
) -> np.ndarray:
    """Return the probability of each level, by `levels`, of a sum over `area` pixels.

    >>> from dpveil_audit.divergence import LAPLACE
    >>> round(float(level_masses(LAPLACE, 300, 4, Fraction(255), counted_levels).sum()), 12)
    1.0
    """
    noisy = np.arange(-1, 255 * area + 2)  # both ends stand for their whole tail: it clamps to one level
    distribution = kind.distribution(parameter)
    chances = distribution.between(noisy - total - 1, noisy - total)
    chances[0] = distribution.cdf(noisy[:1] - total)[0]
    chances[-1] = distribution.survival(noisy[-1:] - total - 1)[0]
    shown = levels(noisy.reshape(-1, 1, 1), np.full((len(noisy), 1, 1), area))
    return np.bincount(shown.ravel(), weights=chances, minlength=256)


def counted_levels(sums: Sums, areas: Areas) -> Sums:
    """Return noisy sums as levels by the definition: divided by areas, clamped, rounded half up."""
    levels: Sums = np.clip((2 * sums + areas) // (2 * areas), 0, 255)
    return levels


def counted_sums(method: Method, image: Image) -> Sums:
    """Return the sums of cells that are enumerated here, pixel by pixel."""
    height, width, channels = image.shape
    sums = [
        image[*np.array(cell).T].sum(axis=0, dtype=np.int64) for cell in cells(height, width, method.block)
    ]
    return np.array(sums).reshape(-(-height // method.block), -1, channels)


def counted_areas(method: Method, size: Size) -> Areas:
    """Return the numbers of pixels of these cells."""
    areas = [len(cell) for cell in cells(size[0], size[1], method.block)]
    return np.array(areas).reshape(-(-size[0] // method.block), -1, 1)


def right_distribution(intact: Steps, parameter: Callable[[Any, Size], Fraction]) -> DistributionOf:
    """Return the law from first principles: cells are enumerated, and the noise is that of the formula."""
    right = replace(
        intact.with_parameter("right", parameter),
        sums=counted_sums,
        areas=counted_areas,
        levels=counted_levels,
    )
    return right.distribution


def shared_mutants(intact: Steps) -> tuple[Steps, ...]:
    """Return the mutants of any noise on cell sums: bugs of published code and papers."""
    return (
        _narrower(intact, "noise ×0.8", lambda method, size: [Fraction(8, 10)] * _cells(method, size)),
        _narrower(intact, "b² noise on ragged means", _shares_of_largest),
        replace(intact, name="ragged sums divided by b²", gates=BY_LAW, areas=_divided_by_full_block),
        replace(
            _narrower(intact, "means rounded before noise", _one_by_area), sums=_rounded_means, areas=_ones
        ),
        replace(intact, name="one draw for all cells", gates=BY_DRAWS, noise=_one_draw_for_all_cells),
        replace(intact, name="one draw for all channels", gates=BY_DRAWS, noise=_one_draw_for_all_channels),
        replace(intact, name="last cell without noise", gates=BY_DRAWS, noise=_last_cell_without),
        replace(intact, name="one-sided noise", gates=BY_DRAWS, noise=_one_sided),
        replace(intact, name="columns over the wrong axis", gates=BY_DRAWS, after=_wrong_axis),
    )


def _narrower(intact: Steps, name: str, factors: object) -> Steps:
    """Return `intact` with the noise of every cell made narrower by a factor."""

    def parameters(method: Method, size: Size) -> list[Fraction]:
        pairs = zip(intact.parameters(method, size), factors(method, size), strict=True)  # type: ignore[operator]
        return [parameter * factor**intact.kind.power for parameter, factor in pairs]

    return intact.with_parameters(name, parameters)


def _cells(method: Method, size: Size) -> int:
    return int(method_areas(method, size).size)


def _shares_of_largest(method: Method, size: Size) -> list[Fraction]:
    """Return b² noise on every mean, which is too little on the sum of a ragged cell (errata E12)."""
    areas = method_areas(method, size).ravel()
    return [Fraction(int(a), int(areas.max())) for a in areas]


def _one_by_area(method: Method, size: Size) -> list[Fraction]:
    return [Fraction(1, int(a)) for a in method_areas(method, size).ravel()]


def _divided_by_full_block(method: Method, size: Size) -> Areas:
    areas = method_areas(method, size)
    return np.full_like(areas, areas.max())


def _rounded_means(method: Method, image: Image) -> Sums:
    areas = method_areas(method, image.shape)
    means: Sums = (2 * method_sums(method, image) + areas) // (2 * areas)
    return means


def _ones(method: Method, size: Size) -> Areas:
    return np.ones_like(method_areas(method, size))


def _one_draw_for_all_cells(
    kind: NoiseKind, parameters: Sequence[Fraction], count: int, channels: int, bits: BitSource
) -> Noise:
    first = fresh_noise(kind, parameters[:1], count, channels, bits)
    return np.repeat(first, len(parameters), axis=0)


def _one_draw_for_all_channels(
    kind: NoiseKind, parameters: Sequence[Fraction], count: int, channels: int, bits: BitSource
) -> Noise:
    return np.repeat(fresh_noise(kind, parameters, count, 1, bits), channels, axis=2)


def _last_cell_without(
    kind: NoiseKind, parameters: Sequence[Fraction], count: int, channels: int, bits: BitSource
) -> Noise:
    noise = fresh_noise(kind, parameters, count, channels, bits)
    noise[-1] = 0
    return noise


def _one_sided(
    kind: NoiseKind, parameters: Sequence[Fraction], count: int, channels: int, bits: BitSource
) -> Noise:
    noise: Noise = np.abs(fresh_noise(kind, parameters, count, channels, bits))
    return noise


def _wrong_axis(releases: Releases, image: Image, block: int) -> Releases:
    """Copy through what a loop over `height` columns never reaches."""
    covered = image.shape[0]
    releases[:, :, covered:] = image[:, covered:]
    return releases


def half(neighbourhood: int | None, size: Size) -> int:
    """Return half of a neighbourhood, at least one pixel."""
    return max(1, min(neighbourhood or size[0] * size[1], size[0] * size[1]) // 2)
