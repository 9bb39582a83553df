"""Pixelisation in separate steps, each of which can be audited and replaced by a wrong one.

The intact steps use the method's own functions and reproduce its `release` bit for bit, which the first gate
checks. Many releases of one image are drawn at once, side by side as more channels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
from jaxtyping import Int64

from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.cells import cell_areas, cell_sums, mean_levels, spread
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Move
from dpveil_audit.noises import NoiseKind
from dpveil_audit.pixel.case import Level
from dpveil_audit.pixel.methods.pixelisation import cell_parts
from dpveil_audit.pixel.product import Image, Images, Pairs, ProductDistribution, Releases
from dpveil_audit.pixel.version import Method, Size, Version
from dpveil_audit.pixel.version import Steps as MethodSteps

Sums = Int64[np.ndarray, "rows columns c"]
Areas = Int64[np.ndarray, "rows columns 1"]
Noise = Int64[np.ndarray, "cells n c"]
MOST_MOVES: Final = 4000
"""Most distinct moves of one setting; more are refused."""
WIDEST: Final = 20_000
"""The widest noise, in levels, whose exact law takes only seconds."""


def method_sums(method: Method, image: Image) -> Sums:
    """Return the sums to which noise is added."""
    return cell_sums(image, method.block)


def method_areas(method: Method, size: Size) -> Areas:
    """Return the divisors of noisy sums."""
    return cell_areas(size[0], size[1], method.block)


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
        levels = mean_levels(noisy, self.areas(method, image.shape))
        shown = spread(levels, method.block, height, width).reshape(height, width, count, channels)
        return self.after(np.moveaxis(shown, 2, 0), image, method.block)  # a copy would take long

    def version(self) -> Version:
        """Return these steps as a version."""
        return replace(super().version(), noise=self)

    def key(self, method: Method, size: Size) -> object:
        """Return a key that is equal for steps that behave identically there."""
        made = self.parameters(method, size), self.areas(method, size).tobytes()
        return (*made, self.kind, self.sums, self.noise, self.after)

    def distribution(self, method: Method, images: Images) -> ProductDistribution:
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
            masses.append(np.stack([_masses(self.kind, int(s), int(area), parameter) for s in distinct]))
        parts = cell_parts(height, width, channels, method.block)
        return ProductDistribution(np.stack(index, axis=1), masses, parts)

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
    """Return distinct rows of counts in order, by numbering them if 64-bit integers suffice, which is far
    faster.
    """
    values = np.flatnonzero(np.bincount(rows.ravel()))
    if len(values) ** rows.shape[1] >= 2**63:
        return np.unique(rows, axis=0)
    rank = np.zeros(values[-1] + 1, np.int64)
    rank[values] = np.arange(len(values))
    numbers = rank[rows] @ len(values) ** np.arange(rows.shape[1])[::-1]
    return rows[np.unique(numbers, return_index=True)[1]]


@lru_cache(maxsize=20_000)
def _masses(kind: NoiseKind, total: int, area: int, parameter: Fraction) -> np.ndarray:
    """Return the probability of each level by passing every noisy sum through the method's own division."""
    noisy = np.arange(-1, 255 * area + 2)  # both ends stand for their whole tail: it clamps to one level
    distribution = kind.distribution(parameter)
    chances = distribution.between(noisy - total - 1, noisy - total)
    chances[0] = distribution.cdf(noisy[:1] - total)[0]
    chances[-1] = distribution.survival(noisy[-1:] - total - 1)[0]
    levels = mean_levels(noisy.reshape(1, -1, 1), np.full((1, len(noisy), 1), area))
    return np.bincount(levels.ravel(), weights=chances, minlength=256)


def refuse_wide_noise(intact: Steps, method: Method, level: Level) -> None:
    """Raise `InvalidParameter` if the exact law of the noise takes too long."""
    width = max(float(p) for case in level.exact for p in intact.parameters(method, case.size))
    if width ** (1 / intact.kind.power) > WIDEST:
        raise InvalidParameter("budget", None, "asks for noise too wide to audit", hint="audit a larger one")
