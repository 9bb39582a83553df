"""The audit of synthetic data sets: from the photos of people to every noisy vote that is kept."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, Final

import numpy as np

from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.gaussian import discrete_gaussian
from dpveil.synthesis import face_variations, plan
from dpveil.synthesis.face_variations import UNIT, Votes
from dpveil.synthesis.plan import SetPlan, evolve
from dpveil_audit.divergence import delta_of_zcdp
from dpveil_audit.engine import (
    Audit,
    Finding,
    Gate,
    Level,
    Version,
    count_finding,
    planted,
)

CODEC: Final = f"pca 100 sha256:{64 * '0'}"
"""Names a codec that no release needs: the line below takes its place."""
STEP: Final = 10

RunSettings = tuple[int, ...]
"""The candidates that the photos of one person choose."""
People = tuple[RunSettings, ...]


class Line:
    """A simulator of points on a line, the same in each round, so that votes are known."""

    def draw(self, count: int, bits: BitSource) -> np.ndarray:
        return np.arange(count, dtype=np.float64)[:, None]

    def vary(self, codes: np.ndarray, angle: float, bits: BitSource) -> np.ndarray:
        return self.draw(len(codes), bits)

    def pictures(self, codes: np.ndarray) -> np.ndarray:
        return codes

    def embed_all(self, pictures: np.ndarray) -> np.ndarray:
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
    def plan(self) -> SetPlan:
        return SetPlan(
            epsilon=self.epsilon,
            delta=self.delta,
            people=2,
            pictures=1,
            rounds=self.rounds,
            candidates=self.candidates,
            codec=CODEC,
        )

    @property
    def persons(self) -> list[RunSettings]:
        places = range(self.candidates)
        return [
            own for count in range(self.photos + 1) for own in combinations_with_replacement(places, count)
        ]


def numbered_choices(people: People) -> tuple[np.ndarray, np.ndarray]:
    """Return the choices of all photos, and the numbers of their people."""
    pairs = [(choice, number) for number, own in enumerate(people) for choice in own]
    table = np.array(pairs, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def released(case: VoteCase, people: People, bits: BitSource) -> list[Votes]:
    choices, numbers = numbered_choices(people)
    line: Any = Line()
    points = (STEP * choices[:, None]).astype(np.int16)
    return list(evolve(case.plan, line, points, numbers, bits).votes)


def neighbours(case: VoteCase) -> Iterator[tuple[People, People]]:
    """Yield all pairs of sets of two people, of whom one is replaced; the other has no photo or all kinds."""
    others = ((), tuple(range(case.candidates)))
    for other in others:
        for place, one in enumerate(case.persons):
            for two in case.persons[:place]:
                yield (one, other), (two, other)


# The gates of synthetic data sets: what is released, what neighbours change, and the noise itself

ROUNDED: Final = 1e-6  # relative error of δ by that grid, at most


def same_gate(version: Version, case: VoteCase) -> Iterator[Finding]:
    """Yield how many sets release other votes than their ballots and noise, under the same bits."""
    unlike, sets = 0, [(own, other) for own in case.persons for other in case.persons[:: case.photos]]
    for number, people in enumerate(sets):
        shown = released(case, people, SeededBits(number, "same"))
        due = in_turn(case, people, SeededBits(number, "same"))
        unlike += len(shown) != len(due) or not np.array_equal(shown, due)
    what = f"releases unlike their ballots and noise, {len(sets)} sets"
    yield count_finding("same", what, case, unlike, "sets")


def in_turn(case: VoteCase, people: People, bits: BitSource) -> list[Votes]:
    """Return noisy votes by definition; between rounds, one word places candidates."""
    true, votes = true_votes(case, people), list[Votes]()
    for _ in range(case.rounds):
        if votes:
            bits.words(1)
        votes.append(true + discrete_gaussian(Fraction(case.plan.variance), len(true), bits))
    return votes


def exact_gate(version: Version, case: VoteCase) -> Iterator[Finding]:
    """Yield the δ that all rounds have at the stated ε, by brute force over all neighbours."""
    made, (furthest, pairs) = case.plan, max_change(case)
    stated = float(made.guarantee.epsilon or 0), float(made.guarantee.delta or 0)
    worse = stated[0] > float(made.epsilon) or stated[1] > float(made.delta)
    yield Finding(
        "exact", "stated beyond what was asked", str(case), float(worse), 0, not worse, "guarantees"
    )
    delta = delta_of_zcdp(case.rounds * furthest / (2 * made.variance), stated[0])
    what = f"δ of all rounds at the stated ε, {pairs:,} pairs of neighbours"
    yield Finding("exact", what, str(case), delta, stated[1], delta <= stated[1] * (1 + ROUNDED), "δ")


def max_change(case: VoteCase) -> tuple[int, int]:
    """Return the largest squared L2 change of the votes between neighbours, and how many were compared."""
    furthest = pairs = 0
    known: dict[People, np.ndarray] = {}

    def votes(people: People) -> np.ndarray:
        if people not in known:
            known[people] = face_variations.tally(*numbered_choices(people), case.candidates)
        return known[people]

    for one, two in neighbours(case):
        furthest = max(furthest, int(((votes(one) - votes(two)) ** 2).sum()))
        pairs += 1
    return furthest, pairs


def true_votes(case: VoteCase, people: People) -> np.ndarray:
    """Return the true votes by their definition, in floating point for single numbers."""
    total = np.zeros(case.candidates, np.int64)
    for own in people:
        counts = [own.count(place) for place in range(case.candidates)]
        length = math.sqrt(sum(count**2 for count in counts))
        total += np.array([math.floor(UNIT * count / length + 1e-9) if count else 0 for count in counts])
    return total


# Faults in dpveil: what becomes of a function


def _unbounded_votes(own: Any) -> Any:
    return lambda choices, candidates: UNIT * np.bincount(choices, minlength=candidates).astype(np.int64)


def _divided(by: Callable[[SetPlan], int]) -> Any:
    return lambda own: property(lambda plan: own.func(plan) // by(plan))


def _known_noise(own: Any) -> Any:
    """Give all rounds the same noise."""
    return lambda votes, variance, bits: own(votes, variance, SeededBits(0, "the same"))


MUTANTS: Final = (
    planted("votes without a bound per person", face_variations, "ballot", _unbounded_votes, "exact"),
    planted(
        "noise of one round in each of several",
        SetPlan,
        "variance",
        _divided(lambda one: one.rounds),
        "exact",
    ),
    planted(
        "a replaced person counted as an added one", SetPlan, "variance", _divided(lambda one: 2), "exact"
    ),
    planted("the same noise in all rounds", plan, "noisy", _known_noise, "same"),
)


LEVEL: Final = Level(
    (VoteCase("1", "1e-6", 3, 3, 3), VoteCase("4", "1e-5", 2, 4, 2), VoteCase("0.5", "1e-9", 2, 2, 4))
)
AUDITS: Final = {
    "private-evolution": Audit(
        intact=Version(name="intact"),
        mutants=MUTANTS,
        level=LEVEL,
        gates=(Gate("same", same_gate), Gate("exact", exact_gate)),
    )
}
