"""Audit cases of Private Evolution: a few people with a few photos, who vote for points on a line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np

from dpveil.noise.bits import BitSource
from dpveil.synthesis.evolution import evolve
from dpveil.synthesis.plan import Plan
from dpveil.synthesis.votes import Votes, tally
from dpveil_audit.entry import Drawn, Level, Variant

CODEC: Final = f"pca 100 sha256:{64 * '0'}"
"""Names a codec that no release needs: the line below takes its place."""
STEP: Final = 10

Choices = tuple[int, ...]
"""The candidates that the photos of one person choose."""
People = tuple[Choices, ...]


class Line:
    """A simulator of points on a line, the same in each round, so that votes are known."""

    def draw(self, count: int, bits: BitSource) -> np.ndarray:
        """Return the points, which are their own pictures."""
        return np.arange(count, dtype=np.float64)[:, None]

    def vary(self, codes: np.ndarray, angle: float, bits: BitSource) -> np.ndarray:
        """Return as many points from the start of the line."""
        return self.draw(len(codes), bits)

    def pictures(self, codes: np.ndarray) -> np.ndarray:
        """Return the points."""
        return codes

    def embedded(self, pictures: np.ndarray) -> np.ndarray:
        """Return the points as whole numbers."""
        return (STEP * pictures).astype(np.int16)


@dataclass(frozen=True)
class VoteCase:
    """Settings, and how many photos of one person are looked at."""

    epsilon: str
    delta: str
    rounds: int
    candidates: int
    photos: int

    def __str__(self) -> str:
        return (
            f"ε = {self.epsilon}, δ = {self.delta}, {self.rounds} rounds, {self.candidates} candidates,"
            f" up to {self.photos} photos"
        )

    @cached_property
    def plan(self) -> Plan:
        """The plan of two people."""
        return Plan(
            epsilon=self.epsilon,
            delta=self.delta,
            people=2,
            pictures=1,
            rounds=self.rounds,
            candidates=self.candidates,
            codec=CODEC,
        )

    @property
    def persons(self) -> list[Choices]:
        """Every person: all choices of up to so many photos, and nobody's."""
        places = range(self.candidates)
        return [
            own for count in range(self.photos + 1) for own in combinations_with_replacement(places, count)
        ]


def numbered(people: People) -> tuple[np.ndarray, np.ndarray]:
    """Return the choices of all photos, and the numbers of their people."""
    pairs = [(choice, number) for number, own in enumerate(people) for choice in own]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


Tally = Callable[[np.ndarray, np.ndarray, int], Votes]
Variances = Callable[[Plan], tuple[int, ...]]
Released = Callable[["VoteVersion", VoteCase, People, BitSource], list[Votes]]


def own_variances(plan: Plan) -> tuple[int, ...]:
    """Return the variance parameter of every round."""
    return (plan.variance,) * plan.rounds


def own_release(version: VoteVersion, case: VoteCase, people: People, bits: BitSource) -> list[Votes]:
    """Return the noisy votes of all rounds, as the product releases them."""
    choices, numbers = numbered(people)
    line: Any = Line()
    points = (STEP * choices[:, None]).astype(np.int16)
    return list(evolve(case.plan, line, points, numbers, bits).votes)


@dataclass(frozen=True, kw_only=True)
class VoteVersion(Variant):
    """One version: how ballots are counted, the noise of each round, and what is released."""

    tally: Tally = tally
    variances: Variances = own_variances
    release: Released = own_release


INTACT: Final = VoteVersion(name="intact")
VoteDrawn = Drawn[VoteCase, People]
VoteLevel = Level[VoteCase, People]


def neighbours(case: VoteCase) -> Iterator[tuple[People, People]]:
    """Yield all pairs of sets of two people, of whom one is replaced; the other has no photo or all kinds."""
    others = ((), tuple(range(case.candidates)))
    for other in others:
        for place, one in enumerate(case.persons):
            for two in case.persons[:place]:
                yield (one, other), (two, other)
