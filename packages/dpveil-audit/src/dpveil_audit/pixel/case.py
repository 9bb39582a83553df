"""Exact laws of releases that consist of independent finite draws, and their privacy loss.

A release with independent draws has the product of their laws, so its largest log-ratio over all outputs is
the sum of the draws' largest, and so are its Rényi divergences. Probabilities may be floats, or exact:
integers (weights) or rationals in an array of objects, whose logarithms have 50 digits.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import chain, product, zip_longest
from typing import Any, Final, Protocol

import numpy as np
from jaxtyping import Float64, Int64, UInt8

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil_audit.distributions import Distribution, finite_distribution
from dpveil_audit.divergence import Move, NoiseKind
from dpveil_audit.engine import DEEPER, Variant, uniforms

Image = UInt8[np.ndarray, "h w c"]
Images = UInt8[np.ndarray, "images h w c"]
Pairs = Int64[np.ndarray, "pairs 2"]
Releases = UInt8[np.ndarray, "n h w c"]
Masses = Any
"""Probabilities, laws × outcomes: float64, or integers (weights) or Fractions in an array of objects."""
DrawLaw = tuple[Float64[np.ndarray, " outcomes"], Distribution]

WORK: Final = Context(prec=50)
EXACT: Final = 1e-40
"""A bound on the error of 50-digit logarithms."""


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


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """Releases with independent draws: draw j of image i has the law `masses[j][index[i, j]]`.

    `parts` say where the draws are shown; empty if a version reads its outcomes in its own way.
    """

    index: Int64[np.ndarray, "images parts"]
    masses: list[Masses]
    parts: tuple[Part, ...] = ()

    @cached_property
    def floats(self) -> list[Float64[np.ndarray, "distinct outcomes"]]:
        """The probabilities as floats."""
        return [(m / m.sum(axis=1, keepdims=True)).astype(np.float64) for m in self.masses]

    @cached_property
    def draw_laws(self) -> list[DrawLaw]:
        """The probabilities of every draw of the first image, and the same as a distribution of outcomes."""
        return [_draw_law(chances[row]) for chances, row in zip(self.floats, self.index[0], strict=True)]

    @cached_property
    def visible_laws(self) -> list[DrawLaw]:
        """The same, with outcomes that look alike merged into the first of them."""
        pairs = zip(self.parts, self.draw_laws, strict=True)
        return [_draw_law(np.bincount(part.first, mass, len(mass))) for part, (mass, _) in pairs]

    @property
    def exact(self) -> bool:
        """Whether all probabilities are integers or rationals."""
        return all(masses.dtype == object for masses in self.masses)

    def losses(self, pairs: Pairs) -> Any:
        """Return the largest log-ratio over all outputs for every pair; infinite if the supports differ."""
        total: Any = np.zeros(len(pairs), object if self.exact else np.float64)
        with localcontext(WORK):
            for masses, rows in zip(self.masses if self.exact else self.floats, self.index.T, strict=True):
                total = total + _worst(masses)[rows[pairs[:, 0]], rows[pairs[:, 1]]]
        return total

    def largest_loss(self, pairs: Pairs) -> Any:
        """Return the largest log-ratio over all outputs and pairs."""
        return self.losses(pairs).max()

    def between(self, pairs: Pairs) -> list[list[tuple[Masses, Masses]]]:
        """Return the laws of the draws that differ under both inputs; once for equal pairs."""
        first, second = self.index[pairs[:, 0]], self.index[pairs[:, 1]]
        differ = first != second
        rows = np.unique(np.where(differ, [first, second], -1).transpose(1, 0, 2), axis=0)
        return [[(m[a], m[b]) for m, a, b in zip(self.masses, *row, strict=True) if a >= 0] for row in rows]

    def distance(self, other: ProductLaw) -> float:
        """Return the largest difference of a probability between two laws of the same images, at most 1.

        Laws with different numbers of draws, or with outcomes that look different, have distance 1.
        """
        if len(self.masses) != len(other.masses):
            return 1.0
        gaps = [
            np.abs(a[self.index[:, part]] - b[other.index[:, part]]).max()
            if a.shape[1] == b.shape[1]
            else 1.0
            for part, (a, b) in enumerate(zip(self.floats, other.floats, strict=True))
        ]
        alike = all(np.array_equal(p.looks, q.looks) for p, q in zip(self.parts, other.parts, strict=False))
        return float(max(gaps)) if alike else 1.0


def _draw_law(mass: Float64[np.ndarray, " outcomes"]) -> DrawLaw:
    return mass, finite_distribution(mass)


def _worst(masses: Masses) -> Any:
    """Return the largest log-ratio of every row to every other."""
    if masses.dtype == object:
        return _worst_exact(masses)
    table = np.empty((len(masses), len(masses)))
    with np.errstate(divide="ignore"):
        logs = np.log(masses)
        for row, mass in enumerate(masses):
            seen = mass > 0
            table[row] = np.max(logs[row, seen] - logs[:, seen], axis=1)
    return table


def _worst_exact(masses: Masses) -> Any:
    """Return the same in decimals; weights are divided by the sum of their row."""
    rows = [[Fraction(m, sum(row)) for m in row] for row in masses.tolist()]
    table = np.empty((len(rows), len(rows)), object)
    for i, first in enumerate(rows):
        for j, second in enumerate(rows):
            ratios = [p / q if q else None for p, q in zip(first, second, strict=True) if p]
            table[i, j] = Decimal("inf") if None in ratios else _log(max(r for r in ratios if r))
    return table


def _log(ratio: Fraction) -> Decimal:
    return WORK.subtract(WORK.ln(Decimal(ratio.numerator)), WORK.ln(Decimal(ratio.denominator)))


def product_law(parts: Sequence[Part], rows: Sequence[Masses]) -> ProductLaw:
    """Return the product law in which draw j of image i has probabilities `rows[j][i]`; equal ones are stored
    once.

    `rows[j]` is images × outcomes, float64 or an array of objects (integers or Fractions).
    """
    index, masses = [], []
    for chances in rows:
        seen: dict[object, int] = {}
        keys = [tuple(row) if chances.dtype == object else row.tobytes() for row in chances]
        index.append([seen.setdefault(key, len(seen)) for key in keys])
        masses.append(chances[[keys.index(key) for key in seen]])
    return ProductLaw(np.array(index, np.int64).T, masses, tuple(parts))


Pixel = tuple[int, int]


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


Method = Any
"""A `PixelMethod`; a version reads the fields of its own."""
Size = tuple[int, int, int]
Drawer = Callable[[Image, int, BitSource], Releases]
"""A function that returns many independent releases of one image."""
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
class Version(Variant):
    """One way to carry out a method: intact, or a mutant made from it by `dataclasses.replace`.

    `releases(method, image, n, bits)` returns n independent releases, n × h × w × c. `distribution(method,
    images)` is their exact law, computed without drawing, if they consist of independent finite draws.
    `outcomes(method, image, n, bits)` returns the outcomes themselves, n × draws, for methods whose pixels do
    not show them one by one. `noise` is for additive noise. `key(method, size)`, if any, is equal for two
    versions that behave identically there: a mutant is skipped where it is not wrong.
    """

    releases: Callable[[Method, Image, int, BitSource], Releases]
    distribution: DistributionOf | None = None
    outcomes: Callable[[Method, Image, int, BitSource], Int64[np.ndarray, "n parts"]] | None = None
    noise: AddedNoise | None = None
    key: Callable[[Method, Size], object] | None = None

    def drawer(self, method: Method) -> Drawer:
        """Return `releases` for one setting of the method."""
        return lambda image, count, bits: self.releases(method, image, count, bits)

    def unlike(self, intact: Version, method: Method, size: Size) -> bool:
        """Return whether this version may behave differently from `intact` there."""
        if self.key is None or intact.key is None:
            return True
        return bool(self.key(method, size) != intact.key(method, size))


@dataclass(frozen=True, kw_only=True)
class Steps:
    """A method divided into steps, one field each, from which its versions are made."""

    name: str
    gates: tuple[str, ...] = ()

    @abstractmethod
    def releases(self, method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        """Return `count` independent releases."""

    @abstractmethod
    def distribution(self, method: Method, images: Images) -> ProductLaw:
        """Return the law of the draws."""

    def version(self) -> Version:
        """Return these steps as a version, with their `outcomes` and `key` if they have any."""
        return Version(
            name=self.name,
            gates=self.gates,
            releases=self.releases,
            distribution=self.distribution,
            outcomes=getattr(self, "outcomes", None),
            key=getattr(self, "key", None),
        )


def made_once(distribution_of: DistributionOf) -> DistributionOf:
    """Return a function that computes the law for the same images only once."""
    kept: dict[object, ProductLaw] = {}

    def find(method: Method, images: Images) -> ProductLaw:
        key = method, images.shape, images.tobytes()
        if key not in kept:
            kept[key] = distribution_of(method, images)
        return kept[key]

    return find


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


def from_distribution(
    distribution: DistributionOf, *, shared: bool = False
) -> Callable[[Method, Image, int, BitSource], Releases]:
    """Return draws from a law, for versions that no sampler carries out.

    `shared` uses one random number for all parts of a release.
    """

    def releases(method: Method, image: Image, count: int, bits: BitSource) -> Releases:
        made = distribution(method, image[None])
        numbers = uniforms(bits, count * (1 if shared else len(made.parts)))
        uniform = np.broadcast_to(numbers.reshape(-1, count), (len(made.parts), count))
        shown = np.empty((count, *image.shape), np.uint8)
        for part, masses, row, number in zip(made.parts, made.floats, made.index[0], uniform, strict=True):
            drawn = np.searchsorted(np.cumsum(masses[row][:-1]), number, side="right")
            rows, columns, channels = part.places.T
            shown[:, rows, columns, channels] = part.looks[drawn]
        return shown

    return releases


def wrong(
    name: str, distribution: DistributionOf, *, shared: bool = False, gates: tuple[str, ...] = (), **more: Any
) -> Version:
    """Return a mutant that is drawn from its law; `shared` as for `from_distribution`."""
    drawn = from_distribution(distribution, shared=shared)
    return Version(name=name, gates=gates, releases=drawn, distribution=distribution, **more)


# Audit cases for pixel methods: parameters of a method, the draws of each gate, and known facts about it

BUDGET: Final = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
LETTERS: Final = {"block": "b", "neighbourhood": "m"}
OWN_DRAWS: Final = 10_000


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


@dataclass(frozen=True)
class Drawn:
    """A setting for a gate that draws; `chance` is the probability of the most telling event."""

    case: Case
    draws: int
    chance: float = 0.5


@dataclass(frozen=True)
class Level:
    """The settings of one level of an audit.

    `distinguish` are settings without a guarantee, in which neighbours must be distinguishable.
    """

    exact: tuple[Case, ...] = ()
    fit: tuple[Drawn, ...] = ()
    bound: tuple[Drawn, ...] = ()
    distinguish: tuple[Drawn, ...] = ()

    @property
    def cases(self) -> tuple[Case, ...]:
        """Every setting, once."""
        drawn = self.fit + self.bound + self.distinguish
        return tuple(dict.fromkeys([*self.exact, *(setting.case for setting in drawn)]))

    def more(self, exact: tuple[Case, ...]) -> Level:
        """Return this level with more small images, and `DEEPER` times the draws."""
        fit, bound, apart = (
            tuple(replace(d, draws=DEEPER * d.draws) for d in drawn)
            for drawn in (self.fit, self.bound, self.distinguish)
        )
        return Level(self.exact + exact, fit, bound, apart)

    def of(self, method: PixelMethod) -> Level:
        """Return the same sizes with a user's own method, and one size that its blocks do not divide."""
        ragged = min(getattr(method, "block", 1) + 1, 33)
        own = (Drawn(Case(ragged, ragged + 1, 1, method), OWN_DRAWS),) if ragged > 2 else ()

        def drawn(settings: tuple[Drawn, ...]) -> tuple[Drawn, ...]:
            return tuple(dict.fromkeys(replace(s, case=s.case.of(method)) for s in settings))

        exact = tuple(dict.fromkeys(case.of(method) for case in self.exact))
        level = Level(exact, drawn(self.fit), drawn(self.bound) + own, drawn(self.distinguish))
        formal = all(case.guarantee.formal for case in level.cases)
        return replace(level, distinguish=()) if formal else Level(distinguish=level.distinguish)


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
    m-pixels and any-image need their own `pairs` to draw and `neighbours` to enumerate, and metric guarantees
    `distances(images, pairs)`.
    """

    right: DistributionOf | None = None
    pairs: Callable[[Case], list[Pair]] = usual_pairs
    neighbours: Callable[[Case, Images], Pairs] = usual_neighbours
    distances: Callable[[Images, Pairs], Float64[np.ndarray, " pairs"]] | None = None
