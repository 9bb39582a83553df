"""Pixel methods on small images: neighbours, versions, and the audit of a method."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from itertools import chain, product, zip_longest
from typing import Any, Final
from unittest import mock

import numpy as np
from jaxtyping import UInt8

from dpveil.core.rationals import show
from dpveil.errors import NoiseError
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource, SeededBits
from dpveil_audit import engine
from dpveil_audit.divergence import Pairs, ProductLaw, Releases
from dpveil_audit.engine import Audit, Level, Version

Image = UInt8[np.ndarray, "h w c"]
Images = UInt8[np.ndarray, "images h w c"]
Pixel = tuple[int, int]
Size = tuple[int, int, int]
Method = Any
"""A `PixelMethod`; a version reads the fields of its own."""
DistributionOf = Callable[[Method, Images], ProductLaw]
ReleasesOf = Callable[[Method, Image, int, BitSource], Any]
MOST_IMAGES: Final = 1024  # most images of a case that are all looked at; of more, the extreme ones are
CHUNK: Final = 512
BUDGET: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
LETTERS: Final = {"block": "b", "neighbourhood": "m"}


def cells(height: int, width: int, block: int) -> list[list[Pixel]]:
    """Return the pixels (row, column) of every block × block cell, row by row; edge cells are smaller.

    >>> [len(cell) for cell in cells(3, 3, 2)]
    [4, 2, 2, 1]
    """
    found: dict[Pixel, list[Pixel]] = {}
    for row in range(height):
        for column in range(width):
            found.setdefault((row // block, column // block), []).append((row, column))
    return [found[key] for key in sorted(found)]


def uneven_image(size: Size) -> Image:
    """Return an image of this height, width and channels whose levels differ from pixel to pixel."""
    levels = (np.arange(math.prod(size)) * 37 + 11) % 256
    return levels.astype(np.uint8).reshape(size)


def extreme_images(size: Size, block: int, m: int | None) -> Images:
    """Return a black image, and ones of which m pixels (None: all) are white.

    They fill the largest cells, the smallest (ragged) ones, a pixel of every cell, the last column, the last
    row, or are one pixel alone, in all channels or in one.
    """
    height, width, channels = size
    grid = cells(height, width, block)
    by_size = sorted(grid, key=len)
    orders = [
        list(chain.from_iterable(reversed(by_size))),
        list(chain.from_iterable(by_size)),
        [pixel for turn in zip_longest(*grid) for pixel in turn if pixel is not None],
        [(row, width - 1) for row in reversed(range(height))],
        [(height - 1, column) for column in reversed(range(width))],
        by_size[-1][:1],
    ]
    places = [(order[: m or height * width], slice(None)) for order in orders]
    places += [(orders[0][: m or height * width], slice(k, k + 1)) for k in range(channels)]
    images = np.zeros((1 + len(places), *size), np.uint8)
    for image, (pixels, channel) in zip(images[1:], places, strict=True):
        rows, columns = np.array(pixels).T
        image[rows, columns, channel] = 255
    return np.unique(images, axis=0)


@lru_cache(maxsize=64)
def neighbours(content: bytes, shape: tuple[int, int, int, int], m: int | None) -> Pairs:
    """Return all ordered pairs that differ in 1 to m pixels (None: any two), each with all its channels."""
    count, height, width, channels = shape
    pixels = np.frombuffer(content, np.uint8).reshape(count, height * width, channels)
    most = height * width if m is None else m
    found = []
    for start in range(0, count, CHUNK):
        part = pixels[start : start + CHUNK]
        distance = np.zeros((len(part), count), np.int64)
        for pixel in range(height * width):
            distance += np.any(part[:, None, pixel] != pixels[None, :, pixel], axis=2)
        first, second = np.nonzero((distance >= 1) & (distance <= most))
        found.append(np.stack([first + start, second], axis=1))
    return np.concatenate(found).astype(np.int64)


@dataclass(frozen=True)
class Case(engine.Case):
    """A method on height × width × channels: all images over `levels`, if they are few, or extreme ones.

    Extreme ones also under (ε, δ), as every two take a composition.
    """

    height: int
    width: int
    channels: int
    method: PixelMethod
    levels: tuple[int, ...] = (0, 255)

    @property
    def size(self) -> Size:
        return self.height, self.width, self.channels

    @cached_property
    def guarantee(self) -> Any:
        return self.method.guarantee(height=self.height, width=self.width, channels=self.channels)

    @cached_property
    def inputs(self) -> Images:
        values = math.prod(self.size)
        if len(self.levels) ** values > MOST_IMAGES or self.guarantee.kind == "approximate":
            return self.extremes
        return np.array(list(product(self.levels, repeat=values)), np.uint8).reshape(-1, *self.size)

    @cached_property
    def extremes(self) -> Images:
        """Extreme neighbours of a black image, and itself."""
        block = getattr(self.method, "block", 1)
        return extreme_images(self.size, block, getattr(self.guarantee.relation, "m", None))

    @cached_property
    def fits(self) -> Images:
        """An image that is uneven, and one that is extreme."""
        return np.stack([uneven_image(self.size), self.extremes[-1]])

    @cached_property
    def pairs(self) -> Pairs:
        return neighbours(self.inputs.tobytes(), self.inputs.shape, self.guarantee.relation.m)

    @property
    def metric(self) -> bool:
        return bool(self.guarantee.kind == "metric")

    @cached_property
    def apart(self) -> Any:
        """For a metric promise, the Euclidean distances."""
        moved = np.subtract(*self.inputs[self.pairs.T].astype(np.float64))
        return np.sqrt((moved**2).sum(axis=(1, 2, 3))) if self.metric else None

    def label(self, number: int) -> str:
        return str(self.inputs[number].ravel()[:9].tolist())

    def __str__(self) -> str:
        names = [field.name for field in fields(self.method) if field.name not in BUDGET]  # type: ignore[arg-type]
        given = {LETTERS.get(name, name): getattr(self.method, name) for name in names}
        words = ["×".join(map(str, self.size))]
        words += [f"{name} = {value}" for name, value in given.items() if value is not None]
        promise = self.guarantee
        words += ["any image"] if promise.relation.name == "any-image" else []
        spent = {letter: getattr(promise, name) for name, letter in BUDGET.items()}
        return ", ".join(words + [f"{name} = {show(v)}" for name, v in spent.items() if v is not None])


def version(
    name: str,
    distribution: DistributionOf | None = None,
    releases: ReleasesOf | None = None,
    *,
    sums: DistributionOf | None = None,
    **more: Any,
) -> Version:
    """Return a version that is given by functions of a method and images.

    `releases` draws, `distribution` is the law of what is seen, and `sums` that of what noise is added to, if
    that says more.
    """

    def of(law: DistributionOf | None) -> Any:
        return None if law is None else lambda case, images: law(case.method, images)

    draw = None if releases is None else lambda case, *rest: releases(case.method, *rest)
    return Version(
        name=name, law=of(sums or distribution), shown=of(sums and distribution), draw=draw, **more
    )


def one_by_one(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
    """Return `count` releases by the method's own `release`: slow, but exactly the real ones."""
    return np.stack([method.release(image, bits=bits) for _ in range(count)])


def side_by_side(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
    """Return one release of `count` copies side by side, split up.

    For methods that treat pixels alike and independently, and whose noise does not depend on the size.
    """
    height, width, channels = image.shape
    shown = method.release(np.tile(image, (1, count, 1)), bits=bits)
    return np.ascontiguousarray(np.moveaxis(shown.reshape(height, count, width, channels), 1, 0))


def as_channels(owner: Any, name: str) -> ReleasesOf:
    """Return a way to draw many releases of an image at once by a method's `_draw`: as more channels of one.

    What the function `name` of `owner` says to the method meanwhile is what it says of one image. For methods
    that treat channels alike and independently. Raises `NoiseError` if `release` shows something else.
    """

    def drawn(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        height, width, channels = image.shape
        own, size = getattr(owner, name), {"height": height, "width": width, "channels": channels}
        with mock.patch.object(owner, name, lambda method, *_, **__: own(method, **size)):
            shown = method._draw(np.tile(image, (1, 1, count)), bits)
        return np.ascontiguousarray(np.moveaxis(shown.reshape(height, width, count, channels), 2, 0))

    def releases(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        # A method that asks for the noise of another size would get the right one above.
        if (drawn(method, image, 1, SeededBits(1))[0] != method.release(image, bits=SeededBits(1))).any():
            raise NoiseError("release() shows something else than what is audited")
        return drawn(method, image, count, bits)

    return releases


def method_audit(
    method: type[PixelMethod],
    draw: ReleasesOf,
    distribution: DistributionOf,
    mutants: tuple[Version, ...],
    level: Level,
    *,
    sums: DistributionOf | None = None,
    right: DistributionOf | None = None,
    of: Callable[[Level], Any] = lambda level: level.cases,
) -> Audit:
    """Return the audit of a pixel method.

    `draw` returns n releases n × h × w × c of an image by the method itself, or, if pixels do not show them,
    what it drew. `distribution` is their law, `sums` that of what noise is added to, and `right` a law that
    is written from the definition if `distribution` follows the code.
    """
    intact = version(method.name, distribution, draw, sums=sums)
    wanted = None if right is None else version("right", right).law
    gates = engine.law_gates(intact, wanted, of=of)
    refusals = (NoiseError,)
    return Audit(method=method, intact=intact, mutants=mutants, level=level, gates=gates, refusals=refusals)
