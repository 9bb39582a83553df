"""The settings of figures 5, 7, 10 and 11, and the thresholds of their claims, chosen before any curve was
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dpveil.mechanisms.ksame import KSameM
from dpveil.mechanisms.latent import CroftMetric

SEED: Final = 2022
PRIVATE: Final = CroftMetric.name
SAME: Final = KSameM.name
BASIC: Final = "basic"
TOLD: Final = "gender told"
MODELS: Final = (BASIC, TOLD)
"""The paper's two generators: without an input for gender, and with one, which stays public."""
MARGIN: Final = 0.05
"""Differences up to 5 points are "minor" or "marginal", and larger ones "large": three of 60 people, the
least that one photo of everybody can tell from chance.
"""
REVERSAL: Final = 300
"""The ε at which the paper sees parrots fall behind (§6.4), and below which gaps are marginal (§6.5)."""


@dataclass(frozen=True)
class Extent:
    """What the runs have in common that release one photo of everybody.

    At most `people` of a set, of whom the attacker has `known` photos and one is protected, at these
    `epsilons`, and in `groups` of these sizes.
    """

    people: int = 60
    known: int = 4
    epsilons: tuple[int, ...] = (100, 200, 300, 1000, 10000)
    groups: tuple[int, ...] = (2, 3, 5, 10, 20)


@dataclass(frozen=True)
class Plan(Extent):
    """The extent of a run.

    Of everybody's photos the attacker has the first `known`; the next one is protected. Of it are made
    `pairs` pairs of releases. In `splits` divisions, two galleries share two fifths of the people.
    """

    pairs: int = 1
    splits: int = 3


PLAN: Final = Plan()
