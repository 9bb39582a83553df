"""Votes of people for candidates, in whole numbers, with one bound for every person.

*Bound.* A person's photos vote for one candidate each, c_j of them for candidate j. Their ballot is
v_j = ⌊UNIT·c_j / √(Σ c²)⌋, computed by an integer square root. So v_j ≥ 0 and Σ v_j² ≤ UNIT², however many
photos there are. Where one person is replaced with all photos, the sum of ballots changes by v - w with
‖v - w‖² = ‖v‖² + ‖w‖² - 2·v·w ≤ 2·UNIT², as no entry is negative. Nobody else's ballot changes: a photo's
vote is a function of that photo and of the public candidates. Distances are compared in whole numbers below
2^53, of which sums in floating point are exact in any order. So a vote does not depend on which other photos
are compared in the same product of matrices. ∎
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float64, Int16, Int64

from dpveil.noise.bits import BitSource
from dpveil.noise.gaussian import discrete_gaussian

UNIT: Final = 1 << 10
"""L2 norm of the ballot of a person whose photos all vote alike."""
REPLACED: Final = 2 * UNIT**2
"""Most that replacing a person changes the sum of ballots by, as a squared L2 norm (docstring above)."""
FINEST: Final = 1 << 12
"""Embeddings are whole numbers from 0 to this."""
BATCH: Final = 1024

Embedded = Int16[np.ndarray, "n m"]
"""Pictures as points with whole coordinates from 0 to `FINEST`."""
Votes = Int64[np.ndarray, " k"]


def nearest(photos: Embedded, candidates: Embedded) -> Int64[np.ndarray, " n"]:
    """Return the index of the candidate nearest to each photo in Euclidean distance, the first of equals.

    All arithmetic is exact for up to 4096 coordinates: sums stay below 2^53.
    """
    known = candidates.astype(np.float64)
    squares = (known**2).sum(axis=1)
    found = np.empty(len(photos), np.int64)
    for start in range(0, len(photos), BATCH):
        part = photos[start : start + BATCH].astype(np.float64)
        found[start : start + BATCH] = (squares - 2 * (part @ known.T)).argmin(axis=1)
    return found


def ballot(choices: Int64[np.ndarray, " p"], candidates: int) -> Votes:
    """Return the ballot of one person whose photos choose these candidates: its L2 norm is at most `UNIT`.

    Someone without photos has an empty ballot.

    >>> ballot(np.array([1, 1, 1]), 3).tolist(), ballot(np.array([0, 2]), 3).tolist()
    ([0, 1024, 0], [724, 0, 724])
    """
    votes = np.zeros(candidates, np.int64)
    chosen, counts = np.unique(choices, return_counts=True)
    total = sum(int(count) ** 2 for count in counts)
    for place, count in zip(chosen, counts, strict=True):
        votes[place] = math.isqrt(int(count) ** 2 * UNIT**2 // total)
    return votes


def tally(choices: Int64[np.ndarray, " n"], people: Int64[np.ndarray, " n"], candidates: int) -> Votes:
    """Return the sum of the ballots of all people, whose numbers run beside the choices of their photos."""
    total = np.zeros(candidates, np.int64)
    order = np.argsort(people, kind="stable")
    ends = np.flatnonzero(np.diff(people[order])) + 1
    for own in np.split(choices[order], ends):
        total += ballot(own, candidates)
    return total


def noisy(votes: Votes, variance: int, bits: BitSource) -> Votes:
    """Return votes with independent discrete Gaussian noise of this variance parameter.

    If neighbours' votes differ by at most Δ in L2, this is Δ²/(2·variance)-zCDP. Source: Canonne, Kamath &
    Steinke 2020, theorem 14.
    """
    return np.asarray(votes + discrete_gaussian(Fraction(variance), len(votes), bits))


def shares(votes: Votes, threshold: float) -> Float64[np.ndarray, " k"]:
    """Return the share of each candidate: noisy votes above the threshold, or all alike if there are none."""
    above = np.where(votes > threshold, votes, 0).astype(np.float64)
    return above / above.sum() if above.any() else np.full(len(votes), 1 / len(votes))
