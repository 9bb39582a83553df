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
"""Number of pairs of training codes measured: the lowest quantile has 200 of them below."""
CHUNK: Final = 2_000
"""Pairs measured at a time."""
Places = Float64[np.ndarray, "n m"]


def in_parts(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return the mean difference of codes, places in a box from -1 to 1: d of `croft-metric`, 0 to 1."""
    mean: Float64[np.ndarray, " n"] = np.abs(first - second).mean(axis=1) / 2
    return mean


def on_sphere(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return the chord between directions of codes from the middle of a box: d of `directional`, 0 to 2."""
    chord: Float64[np.ndarray, " n"] = np.linalg.norm(_unit(first) - _unit(second), axis=1)
    return chord


def from_middle(first: Places, second: Places) -> Float64[np.ndarray, " n"]:
    """Return how far codes lie from the middle of a box, in half sides: 0 to the root of their length."""
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

    `mean`, `chord` and `radius` (see `MEASURES`) map a share of pairs to what this share does not exceed.
    A training set with several photos of one person has a few pairs of that person among them.
    """

    mean: Mapping[float, float]
    chord: Mapping[float, float]
    radius: Mapping[float, float]

    def of(self, metric: str) -> Mapping[float, float] | None:
        """Return the distances in the metric of that name of a latent mechanism, or None where not kept."""
        return {"box-mean": self.mean, "chord": self.chord}.get(metric)


def distances_of(
    codes: Places, sides: Float64[np.ndarray, "2 percentiles m"], seed: int
) -> Float64[np.ndarray, "measures percentiles shares"]:
    """Return quantiles of the distances between pairs of training codes, clipped to each of the boxes.

    Pairs are drawn at random from `seed`, each of two different codes. A coordinate without a side adds
    nothing to a distance. `codes` are those of at least two images.
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
    """Return the distances of a file; raises `ModelError` where they cannot be distances."""
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
    """Return the distances at a clip between those that are kept, by linear interpolation."""
    each = (
        {share: float(np.interp(at, known, column)) for share, column in zip(SHARES, rows.T, strict=True)}
        for rows in distances
    )
    return PairDistances(*each)


def _unit(places: Places) -> Places:
    """Return the directions of codes; what lies in the very middle has none, and stays there."""
    length = np.linalg.norm(places, axis=1, keepdims=True)
    return places / np.where(length > 0, length, 1)


def _pairs(count: int, seed: int) -> tuple[Int64[np.ndarray, " n"], Int64[np.ndarray, " n"]]:
    words = SeededBits(seed, "apart").words(2 * PAIRS) >> np.uint64(1)
    first, step = (part.astype(np.int64) for part in np.split(words, 2))
    first %= count
    return first, (first + 1 + step % (count - 1)) % count
