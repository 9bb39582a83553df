"""Small images and their neighbours, versions of pixel methods, and settings to audit them in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, product, zip_longest
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Move, NoiseKind, Pairs, ProductLaw
from dpveil_audit.engine import Variant, sampled

Image = UInt8[np.ndarray, "h w c"]
Images = UInt8[np.ndarray, "images h w c"]
Releases = UInt8[np.ndarray, "n h w c"]


@dataclass(frozen=True, eq=False)
class Part:
    """One draw: the `places` (row, column, channel) that show it, and the levels that each outcome `looks`
    like.

    `looks` has a row for each outcome and a level for each place. Outcomes may look the same.
    """

    places: Int64[np.ndarray, "places 3"]
    looks: UInt8[np.ndarray, "outcomes places"]

    @classmethod
    def of_level(cls, places: Sequence[tuple[int, int, int]]) -> Part:
        """Return the part whose outcome 0..255 is the one level that all its places show."""
        return cls(np.array(places, np.int64), np.arange(256, dtype=np.uint8)[:, None].repeat(len(places), 1))

    @cached_property
    def first(self) -> Int64[np.ndarray, " outcomes"]:
        """The first outcome that looks like each outcome."""
        return self._find(self.looks)

    def read(self, releases: Releases) -> Int64[np.ndarray, " n"]:
        """Return the first outcome that looks like each release, and -1 if none does."""
        rows, columns, channels = self.places.T
        return self._find(releases[:, rows, columns, channels])

    def _find(self, shown: UInt8[np.ndarray, "n places"]) -> Int64[np.ndarray, " n"]:
        keys, known = _keys(shown), _keys(self.looks)
        order = np.argsort(known, kind="stable")
        at = np.searchsorted(known[order], keys).clip(max=len(order) - 1)
        found: Int64[np.ndarray, " n"] = order[at]
        return np.where(np.all(self.looks[found] == shown, axis=1), found, -1)


def _keys(rows: UInt8[np.ndarray, "n places"]) -> Any:
    """Return hashes of rows; rows that share one by chance are compared afterwards."""
    # Powers, not multiples, of an odd constant: rows such as 1, 0, 0, 1 and 0, 1, 1, 0 must not share one.
    factors = np.cumprod(np.full(rows.shape[1], 0x9E3779B97F4A7C15, np.uint64))
    return rows.astype(np.uint64) @ factors


Pixel = tuple[int, int]


@dataclass(frozen=True)
class Pair:
    """Two neighbouring images, h × w × c, and a description of what is hard about them."""

    name: str
    first: Image
    second: Image

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


Method = Any
"""A `PixelMethod`; a version reads the fields of its own."""
Size = tuple[int, int, int]
DistributionOf = Callable[[Method, Images], ProductLaw]


class AddedNoise(Protocol):
    """Further facts about methods that add integer noise to exact integers."""

    @property
    def kind(self) -> NoiseKind:
        """The family of the noise."""

    def parameters(self, method: Method, size: Size) -> list[Fraction]:
        """Return the parameter of the noise of every answer of one channel."""

    def moves(self, method: Method, images: Images, pairs: Pairs) -> list[Move]:
        """Return how far neighbours move the answers; dominated moves may be left out."""


@dataclass(frozen=True, kw_only=True)
class Steps(Variant):
    """One way to carry out a method: intact, or a mutant with one wrong step.

    `outcomes(method, image, n, bits)`, if any, returns the outcomes of the draws themselves, n × draws, for
    methods whose pixels do not show them one by one; `added` is for additive noise.
    """

    outcomes: ClassVar[Any] = None
    added: ClassVar[AddedNoise | None] = None

    def releases(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases, n × h × w × c."""
        raise NotImplementedError

    def distribution(self, method: Method, images: Images) -> ProductLaw:
        """Return their exact law, computed without drawing."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Version(Variant):
    """A version that is given by its functions; without `releases` it is drawn from its law.

    `shared` draws all parts of a release from one random number.
    """

    outcomes: ClassVar[Any] = None
    added: ClassVar[AddedNoise | None] = None

    distribution: DistributionOf | None = None
    releases: Any = None
    shared: bool = False

    def __post_init__(self) -> None:
        """Draw from the law."""
        if self.releases is None:
            object.__setattr__(self, "releases", self._sampled)

    def _sampled(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        law = self.distribution(method, image[None])  # type: ignore[misc]
        drawn = sampled(law.chances(0), count, bits, shared=self.shared)
        shown = np.empty((count, *image.shape), np.uint8)
        for part, outcomes in zip(law.parts, drawn.T, strict=True):
            rows, columns, channels = part.places.T
            shown[:, rows, columns, channels] = part.looks[outcomes]
        return shown


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


# Audit cases for pixel methods: parameters of a method, the draws of each gate, and known facts about it

BUDGET: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
LETTERS: Final = {"block": "b", "neighbourhood": "m"}


@dataclass(frozen=True)
class Case:
    """A method on height × width × channels; exact gates enumerate all images over `levels`."""

    height: int
    width: int
    channels: int
    method: PixelMethod
    levels: tuple[int, ...] = (0, 255)

    @property
    def size(self) -> Size:
        """Height, width and channels."""
        return self.height, self.width, self.channels

    @property
    def guarantee(self) -> Guarantee:
        """The method's guarantee in this setting."""
        return self.method.guarantee(height=self.height, width=self.width, channels=self.channels)

    def of(self, method: PixelMethod) -> Case:
        """Return the same setting with another method."""
        return replace(self, method=method)

    def __str__(self) -> str:
        names = [field.name for field in fields(self.method) if field.name not in BUDGET]  # type: ignore[arg-type]
        given = {LETTERS.get(name, name): getattr(self.method, name) for name in names}
        words = ["×".join(map(str, self.size))]
        words += [f"{name} = {value}" for name, value in given.items() if value is not None]
        promise = self.guarantee
        words += ["any image"] if promise.relation.name == "any-image" else []
        spent = {letter: getattr(promise, name) for name, letter in BUDGET.items()}
        return ", ".join(words + [f"{name} = {show(v)}" for name, v in spent.items() if v is not None])


def usual_pairs(case: Case) -> list[Pair]:
    """Return adversarial neighbours under m-pixels or any-image."""
    return adversarial_pairs(
        height=case.height,
        width=case.width,
        channels=case.channels,
        block=getattr(case.method, "block", 1),
        neighbourhood=case.guarantee.relation.m,
    )


def usual_neighbours(case: Case, images: Images) -> Pairs:
    """Return all pairs that are neighbours under m-pixels or any-image."""
    return neighbours(images, case.guarantee.relation.m)


@dataclass(frozen=True, kw_only=True)
class Known:
    """What gates have to know about a method besides its versions.

    `right(method, images)` is the law written independently from the definition. Relations other than
    m-pixels and any-image need their own `pairs` of larger images and `neighbours` to enumerate, and metric
    guarantees `distances(images, pairs)`.
    """

    right: DistributionOf | None = None
    pairs: Callable[[Case], list[Pair]] = usual_pairs
    neighbours: Callable[[Case, Images], Pairs] = usual_neighbours
    distances: Callable[[Images, Pairs], Float64[np.ndarray, " pairs"]] | None = None
