"""The gates of synthetic data sets: what is released, what neighbours change, and the noise itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np

from dpveil.noise.bits import BitSource, SeededBits
from dpveil.synthesis.votes import UNIT, Votes, noisy
from dpveil_audit.distributions import gaussian_distribution
from dpveil_audit.findings import Finding
from dpveil_audit.fit import fit, fit_pairs
from dpveil_audit.gates import UNBOUNDED, fit_finding
from dpveil_audit.synthesis.case import People, VoteCase, VoteDrawn, VoteVersion, neighbours, numbered

ORDERS: Final = np.exp(np.linspace(-12, 12, 200_001))
"""Orders less one at which the conversion is evaluated: each gives a valid δ."""
ROUNDED: Final = 1e-6
"""Relative error of δ by that grid, at most."""


def same_gate(version: VoteVersion, case: VoteCase) -> Iterator[Finding]:
    """Yield how many sets release other votes than those of the version, under the same bits."""
    unlike, sets = 0, [(own, other) for own in case.persons for other in case.persons[:: case.photos]]
    for number, people in enumerate(sets):
        released = version.release(version, case, people, SeededBits(number, "same"))
        due = in_turn(version, case, people, SeededBits(number, "same"))
        unlike += len(released) != len(due) or not np.array_equal(released, due)
    what = f"releases unlike their ballots and noise, {len(sets)} sets"
    yield Finding("same", what, str(case), unlike, 0, unlike == 0, "sets")


def in_turn(version: VoteVersion, case: VoteCase, people: People, bits: BitSource) -> list[Votes]:
    """Return noisy votes by a version's own tally and noise; between rounds, one word places candidates."""
    true, votes = version.tally(*numbered(people), case.candidates), list[Votes]()
    for variance in version.variances(case.plan):
        if votes:
            bits.words(1)
        votes.append(noisy(true, variance, bits) if variance else true)
    return votes


def exact_gate(version: VoteVersion, case: VoteCase) -> Iterator[Finding]:
    """Yield the δ that all rounds have at the stated ε, by brute force over all neighbours."""
    plan = case.plan
    furthest, pairs = max_change(version, case)
    variances = version.variances(plan)
    costs = [furthest / (2 * variance) if variance else math.inf for variance in variances]
    rho = sum(costs) if len(costs) == plan.rounds else math.inf
    asked = float(case.plan.delta)
    guarantee = plan.guarantee
    stated = float(guarantee.epsilon or 0), float(guarantee.delta or 0)
    worse = stated[0] > float(plan.epsilon) or stated[1] > asked
    yield Finding(
        "exact", "stated beyond what was asked", str(case), float(worse), 0, not worse, "guarantees"
    )
    delta = delta_at(rho, stated[0])
    what = f"δ of all rounds at the stated ε, {pairs:,} pairs of neighbours"
    yield Finding("exact", what, str(case), delta, stated[1], delta <= stated[1] * (1 + ROUNDED), "δ")


def max_change(version: VoteVersion, case: VoteCase) -> tuple[int, int]:
    """Return the largest squared L2 change of the votes between neighbours, and how many were compared."""
    furthest = pairs = 0
    known: dict[People, np.ndarray] = {}

    def votes(people: People) -> np.ndarray:
        if people not in known:
            known[people] = version.tally(*numbered(people), case.candidates)
        return known[people]

    for one, two in neighbours(case):
        furthest = max(furthest, int(((votes(one) - votes(two)) ** 2).sum()))
        pairs += 1
    return furthest, pairs


def delta_at(rho: float, epsilon: float) -> float:
    """Return δ(ε) of ρ-zCDP: the least over a grid of orders (Canonne, Kamath & Steinke 2020, prop. 12)."""
    if not math.isfinite(rho):
        return UNBOUNDED
    alpha = 1 + ORDERS
    logs = ORDERS * (alpha * rho - epsilon) - np.log(ORDERS) + alpha * (np.log(ORDERS) - np.log(alpha))
    return min(1.0, float(np.exp(logs.min())))


def expected(case: VoteCase, people: People) -> np.ndarray:
    """Return the true votes by their definition, in floating point for single numbers."""
    total = np.zeros(case.candidates, np.int64)
    for own in people:
        counts = [own.count(place) for place in range(case.candidates)]
        length = math.sqrt(sum(count**2 for count in counts))
        total += np.array([math.floor(UNIT * count / length + 1e-9) if count else 0 for count in counts])
    return total


def fit_gate(version: VoteVersion, setting: VoteDrawn, *, bits: BitSource) -> Iterator[Finding]:
    """Yield how well the noise of all rounds follows its law, and is independent between rounds."""
    case, p_values = setting.case, {}
    law = gaussian_distribution(case.plan.variance)
    for people in setting.fits:
        true = expected(case, people)
        runs = [version.release(version, case, people, bits) for _ in range(setting.draws)]
        noise = np.array(runs, np.int64) - true  # draws × rounds × candidates
        name = f"{len(numbered(people)[0])} photos"
        for number in range(case.rounds):
            p_values[f"round {number + 1} of {name}"] = fit(noise[:, number].ravel(), law).p_value
        p_values[f"all of {name}"] = fit_pairs(noise.ravel(), law, lag=1).p_value
        if case.rounds > 1:
            p_values[f"rounds of {name}"] = fit_pairs(noise.ravel(), law, lag=case.candidates).p_value
    yield fit_finding(case, f"{setting.draws:,} sets", p_values)
