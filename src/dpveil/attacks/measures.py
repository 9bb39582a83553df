"""Measures of scores: identification, identification among strangers, and verification, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.attacks.base import Scores
from dpveil.attacks.outcomes import named, passed, standard
from dpveil.attacks.resampling import Interval, by_person, drawn_people, ends
from dpveil.attacks.verification import Levels
from dpveil.errors import InvalidParameter

DRAWS: Final = 1000
LEVEL: Final = 0.95
FARS: Final = (1e-2, 1e-3)
"""False accept rates that are usually reported."""


@dataclass(frozen=True)
class Rate:
    """A rate, 0 to 1, with its bootstrap interval over people, and what a guess reaches.

    `failures` are the releases about which the attacker said nothing, which count as its failures; `releases`
    are all.
    """

    value: float
    low: float
    high: float
    chance: float
    failures: int
    releases: int


def identification(scores: Scores, people: Sequence[str], *, rank: int = 1) -> Rate:
    """Return how often a release's person is among the `rank` likeliest.

    `people` are the true ones, all of them known to the attacker. Raises `InvalidParameter`.
    """
    right = named(scores, people, rank=rank)
    interval = by_person(right, people, draws=DRAWS, level=LEVEL, seed=0)
    return _rate(float(right.mean()), interval, rank / len(scores.names), scores)


def verification(scores: Scores, people: Sequence[str], *, far: float) -> Rate:
    """Return how often releases pass for their own person where a share `far` of the others' do (TAR at FAR).

    An attack that knows clean photos compares originals with releases, one that learns from releases compares
    releases. Raises `InvalidParameter`.
    """
    verified = passed(scores, people, far=far)
    interval = verified.interval(draws=DRAWS, level=LEVEL)
    return _rate(verified.rate, interval, far, scores)


def equal_error(scores: Scores, people: Sequence[str]) -> Rate:
    """Return the equal error rate of verification; a guess has one half. Raises `InvalidParameter`."""
    verified = passed(scores, people, far=0.0)
    return _rate(verified.equal_error, verified.equal_error_interval(level=LEVEL), 0.5, scores)


def open_set(scores: Scores, people: Sequence[str], *, far: float) -> Rate:
    """Return the share of releases of known people that are named rightly, and not taken for strangers.

    A release passes if its likeliest person is likelier than a threshold that a share `far` of the releases
    of strangers, people without a column, pass: the detection and identification rate of open sets. Scores
    are standardised over people before, as some releases resemble everybody. The threshold is set anew in
    every bootstrap draw. Raises `InvalidParameter` without known people, or without
    strangers. Source: Grother, Ngan & Hanaoka, NISTIR 8271; Phillips, Grother & Micheals 2011, §1.
    """
    stranger = ~np.isin(np.array(people), np.array(scores.names))
    if stranger.all() or not stranger.any() or len(people) != len(scores.likeness):
        problem = (
            f"show {int((~stranger).sum())} times known people and {int(stranger.sum())} times strangers"
        )
        raise InvalidParameter("people", None, problem, hint="open sets need both, a name for each release")
    if not 0 <= far < 1:
        raise InvalidParameter("far", far, "is not at least 0 and below 1", hint="such as 0.01")
    there = np.isfinite(scores.likeness).all(axis=1)
    away = np.where(there, -standard(scores).max(axis=1), np.inf)
    right = np.zeros(len(people))
    inner = Scores(scores.likeness[~stranger], scores.names)
    right[~stranger] = named(inner, [name for name, out in zip(people, stranger, strict=True) if not out])
    names, person = np.unique(np.array(people), return_inverse=True)
    outside = np.zeros(len(names), np.bool_)
    outside[person[stranger]] = True
    rates = _open_rates(away, right, stranger, _drawn(outside)[:, person], far)
    value = float(_open_rates(away, right, stranger, np.ones((1, len(people)), np.int64), far)[0])
    interval = ends(rates, value, int((~outside).sum()), LEVEL)
    return _rate(value, interval, far / len(scores.names), scores)


def _drawn(outside: Bool[np.ndarray, " people"]) -> Int64[np.ndarray, "draws people"]:
    """Return how often each person is in each draw, in which there are as many strangers as in truth."""
    times = np.zeros((DRAWS, len(outside)), np.int64)
    for seed, part in enumerate((outside, ~outside)):
        times[:, part] = drawn_people(int(part.sum()), DRAWS, seed)
    return times


def _open_rates(
    away: Float64[np.ndarray, " n"],
    right: Float64[np.ndarray, " n"],
    stranger: Bool[np.ndarray, " n"],
    times: Int64[np.ndarray, "draws n"],
    far: float,
) -> Float64[np.ndarray, " draws"]:
    levels, inner = Levels.of(away[stranger]), times[:, ~stranger]
    weights = times[:, stranger][:, levels.order]
    limits = np.array([levels.threshold(row, far) for row in weights])
    found = right[~stranger] * (away[~stranger] <= limits[:, None])
    return np.asarray((inner * found).sum(axis=1) / inner.sum(axis=1))


def _rate(value: float, interval: Interval, chance: float, scores: Scores) -> Rate:
    failures = int((~np.isfinite(scores.likeness).all(axis=1)).sum())
    return Rate(value, *interval, chance, failures, len(scores.likeness))
