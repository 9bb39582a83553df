"""The audit of `bit-planes`: the joint law of all bits of a group, wrong budgets, and settings."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.mechanisms.pixel import BitPlanes
from dpveil.mechanisms.pixel.bit_planes import MOST_EPSILON, Band, Plane, pad_edges
from dpveil.noise.bits import BitSource
from dpveil.noise.matrix import ROW_SUM
from dpveil_audit.divergence import ProductLaw
from dpveil_audit.engine import BY_DRAWS, BY_LAW, Drawn, Level, Version
from dpveil_audit.pixel.case import Case, Image, Images, Part, Releases, Size, cells, method_audit, version

SIDE: Final = 2  # side of the groups of wavelet 1, the only ones whose joint law is small enough to enumerate
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


def inverse_block(down: int, across: int, cross: int, coarse: int) -> list[int]:
    """Return the four pixels of these coefficients, clamped."""
    top, first = coarse + (down + 1) // 2, across + (cross + 1) // 2
    pixels = []
    for mean, difference in ((top, first), (top - down, first - cross)):
        left = mean + (difference + 1) // 2
        pixels += [left, left - difference]
    return [min(255, max(0, value)) for value in pixels]


def drawn_bits(made: Sequence[Band]) -> list[Bit]:
    return [(place, plane) for place, band in enumerate(made) for plane in band.planes if plane.epsilon]


def truth(bits: Sequence[Bit], values: Sequence[int]) -> list[bool]:
    """Return the true bits of a group's coefficients; the plane of value 0 is the sign."""
    return [
        bool(abs(values[place]) & plane.value) if plane.value else values[place] < 0 for place, plane in bits
    ]


def decode_coefficients(made: Sequence[Band], bits: Sequence[Bit], seen: Sequence[bool]) -> list[int]:
    """Return the coefficients decoded from observed bits, by Bayes' rule."""
    shown = {(place, plane.value): bit for (place, plane), bit in zip(bits, seen, strict=True)}
    values = []
    for place, band in enumerate(made):
        means = {plane.value: _posterior(plane, shown.get((place, plane.value))) for plane in band.planes}
        total = sum(value * mean for value, mean in means.items())
        if 0 in means:
            total *= 1 - 2 * means[0]
        elif not any(plane.epsilon for plane in band.planes):
            total = 128
        values.append(round(total))
    return values


def _posterior(plane: Plane, seen: bool | None) -> float:
    if seen is None:
        return plane.prior
    flip = plane.flip / ROW_SUM
    one = plane.prior * (1 - flip if seen else flip)
    return one / (one + (1 - plane.prior) * (flip if seen else 1 - flip))


def distribution(method: BitPlanes, images: Images, *, bands_of: BandsOf = bands) -> ProductLaw:
    """Return the joint law of all bits of every group and channel, decoded by Bayes' rule."""
    size = images.shape[1:]
    made = bands_of(method, size)
    bits = drawn_bits(made)
    outcomes = np.array(list(itertools.product((False, True), repeat=len(bits))))
    flips = np.array([plane.flip / ROW_SUM for _, plane in bits])
    pixels = np.array([inverse_block(*decode_coefficients(made, bits, seen)) for seen in outcomes.tolist()])

    def chances(values: Sequence[int]) -> Float64[np.ndarray, " outcomes"]:
        wrong = outcomes != np.array(truth(bits, values))
        found: Float64[np.ndarray, " outcomes"] = np.where(wrong, flips, 1 - flips).prod(axis=1)
        return found

    parts, rows = [], []
    for cell in cells(size[0], size[1], SIDE):
        shown = pixels[:, [SIDE * (row % SIDE) + column % SIDE for row, column in cell]].astype(np.uint8)
        for channel in range(size[2]):
            parts.append(Part(np.array([(*pixel, channel) for pixel in cell]), shown))
            groups = [_group(image[:, :, channel], cell[0]) for image in images]
            rows.append(np.stack([chances(coefficients(group)) for group in groups]))
    return ProductLaw.of(rows, parts)


def _group(channel: Image, corner: tuple[int, int]) -> Group:
    """Return a group of one channel, with its last row and column repeated beyond the image."""
    height, width = channel.shape
    rows, columns = (
        (start, min(start + 1, length - 1)) for start, length in zip(corner, (height, width), strict=True)
    )
    return [[int(channel[row, column]) for column in columns] for row in rows]


def releases(method: BitPlanes, image: Image, count: int, bits: BitSource) -> Releases:
    """Return one release of `count` copies side by side, with the budgets of a single one, split up."""
    height, width, channels = image.shape
    alone = replace(method, neighbourhood=method.groups(height=height, width=width))
    full = pad_edges(image, 1 << method.wavelet)
    shown = alone.release(np.tile(full, (1, count, 1)), bits=bits).reshape(len(full), count, -1, channels)
    return np.ascontiguousarray(np.moveaxis(shown, 1, 0)[:, :height, :width])


def one_group(method: BitPlanes, size: Size) -> Sequence[Band]:
    return bands(replace(method, neighbourhood=1), size)


def one_channel(method: BitPlanes, size: Size) -> Sequence[Band]:
    return bands(method, (*size[:2], 1))


def _with_epsilons(made: Sequence[Band], epsilon: Callable[[Plane], float]) -> Sequence[Band]:
    """Return the bands with another ε for each drawn plane."""
    return [
        replace(band, planes=tuple(replace(p, epsilon=epsilon(p)) if p.epsilon else p for p in band.planes))
        for band in made
    ]


def planes_alone(method: BitPlanes, size: Size) -> Sequence[Band]:
    made = bands(method, size)
    total = sum(band.epsilon for band in made)
    return _with_epsilons(made, lambda plane: total)


def bare_signs(method: BitPlanes, size: Size) -> Sequence[Band]:
    return _with_epsilons(bands(method, size), lambda plane: plane.epsilon if plane.value else MOST_EPSILON)


def _wrong(name: str, bands_of: BandsOf, gates: tuple[str, ...] = ()) -> Version:
    return version(name, partial(distribution, bands_of=bands_of), gates=gates)


MUTANTS: Final = (
    _wrong("group factor missing", one_group, BY_LAW),
    _wrong("channels not counted", one_channel),
    _wrong("planes' budgets not summed", planes_alone, BY_LAW),
    _wrong("signs without noise", bare_signs),
    version("one draw for all groups and channels", distribution, gates=BY_DRAWS, shared=True),
)


def levels() -> dict[str, Level]:
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
    quick = Level(exact, tuple(Drawn(case, 20_000) for case in larger))
    return quick.levels((Case(2, 4, 1, two), Case(1, 2, 3, detail)))


AUDIT: Final = method_audit(BitPlanes, releases, distribution, MUTANTS, levels())
