"""Mutants of pixelisation, each with one bug found in published code or papers.

`shared_mutants` are those of any noise on cell sums; each method adds its own. A mutant that survives every
gate fails the audit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from dpveil.noise.bits import BitSource
from dpveil_audit.entry import BY_DRAWS, BY_LAW
from dpveil_audit.noises import NoiseKind
from dpveil_audit.pixel.methods.steps import Areas, Noise, Steps, Sums, fresh_noise, method_areas, method_sums
from dpveil_audit.pixel.product import Image, Releases
from dpveil_audit.pixel.version import Method, Size


def shared_mutants(intact: Steps) -> tuple[Steps, ...]:
    """Return the mutants of `intact` that do not depend on the kind of noise."""
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
        replace(intact, name="ragged columns copied", gates=BY_DRAWS, after=_ragged_columns_kept),
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


def _ragged_columns_kept(releases: Releases, image: Image, block: int) -> Releases:
    covered = image.shape[1] // block * block
    releases[:, :, covered:] = image[:, covered:]
    return releases


def _wrong_axis(releases: Releases, image: Image, block: int) -> Releases:
    """Copy through what a loop over `height` columns never reaches."""
    covered = image.shape[0]
    releases[:, :, covered:] = image[:, covered:]
    return releases


def half(neighbourhood: int | None, size: Size) -> int:
    """Return half of a neighbourhood, at least one pixel."""
    return max(1, min(neighbourhood or size[0] * size[1], size[0] * size[1]) // 2)
