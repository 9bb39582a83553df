"""Adversarial neighbouring images of any size, and all small images with all their neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product, zip_longest
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.errors import InvalidParameter
from dpveil_audit.pixel.laws import Images, Pairs

Pixel = tuple[int, int]
Image = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring images, h × w × c, and a description of what is hard about them.

    `distance` is their distance under a metric guarantee.
    """

    name: str
    first: Image
    second: Image
    distance: float = 1.0

    @property
    def pixels(self) -> int:
        """The number of pixels in which the two differ."""
        return int(np.any(self.first != self.second, axis=2).sum())


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


def adversarial_pairs(
    *, height: int, width: int, channels: int, block: int, neighbourhood: int | None
) -> list[Pair]:
    """Return pairs of images that differ in at most `neighbourhood` pixels (None: all of them).

    Black turns white: within one cell, in the smallest (ragged) cells, spread over cells, in the last column
    and row, in a single pixel, in each channel alone, and everywhere if that is allowed; one pair straddles
    the threshold at which a rounded mean changes. Equal pairs are listed once.

    >>> made = adversarial_pairs(height=3, width=3, channels=1, block=2, neighbourhood=1)
    >>> [pair.name for pair in made]
    ['largest cell', 'smallest cell', 'rounding edge']
    """
    shape = (height, width, channels)
    most = height * width if neighbourhood is None else min(neighbourhood, height * width)
    grid = cells(height, width, block)
    chosen = {name: pixels[:most] for name, pixels in _orders(grid, height, width).items()}
    chosen["single pixel"] = chosen["largest cell"][:1]
    if most == height * width:
        chosen["every pixel"] = [pixel for cell in grid for pixel in cell]
    made = [_switch(name, shape, pixels, range(channels)) for name, pixels in chosen.items()]
    if channels > 1:
        one = chosen["largest cell"]
        made += [_switch(f"channel {k} alone", shape, one, [k]) for k in range(channels)]
    made.append(_rounding_edge(shape, max(grid, key=len), most))
    return _distinct(made)


def uneven_image(size: tuple[int, int, int]) -> Image:
    """Return an image of this height, width and channels whose levels differ from pixel to pixel."""
    levels = (np.arange(size[0] * size[1] * size[2]) * 37 + 11) % 256
    return levels.astype(np.uint8).reshape(size)


def _orders(grid: list[list[Pixel]], height: int, width: int) -> dict[str, list[Pixel]]:
    """Return orders of the pixels, of which a neighbourhood changes the first ones."""
    by_size = sorted(grid, key=len)
    return {
        "largest cell": list(chain.from_iterable(reversed(by_size))),
        "smallest cell": list(chain.from_iterable(by_size)),
        "spread over cells": [p for turn in zip_longest(*grid) for p in turn if p is not None],
        "last column": [(row, width - 1) for row in reversed(range(height))],
        "last row": [(height - 1, column) for column in reversed(range(width))],
    }


def _switch(name: str, shape: tuple[int, int, int], pixels: Sequence[Pixel], channels: Iterable[int]) -> Pair:
    first = np.zeros(shape, np.uint8)
    second = first.copy()
    for row, column in pixels:
        second[row, column, list(channels)] = 255
    return Pair(name, first, second)


def _rounding_edge(shape: tuple[int, int, int], cell: list[Pixel], most: int) -> Pair:
    """Return a pair whose cell mean lies just below half a level before pixels turn white."""
    first = np.zeros(shape, np.uint8)
    changed, rest = cell[:most], cell[most:]
    left = (len(cell) + 1) // 2 - 1
    for row, column in rest:
        first[row, column] = min(left, 255)
        left -= min(left, 255)
    second = first.copy()
    for row, column in changed:
        second[row, column] = 255
    return Pair("rounding edge", first, second)


def _distinct(made: list[Pair]) -> list[Pair]:
    seen = {(pair.first.tobytes(), pair.second.tobytes()): pair for pair in reversed(made)}
    return [pair for pair in made if seen[pair.first.tobytes(), pair.second.tobytes()] is pair]


# All small images over a few levels, and all pairs of neighbours among them

MOST_IMAGES: Final = 10_000
CHUNK: Final = 512


@lru_cache(maxsize=64)
def all_images(height: int, width: int, channels: int, levels: tuple[int, ...]) -> Images:
    """Return every image over these levels. Raises `InvalidParameter` above 10 000 of them."""
    count = len(levels) ** (height * width * channels)
    if count > MOST_IMAGES:
        raise InvalidParameter("levels", levels, f"make {count} images", hint="take a smaller image")
    flat = np.array(list(product(levels, repeat=height * width * channels)), np.uint8)
    return flat.reshape(-1, height, width, channels)


def neighbours(images: Images, m: int | None) -> Pairs:
    """Return all ordered pairs that differ in 1 to m pixels (None: any two), each with all its channels."""
    return _neighbours(images.tobytes(), images.shape, m)


@lru_cache(maxsize=64)
def _neighbours(content: bytes, shape: tuple[int, int, int, int], m: int | None) -> Pairs:
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
