"""Public statistics of a codec's codes: bounds, deviations, distances, and energy in the picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Self

import numpy as np
from jaxtyping import Float32, Float64

from dpveil.codecs.pair_distances import PairDistances, checked_distances, distances_of, interpolated
from dpveil.core.numbers import Number, exact
from dpveil.errors import InvalidParameter, ModelError

Codes = Float64[np.ndarray, "n m"]

PERCENTILES: Final = tuple(Fraction(p, 1000) for p in (0, 10, 25, 50, 100, 125, 150, 200, 250, 300, 350, 400))
"""Shares of the training codes below the stored lower bounds, from 0 to 40 %; bounds in between are
interpolated."""
SHARES: Final = [float(p) for p in PERCENTILES]
"""The same as floats."""


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
        """The length of each side."""
        width: Float64[np.ndarray, " m"] = self.high - self.low
        return width

    def clip(self, codes: Codes) -> Codes:
        """Return the codes clipped to the box."""
        clipped: Codes = np.clip(codes, self.low, self.high)
        return clipped


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
        quantiles = checked_quantiles(tensors["quantiles"], length)
        distances = checked_distances(tensors["apart"], len(PERCENTILES), length)
        if not components:
            return cls(quantiles, distances, column_energy)
        spread = tensors["deviations"].astype(np.float64)
        if spread.shape != (length,) or not np.isfinite(spread).all() or np.any(spread <= 0):
            raise ModelError(f"the file's deviations are not {length} numbers above 0")
        return cls(quantiles, distances, column_energy, spread)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: all but the energy, which follows from the decoder."""
        kept = {"quantiles": self.quantiles, "apart": self.distances}
        return kept if self.deviations is None else {**kept, "deviations": self.deviations}

    @property
    def length(self) -> int:
        """The number of coordinates of a code."""
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
        return interpolated(self.distances, SHARES, _share(clip))

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
    squared: Float64[np.ndarray, " m"] = np.einsum("mp,mp->m", rows, rows, dtype=np.float64)
    return squared


def checked_quantiles(tensor: np.ndarray, length: int) -> Float64[np.ndarray, "2 percentiles m"]:
    """Return the quantiles stored in a file; raises `ModelError` for another shape or order."""
    quantiles = tensor.astype(np.float64)
    if quantiles.shape != (2, len(PERCENTILES), length) or not np.isfinite(quantiles).all():
        raise ModelError(f"the file's quantiles are not finite, 2 × {len(PERCENTILES)} × {length}")
    if not (quantiles[0, 0] < quantiles[1, 0]).all() or np.any(np.diff(quantiles[0], axis=0) < 0):
        raise ModelError("the file's quantiles are not in their order")
    return quantiles
