"""The settings of figure 6.7, and the thresholds of its claims, chosen before any curve was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpveil_research.ksame.plan import SETS, Set

SEED: Final = 67
INSIDE, ALONE, GENERATOR = "aam in the photo", "aam alone", "gan"
LOOKS: Final = (INSIDE, ALONE, GENERATOR)
"""What is shown of a release: the model's face in the photo, as the thesis does; the same face on grey, as it
recommends; and the picture of a generator, of the whole head.
"""
KEPT: Final = 1 / 2
"""A method is "ineffective" if at its severest setting more than this share of those are named who are in
photos as they are. Differences above `MARGIN` are "well above" or "great".
"""


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    At most `people` of each set, with `known` photos that the attacker has and one that is protected.
    `shards` of UTKFace train the model, of `length` coordinates. `draws` private releases are made of each.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 1
    length: int = 100
    people: int = 60
    known: int = 4
    draws: int = 2
    epsilons: tuple[int, ...] = (100, 200, 300, 1000, 10000)
    groups: tuple[int, ...] = (2, 3, 5, 10, 20)


PLAN: Final = Plan()
