"""What a guarantee means to an attacker: odds, guesses among candidates, false alarms, strength.

All numbers are upper bounds over every adversary with any knowledge and computing power, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Json, float_above, show
from dpveil.errors import InvalidParameter, UnknownName

GAPS: Final = np.geomspace(1e-3, 1e6, 400)
"""Orders α - 1 at which divergences are checked; order 1, the Kullback-Leibler divergence, is checked too."""
ROOM: Final = 1e-9  # relative slack on αρ
SPARE: Final = 1e-12  # absolute slack on αρ; both are far above the rounding of floats
STEPS: Final = 60  # bisection steps


@lru_cache(maxsize=1024)
def zcdp_success(rho: Fraction, candidates: int) -> float:
    """Return the best probability of naming the true one of k equally likely candidates, rounded up.

    `candidates` is k, all of them neighbours. Naming i is a test of i against each j. The possible (a, d)
    form a convex set, since e^((α - 1)D_α) is jointly convex, so their average over all pairs, ((1 - s)/(k -
    1), s) for success s, is possible too.

    >>> round(zcdp_success(Fraction(1, 2), 2), 3), round(zcdp_success(Fraction(1, 2), 10), 3)
    (0.74, 0.395)
    """
    others = candidates - 1
    return _largest(lambda s: _is_within_rho(float_above(rho), (1 - s) / others, s), 1 / candidates)


def _largest(possible: Callable[[float], bool], low: float) -> float:
    """Return an upper bound, by bisection, on the values from `low` that are possible."""
    high = 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if possible(middle) else (low, middle)
    return high


def _is_within_rho(rho: float, false_alarm: float, detection: float) -> bool:
    """Return whether all divergences of the two laws of the bit are within what ρ allows."""
    if not 0 < false_alarm < 1 or not 0 < detection < 1:
        return rho == np.inf
    laws = np.log([[detection, 1 - detection], [false_alarm, 1 - false_alarm]])
    most = np.append(1, 1 + GAPS) * rho * (1 + ROOM) + SPARE
    for p, q in (laws, laws[::-1]):  # D_1 and D_α at every order, either way
        renyi = np.logaddexp(*(p[:, None] + GAPS * (p - q)[:, None])) / GAPS
        if not (np.append(np.exp(p) @ (p - q), renyi) <= most).all():
            return False
    return True


STRENGTHS: Final = {"strong": Fraction(3, 4), "moderate": Fraction(19, 20), "weak": Fraction(9999, 10000)}
"""Largest success probability of a guess between two equally likely candidates, by strength."""
LIMITS: Final = {name: float_above(share) for name, share in STRENGTHS.items()}
"""The same as floats, rounded up."""
NONE: Final = "practically none"  # the strength of a guarantee beyond "weak"
HARM: Final = {"strong": Fraction(1, 10**4), "moderate": Fraction(1, 10**3), "weak": Fraction(1, 10)}
"""Largest δ of each strength: in the worst case there is no protection at all with probability δ."""
ROUNDING: Final = 2.0**-50  # a bound on the rounding error of a probability computed here


def epsilon_delta(guarantee: Guarantee) -> tuple[float, float] | None:
    """Return the (ε, δ) of a guarantee, rounded up, or None for ρ-zCDP and heuristic ones.

    A metric guarantee counts at the diameter of its domain, with an infinite ε if the domain is unbounded.
    """
    if guarantee.kind in ("heuristic", "zcdp"):
        return None
    if guarantee.kind == "metric" and guarantee.diameter is None:
        return math.inf, 0.0
    epsilon = (guarantee.epsilon or Fraction(0)) * (1 if guarantee.diameter is None else guarantee.diameter)
    return float_above(epsilon), float_above(guarantee.delta or Fraction(0))


def odds(guarantee: Guarantee) -> float | None:
    """Return e^ε, the most by which a release can change anybody's odds, or None if no such bound exists.

    None for ρ-zCDP and wherever δ > 0: δ bounds by how much odds exceed e^ε *on average*, and they exceed it
    far more often than with probability δ (docs: explain, "Odds").
    """
    stated = epsilon_delta(guarantee)
    return None if stated is None or guarantee.delta else exp_above(stated[0])


def success_bound(guarantee: Guarantee, candidates: int) -> float:
    """Return the best probability of naming the true one of k equally likely candidates, all neighbours.

    Under (ε, δ): (e^ε + (k - 1)δ) / (e^ε + k - 1), by averaging the definition over all pairs. Under ρ-zCDP:
    `zcdp_success`. `candidates` is k. A heuristic guarantee gives 1.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> one = Guarantee(kind="pure", epsilon=1, relation=Relation("any-image"), scope=Scope("a photo"))
    >>> round(success_bound(one, 2), 3), round(success_bound(one, 10), 3)
    (0.731, 0.232)
    """
    if guarantee.rho is not None:
        return zcdp_success(guarantee.rho, candidates)
    stated = epsilon_delta(guarantee)
    if stated is None:
        return 1.0
    epsilon, delta = stated
    if not epsilon and not delta:
        return 1 / candidates
    least = math.exp(-epsilon) * (candidates - 1)  # never overflows
    return min(1.0, (1 + least * delta) / (1 + least) * (1 + ROUNDING))


def strength(guarantee: Guarantee) -> str:
    """Return strong, moderate, weak or practically none, by `STRENGTHS` and `HARM`."""
    if not guarantee.formal:
        return NONE
    best, delta = success_bound(guarantee, 2), guarantee.delta or 0
    return next((name for name in STRENGTHS if delta <= HARM[name] and best <= LIMITS[name]), NONE)


def check_strength_name(name: str) -> str:
    """Return `name` if it is a strength that can be requested. Raises `UnknownName`."""
    if str(name) not in STRENGTHS:
        raise UnknownName("strength", str(name), STRENGTHS)
    return str(name)


def at_least(given: str | None, name: str) -> bool:
    """Return whether the strength `given` is `name` or stronger.

    >>> at_least("strong", "weak"), at_least("practically none", "weak"), at_least(None, "weak")
    (True, False, False)
    """
    order = list(STRENGTHS)
    return given in order and order.index(given) <= order.index(name)


def exp_above(epsilon: float) -> float:
    """Return e^ε rounded up: infinite if it is above the largest float."""
    try:
        return math.nextafter(math.exp(epsilon), math.inf) if epsilon else 1.0
    except OverflowError:
        return math.inf


DISTANCES: Final = (Fraction(1, 100), Fraction(1, 20), Fraction(1))
"""Distances at which e^(ε·d) is stated: similar faces (the thesis's example), a person's photos, and 1."""
SHARES: Final = (0.01, 0.5, 0.99)  # shares of the pairs of people at which it is stated
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
    `success`. `share` of the pairs of people are no further apart; None if the distance is not from data.
    """

    distance: float
    factor: float
    success: float
    share: float | None = None

    def to_json(self) -> dict[str, Json]:
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
        epsilon_for=_largest_epsilons(known[0.5]) if known else {},
    )


def _at(epsilon: Fraction, distance: Fraction, share: float | None = None) -> MetricAtDistance:
    spent = float_above(epsilon * distance)
    success = min(1.0, (1 + ROUNDING) / (1 + math.exp(-spent)))
    return MetricAtDistance(float_above(distance), exp_above(spent), success, share)


def _largest_epsilons(distance: Fraction) -> dict[str, float]:
    if distance == 0:
        return {}
    far = float_above(distance)
    return {name: math.log(odds) / far * (1 - ROUNDING) for name, odds in MOST_ODDS.items()}
