"""The audits of `dp-pix` and `dp-pix-gaussian`: sums of cells with noise, wrong steps and calibrations.

The law is compared with one from first principles, for which cells are enumerated by loops. Many releases of
one image are drawn at once, side by side as more channels.
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

from dpveil.accounting.zcdp import laplace_scale
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.mechanisms.pixel.base import cell_areas, cell_sums, expand_cells, fullest_cells, mean_levels
from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.noise.laplace import discrete_laplace
from dpveil_audit.distributions import Distribution, gaussian_distribution, laplace_distribution
from dpveil_audit.divergence import Part, ProductLaw, delta_of_zcdp
from dpveil_audit.engine import BY_DRAWS, BY_LAW, Audit, Drawn, Level, Version
from dpveil_audit.pixel.case import Case, Image, Images, Method, Releases, Size, cells, method_audit, version

TOP: Final = 255
DRAWS: Final = 20_000
BINS: Final = 50
"""Bins of Gaussian sums per standard deviation: they hide less than a part in 10⁴ of a divergence."""
REACH: Final = 6  # standard deviations beyond all sums that the bins cover; the outer bins hold the rest
Sums = Int64[np.ndarray, "rows columns c"]
Noise = Int64[np.ndarray, "cells n c"]
Parameter = Callable[[Any, Size], Fraction]


@dataclass(frozen=True)
class Kind:
    """A family of integer noise; its width to the power `power` is proportional to the one parameter."""

    power: int
    draw: Callable[[Fraction, int, BitSource], Any]
    distribution: Callable[[Fraction], Distribution]


LAPLACE: Final = Kind(1, discrete_laplace, lru_cache(maxsize=256)(laplace_distribution))
GAUSSIAN: Final = Kind(2, discrete_gaussian, lru_cache(maxsize=256)(gaussian_distribution))


def method_sums(method: Method, image: Image) -> Sums:
    return cell_sums(image, method.block)


def method_areas(method: Method, size: Size) -> Any:
    return cell_areas(size[0], size[1], method.block)


def method_levels(sums: Sums, areas: Any) -> Sums:
    return mean_levels(sums, areas).astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class Steps:
    """One way to pixelise: intact, or with a wrong step.

    `share(method, size)` are factors on the width of the noise of every cell. `change` spoils noise, `spoil`
    releases, which laws ignore.
    """

    kind: Kind
    parameter: Parameter
    share: Callable[[Method, Size], Sequence[Fraction]] | None = None
    sums: Callable[[Method, Image], Sums] = method_sums
    areas: Callable[[Method, Size], Any] = method_areas
    levels: Callable[[Sums, Any], Sums] = method_levels
    change: Callable[[Noise], Noise] = lambda noise: noise
    spoil: Callable[[Releases, Image], Releases] = lambda releases, image: releases

    def version(self, name: str, **more: Any) -> Version:
        return version(name, self.distribution, self.releases, sums=self.law_of_sums, **more)

    def parameters(self, method: Method, size: Size) -> list[Fraction]:
        whole, count = self.parameter(method, size), method_areas(method, size).size
        shares = [Fraction(1)] * count if self.share is None else self.share(method, size)
        return [whole * share**self.kind.power for share in shares]

    def releases(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases of one image, n × h × w × c."""
        height, width, channels = image.shape
        sums, parameters = self.sums(method, image), self.parameters(method, image.shape)
        one = len(set(parameters)) == 1
        flat = (
            [self.kind.draw(parameters[0], len(parameters) * count * channels, bits)]
            if one
            else [self.kind.draw(parameter, count * channels, bits) for parameter in parameters]
        )
        noise = self.change(np.concatenate(flat).reshape(len(parameters), count, channels))
        noisy = (sums.reshape(-1, 1, channels) + noise).reshape(*sums.shape[:2], count * channels)
        levels = self.levels(noisy, self.areas(method, image.shape)).astype(np.uint8)
        shown = expand_cells(levels, method.block, height, width).reshape(height, width, count, channels)
        return self.spoil(np.moveaxis(shown, 2, 0), image)  # a copy would take long

    def law_of_sums(self, method: Method, images: Images) -> ProductLaw:
        """Return the law of the noisy sums: whole numbers, or bins of Gaussian ones."""
        sums, parameters = self._parts(method, images)
        rows = []
        for own, parameter in zip(sums.T, parameters, strict=True):
            low, high = int(own.min()), int(own.max())
            ends = np.arange(low, high)  # beyond both, all that Laplace noise says is which end is nearer
            if self.kind is GAUSSIAN:
                width = math.sqrt(parameter)
                count = math.ceil(((high - low) / width + 2 * REACH) * BINS)
                ends = np.unique(np.floor(low + (np.arange(count) / BINS - REACH) * width).astype(np.int64))
            distribution, (values, at) = (
                self.kind.distribution(parameter),
                np.unique(own, return_inverse=True),
            )
            edges = np.concatenate([[-(1 << 60)], ends, [1 << 60]])
            masses = [distribution.between(edges[:-1] - value, edges[1:] - value) for value in values]
            rows.append(np.stack(masses)[at])
        scales = set(parameters)
        unit = 1 / float(parameters[0]) if self.kind is LAPLACE and len(scales) == 1 else None
        return ProductLaw.of(rows, unit=unit)

    def distribution(self, method: Method, images: Images) -> ProductLaw:
        sums, parameters = self._parts(method, images)
        height, width, channels = images.shape[1:]
        areas = np.repeat(self.areas(method, images.shape[1:]).ravel(), channels)
        rows = [
            np.stack([level_masses(self.kind, int(s), int(area), parameter, self.levels) for s in column])
            for column, area, parameter in zip(sums.T, areas, parameters, strict=True)
        ]
        grid = cells(height, width, method.block)
        places = [[(*pixel, channel) for pixel in cell] for cell in grid for channel in range(channels)]
        return ProductLaw.of(rows, [Part.of_level(part) for part in places])

    def _parts(self, method: Method, images: Images) -> tuple[Int64[np.ndarray, "n parts"], list[Fraction]]:
        size = images.shape[1:]
        beside = images.transpose(1, 2, 0, 3).reshape(*size[:2], -1)  # all images as channels of one
        parts = self.sums(method, beside).reshape(-1, len(images), size[2]).transpose(1, 0, 2)
        return parts.reshape(len(images), -1), [
            p for p in self.parameters(method, size) for _ in range(size[2])
        ]


@lru_cache(maxsize=20_000)
def level_masses(
    kind: Kind, total: int, area: int, parameter: Fraction, levels: Callable[[Sums, Any], Sums]
) -> np.ndarray:
    """Return the probability of each level, by `levels`, of a noisy sum over `area` pixels."""
    noisy = np.arange(-1, TOP * area + 2)  # both ends stand for their whole tail: it clamps to one level
    ends = np.concatenate([[-(1 << 60)], noisy[:-1], [1 << 60]]) - total
    chances = kind.distribution(parameter).between(ends[:-1], ends[1:])
    shown = levels(noisy.reshape(-1, 1, 1), np.full((len(noisy), 1, 1), area))
    return np.bincount(shown.ravel(), weights=chances, minlength=TOP + 1)


# The law from first principles


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


def counted_levels(sums: Sums, areas: Any) -> Sums:
    """Return noisy sums as levels by the definition: divided by areas, clamped, rounded half up."""
    levels: Sums = np.clip((2 * sums + areas) // (2 * areas), 0, TOP)
    return levels


def counted_sums(method: Method, image: Image) -> Sums:
    """Return the sums of cells that are enumerated here, pixel by pixel."""
    grid = cells(image.shape[0], image.shape[1], method.block)
    sums = [image[*np.array(cell).T].sum(axis=0, dtype=np.int64) for cell in grid]
    return np.array(sums).reshape(-(-image.shape[0] // method.block), -1, image.shape[2])


def counted_areas(method: Method, size: Size) -> Any:
    areas = [len(cell) for cell in cells(size[0], size[1], method.block)]
    return np.array(areas).reshape(-(-size[0] // method.block), -1, 1)


# Mutants: bugs of published code and papers


def _largest(method: Method, size: Size) -> Any:
    return np.full_like(method_areas(method, size), method_areas(method, size).max())


def _of_areas(share: Callable[[int, int], Fraction]) -> Any:
    """Return a factor on the noise of every cell, given its area and the largest."""
    return lambda method, size: [
        share(int(area), int(method_areas(method, size).max())) for area in method_areas(method, size).ravel()
    ]


def _rounded_means(method: Method, image: Image) -> Sums:
    areas = method_areas(method, image.shape)
    means: Sums = (2 * method_sums(method, image) + areas) // (2 * areas)
    return means


def _last_silent(noise: Noise) -> Noise:
    noise[-1] = 0
    return noise


def _wrong_axis(releases: Releases, image: Image) -> Releases:
    """Copy through what a loop over `height` columns never reaches."""
    releases[:, :, image.shape[0] :] = image[:, image.shape[0] :]
    return releases


def _half(method: Method, size: Size) -> Any:
    m = min(method.neighbourhood or size[0] * size[1], size[0] * size[1])
    return replace(method, neighbourhood=max(1, m // 2))


def mutants(own: Steps, gates: dict[str, tuple[str, ...]], calibrations: dict[str, Parameter]) -> Any:
    """Return every mutant of one method, of which some are shown to other gates."""
    parameter = own.parameter
    known = {"m halved": lambda m, s: parameter(_half(m, s), s)} | calibrations
    made = {
        "noise ×0.8": replace(own, share=_of_areas(lambda area, most: Fraction(4, 5))),
        # errata E12: b² noise on every mean is too little on the sum of a ragged cell
        "b² noise on ragged means": replace(own, share=_of_areas(Fraction)),
        "ragged sums divided by b²": replace(own, areas=_largest),
        "means rounded before noise": replace(
            own,
            share=_of_areas(lambda area, most: Fraction(1, area)),
            sums=_rounded_means,
            areas=lambda method, size: np.ones_like(method_areas(method, size)),
        ),
        "one draw for all cells": replace(own, change=lambda z: np.broadcast_to(z[:1], z.shape)),
        "last cell without noise": replace(own, change=_last_silent),
        "one-sided noise": replace(own, change=np.abs),
        "columns over the wrong axis": replace(own, spoil=_wrong_axis),
        **{name: replace(own, parameter=other) for name, other in known.items()},
    }
    usual = {"ragged sums divided by b²": BY_LAW} | {
        name: BY_DRAWS
        for name, steps in made.items()
        if (steps.change, steps.spoil) != (own.change, own.spoil)
    }
    shown = usual | gates
    return tuple(steps.version(name, gates=shown.get(name, ())) for name, steps in made.items())


def _scale(method: DPPix, size: Size) -> Fraction:
    return method.sum_scale(height=size[0], width=size[1], channels=size[2])


def _variance(method: DPPixGaussian, size: Size) -> Fraction:
    return method.sum_variance(height=size[0], width=size[1], channels=size[2])


def _changed(method: Method, size: Size) -> int:
    return min(method.neighbourhood or size[0] * size[1], size[0] * size[1])


def _spread_over_cells(method: DPPix, size: Size) -> Fraction:
    epsilon, delta, _ = method.budget
    if epsilon is None or delta is None:
        return _scale(method, size)
    return laplace_scale(epsilon, delta, ((TOP, _changed(method, size) * size[2]),))


def _squares(method: DPPixGaussian, size: Size) -> int:
    moved = fullest_cells(size[0], size[1], method.block, method.neighbourhood)
    return size[2] * sum(shift**2 * count for shift, count in moved.items())


def _audit(
    method: type[Any],
    own: Steps,
    wrong: tuple[Version, ...],
    right: Parameter,
    settings: tuple[list[Any], list[Any], list[Any]],
) -> Audit:
    """Return an audit; settings are h, w, c, b, m, and the budget by name."""

    def case(h: int, w: int, c: int, b: int, m: int | None, *levels: int, **budget: Any) -> Case:
        return Case(h, w, c, method(block=b, neighbourhood=m, **budget), levels or (0, TOP))

    exact, drawn, deep = (tuple(case(*given, **budget) for given, budget in some) for some in settings)
    counted = replace(
        own, parameter=right, sums=counted_sums, areas=counted_areas, levels=counted_levels
    ).distribution
    quick = Level(exact, tuple(Drawn(one, DRAWS) for one in drawn)).levels(deep)
    return method_audit(
        method, own.releases, own.distribution, wrong, quick, sums=own.law_of_sums, right=counted
    )


def _pure(*given: Any, epsilon: Any = 1) -> Any:
    return given, {"epsilon": epsilon}


def _both(*given: Any) -> Any:
    return given[:5], {"epsilon": given[5], "delta": given[6]}


def _rho(*given: Any) -> Any:
    return given[:5], {"rho": given[5]}


DP_PIX: Final = Steps(kind=LAPLACE, parameter=_scale)
DP_PIX_GAUSSIAN: Final = Steps(kind=GAUSSIAN, parameter=_variance)
AUDITS: Final = (
    _audit(
        DPPix,
        DP_PIX,
        mutants(
            DP_PIX,
            {},
            {
                "channels not counted": lambda method, size: _scale(method, (size[0], size[1], 1)),
                # that of (ε, δ) alone changes nothing for a pure promise
                "(ε, δ): changed pixels spread over cells": _spread_over_cells,
            },
        ),
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
                _pure(24, 24, 1, 24, 1),
                _pure(2, 2, 1, 1, None),
                _both(2, 2, 3, 2, 4, 2, "0.05"),
                _both(2, 3, 1, 1, None, 2, "0.05"),
                _pure(3, 5, 3, 2, 2),
                _rho(2, 2, 3, 1, None, 2),
                _pure(3, 5, 1, 2, 1),
            ],
            [
                _pure(2, 3, 1, 2, None, 0, 1, TOP, epsilon="0.3"),
                _pure(3, 3, 1, 2, 4, epsilon=3),
                _both(3, 3, 1, 2, 5, 1, "1e-4"),
                _both(1, 3, 3, 1, None, 5, "1e-3"),
                _rho(3, 3, 1, 2, 5, "0.01"),
                _rho(1, 3, 3, 1, None, 5),
            ],
        ),
    ),
    _audit(
        DPPixGaussian,
        DP_PIX_GAUSSIAN,
        mutants(
            DP_PIX_GAUSSIAN,
            # Fits reveal less of Gaussian than of Laplace noise.
            {
                "noise ×0.8": BY_LAW,
                "means rounded before noise": ("exact",),
            },
            {
                "channels not counted": lambda m, s: _variance(m, s) / s[2],
                # Σ t_j² = m is the formula for pixels that are all in different cells
                "changed pixels spread over cells": lambda m, s: (
                    _variance(m, s) * TOP**2 * s[2] * _changed(m, s) / _squares(m, s)
                ),
            },
        ),
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
                _rho(24, 24, 1, 24, 1, 2),
                _rho(2, 2, 1, 1, None, 2),
                _both(3, 5, 1, 2, 3, 2, "0.05"),
                _rho(3, 5, 3, 2, 2, 2),
                _rho(3, 5, 1, 2, 1, 2),
            ],
            [
                _rho(3, 3, 1, 2, 5, "0.01"),
                _both(3, 3, 1, 2, 5, 1, "1e-4"),
                _both(1, 3, 3, 1, None, 5, "1e-3"),
            ],
        ),
    ),
)
