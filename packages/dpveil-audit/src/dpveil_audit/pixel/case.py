"""Versions of a method, intact or mutated, and the settings in which the gates meet them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import show
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil_audit.divergence import Move, NoiseKind
from dpveil_audit.engine import DEEPER, Variant, uniforms
from dpveil_audit.pixel.images import Pair, adversarial_pairs, neighbours
from dpveil_audit.pixel.laws import Image, Images, Pairs, ProductLaw, Releases

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

    def found(method: Method, images: Images) -> ProductLaw:
        key = method, images.shape, images.tobytes()
        if key not in kept:
            kept[key] = distribution_of(method, images)
        return kept[key]

    return found


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
