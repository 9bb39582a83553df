"""Private Evolution: candidates that people's photos vote for, round by round, under noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.codecs.base import Crops
from dpveil.codecs.statistics import Codes
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource, check_bits
from dpveil.noise.public import uniforms
from dpveil.synthesis.plan import Plan
from dpveil.synthesis.simulator import Simulator
from dpveil.synthesis.votes import FINEST, UNIT, Embedded, Votes, nearest, noisy, shares, tally

ANGLE: Final = 1.0
"""Angle by which candidates, and the pictures of the set, vary from those that got votes, in radians."""
THRESHOLD: Final = 1.0
"""Noisy votes that count, in standard deviations of the noise."""
NO_POINTS: Final = f"are not rows of whole numbers from 0 to {FINEST}, int16, as many as the codec's code has"
EMBED: Final = "take what embed of the simulator returns"


@dataclass(frozen=True, eq=False)
class Evolved:
    """A synthetic data set: `pictures`, n × s × s × 3, and the noisy `votes` of every round, in `UNIT`s."""

    pictures: Crops
    votes: tuple[Votes, ...]


def evolve(
    plan: Plan,
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
            codes = simulator.vary(_chosen(codes, votes[-1], plan.chosen, plan, bits), ANGLE, bits)
        candidates = simulator.embedded(simulator.pictures(codes))
        if candidates.shape[1] != photos.shape[1]:
            raise InvalidParameter("photos", None, NO_POINTS, hint=EMBED)
        choices = nearest(photos, candidates)
        votes.append(noisy(tally(choices, people, plan.chosen), plan.variance, bits))
        step()
    last = simulator.vary(_chosen(codes, votes[-1], plan.pictures, plan, bits), ANGLE, bits)
    return Evolved(simulator.pictures(last), tuple(votes))


def _check_votes(plan: Plan, photos: Embedded, people: Int64[np.ndarray, " n"]) -> None:
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


def _chosen(codes: Codes, votes: Votes, count: int, plan: Plan, bits: BitSource) -> Codes:
    """Return `count` codes, each as often as its share of the noisy votes, up to one more or less."""
    ends = np.cumsum(shares(votes, THRESHOLD * plan.noise * UNIT))
    places: Float64[np.ndarray, " count"] = (np.arange(count) + uniforms(1, bits)) / count
    return np.asarray(codes[np.searchsorted(ends, places).clip(0, len(codes) - 1)])
