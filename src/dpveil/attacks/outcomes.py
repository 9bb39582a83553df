"""What scores come to: who is named right, and who passes for himself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.attacks.base import Scores
from dpveil.attacks.vectors import UNKNOWN
from dpveil.attacks.verification import Verified
from dpveil.errors import InvalidParameter

FLAT: Final = 1e-9
"""Least standard deviation of a row of scores that divides."""


def named(scores: Scores, people: Sequence[str], *, rank: int = 1) -> Float64[np.ndarray, " n"]:
    """Return the probability that each release's person is among the `rank` likeliest, 0 to 1.

    People who are equally likely are put in random order, so that an attacker who says the same of everybody
    succeeds by chance. A release about which it says nothing counts as its failure. Raises
    `InvalidParameter` for people who have no column, and a number of people that is not that of the scores.
    """
    own = columns_of(scores, people)
    if not 1 <= rank <= len(scores.names):
        raise InvalidParameter(
            "rank", rank, "is not a place among the people", hint=f"1 to {len(scores.names)}"
        )
    there = np.isfinite(scores.likeness).all(axis=1)
    true = scores.likeness[np.arange(len(own)), own][:, None]
    above, alike = (scores.likeness > true).sum(axis=1), (scores.likeness == true).sum(axis=1)
    return np.where(there, ((rank - above) / np.maximum(alike, 1)).clip(0, 1), 0.0)


def passed(scores: Scores, people: Sequence[str], *, far: float) -> Verified:
    """Return how often releases pass for their own person where a share `far` of the others' do.

    Scores are standardised over people before, as some releases resemble everybody. Raises `InvalidParameter`
    as `named` does. Source: Auckenthaler, Carey & Lloyd-Thomas 2000 (test normalisation).
    """
    own = columns_of(scores, people)
    away = np.where(np.isfinite(scores.likeness).all(axis=1)[:, None], -standard(scores), np.inf)
    mine = np.zeros(away.shape, bool)
    mine[np.arange(len(own)), own] = True
    return Verified(away[mine], away[~mine].reshape(len(own), -1), tuple(people), far)


def standard(scores: Scores) -> Float64[np.ndarray, "releases people"]:
    """Return scores less their mean over people, in units of their deviation; 0 of releases without any.

    People of whom the attacker knows nothing get the least of the others' scores.
    """
    likeness = np.where(scores.likeness > UNKNOWN / 2, scores.likeness, np.inf)
    least = np.where(np.isfinite(likeness), likeness, np.inf).min(axis=1, keepdims=True)
    likeness = np.where(np.isfinite(likeness), likeness, np.where(np.isfinite(least), least, 0.0))
    away = likeness - likeness.mean(axis=1, keepdims=True)
    return np.asarray(away / np.maximum(away.std(axis=1, keepdims=True), FLAT))


def equal_error_rate(verified: Verified) -> float:
    """Return `Verified.equal_error`: half without an answer."""
    return verified.equal_error


def columns_of(scores: Scores, people: Sequence[str]) -> Int64[np.ndarray, " n"]:
    """Return the column of each release's person; raises `InvalidParameter`."""
    if len(people) != len(scores.likeness) or not len(people):
        problem = f"of {len(people)} releases do not match {len(scores.likeness)} rows of scores"
        raise InvalidParameter("people", None, problem, hint="give one name for each release")
    columns = {name: column for column, name in enumerate(scores.names)}
    missing = sorted(set(people) - set(columns))
    if missing:
        problem = f"of the releases are not all known to the attacker: {len(missing)} are missing"
        raise InvalidParameter("people", None, problem, hint="closed-set attacks need photos of everybody")
    return np.array([columns[name] for name in people], np.int64)
