"""The settings of the comparison: data sets, methods, parameters, and sample sizes."""

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
"""The paper's private mechanism."""
PRIVATE: Final[dict[str, type[CroftMetric] | type[BoxLaplace]]] = {
    kind.name: kind for kind in (CroftMetric, BoxLaplace)
}
"""The private mechanisms that are compared."""


@dataclass(frozen=True)
class Set:
    """A data set of faces of known people; `box` is the position of the face, forehead to chin, on every
    photo.
    """

    name: str
    dataset: Dataset
    box: Box


SETS: Final = (
    Set("LFW", Dataset("lfw10_128", ".jpg", "RGB"), Box(19, 19, 90, 90)),
    Set("AT&T", Dataset("att_faces", ".pgm", "L"), Box(6, 16, 80, 80)),
)


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    Of everybody's `photos` the first is protected, and the attacker holds the others; at most `people` of a
    set are used. `shards` of UTKFace train a codec of `length` coordinates. `draws` releases of every face
    are attacked by likelihood; `splits` divisions of the people into two galleries are tried. `seen` are
    further budgets at which embeddings are compared. `learned` are the budgets of the paper's mechanism at
    which attackers learn from releases of `parrots` photos of everybody, or see two. `subtracted` are sizes
    of groups whose known faces are subtracted; `narrowed` is the size of those whose known people are
    excluded, against mechanisms with the budgets `struck`.
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
    """Return a mechanism with the box that the training codes span, as published."""
    return PRIVATE[name](epsilon=Fraction(epsilon), clip=0)
