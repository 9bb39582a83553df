"""The audits of `dp-pix` and `dp-pix-gaussian`: sums of cells with noise, wrong steps and calibrations.

The law is that of noise on sums of cells that are enumerated here, pixel by pixel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.mechanisms.pixel import DPPix, DPPixGaussian, dp_pix
from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import (
    Distribution,
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
)
from dpveil_audit.divergence import Part, ProductLaw, Releases, delta_of_zcdp
from dpveil_audit.engine import BY_DRAWS, Audit, Drawn, Level, Version
from dpveil_audit.pixel.case import (
    Case,
    Image,
    Images,
    Method,
    ReleasesOf,
    Size,
    as_channels,
    cells,
    method_audit,
    version,
)

TOP: Final = 255
DRAWS: Final = 20_000
BINS: Final = 50
"""Bins of Gaussian sums per standard deviation: they hide less than a part in 10⁴ of a divergence."""
REACH: Final = 6  # standard deviations beyond all sums that the bins cover; the outer bins hold the rest
Sums = Int64[np.ndarray, "images cells c"]
Areas = list[int]
Parameter = Callable[[Any, Size], Fraction]


def cell_sums(method: Method, images: Images) -> Sums:
    """Return the sums of cells, row by row."""
    grid = cells(images.shape[1], images.shape[2], method.block)
    return np.stack([images[:, *np.array(cell).T].sum(axis=1, dtype=np.int64) for cell in grid], axis=1)


def cell_areas(method: Method, size: Size) -> Areas:
    return [len(cell) for cell in cells(size[0], size[1], method.block)]


@lru_cache(maxsize=256)
def laplace(scale: Fraction) -> Distribution:
    return laplace_distribution(scale) if scale else finite_distribution([1.0])


@lru_cache(maxsize=256)
def gaussian(variance: Fraction) -> Distribution:
    return gaussian_distribution(variance) if variance else finite_distribution([1.0])


POWERS: Final[dict[Any, int]] = {laplace: 1, gaussian: 2}
"""The power of the width of noise to which its parameter is proportional."""


@dataclass(frozen=True, kw_only=True)
class Pixels:
    """The law of one way to pixelise: intact, or with a wrong step.

    `share` are factors on the width of the noise of every cell, given all areas.
    """

    noise: Callable[[Fraction], Distribution]
    parameter: Parameter
    share: Callable[[Areas], Sequence[Fraction]] = lambda areas: [Fraction(1)] * len(areas)
    sums: Callable[[Method, Images], Sums] = cell_sums
    areas: Callable[[Method, Size], Areas] = cell_areas

    def version(self, name: str, **more: Any) -> Version:
        return version(name, self.distribution, sums=self.law_of_sums, **more)

    def parameters(self, method: Method, size: Size) -> list[Fraction]:
        """Return the parameter of the noise of every cell and channel."""
        whole, shares = self.parameter(method, size), self.share(cell_areas(method, size))
        return [whole * share ** POWERS[self.noise] for share in shares for _ in range(size[2])]

    def law_of_sums(self, method: Method, images: Images) -> ProductLaw:
        """Return the law of the noisy sums: whole numbers, or bins of Gaussian ones."""
        sums = self.sums(method, images).reshape(len(images), -1)
        parameters = self.parameters(method, images.shape[1:])
        rows = []
        for own, parameter in zip(sums.T, parameters, strict=True):
            low, high = int(own.min()), int(own.max())
            ends = np.arange(low, high)  # beyond both, all that Laplace noise says is which end is nearer
            if self.noise is gaussian and parameter:
                width = math.sqrt(parameter)
                count = math.ceil(((high - low) / width + 2 * REACH) * BINS)
                ends = np.unique(np.floor(low + (np.arange(count) / BINS - REACH) * width).astype(np.int64))
            distribution = self.noise(parameter)
            values, at = np.unique(own, return_inverse=True)
            edges = np.concatenate([[-(1 << 60)], ends, [1 << 60]])
            masses = [distribution.between(edges[:-1] - value, edges[1:] - value) for value in values]
            rows.append(np.stack(masses)[at])
        scales = set(parameters)
        unit = 1 / float(parameters[0]) if self.noise is laplace and len(scales) == 1 else None
        return ProductLaw.of(rows, unit=unit)

    def distribution(self, method: Method, images: Images) -> ProductLaw:
        size = images.shape[1:]
        sums = self.sums(method, images).reshape(len(images), -1)
        areas = np.repeat(self.areas(method, size), size[2]).tolist()
        rows = [
            np.stack([level_masses(self.noise, total, area, parameter) for total in column])
            for column, area, parameter in zip(
                sums.T.tolist(), areas, self.parameters(method, size), strict=True
            )
        ]
        grid = cells(size[0], size[1], method.block)
        places = [[(*pixel, channel) for pixel in cell] for cell in grid for channel in range(size[2])]
        return ProductLaw.of(rows, [Part.of_level(part) for part in places])


@lru_cache(maxsize=20_000)
def level_masses(
    noise: Callable[[Fraction], Distribution], total: int, area: int, parameter: Fraction
) -> np.ndarray:
    """Return the probability of each level of a noisy sum over `area` pixels: divided, clamped, rounded half
    up.
    """
    noisy = np.arange(-1, TOP * area + 2)  # both ends stand for their whole tail: it clamps to one level
    ends = np.concatenate([[-(1 << 60)], noisy[:-1], [1 << 60]]) - total
    shown = np.clip((2 * noisy + area) // (2 * area), 0, TOP)
    return np.bincount(shown, weights=noise(parameter).between(ends[:-1], ends[1:]), minlength=TOP + 1)


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
        absolute += TOP * taken
        squared += (TOP * taken) ** 2
    return absolute * channels, squared * channels


def right_scale(method: DPPix, size: Size) -> Fraction:
    """Return the Laplace scale by formula; for (ε, δ) there is none, and the method's own is taken.

    The hockey-stick divergence tests whether that one keeps its promise. For ρ it is the root of L2²/(2ρ)
    (Bun & Steinke 2016, proposition 1.4).
    """
    epsilon, delta, rho = method.budget
    if delta is not None:
        return _scale(method, size)
    absolute, squared = largest_moves(method, size)
    return Fraction(math.sqrt(squared / (2 * rho))) if rho else absolute / (epsilon or Fraction(1))


def right_variance(method: DPPixGaussian, size: Size) -> Fraction:
    """Return the variance L2²/(2ρ), with ρ from (ε, δ) by an independent conversion."""
    epsilon, delta, rho = method.budget
    if rho is None:  # the largest whose δ at this ε is small enough
        low, high = 0.0, float(epsilon or 0) + 2 * math.sqrt(epsilon or 0) + 1
        for _ in range(60):
            middle = (low + high) / 2
            kept = delta_of_zcdp(middle, float(epsilon or 0)) <= float(delta or 0)
            low, high = (middle, high) if kept else (low, middle)
        rho = Fraction(low)
    return largest_moves(method, size)[1] / (2 * rho)


# Mutants: bugs of published code and papers


def _of_areas(share: Callable[[int, int], Fraction]) -> Callable[[Areas], list[Fraction]]:
    """Return a factor on the noise of every cell, given its area and the largest."""
    return lambda areas: [share(area, max(areas)) for area in areas]


def _rounded_means(method: Method, images: Images) -> Sums:
    areas = np.array(cell_areas(method, images.shape[1:]))[:, None]
    means: Sums = (2 * cell_sums(method, images) + areas) // (2 * areas)
    return means


def _wrong_axis(draw: ReleasesOf) -> ReleasesOf:
    """Copy through what a loop over `height` columns never reaches."""

    def releases(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        shown: Releases = draw(method, image, count, bits)
        shown[:, :, image.shape[0] :] = image[:, image.shape[0] :]
        return shown

    return releases


def _half(method: Method, size: Size) -> Any:
    pixels = size[0] * size[1]
    return replace(method, neighbourhood=max(1, min(method.neighbourhood or pixels, pixels) // 2))


def mutants(own: Pixels, draw: ReleasesOf, calibrations: dict[str, Parameter]) -> tuple[Version, ...]:
    parameter = own.parameter
    known = {"m halved": lambda m, s: parameter(_half(m, s), s)} | calibrations
    made = {
        "noise ×0.8": replace(own, share=_of_areas(lambda area, most: Fraction(4, 5))),
        # errata E12: b² noise on every mean is too little on the sum of a ragged cell
        "b² noise on ragged means": replace(own, share=_of_areas(Fraction)),
        "means rounded before noise": replace(
            own,
            share=_of_areas(lambda area, most: Fraction(1, area)),
            sums=_rounded_means,
            areas=lambda method, size: [1] * len(cell_areas(method, size)),
        ),
        "last cell without noise": replace(
            own, share=lambda areas: [*[Fraction(1)] * (len(areas) - 1), Fraction(0)]
        ),
        **{name: replace(own, parameter=other) for name, other in known.items()},
    }
    return (
        *(steps.version(name) for name, steps in made.items()),
        own.version("one draw for all cells", shared=True, gates=BY_DRAWS),
        version("columns over the wrong axis", own.distribution, _wrong_axis(draw), gates=BY_DRAWS),
    )


def _scale(method: DPPix, size: Size) -> Fraction:
    return method.sum_scale(height=size[0], width=size[1], channels=size[2])


def _variance(method: DPPixGaussian, size: Size) -> Fraction:
    return method.sum_variance(height=size[0], width=size[1], channels=size[2])


def _audit(
    method: type[Any],
    own: Pixels,
    draw: ReleasesOf,
    calibrations: dict[str, Parameter],
    right: Parameter,
    settings: tuple[list[Any], list[Any]],
) -> Audit:
    """Return an audit; settings are h, w, c, b, m, and the budget by name."""

    def case(h: int, w: int, c: int, b: int, m: int | None, *levels: int, **budget: Any) -> Case:
        return Case(h, w, c, method(block=b, neighbourhood=m, **budget), levels or (0, TOP))

    exact, drawn = (tuple(case(*given, **budget) for given, budget in some) for some in settings)
    return method_audit(
        method,
        draw,
        own.distribution,
        mutants(own, draw, calibrations),
        Level(exact, tuple(Drawn(one, DRAWS) for one in drawn)),
        sums=own.law_of_sums,
        right=replace(own, parameter=right).distribution,
    )


def _pure(*given: Any, epsilon: Any = 1) -> Any:
    return given, {"epsilon": epsilon}


def _both(*given: Any) -> Any:
    return given[:5], {"epsilon": given[5], "delta": given[6]}


def _rho(*given: Any) -> Any:
    return given[:5], {"rho": given[5]}


AUDITS: Final = (
    _audit(
        DPPix,
        Pixels(noise=laplace, parameter=_scale),
        as_channels(dp_pix, "_sum_scale"),
        {
            "channels not counted": lambda method, size: _scale(method, (size[0], size[1], 1)),
        },
        right_scale,
        (
            [
                _pure(2, 3, 1, 2, 2, 0, 1, TOP),
                _pure(1, 3, 3, 2, 1),
                _both(2, 3, 1, 2, 3, 2, "0.01"),
                _both(1, 3, 3, 2, 2, 2, "0.01"),
                _both(2, 4, 1, 1, None, 3, "1e-6"),
                _rho(2, 3, 1, 2, 3, 1),
                _rho(1, 3, 3, 2, 2, "0.3"),
            ],
            [
                _pure(3, 5, 1, 2, 2),
                _both(3, 4, 3, 2, 4, 60, "0.01"),
                _pure(3, 4, 3, 2, 1, epsilon=50),
                _rho(3, 5, 1, 2, 3, 5),
                _pure(17, 17, 1, 16, 1),
                _pure(2, 2, 1, 1, None),
                _both(2, 2, 3, 2, 4, 2, "0.05"),
                _both(2, 3, 1, 1, None, 2, "0.05"),
                _rho(2, 2, 3, 1, None, 2),
            ],
        ),
    ),
    _audit(
        DPPixGaussian,
        Pixels(noise=gaussian, parameter=_variance),
        as_channels(DPPixGaussian, "sum_variance"),
        {
            "channels not counted": lambda m, s: _variance(m, s) / s[2],
        },
        right_variance,
        (
            [
                _rho(2, 3, 1, 2, 3, 1),
                _rho(1, 3, 3, 2, 2, "0.3"),
                _rho(2, 3, 1, 1, None, 2),
                _both(2, 3, 1, 2, 3, 2, "0.01"),
                _both(1, 3, 3, 2, 1, 1, "1e-5"),
            ],
            [
                _rho(3, 5, 1, 2, 2, 2),
                _both(3, 5, 1, 2, 3, 20, "0.01"),
                _rho(3, 4, 3, 2, 4, 50),
                _rho(17, 17, 1, 16, 1, 2),
                _rho(2, 2, 1, 1, None, 2),
                _rho(3, 5, 3, 2, 2, 2),
            ],
        ),
    ),
)
