"""The audit of synthetic data sets, with its mutants."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.accounting import zcdp_rho
from dpveil.noise.bits import BitSource
from dpveil.synthesis.plan import Plan
from dpveil.synthesis.votes import REPLACED, UNIT, Votes, ballot, noisy
from dpveil_audit.entry import Bits, Check, Entry, computed, drawn
from dpveil_audit.synthesis.case import (
    INTACT,
    People,
    VoteCase,
    VoteDrawn,
    VoteLevel,
    VoteVersion,
    numbered,
    own_variances,
)
from dpveil_audit.synthesis.gates import exact_gate, fit_gate, in_turn, same_gate

DRAWS: Final = 500


@dataclass(frozen=True, kw_only=True)
class VoteAudit(Entry[VoteVersion, VoteLevel]):
    """The audit of Private Evolution."""

    def checks(self, level: VoteLevel, bits: Bits) -> Iterator[Check[VoteVersion]]:
        """Yield every gate with every setting."""
        yield from computed("same", same_gate, level.exact, self.intact)
        yield from computed("exact", exact_gate, level.exact)
        yield from drawn("fit", fit_gate, level.drawn, bits)


def _unbounded(choices: np.ndarray, people: np.ndarray, candidates: int) -> Votes:
    return (UNIT * np.bincount(choices, minlength=candidates)).astype(np.int64)


def _by_largest(choices: np.ndarray, people: np.ndarray, candidates: int) -> Votes:
    total = np.zeros(candidates, np.int64)
    for number in np.unique(people):
        counts = np.bincount(choices[people == number], minlength=candidates)
        total += UNIT * counts // counts.max()
    return total


def _rounded_up(choices: np.ndarray, people: np.ndarray, candidates: int) -> Votes:
    total = np.zeros(candidates, np.int64)
    for number in np.unique(people):
        own = ballot(choices[people == number], candidates)
        total += own + (own > 0)
    return total


def _together(choices: np.ndarray, people: np.ndarray, candidates: int) -> Votes:
    """Return the ballot of all photos, scaled by the number of people: one changes the votes of all."""
    return ballot(choices, candidates) * len(np.unique(people))


def _first_alone(plan: Plan) -> tuple[int, ...]:
    return (plan.variance, *((0,) * (plan.rounds - 1)))


def _one_round(plan: Plan) -> tuple[int, ...]:
    return (plan.variance // plan.rounds,) * plan.rounds


def _as_added(plan: Plan) -> tuple[int, ...]:
    return (plan.variance // 2,) * plan.rounds


def _delta_twice(plan: Plan) -> tuple[int, ...]:
    rho = zcdp_rho(plan.epsilon, 2 * plan.delta)
    return (math.ceil(plan.rounds * Fraction(REPLACED, 2) / rho),) * plan.rounds


def _same_noise(version: VoteVersion, case: VoteCase, people: People, bits: BitSource) -> list[Votes]:
    true = version.tally(*numbered(people), case.candidates)
    return [noisy(true, case.plan.variance, bits)] * case.rounds


def _own(name: str, **changed: object) -> VoteVersion:
    return VoteVersion(name=name, release=in_turn, **changed)  # type: ignore[arg-type]


MUTANTS: Final = (
    _own("votes without a bound per person", tally=_unbounded),
    _own("ballots divided by their largest entry", tally=_by_largest),
    _own("ballots rounded up", tally=_rounded_up),
    _own("one ballot for all people", tally=_together),
    _own("noise in the first round alone", variances=_first_alone),
    _own("noise of one round in each of several", variances=_one_round),
    _own("a replaced person counted as an added one", variances=_as_added),
    _own("δ spent twice", variances=_delta_twice),
    VoteVersion(
        name="the same noise in all rounds", gates=("fit",), variances=own_variances, release=_same_noise
    ),
)


def synthesis_audits() -> dict[str, VoteAudit]:
    """Return the audit of synthetic data sets, by name."""
    few = VoteCase("1", "1e-6", 3, 3, 3)
    quick = VoteLevel(
        (few, VoteCase("4", "1e-5", 2, 4, 2), VoteCase("0.5", "1e-9", 2, 2, 4)),
        (VoteDrawn(few, DRAWS, fits=(((0, 0, 1), (2,)), ((), (0, 1, 2)))),),
    )
    deep = quick.more((VoteCase("10", "1e-6", 5, 5, 3), VoteCase("1/3", "1e-12", 4, 3, 5)))
    return {
        "private-evolution": VoteAudit(intact=INTACT, levels={"quick": quick, "deep": deep}, mutants=MUTANTS)
    }
