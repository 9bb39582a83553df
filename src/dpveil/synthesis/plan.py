"""What a synthetic data set promises, and all of its settings, before a photo is looked at."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

import numpy as np

from dpveil.accounting import zcdp_rho
from dpveil.accounting.meaning import strength
from dpveil.assets.file_reference import AssetField
from dpveil.codecs.base import CODEC, Crops
from dpveil.codecs.statistics import Codes
from dpveil.core.array_types import Float64, Int64
from dpveil.core.guarantee import Guarantee, Relation, Scope, count_noun
from dpveil.core.parameters import Count, OneOf, OptionalCount, Positive, Probability
from dpveil.core.rationals import Json, show, to_json, two_digits
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource, check_bits, uniforms
from dpveil.noise.gaussian import check_variance
from dpveil.synthesis.face_variations import (
    FINEST,
    REPLACED,
    UNIT,
    Embedded,
    Simulator,
    Votes,
    nearest,
    noisy,
    shares,
    tally,
)

SHEET: Final = "sheet.png"  # the contact sheet


def picture_name(number: int) -> str:
    """Return the file name of a picture by its number from 1.

    >>> picture_name(7)
    '000007.png'
    """
    return f"{number:06}.png"


LEAST_CANDIDATES: Final = (
    8  # least number of candidates by the rule for it: with fewer, a set says next to nothing
)
CANDIDATES_BY_RULE: Final = 1024  # most candidates by that rule
MARGIN: Final = 4  # mean votes of a candidate, in standard deviations of their noise, by that rule
MOST_CANDIDATES: Final = 100_000
MOST_ROUNDS: Final = 100
MOST_PICTURES: Final = 10_000
CROPS: Final = ("face", "middle")
TIME: Final = "how long the run took, which depends on the number, the sizes and the contents of the photos"
ACCOUNTANT: Final = "zCDP of all rounds together, converted to (epsilon, delta) by the tight conversion"


@dataclass(frozen=True, kw_only=True)
class SetPlan:
    """The settings of Private Evolution, all of them public; none may be chosen by looking at the photos.

    `epsilon` and `delta` are what the whole set costs each of the `people`, whose number is public. In each
    of the `rounds` they vote for `candidates`. By default as many take part as get, on average, `MARGIN`
    standard deviations of the noise in votes, from 8 to 1024: a rule of ε, δ, rounds and people. The set has
    as many `pictures`, by the `codec`. A photo's `crop` is its largest "face", or its "middle" square.
    Raises `InvalidParameter`, also for fewer people than the rule needs, and for δ of at least one over the
    number of people; and `NoiseError` for noise that cannot be drawn.

    *Proof.* Neighbours have the same number of people, of whom one is replaced with all photos, by any other
    photos or by none. Given the candidates, the votes of neighbours differ by at most Δ² = 2·UNIT²
    (`ballot`), so a round with discrete Gaussian noise of variance parameter V is Δ²/(2V)-zCDP (Canonne,
    Kamath & Steinke 2020, theorem 14). Candidates of later rounds, and the pictures, are functions of noisy
    votes, public models and fresh bits. So all rounds are ρ-zCDP with ρ = rounds · Δ²/(2V), by adaptive
    composition (Bun & Steinke 2016, lemma 2.3). V is rounded up to a whole number, so ρ is at most
    `zcdp_rho` of (ε, δ), for which the tight conversion gives at most δ. ∎ δ is spent once, in that
    conversion.

    >>> plan = SetPlan(epsilon=1, delta="1e-6", people=5000, codec="pca 100 sha256:" + 64 * "0")
    >>> str(plan.guarantee), plan.rho <= zcdp_rho(1, "1e-6")
    ('(1, 1e-06)-DP, person', True)
    """

    epsilon: Positive = Positive()
    delta: Probability = Probability()
    people: Count = Count()
    pictures: Count = Count(default=256, high=MOST_PICTURES)
    rounds: Count = Count(default=1, high=MOST_ROUNDS)
    candidates: OptionalCount = OptionalCount(optional=True)
    crop: OneOf = OneOf(*CROPS, default="face")
    codec: AssetField = AssetField(CODEC)

    def __post_init__(self) -> None:
        check_variance(Fraction(self.variance))
        if self.delta * self.people >= 1:
            problem = f"is not below one over the number of people, {self.people}"
            raise InvalidParameter("delta", to_json(self.delta), problem, hint="such as 1e-6")
        if self.candidates is None and self.people < self.least_people:
            problem = f"is too small: votes of fewer than {self.least_people} people drown in this noise"
            hint = f"choose {{epsilon}} {self._enough()}, or photos of more people"
            names = {"epsilon": "epsilon"}
            raise InvalidParameter("number of people", self.people, problem, hint=hint, arguments=names)
        if self.chosen > MOST_CANDIDATES:
            raise InvalidParameter(
                "candidates", self.candidates, "is out of range", hint=f"at most {MOST_CANDIDATES}"
            )

    def _enough(self) -> str:
        """Return from which ε on, in two digits, so many people are enough, and how strong that is."""
        tried = self
        while tried.least_people > self.people:
            grown = two_digits(tried.epsilon * Fraction(tried.least_people + 1, self.people + 1))
            tried = replace(tried, epsilon=grown, candidates=LEAST_CANDIDATES)
        return f"{show(tried.epsilon)} or more, which is {strength(tried.guarantee)}"

    @cached_property
    def variance(self) -> int:
        """The variance parameter V of the noise on each candidate's votes in each round, in UNIT⁻² votes²."""
        return math.ceil(self.rounds * Fraction(REPLACED, 2) / zcdp_rho(self.epsilon, self.delta))

    @property
    def rho(self) -> Fraction:
        return self.rounds * Fraction(REPLACED, 2 * self.variance)

    @property
    def noise(self) -> float:
        """The standard deviation of the noise on a candidate's votes in each round, in votes."""
        return math.sqrt(self.variance) / UNIT

    @property
    def least_people(self) -> int:
        """The least number of people by the rule for `candidates`."""
        return math.ceil(LEAST_CANDIDATES * MARGIN * self.noise)

    @property
    def chosen(self) -> int:
        return self.candidates or min(CANDIDATES_BY_RULE, int(self.people / (MARGIN * self.noise)))

    @property
    def faint(self) -> bool:
        """Whether the mean votes of a candidate are less than the standard deviation of their noise."""
        return self.people < self.chosen * self.noise

    @property
    def guarantee(self) -> Guarantee:
        """(ε, δ)-DP for one person with all photos."""
        pictures = count_noun(self.pictures, "synthetic picture")
        covers = f"a set of {pictures}, about all photos of each person together"
        clear = (f"how many people there are, {self.people:,}, and all settings", TIME)
        return Guarantee(
            kind="approximate",
            epsilon=self.epsilon,
            delta=self.delta,
            relation=Relation("person"),
            scope=Scope(covers, clear),
        )

    def parameters(self) -> dict[str, Json]:
        """Return every setting as JSON, with the codec as its hash."""
        numbers: dict[str, Json] = {"epsilon": to_json(self.epsilon), "delta": to_json(self.delta)}
        others = ("people", "pictures", "rounds", "candidates", "crop")
        return {**numbers, **{name: getattr(self, name) for name in others}, "codec": str(self.codec)}

    @classmethod
    def stated(cls, parameters: Mapping[str, Json]) -> Self:
        """Return the plan that a received certificate states; opens no file. Raises `InvalidParameter`."""
        names = [field.name for field in fields(cls)]
        if sorted(parameters) != sorted(names):
            raise InvalidParameter("parameters", None, "are not those of a synthetic data set")
        kept = {name: cls.__dict__[name].stated(parameters[name]) for name in names}
        return cls(**kept)


ANGLE: Final = 1.0
"""Angle by which candidates, and the pictures of the set, vary from those that got votes, in radians."""
THRESHOLD: Final = 1.0  # noisy votes that count, in standard deviations of the noise
NO_POINTS: Final = f"are not rows of whole numbers from 0 to {FINEST}, int16, as many as the codec's code has"
EMBED: Final = "take what embed of the simulator returns"


@dataclass(frozen=True, eq=False)
class Evolved:
    """A synthetic data set: `pictures`, n × s × s × 3, and the noisy `votes` of every round, in `UNIT`s."""

    pictures: Crops
    votes: tuple[Votes, ...]


def evolve(
    plan: SetPlan,
    simulator: Simulator,
    photos: Embedded,
    people: Int64[np.ndarray, " n"],
    bits: BitSource,
    step: Callable[[], None] = lambda: None,
) -> Evolved:
    """Return a synthetic data set for photos, as points of the simulator, of `people` by their numbers.

    The promise is `plan.guarantee` for numbers from 0 to `plan.people` - 1. Each round costs its share of it;
    nothing else reads the photos. `step` is called after every round. Raises `InvalidParameter` for numbers
    beyond or not whole, for photos that are no points of the simulator, and for `bits`.
    Source: Lin et al. 2024, algorithm 1, with a bound for each person and discrete noise.
    """
    _check_votes(plan, photos, people)
    check_bits(bits)
    codes, votes = simulator.draw(plan.chosen, bits), list[Votes]()
    for number in range(plan.rounds):
        if number:
            codes = simulator.vary(_choose_codes(codes, votes[-1], plan.chosen, plan, bits), ANGLE, bits)
        candidates = simulator.embed_all(simulator.pictures(codes))
        if candidates.shape[1] != photos.shape[1]:
            raise InvalidParameter("photos", None, NO_POINTS, hint=EMBED)
        choices = nearest(photos, candidates)
        votes.append(noisy(tally(choices, people, plan.chosen), plan.variance, bits))
        step()
    last = simulator.vary(_choose_codes(codes, votes[-1], plan.pictures, plan, bits), ANGLE, bits)
    return Evolved(simulator.pictures(last), tuple(votes))


def _check_votes(plan: SetPlan, photos: Embedded, people: Int64[np.ndarray, " n"]) -> None:
    """Raise `InvalidParameter` for anything by which a vote could depend on other photos, or not be counted.

    Distances are exact, and so the bound on a person's votes holds, for whole numbers up to `FINEST` alone.
    """
    given: tuple[object, ...] = (photos, people)
    arrays = all(isinstance(one, np.ndarray) for one in given)
    if not arrays or photos.dtype != np.int16 or photos.ndim != 2:
        raise InvalidParameter("photos", None, NO_POINTS, hint=EMBED)
    if np.any((photos < 0) | (photos > FINEST)):
        raise InvalidParameter("photos", None, NO_POINTS, hint=EMBED)
    whole = people.dtype.kind == "i" and people.shape == (len(photos),)
    if not whole or np.any((people < 0) | (people >= plan.people)):
        raise InvalidParameter("people", None, "are not a number below the plan's for every photo")


def _choose_codes(codes: Codes, votes: Votes, count: int, plan: SetPlan, bits: BitSource) -> Codes:
    ends = np.cumsum(shares(votes, THRESHOLD * plan.noise * UNIT))
    places: Float64[np.ndarray, " count"] = (np.arange(count) + uniforms(1, bits)) / count
    return np.asarray(codes[np.searchsorted(ends, places).clip(0, len(codes) - 1)])
