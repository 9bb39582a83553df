"""Number of statistically different bins (NDB): which kinds of pictures are too many or too few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from jaxtyping import Bool, Float64, Int64

from dpveil.core.clusters import clusters, squares
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil.metrics.sets.base import Rows, check_rows
from dpveil.noise.bits import SeededBits
from dpveil.noise.public import uniforms

BINS: Final = 100
"""Bins of Richardson & Weiss for faces."""
LEVEL: Final = 0.05
"""Level of the test of each bin."""
FLAT: Final = 1e-9
"""Features whose deviation is less than this part of their largest value are constant, and do not count."""


@dataclass(frozen=True, eq=False)
class Binned:
    """A set in the bins of a reference: the share of each bin in both, and which are `different`."""

    reference: Float64[np.ndarray, " k"]
    shares: Float64[np.ndarray, " k"]
    different: Bool[np.ndarray, " k"]

    @property
    def ndb(self) -> float:
        """The share of bins that are different, NDB/K: about 0.05 for a set like the reference."""
        return float(self.different.mean())

    @property
    def divergence(self) -> float:
        """The Jensen-Shannon divergence of the shares, in nats: from 0 to ln 2."""
        middle = (self.reference + self.shares) / 2
        parts = [_entropy(one) for one in (middle, self.reference, self.shares)]
        return max(0.0, parts[0] - (parts[1] + parts[2]) / 2)


@dataclass(frozen=True, eq=False)
class Bins:
    """The clusters (k-means) of a reference set, in features divided by their deviations there.

    Source: Richardson & Weiss 2018 §3.
    """

    mean: Float64[np.ndarray, " d"]
    scale: Float64[np.ndarray, " d"]
    centres: Float64[np.ndarray, "k d"]
    counts: Int64[np.ndarray, " k"]

    @classmethod
    def of(cls, reference: Rows, count: int = BINS, *, seed: int = 0) -> Self:
        """Return `count` bins of the reference, n × d, with the start of k-means drawn by `seed`.

        Raises `InvalidParameter`, also for fewer rows than bins.
        """
        rows = check_rows("reference", reference)
        if check_count(count, "count") > len(rows):
            raise InvalidParameter("count", count, f"is more than the {len(rows)} rows", hint="20 rows a bin")
        deviations = rows.std(axis=0)
        useful = deviations > FLAT * np.abs(rows).max(axis=0)
        scale = np.where(useful, 1 / np.where(useful, deviations, 1), 0)
        mean = rows.mean(axis=0)
        centres, chosen = clusters((rows - mean) * scale, uniforms(count, SeededBits(seed, "bins")))
        return cls(mean, scale, centres, np.bincount(chosen, minlength=count))

    def compare(self, rows: Rows) -> Binned:
        """Return a set in these bins; a two-sample test of proportions at 5 % says which are different.

        Raises `InvalidParameter`.
        """
        found = check_rows("rows", rows, len(self.scale))
        chosen = squares((found - self.mean) * self.scale, self.centres).argmin(axis=1)
        counts = np.bincount(chosen, minlength=len(self.counts))
        shares = [one / one.sum() for one in (self.counts, counts)]
        return Binned(shares[0], shares[1], different(self.counts, counts))


def different(one: Int64[np.ndarray, " k"], two: Int64[np.ndarray, " k"]) -> Bool[np.ndarray, " k"]:
    """Return for which bins the shares of two sets differ, by the two-proportion z-test at `LEVEL`."""
    from scipy.special import ndtri

    n, m = one.sum(), two.sum()
    pooled = (one + two) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return np.asarray(np.abs(one / n - two / m) > -ndtri(LEVEL / 2) * error)


def _entropy(shares: Float64[np.ndarray, " k"]) -> float:
    some = shares[shares > 0]
    return float(-(some * np.log(some)).sum())
