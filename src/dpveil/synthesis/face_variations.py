"""The public simulator: faces of nobody by a codec, variations of them, and the points by which photos vote.

Nothing here has seen a private photo: the codec and its statistics were learned from public images.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.codecs.base import Codec, Crops
from dpveil.codecs.statistics import Codes
from dpveil.core.array_types import Float64, Int16, Int64, UInt8
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import BitSource, normals
from dpveil.noise.gaussian import discrete_gaussian

UNIT: Final = 1 << 10  # l2 norm of the ballot of a person whose photos all vote alike
REPLACED: Final = 2 * UNIT**2
"""Most that replacing a person changes the sum of ballots by, as a squared L2 norm (`ballot`)."""
FINEST: Final = 1 << 12  # embeddings are whole numbers from 0 to this
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

    *Bound.* A person's photos vote for one candidate each, c_j of them for candidate j. Their ballot is v_j =
    ⌊UNIT·c_j / √(Σ c²)⌋, computed by an integer square root. So v_j ≥ 0 and Σ v_j² ≤ UNIT², however many
    photos there are. Where one person is replaced with all photos, the sum of ballots changes by v - w with
    ‖v - w‖² = ‖v‖² + ‖w‖² - 2·v·w ≤ 2·UNIT², as no entry is negative. Nobody else's ballot changes: a photo's
    vote is a function of that photo and of the public candidates, and as `nearest` is exact, it does not
    depend on which other photos are compared in the same product of matrices. ∎

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


MOST_COORDINATES: Final = 4096  # most coordinates of a code: distances are exact up to that (`nearest`)


@dataclass(frozen=True, eq=False)
class Simulator:
    """Faces of nobody by a codec that knows how codes of faces are distributed.

    That is its `prior`, or independent normal coordinates with the deviations of principal components. Raises
    `InvalidParameter` for codecs with neither, for grey ones, and for codes longer than `MOST_COORDINATES`.

    Source: Lin et al. 2024, whose two interfaces of a simulator are `draw` and `vary`.
    """

    codec: Codec

    def __post_init__(self) -> None:
        known = self.codec.prior is not None or self.codec.statistics.deviations is not None
        square = self.codec.canvas[0] == self.codec.canvas[1] and self.codec.canvas[2] == 3
        if not known or not square or self.codec.length > MOST_COORDINATES:
            problem = "draws no faces: it is grey, or how its codes are distributed is not known"
            hint = "choose gan, pca, mixture, upconv or stylegan, in colour"
            raise InvalidParameter("codec", self.codec.name, problem, hint=hint)

    def draw(self, count: int, bits: BitSource) -> Codes:
        if self.codec.prior is not None:
            return self.codec.prior.draw(count, bits)
        drawn = normals(count * self.codec.length, bits).reshape(count, -1)
        return np.asarray(drawn * self.codec.statistics.deviations)

    def vary(self, codes: Codes, angle: float, bits: BitSource) -> Codes:
        """Return a variation of every code: turned by `angle`, in radians, towards another face of nobody.

        0 gives the code, π/2 a new face. Variations of drawn codes have the spread of drawn codes.
        """
        fresh, centre = self.draw(len(codes), bits), self._centre
        turned = math.cos(angle) * (codes - centre) + math.sin(angle) * (fresh - centre)
        return np.asarray(centre + turned)

    @property
    def _centre(self) -> Float64[np.ndarray, " m"]:
        prior = self.codec.prior
        return np.zeros(self.codec.length) if prior is None else prior.weights @ prior.means

    def pictures(self, codes: Codes) -> Crops:
        return self.codec.decode(codes)

    def embed(self, crop: UInt8[np.ndarray, "s s 3"]) -> Embedded:
        """Return the point, 1 × m, by which a crop votes or is voted for: a function of this crop alone.

        It is its code, clipped to the public box and in whole steps of the box's longest side.
        """
        code = np.nan_to_num(self.codec.encode(crop[None]).astype(np.float64))
        box = self.codec.statistics.bounds()
        steps = np.rint((box.clip(code) - box.low) / box.width.max() * FINEST)
        return np.asarray(steps.astype(np.int16))

    def embed_all(self, crops: Crops) -> Embedded:
        """Return the points of crops, n × m, each computed alone."""
        points = [self.embed(crop) for crop in crops]
        return np.concatenate([*points, np.empty((0, self.codec.length), np.int16)])
