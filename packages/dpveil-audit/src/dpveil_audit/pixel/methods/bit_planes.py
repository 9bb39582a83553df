"""The audit of `bit-planes`: the law of all bits of a group, wrong budgets, and settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final
from unittest import mock

import numpy as np

from dpveil.mechanisms.pixel import BitPlanes, bit_planes
from dpveil.mechanisms.pixel.bit_planes import Band, Plane
from dpveil.noise.bits import BitSource
from dpveil.noise.integer_matrix import ROW_SUM
from dpveil_audit.divergence import Outcomes, ProductLaw
from dpveil_audit.engine import BY_DRAWS, Drawn, Level, Version
from dpveil_audit.pixel.case import Case, Image, Images, Size, as_channels, cells, method_audit, version

SIDE: Final = 2  # side of the groups of wavelet 1, the only ones that are looked at
Bit = tuple[int, Plane]
"""A coefficient's index, and one of its planes."""
Group = Sequence[Sequence[int]]
BandsOf = Callable[[BitPlanes, Size], Sequence[Band]]


def bands(method: BitPlanes, size: Size) -> Sequence[Band]:
    return method.bands(height=size[0], width=size[1], channels=size[2])


def coefficients(levels: Group) -> list[int]:
    """Return the coefficients of a 2 × 2 group, computed directly: down, across, cross, coarse."""
    (a, b), (c, d) = levels
    top, bottom = (a + b) // 2, (c + d) // 2
    return [top - bottom, (a - b + c - d) // 2, (a - b) - (c - d), (top + bottom) // 2]


def drawn_bits(made: Sequence[Band]) -> list[Bit]:
    """Return the planes that are drawn, in their order: signs, of value 0, come last in a band."""
    ordered = (
        (place, sorted(band.planes, key=lambda plane: not plane.value)) for place, band in enumerate(made)
    )
    return [(place, plane) for place, planes in ordered for plane in planes if plane.epsilon]


def truth(bits: Sequence[Bit], values: Sequence[int]) -> list[bool]:
    """Return the true bits of a group's coefficients; the plane of value 0 is the sign."""
    return [
        bool(abs(values[place]) & plane.value) if plane.value else values[place] < 0 for place, plane in bits
    ]


def distribution(method: BitPlanes, images: Images, *, bands_of: BandsOf = bands) -> ProductLaw:
    """Return the law of every drawn bit of every group and channel, 0 or 1: true, or flipped."""
    size = images.shape[1:]
    bits, rows = drawn_bits(bands_of(method, size)), []
    for cell in cells(size[0], size[1], SIDE):
        for channel in range(size[2]):
            groups = [coefficients(_group(image[:, :, channel], cell[0])) for image in images]
            true = np.array([truth(bits, values) for values in groups])
            for own, (_, plane) in zip(true.T, bits, strict=True):
                flip = plane.flip / ROW_SUM
                rows.append(np.where(own[:, None] == [False, True], 1 - flip, flip))
    return ProductLaw.of(rows)


def outcomes(method: BitPlanes, image: Image, count: int, bits: BitSource) -> Outcomes:
    """Return the bits that releases decode, as the posterior means of their planes say."""
    seen, estimate = list[Any](), bit_planes._estimate

    def keep(plane: Plane, *rest: Any) -> Any:
        means = estimate(plane, *rest)
        if plane.epsilon:
            seen.append(means == plane.posterior_means[1])
        return means

    with mock.patch.object(bit_planes, "_estimate", keep):
        as_channels(BitPlanes, "bands")(method, image, count, bits)
    seen = seen[len(seen) * 2 // 3 :]  # before all draws at once, a single one is compared with a release
    found = np.stack(seen, axis=-1).reshape(*seen[0].shape[:2], count, image.shape[2], -1)
    return np.moveaxis(found, 2, 0).reshape(count, -1).astype(np.int64)


def _group(channel: Image, corner: tuple[int, int]) -> Group:
    """Return a group of one channel, with its last row and column repeated beyond the image."""
    height, width = channel.shape
    rows, columns = (
        (start, min(start + 1, length - 1)) for start, length in zip(corner, (height, width), strict=True)
    )
    return [[int(channel[row, column]) for column in columns] for row in rows]


def one_group(method: BitPlanes, size: Size) -> Sequence[Band]:
    return bands(replace(method, neighbourhood=1), size)


def one_channel(method: BitPlanes, size: Size) -> Sequence[Band]:
    return bands(method, (*size[:2], 1))


def _wrong(name: str, bands_of: BandsOf, gates: tuple[str, ...] = ()) -> Version:
    return version(name, partial(distribution, bands_of=bands_of), gates=gates)


MUTANTS: Final = (
    _wrong("group factor missing", one_group),
    _wrong("channels not counted", one_channel),
    version("one draw for all groups and channels", distribution, gates=BY_DRAWS, shared=True),
)


def level() -> Level:
    grey, detail, two, both, zcdp, strong = (
        BitPlanes(**given)
        for given in (
            {"epsilon": 3},
            {"epsilon": 15, "drop_coarse": True},
            {"epsilon": 3, "neighbourhood": 2},
            {"epsilon": 1, "delta": "0.05"},
            {"rho": 2},
            {"epsilon": 40},
        )
    )
    exact = (
        Case(2, 2, 1, detail, (0, 120, 255)),
        Case(2, 3, 1, two),
        Case(1, 1, 3, grey, (0, 128, 255)),
        Case(1, 3, 1, both, (0, 128, 255)),
        Case(1, 3, 1, zcdp, (0, 128, 255)),
        Case(2, 2, 1, replace(grey, epsilon=9), (0, 100, 255)),
    )
    larger = (
        Case(2, 2, 1, detail),
        Case(3, 3, 3, strong),
        Case(2, 2, 1, replace(detail, epsilon=3)),
        Case(2, 3, 1, two),
        Case(1, 1, 3, grey),
    )
    return Level(exact, tuple(Drawn(case, 20_000) for case in larger))


AUDIT: Final = method_audit(BitPlanes, outcomes, distribution, MUTANTS, level())
