"""The settings of figure 6.7, and the thresholds of its claims, chosen before any curve was seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpveil_research.croft_2022_faces.plan import Extent
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
class Plan(Extent):
    """The extent of a run.

    `shards` of UTKFace train the model, of `length` coordinates. `draws` private releases are made of each.
    """

    sets: tuple[Set, ...] = SETS
    shards: int = 1
    length: int = 100
    draws: int = 2


PLAN: Final = Plan()
