"""Public statistics of a codec's codes: bounds, deviations, distances, and energy in the picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np

from dpveil.assets.trained_files import arrays_of
from dpveil.core.array_types import Float32, Float64
from dpveil.core.rationals import Number, exact
from dpveil.errors import InvalidParameter, ModelError
from dpveil.noise.bits import SeededBits

PAIR_SHARES: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Quantiles of the pair distances that are stored."""
PAIRS: Final = 20_000
"""Number of pairs of training codes that are measured; 200 of them lie below the lowest quantile."""
CHUNK: Final = 2_000  # pairs measured at a time
Places = Float64[np.ndarray, "n m"]
"""Codes scaled so that the box is [-1, 1] in every coordinate."""


def _unit(places: Places) -> Places:
    length = np.linalg.norm(places, axis=1, keepdims=True)
    return places / np.where(length > 0, length, 1)  # the centre stays 0


MEASURES: Final[dict[str, Callable[[Places, Places], Float64[np.ndarray, " n"]]]] = {
    # mean difference of coordinates in units of the box, 0 to 1: d of `croft-metric`
    "mean": lambda first, second: np.abs(first - second).mean(axis=1) / 2,
    # chord between the directions from the box's centre, 0 to 2: d of `directional`
    "chord": lambda first, second: np.linalg.norm(_unit(first) - _unit(second), axis=1),
    # distance of the first codes from the centre in half sides, 0 to √m
    "radius": lambda first, _: np.linalg.norm(first, axis=1),
}
"""Pair distances whose quantiles are stored, in the order of the file."""


@dataclass(frozen=True)
class PairDistances:
    """Distances between different people of the public training set, in one box of codes.

    `mean`, `chord` and `radius` (see `MEASURES`) map a share of pairs to the quantile of their distances. If
    the training set has several photos of one person, a few pairs are of the same person.
    """

    mean: Mapping[float, float]
    chord: Mapping[float, float]
    radius: Mapping[float, float]

    def of(self, metric: str) -> Mapping[float, float] | None:
        """Return the quantiles in a latent mechanism's metric of that name, or None if none are stored."""
        return {"box-mean": self.mean, "chord": self.chord}.get(metric)


def distances_of(
    codes: Places, sides: Float64[np.ndarray, "2 percentiles m"], seed: int
) -> Float64[np.ndarray, "measures percentiles shares"]:
    """Return quantiles of the distances between pairs of training codes, clipped to each of the boxes.

    `sides` are the lower and upper bounds of the boxes. Pairs of different codes are drawn at random by
    `seed`. A coordinate in which a box is empty adds nothing to a distance. There must be at least two codes.
    """
    words = SeededBits(seed, "apart").words(2 * PAIRS) >> np.uint64(1)
    first, step = (part.astype(np.int64) for part in np.split(words, 2))
    first %= len(codes)
    second = (first + 1 + step % (len(codes) - 1)) % len(codes)
    out = np.empty((len(MEASURES), sides.shape[1], len(PAIR_SHARES)))
    for row, (low, high) in enumerate(zip(*sides, strict=True)):
        width = np.where(high > low, high - low, np.inf)
        places = (2 * np.clip(codes, low, high) - (low + high)) / width
        for number, measure in enumerate(MEASURES.values()):
            far = [
                measure(places[first[at : at + CHUNK]], places[second[at : at + CHUNK]])
                for at in range(0, len(first), CHUNK)
            ]
            out[number, row] = np.quantile(np.concatenate(far), PAIR_SHARES)
    return out


Codes = Float64[np.ndarray, "n m"]

PERCENTILES: Final = tuple(Fraction(p, 1000) for p in (0, 10, 25, 50, 100, 125, 150, 200, 250, 300, 350, 400))
"""Shares of the training codes below the stored lower bounds, from 0 to 40 %; bounds in between are
interpolated."""
SHARES: Final = [float(p) for p in PERCENTILES]  # the same as floats


@dataclass(frozen=True, eq=False)
class Bounds:
    """The public box of codes, `low` below `high` in every coordinate; codes are clipped to it before noise
    is added. Raises `InvalidParameter` if a side is empty.
    """

    low: Float64[np.ndarray, " m"]
    high: Float64[np.ndarray, " m"]

    def __post_init__(self) -> None:
        finite = np.isfinite(self.low).all() and np.isfinite(self.high).all()
        if self.low.shape != self.high.shape or not finite or not (self.low < self.high).all():
            raise InvalidParameter("bounds", None, "are not a box", hint="low below high in every coordinate")

    @property
    def width(self) -> Float64[np.ndarray, " m"]:
        return np.asarray(self.high - self.low)

    def clip(self, codes: Codes) -> Codes:
        return np.asarray(np.clip(codes, self.low, self.high))


@dataclass(frozen=True, eq=False)
class Statistics:
    """Public statistics of the training codes: all that a latent mechanism needs to know of a codec.

    `quantiles` are lower and upper bounds, one row for every share in `PERCENTILES`; `distances` between
    pairs of codes are as returned by `distances_of`. `column_energy` is W_m, the squared norm of the change
    of the picture per unit of coordinate m, in squared grey levels over all pixels and channels (FaceIDP eq.
    15). It weights the division of a budget; no guarantee depends on it. `deviations` are standard deviations
    of the codes, with mean 0, if coordinates are principal components.
    """

    quantiles: Float64[np.ndarray, "2 percentiles m"]
    distances: Float64[np.ndarray, "measures percentiles shares"]
    column_energy: Float64[np.ndarray, " m"]
    deviations: Float64[np.ndarray, " m"] | None = None

    @classmethod
    def of(
        cls,
        codes: Codes,
        column_energy: Float64[np.ndarray, " m"],
        *,
        seed: int,
        deviations: Float64[np.ndarray, " m"] | None = None,
    ) -> Self:
        """Return the statistics of the codes of at least two public crops; `seed` draws the pairs."""
        quantiles = quantiles_of(codes)
        return cls(quantiles, distances_of(codes, quantiles, seed), column_energy, deviations)

    @classmethod
    def of_tensors(
        cls, tensors: Mapping[str, Any], column_energy: Float64[np.ndarray, " m"], *, components: bool = False
    ) -> Self:
        """Return the statistics stored in a file, with deviations if coordinates are principal `components`.

        Raises `ModelError` for invalid values and `KeyError` for missing ones.
        """
        length = len(column_energy)
        known = {"2": 2, "percentiles": len(PERCENTILES), "m": length}
        known |= {"measures": len(MEASURES), "shares": len(PAIR_SHARES)}
        shapes = {"quantiles": "2 percentiles m", "distances": "measures percentiles shares"}
        stored = {"quantiles": tensors["quantiles"], "distances": tensors["apart"]}
        quantiles, distances = arrays_of(stored, known, np.float64, **shapes)
        if not (quantiles[0, 0] < quantiles[1, 0]).all() or np.any(np.diff(quantiles[0], axis=0) < 0):
            raise ModelError("the file's quantiles are not in their order")
        most = np.array([1.0, 2.0, length**0.5])[:, None, None] * (1 + 1e-9)
        if np.any(distances < 0) or np.any(distances > most) or np.any(np.diff(distances, axis=2) < 0):
            raise ModelError("the file's pair distances are not in their range or order")
        if not components:
            return cls(quantiles, distances, column_energy)
        (spread,) = arrays_of(tensors, {"m": length}, np.float64, deviations="m")
        if np.any(spread <= 0):
            raise ModelError(f"the file's deviations are not {length} numbers above 0")
        return cls(quantiles, distances, column_energy, spread)

    def tensors(self) -> dict[str, np.ndarray]:
        kept = {"quantiles": self.quantiles, "apart": self.distances}
        return kept if self.deviations is None else {**kept, "deviations": self.deviations}

    @property
    def length(self) -> int:
        return len(self.column_energy)

    def bounds(self, clip: Number = 0) -> Bounds:
        """Return the box without the outer `clip` per cent (0 to 40) of training codes at either end.

        0 is the whole training range. Bounds between the stored shares are interpolated (Li & Clifton 2021
        §3.2). Raises `InvalidParameter` for other values, and if the training codes are so concentrated in a
        coordinate that its side is empty.
        """
        at = _share(clip)
        low, high = (
            np.array([np.interp(at, SHARES, column) for column in side.T]) for side in self.quantiles
        )
        empty = np.flatnonzero(low >= high)
        if len(empty):
            problem = f"leaves no room in {len(empty)} of {self.length} coordinates"
            raise InvalidParameter(
                "clip", clip, problem, hint="choose a smaller one: codes are mostly alike there"
            )
        return Bounds(low, high)

    def pair_distances(self, clip: Number = 0) -> PairDistances:
        """Return the distances between different people of the training set, clipped to `bounds(clip)`.

        Values between the stored shares are interpolated. Raises as `bounds`.
        """
        self.bounds(clip)
        at = _share(clip)
        return PairDistances(
            *(
                {
                    share: float(np.interp(at, SHARES, column))
                    for share, column in zip(PAIR_SHARES, rows.T, strict=True)
                }
                for rows in self.distances
            )
        )

    def radius(self, clip: Number = 0) -> float:
        """Return the median distance of the training codes from the centre of the box, in half sides."""
        return self.pair_distances(clip).radius[0.5]


def _share(clip: Number) -> float:
    share = exact(clip, "clip") / 100
    if not 0 <= share <= PERCENTILES[-1]:
        raise InvalidParameter(
            "clip", clip, "is not between 0 and 40", hint="per cent on each side, such as 10"
        )
    return float(share)


def quantiles_of(codes: Codes) -> Float64[np.ndarray, "2 percentiles m"]:
    """Return the lower and upper bounds of training codes for every share in `PERCENTILES`."""
    shares = np.array(SHARES)
    return np.stack([np.quantile(codes, shares, axis=0), np.quantile(codes, 1 - shares, axis=0)])


def energies(rows: Float32[np.ndarray, "m pixels"]) -> Float64[np.ndarray, " m"]:
    """Return the squared norm of each row: W_m of a linear decoder."""
    return np.asarray(np.einsum("mp,mp->m", rows, rows, dtype=np.float64))
