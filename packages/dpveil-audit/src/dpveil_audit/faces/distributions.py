"""The probability of every face, from the integer weights in use and from the definition."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import permutations, product
from typing import Any, Final

from dpveil.faces.attribute_model import VALUES
from dpveil.mechanisms.choice.rank_choice import RankChoice
from dpveil_audit.faces.case import Chances, FacesCase, Row

WHOLE: Final = 1 << 64
ORDERED: Final = ("age", "pose", "tone")
"""Attributes with ordered values."""
WORN: Final = (1, 2, 3, 4)
"""The styles of spectacles, all with the same chance."""
HALVINGS: Final = 60
Joint = dict[Row, Fraction]
"""The probability of every combination of answers."""


def order_of(distances: Row) -> list[int]:
    """Return faces from the nearest to the farthest, ties by index."""
    return sorted(range(len(distances)), key=lambda face: (distances[face], face))


def by_rank(chances: Sequence[Fraction], distances: Row) -> Chances:
    """Return the probability of every face, given that of every rank."""
    order = order_of(distances)
    return tuple(chances[order.index(face)] for face in range(len(distances)))


def shares(weights: Sequence[float]) -> tuple[Fraction, ...]:
    """Return weights divided by their sum."""
    exact = [Fraction(weight) for weight in weights]
    return tuple(weight / sum(exact) for weight in exact)


def own_ranks(case: FacesCase) -> tuple[Fraction, ...]:
    """Return the probability of every rank by the integer weights."""
    own: Any = case.method
    count = len(case.gallery)
    return RankChoice(count=count, epsilon=own.epsilon, law=str(own.law), near=own.near).probabilities


def own_choice(case: FacesCase, row: Row) -> Chances:
    """Return the law of the choice by rank, by the integer weights in use."""
    return by_rank(own_ranks(case), row)


def written_choice(case: FacesCase, row: Row) -> Chances:
    """Return the law of the choice by rank, by definition."""
    own: Any = case.method
    return by_rank(_ranks(str(own.law), len(case.gallery), float(own.epsilon), own.near), row)


@lru_cache(maxsize=64)
def _ranks(distribution: str, count: int, epsilon: float, near: int | None) -> tuple[Fraction, ...]:
    if distribution == "two-level":
        tried = range(1, count) if near is None else (near,)
        levels = [shares([math.exp(epsilon)] * t + [1.0] * (count - t)) for t in tried]
        return min(levels, key=lambda chances: sum(rank * chance for rank, chance in enumerate(chances)))
    if distribution == "exponential":
        return shares([math.exp(-epsilon * rank / (count - 1)) for rank in range(count)])
    low, high = 0.0, epsilon
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        chances = flips(count, middle)
        low, high = (middle, high) if math.log(chances[0] / chances[-1]) <= epsilon else (low, middle)
    return shares(flips(count, low))


@lru_cache(maxsize=256)
def flips(count: int, rate: float) -> tuple[float, ...]:
    """Return the probabilities of permute-and-flip over ranks, over all permutations."""
    taken = [math.exp(-rate * rank / (count - 1)) for rank in range(count)]
    found = [0.0] * count
    for order in permutations(range(count)):
        left = 1.0
        for rank in order:
            found[rank] += left * taken[rank]
            left *= 1 - taken[rank]
    return tuple(chance / math.factorial(count) for chance in found)


def own_answers(case: FacesCase, row: Row) -> Chances:
    """Return the law of the face, by the integers of the method's own randomised responses."""
    own: Any = case.method
    rows = [response.matrix.weights for response in own.responses.values()]
    table = {answer: tuple(numbers.tolist()) for answer, numbers in own.table.items()}
    parts = [
        [Fraction(weight, WHOLE) for weight in whole[true]] for whole, true in zip(rows, row, strict=False)
    ]
    return spread(
        case,
        independent_draws(parts),
        lambda answer: case.seen(table[answer], [style + 1 for style in own.styles(answer)]),
    )


def written_answers(case: FacesCase, row: Row) -> Chances:
    """Return the law of the face for randomised responses, by definition."""
    return spread(case, independent_draws(responses(case, row)), lambda answer: shown_for(case, answer))


def responses(case: FacesCase, row: Row) -> list[tuple[Fraction, ...]]:
    """Return the law of each attribute's answer."""
    own: Any = case.method
    return [
        kept_with(math.exp(float(budget)), len(VALUES[name]), true)
        for (name, budget), true in zip(own.costs, row, strict=False)
    ]


def kept_with(odds: float, count: int, true: int) -> tuple[Fraction, ...]:
    """Return the law of an answer whose true value is `odds` times as likely as any other."""
    return shares([odds if value == true else 1.0 for value in range(count)])


def independent_draws(parts: Sequence[Sequence[Fraction]]) -> Joint:
    """Return the law of combinations whose parts are drawn independently."""
    return {
        answer: math.prod((part[value] for part, value in zip(parts, answer, strict=True)), start=Fraction(1))
        for answer in product(*(range(len(part)) for part in parts))
    }


def single_draw(parts: Sequence[Sequence[Fraction]]) -> Joint:
    """Return the law of combinations whose parts all come from one uniform number."""
    ends = [[sum(part[: value + 1], Fraction(0)) for value in range(len(part))] for part in parts]
    found: Joint = {answer: Fraction(0) for answer in independent_draws(parts)}
    last = Fraction(0)
    for cut in sorted({end for own in ends for end in own}):
        answer = tuple(sum(end <= last for end in own) for own in ends)
        found[answer] += cut - last
        last = cut
    return found


def spread(case: FacesCase, joint: Joint, faces: Callable[[Row], tuple[int, ...]]) -> Chances:
    """Return the probability of every outcome: a combination shows one of its own uniformly."""
    found = [Fraction(0)] * case.outcomes
    for answer, chance in joint.items():
        shown = faces(answer)
        for face in shown:
            found[face] += chance / len(shown)
    return tuple(found)


def shown_for(case: FacesCase, answer: Row) -> tuple[int, ...]:
    """Return what may be seen for a combination of answers: its faces, and with glasses in every style."""
    return case.seen(faces_for(case, answer), styles_for(case, answer))


def styles_for(case: FacesCase, answer: Row) -> tuple[int, ...]:
    """Return the styles of spectacles for a combination of answers, from 1; 0 is none."""
    own: Any = case.method
    kept = [name for name, _ in own.costs]
    return WORN if "glasses" in kept and answer[kept.index("glasses")] == 1 else (0,)


@lru_cache(maxsize=1024)
def faces_for(case: FacesCase, answer: Row) -> tuple[int, ...]:
    """Return the faces nearest to a combination of answers, the attribute with the largest ε first.

    Whether a face has glasses does not count: they are drawn over it.
    """
    own: Any = case.method
    counted = [place for place, (name, _) in enumerate(own.costs) if name != "glasses"]
    dearest = sorted(counted, key=lambda place: -own.costs[place][1])

    def away(face: int) -> list[int]:
        return [_away(case, face, place, answer[place]) for place in dearest]

    every = [away(face) for face in range(len(case.gallery))]
    return tuple(face for face, found in enumerate(every) if found == min(every))


def _away(case: FacesCase, face: int, place: int, wanted: int) -> int:
    """Return the distance of a face's reading and label, if it has one, from a value."""
    own: Any = case.method
    gallery, name = case.gallery, own.costs[place][0]
    looks = [gallery.looks[face][place]]
    if set(gallery.values.get(name, ())) == set(VALUES[name]):
        looks.append(VALUES[name].index(gallery.values[name][gallery.labels[name][face]]))
    return sum(abs(look - wanted) if name in ORDERED else int(look != wanted) for look in looks)
