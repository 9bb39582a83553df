"""Audit cases for pixel methods: parameters of a method, the draws of each gate, and known facts about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import show
from dpveil.mechanisms.pixel import PixelMethod
from dpveil_audit.entry import DEEPER
from dpveil_audit.pixel.images import neighbours
from dpveil_audit.pixel.pairs import Pair, adversarial_pairs
from dpveil_audit.pixel.product import Images, Pairs
from dpveil_audit.pixel.version import DistributionOf, Size

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
