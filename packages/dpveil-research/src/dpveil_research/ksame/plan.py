"""What is compared: data sets, methods, their parameters, and how much of everything."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.core.region import Box
from dpveil.mechanisms.latent import BoxLaplace, CroftMetric
from dpveil_research.data import Dataset

SEED: Final = 2022
TRAINED: Final = "utkface_128"
PAPER: Final = CroftMetric.name
PRIVATE: Final[dict[str, type[CroftMetric] | type[BoxLaplace]]] = {
    kind.name: kind for kind in (CroftMetric, BoxLaplace)
}


@dataclass(frozen=True)
class Set:
    """A data set of faces of known people: `box` is where the face lies on every photo, forehead to chin."""

    name: str
    dataset: Dataset
    box: Box


SETS: Final = (
    Set("LFW", Dataset("lfw10_128", ".jpg", "RGB"), Box(19, 19, 90, 90)),
    Set("AT&T", Dataset("att_faces", ".pgm", "L"), Box(6, 16, 80, 80)),
)


@dataclass(frozen=True)
class Plan:
    """How much is run. Of everybody's `photos` the first is protected, and the attacker holds the others; no
    more than `people` of a set are taken.

    `shards` of UTKFace train a codec of `length` coordinates. `draws` releases of every face are attacked by
    likelihood, `splits` ways to divide the people between two galleries are tried. `learned` are the budgets
    of the paper's mechanism at which attackers learn from releases of `parrots` photos of everybody, or see
    two. `subtracted` are the groups whose known faces are subtracted, `narrowed` is one whose known people
    are struck off, against mechanisms with the budgets `struck`.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 3
    length: int = 100
    people: int = 100
    photos: int = 6
    parrots: int = 2
    epsilons: tuple[str, ...] = ("10", "20", "30", "50", "100", "200", "300", "500", "1000", "3000")
    seen: tuple[str, ...] = ("30", "100", "300", "1000", "3000", "10000", "30000")
    learned: tuple[str, ...] = ("100", "300", "1000", "3000", "10000")
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)
    subtracted: tuple[int, ...] = (2, 3, 5, 10)
    narrowed: int = 5
    struck: tuple[str, ...] = ("10", "30", "100", "300")
    draws: int = 20
    splits: int = 3


PLAN: Final = Plan()


def private(name: str, epsilon: str) -> CroftMetric | BoxLaplace:
    """Return a mechanism with the box that training codes span, as published."""
    return PRIVATE[name](epsilon=Fraction(epsilon), clip=0)
