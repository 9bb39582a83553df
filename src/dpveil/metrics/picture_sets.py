"""How far apart two sets of pictures are, by features of theirs: clusters, bins, and distances of sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

import cv2
import numpy as np

from dpveil.core.arrays import Bool, Float64, Int64, UInt8
from dpveil.core.parameters import check_count
from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits, normals, uniforms

LLOYD: Final = 12  # rounds of k-means


def clusters(
    rows: Rows, uniform: Float64[np.ndarray, " k"], rounds: int = LLOYD
) -> tuple[Rows, Int64[np.ndarray, " n"]]:
    """Return the centres of as many clusters as `uniform` has numbers (0 to 1), and the cluster of each row.

    The start is k-means++ (Arthur & Vassilvitskii 2007), drawn by `uniform`. Centres without rows stay.
    """
    centres = rows[[int(uniform[0] * len(rows))]]
    far = squares(rows, centres)[:, 0]
    for number in uniform[1:]:
        total = np.cumsum(far)
        place = int(np.searchsorted(total, number * total[-1]))
        centres = np.concatenate([centres, rows[[min(place, len(rows) - 1)]]])
        far = np.minimum(far, squares(rows, centres[-1:])[:, 0])
    for _ in range(rounds):
        chosen = squares(rows, centres).argmin(axis=1)
        for j in np.unique(chosen):
            centres[j] = rows[chosen == j].mean(axis=0)
    return centres, squares(rows, centres).argmin(axis=1)


def squares(rows: Rows, centres: Rows) -> Float64[np.ndarray, "n k"]:
    """Return the squared distance of every row from each centre."""
    norms = (rows**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)
    return np.asarray(np.maximum(norms - 2 * rows @ centres.T, 0))


Rows = Float64[np.ndarray, "n d"]
"""n pictures by d features, or descriptors; finite."""
Pictures = UInt8[np.ndarray, "n h w c"]

LEAST: Final = 2  # least number of rows in a set


def check_rows(name: str, rows: Rows, width: int | None = None) -> Rows:
    """Return rows of `width` features as 64-bit floats, or raise `InvalidParameter`."""
    out = np.asarray(rows, np.float64)
    if out.ndim != 2 or len(out) < LEAST or out.shape[1] == 0:
        problem = f"are not {LEAST} or more rows of features"
        raise InvalidParameter(name, "×".join(map(str, out.shape)), problem, hint="n pictures × d features")
    if width is not None and out.shape[1] != width:
        problem = f"have {out.shape[1]} features, and the other set has {width}"
        raise InvalidParameter(name, None, problem, hint="compute both in the same way")
    if not np.isfinite(out).all():
        raise InvalidParameter(name, None, "are not all finite", hint="leave out pictures without features")
    return out


def colours(pictures: Pictures, side: int = 16) -> Rows:
    """Return the levels of pictures, n × h × w × c, averaged to `side` × `side` pixels: n × (side²·c).

    Raises `InvalidParameter`.
    """
    if pictures.dtype != np.uint8 or pictures.ndim != 4 or not 0 < side <= min(pictures.shape[1:3]):
        found = f"{pictures.dtype} {pictures.shape}"
        hint = f"uint8 n × h × w × c, with sides of {side} pixels or more"
        raise InvalidParameter("pictures", found, "cannot be averaged", hint=hint)
    small = [cv2.resize(one, (side, side), interpolation=cv2.INTER_AREA) for one in pictures]
    return np.reshape(small, (len(pictures), -1)).astype(np.float64)


BINS: Final = 100  # bins of Richardson & Weiss for faces
LEVEL: Final = 0.05  # level of the test of each bin
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


PROJECTIONS: Final = 512


def sliced_wasserstein(one: Rows, two: Rows, *, projections: int = PROJECTIONS, seed: int = 0) -> float:
    """Return the mean 1-Wasserstein distance of two sets over random directions.

    `one` is n × d and `two` m × d; n and m may differ. Directions are uniform on the unit sphere, and the
    same for the same `seed`, `projections` and d. The distance of empirical distributions along a direction
    is exact. It never is zero for two samples of one distribution: give the distance of two real sets beside.
    Raises `InvalidParameter`. Source: Rabin et al. 2011; Karras et al. 2018 §5.

    >>> near = sliced_wasserstein(np.eye(3), np.eye(3) + 1)
    >>> 0 < near < 3**0.5
    True
    """
    first = check_rows("one", one)
    second = check_rows("two", two, first.shape[1])
    turn = directions(first.shape[1], check_count(projections, "projections"), seed)
    ends = [np.sort(rows @ turn, axis=0) for rows in (first, second)]
    return float(_quantile_area(*ends).mean())


def directions(width: int, count: int, seed: int) -> Float64[np.ndarray, "d k"]:
    """Return `count` directions, uniform on the unit sphere, as columns."""
    drawn = normals(width * count, SeededBits(seed, "directions")).reshape(width, count)
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def _quantile_area(
    one: Float64[np.ndarray, "n k"], two: Float64[np.ndarray, "m k"]
) -> Float64[np.ndarray, " k"]:
    """Return the area between the quantile functions of sorted columns.

    Both are steps; in units of 1/(n·m) they change at the multiples of m and of n.
    """
    n, m = len(one), len(two)
    ends = np.union1d(np.arange(1, n + 1) * m, np.arange(1, m + 1) * n)
    widths = np.diff(ends, prepend=0)
    gaps = np.abs(one[(ends - 1) // m] - two[(ends - 1) // n])
    return np.asarray(widths @ gaps / (n * m))


def frechet(one: Rows, two: Rows) -> float:
    """Return the squared Fréchet distance |μ₁ - μ₂|² + tr(Σ₁ + Σ₂ - 2·(Σ₁Σ₂)^½) of two sets of features.

    `one` is n × d and `two` m × d. It is a Fréchet *inception* distance only for features of that network:
    always name the features. Small sets give larger distances: give that of two real sets of these sizes
    beside. Raises `InvalidParameter`. Source: Dowson & Landau 1982; Heusel et al. 2017, equation 6.

    >>> line = np.arange(5.0)[:, None]
    >>> frechet(line, line + 3)
    9.0
    """
    first = check_rows("one", one)
    second = check_rows("two", two, first.shape[1])
    roots = [_root(rows) for rows in (first, second)]
    apart = first.mean(axis=0) - second.mean(axis=0)
    # The trace of (Σ₁Σ₂)^½ is the nuclear norm of A·Bᵀ for Σ₁ = AᵀA and Σ₂ = BᵀB: no square root of a
    # product that rounding makes indefinite.
    shared = np.linalg.svd(roots[0] @ roots[1].T, compute_uv=False).sum()
    spread = sum((root**2).sum() for root in roots) - 2 * shared
    return float(apart @ apart + max(0.0, spread))


def _root(rows: Rows) -> Float64[np.ndarray, "k d"]:
    """Return A with AᵀA the sample covariance."""
    centred = (rows - rows.mean(axis=0)) / np.sqrt(len(rows) - 1)
    if len(centred) <= centred.shape[1]:
        return np.asarray(centred)
    return np.asarray(np.linalg.qr(centred, mode="r"))
