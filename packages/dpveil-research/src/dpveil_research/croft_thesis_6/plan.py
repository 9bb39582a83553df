"""The settings of the comparison: people, photos, budgets and sizes of groups."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.mechanisms.ksame import KSameM
from dpveil.mechanisms.latent import PCABasis

SEED: Final = 682
RATIO: Final = Fraction(9, 10)
"""The thesis' ratio of noise to deviation at the time of release."""
PRIVATE: Final = PCABasis.name
SAME: Final = KSameM.name


@dataclass(frozen=True)
class Plan:
    """The extent of a run.

    `people` of LFW at most, with as many women as there are, up to half. Of everybody's `photos` the attacker
    has releases of the first `known`, and names releases of the others. `draws` releases are made of each
    photo by differential privacy; those of k-same are all alike.
    """

    people: int = 100
    photos: int = 10
    known: int = 7
    draws: int = 3
    epsilons: tuple[int, ...] = tuple(range(100, 1001, 100))
    groups: tuple[int, ...] = (2, 3, 4, 5, 10, 20, 50)


PLAN: Final = Plan()


def private(epsilon: int) -> PCABasis:
    """Return the thesis' mechanism with the box that the training codes span."""
    return PCABasis(epsilon=epsilon, ratio=RATIO, clip=0)
