"""Distances between codes of different people in the public training set, to judge ε·d."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.errors import ModelError
from dpveil.noise.bits import SeededBits

SHARES: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
"""Quantiles of the pair distances that are stored."""
PAIRS: Final = 20_000
"""Number of pairs of training codes that are measured; 200 of them lie below the lowest quantile."""
CHUNK: Final = 2_000
"""Pairs measured at a time."""
Places = Float64[np.ndarray, "n m"]
"""Codes scaled so that the box is [-1, 1] in every coordinate."""


def in_parts(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return the mean absolute difference of coordinates in units of the box: `croft-metric`'s d, 0 to 1."""
    mean: Float64[np.ndarray, " n"] = np.abs(first - second).mean(axis=1) / 2
    return mean


def on_sphere(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return the chord between the codes' directions from the box's centre: d of `directional`, 0 to 2."""
    chord: Float64[np.ndarray, " n"] = np.linalg.norm(_unit(first) - _unit(second), axis=1)
    return chord


def from_middle(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return the distance of the first codes from the box's centre in half sides, 0 to √m; `second` is
    unused.
    """
    length: Float64[np.ndarray, " n"] = np.linalg.norm(first, axis=1)
    return length


MEASURES: Final[dict[str, Callable[[Places, Places], Float64[np.ndarray, " n"]]]] = {
    "mean": in_parts,
    "chord": on_sphere,
    "radius": from_middle,
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
        """Return the quantiles in a latent mechanism's metric of that name, or None if they are not
        stored.
        """
        return {"box-mean": self.mean, "chord": self.chord}.get(metric)


def distances_of(
    codes: Places, sides: Float64[np.ndarray, "2 percentiles m"], seed: int
) -> Float64[np.ndarray, "measures percentiles shares"]:
    """Return quantiles of the distances between pairs of training codes, clipped to each of the boxes.

    `sides` are the lower and upper bounds of the boxes. Pairs of different codes are drawn at random by
    `seed`. A coordinate in which a box is empty adds nothing to a distance. There must be at least two codes.
    """
    first, second = _pairs(len(codes), seed)
    out = np.empty((len(MEASURES), sides.shape[1], len(SHARES)))
    for row, (low, high) in enumerate(zip(*sides, strict=True)):
        width = np.where(high > low, high - low, np.inf)
        places = (2 * np.clip(codes, low, high) - (low + high)) / width
        for number, measure in enumerate(MEASURES.values()):
            far = [
                measure(places[first[at : at + CHUNK]], places[second[at : at + CHUNK]])
                for at in range(0, len(first), CHUNK)
            ]
            out[number, row] = np.quantile(np.concatenate(far), SHARES)
    return out


def checked_distances(
    tensor: np.ndarray, percentiles: int, length: int
) -> Float64[np.ndarray, "measures percentiles shares"]:
    """Return the distances stored in a file; raises `ModelError` for another shape, range or order."""
    distances = tensor.astype(np.float64)
    shape = (len(MEASURES), percentiles, len(SHARES))
    if distances.shape != shape or not np.isfinite(distances).all():
        raise ModelError(f"the file's pair distances are not finite, {' × '.join(map(str, shape))}")
    most = np.array([1.0, 2.0, length**0.5])[:, None, None] * (1 + 1e-9)
    if np.any(distances < 0) or np.any(distances > most) or np.any(np.diff(distances, axis=2) < 0):
        raise ModelError("the file's pair distances are not in their range or order")
    return distances


def interpolated(
    distances: Float64[np.ndarray, "measures percentiles shares"], known: list[float], at: float
) -> PairDistances:
    """Return the distances for the share `at` of clipping, interpolated linearly between `known` shares."""
    each = (
        {share: float(np.interp(at, known, column)) for share, column in zip(SHARES, rows.T, strict=True)}
        for rows in distances
    )
    return PairDistances(*each)


def _unit(places: Places) -> Places:
    """Return the codes scaled to length 1; the centre stays 0."""
    length = np.linalg.norm(places, axis=1, keepdims=True)
    return places / np.where(length > 0, length, 1)


def _pairs(count: int, seed: int) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
    words = SeededBits(seed, "apart").words(2 * PAIRS) >> np.uint64(1)
    first, step = (part.astype(np.int64) for part in np.split(words, 2))
    first %= count
    return first, (first + 1 + step % (count - 1)) % count
