"""What the ε of a metric guarantee means: how odds change at distance d, also between real people."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.accounting.meaning import ROUNDING, STRENGTHS, exp_above
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json, float_above, show
from dpveil.errors import InvalidParameter

DISTANCES: Final = (Fraction(1, 100), Fraction(1, 20), Fraction(1))
"""Distances at which e^(ε·d) is stated: similar faces (the thesis's example), a person's closest photos, and
1.
"""
SHARES: Final = (0.01, 0.5, 0.99)
"""Shares of the pairs of people at which it is stated."""
MOST_ODDS: Final = {name: chance / (1 - chance) for name, chance in STRENGTHS.items()}
"""The factor on odds that each strength allows, from its success probability."""
WORDS: Final = (
    "d is a distance between codes, whoever they belong to: two photos of one person may well be 0.05 apart"
    " or more, and often as far as photos of two people."
)


@dataclass(frozen=True)
class MetricAtDistance:
    """What the guarantee says at one distance: odds change by at most `factor`.

    Of two codes that far apart, equally likely before, nobody names the true one with more than probability
    `success`. `share` of the pairs of people are no further apart; None if the distance was not taken from
    data.
    """

    distance: float
    factor: float
    success: float
    share: float | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object; an infinite factor is null."""
        factor = None if math.isinf(self.factor) else self.factor
        return {"d": self.distance, "factor": factor, "success": self.success, "share": self.share}


@dataclass(frozen=True)
class MetricMeaning:
    """What ε·d means `at` fixed distances and the diameter, and between real `people` if known.

    `epsilon_for` maps each strength to the largest ε that keeps it for half of all pairs of people; empty if
    their distances are not known.
    """

    guarantee: Guarantee
    at: tuple[MetricAtDistance, ...]
    people: tuple[MetricAtDistance, ...]
    epsilon_for: dict[str, float]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The meaning in words, one sentence each."""
        epsilon = show(self.guarantee.epsilon or Fraction(0))
        odds = (
            f"Whatever was known before, odds between two codes change by a factor of at most"
            f" e^({epsilon}·d), d being their distance: {self.guarantee.metric}."
        )
        half = next((one for one in self.people if one.share == 0.5), None)
        if half is None:
            return odds, WORDS
        usual = (
            f"Half of all pairs of people in the public training set lie within {half.distance:.3g}: of two"
            f" that far apart, equally likely before, nobody names the true one with more than"
            f" {show(Fraction(half.success) * 100)} %."
        )
        return odds, usual, WORDS

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        return {
            "epsilon": float_above(self.guarantee.epsilon or Fraction(0)),
            "metric": self.guarantee.metric,
            "at": [one.to_json() for one in self.at],
            "people": [one.to_json() for one in self.people],
            "epsilon_for": dict(self.epsilon_for),
            "sentences": list(self.sentences),
        }


def meaning(guarantee: Guarantee, distances: Mapping[float, float] | None = None) -> MetricMeaning:
    """Return what a metric guarantee means at several distances. All bounds are rounded up.

    For any two codes z, z′ and any release R, by Bayes' rule from P(R|z) ≤ e^(ε·d)·P(R|z′), Pr(z|R)/Pr(z′|R)
    ≤ e^(ε·d)·Pr(z)/Pr(z′): odds change by at most that factor. `distances` maps shares of pairs of people to
    the distance that they do not exceed, in the guarantee's own metric
    (`codec.statistics.pair_distances(clip).of(metric)`). Raises `InvalidParameter` for guarantees of another
    kind. Source: Croft thesis formula 6.31.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> words = {"metric": "d", "diameter": 1, "relation": Relation("latent-cell"), "scope": Scope("a code")}
    >>> [round(one.factor, 2) for one in meaning(Guarantee(kind="metric", epsilon=200, **words)).at[:2]]
    [7.39, 22026.47]
    """
    if guarantee.kind != "metric" or guarantee.epsilon is None:
        raise InvalidParameter("guarantee", guarantee.kind, "has no distance", hint="metric ones have")
    epsilon = guarantee.epsilon
    chosen = {*DISTANCES} if guarantee.diameter is None else {*DISTANCES, guarantee.diameter}
    known = {} if distances is None else {share: Fraction(distances[share]) for share in SHARES}
    return MetricMeaning(
        guarantee=guarantee,
        at=tuple(_at(epsilon, d) for d in sorted(chosen)),
        people=tuple(_at(epsilon, distance, share) for share, distance in known.items()),
        epsilon_for=_wanted(known[0.5]) if known else {},
    )


def _at(epsilon: Fraction, distance: Fraction, share: float | None = None) -> MetricAtDistance:
    spent = float_above(epsilon * distance)
    success = min(1.0, (1 + ROUNDING) / (1 + math.exp(-spent)))
    return MetricAtDistance(float_above(distance), exp_above(spent), success, share)


def _wanted(distance: Fraction) -> dict[str, float]:
    """Return the largest ε of each strength at a distance, rounded down."""
    if distance == 0:
        return {}
    far = float_above(distance)
    return {name: math.log(odds) / far * (1 - ROUNDING) for name, odds in MOST_ODDS.items()}
