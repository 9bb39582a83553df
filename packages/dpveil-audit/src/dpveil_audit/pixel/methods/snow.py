"""The audit of `snow`: the law of every pixel, versions that show too much, and settings."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.mechanisms.pixel import Snow
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Part, ProductLaw, Releases
from dpveil_audit.engine import BY_DRAWS, Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, method_audit, side_by_side, version

GREY: Final = 127


def distribution(method: Snow, images: Images) -> ProductLaw:
    """Return the law of every pixel: its own colour with probability δ, else grey."""
    height, width, channels = images.shape[1:]
    grid = [(row, column) for row in range(height) for column in range(width)]
    return _group_law(images, [[(*pixel, k) for k in range(channels)] for pixel in grid], method.delta)


def distribution_of_values(method: Snow, images: Images) -> ProductLaw:
    """Return the law if every channel is drawn separately."""
    return _group_law(images, [[place] for place in np.ndindex(*images.shape[1:])], method.delta)


def _group_law(images: Images, places: list[list[tuple[int, int, int]]], delta: Fraction) -> ProductLaw:
    """Return the law of groups of places, each shown with probability `delta`, else grey."""
    parts, rows = [], []
    for group in places:
        colours = images[:, *np.array(group).T]
        looks, own = np.unique(np.append(colours, [[GREY] * len(group)], axis=0), axis=0, return_inverse=True)
        chances = np.full((len(images), len(looks)), Fraction(0), object)
        chances[:, own[-1]] = 1 - delta
        for image, outcome in enumerate(own[:-1]):
            chances[image, outcome] += delta
        parts.append(Part(np.array(group), looks))
        rows.append(chances)
    return ProductLaw.of(rows, parts)


def last_column_kept(method: Snow, image: Image, count: int, bits: BitSource) -> Releases:
    releases = side_by_side(method, image, count, bits)
    releases[:, :, -1] = image[:, -1]
    return releases


def _more(method: Snow) -> Snow:
    return replace(method, delta=method.delta * 11 / 10)


MUTANTS: Final = (
    version("each channel drawn alone", distribution_of_values),
    version("a tenth more shown than δ", lambda method, images: distribution(_more(method), images)),
    version("one draw for all pixels", distribution, gates=BY_DRAWS, shared=True),
    version("last column kept", distribution, last_column_kept, gates=BY_DRAWS),
)


def level() -> Level:
    third, most, few = Snow(delta="1/3"), Snow(delta="0.8"), Snow(delta="0.01")
    exact = (Case(1, 2, 1, third, (0, 1, GREY, 255)), Case(1, 1, 3, few, (0, GREY, 255)), Case(2, 2, 1, most))
    larger = (
        Case(3, 5, 3, third),
        Case(2, 3, 1, few),
        Case(2, 3, 3, third),
        Case(1, 4, 1, most),
        Case(1, 1, 3, few),
    )
    return Level(exact, tuple(Drawn(case, 20_000) for case in larger))


AUDIT: Final = method_audit(Snow, side_by_side, distribution, MUTANTS, level())
