"""FaceIDP as printed: noise whose scales come from the very faces it should protect (erratum E4).

For comparison only: noise in floating point, no promise at all, and no release uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64, UInt8

from dpveil.noise.bits import BitSource
from dpveil_research.published_deviations import laplace

STANDARD, PARTIAL, OPTIMAL = "standard", "partial", "optimal"
ALLOCATIONS: Final = (STANDARD, PARTIAL, OPTIMAL)
FARTHEST: Final = 2.0  # farthest edge that is searched for, in sides of the box of the training codes
NEAREST: Final = 0.1  # nearest edge, likewise
CORNERS: Final = 8  # random corners of the box that are tested

Many = Float64[np.ndarray, " m"]
Moves = Float64[np.ndarray, "n m"]
Distance = Callable[[Moves], Float64[np.ndarray, " n"]]
"""A function from moves of the code of face A to the recogniser's distances from A."""


@dataclass(frozen=True, eq=False)
class Pair:
    """Two faces as FaceIDP sees them, with A at the origin of codes and B at `move`.

    A with one coordinate moved between `low` (below 0) and `high` is still accepted as A (definition V.1),
    and so is everything within `alpha` times the box of all of these (definition V.2). `energy` is W_m in
    squared levels from 0 to 1 (eq. 15).
    """

    move: Many
    low: Many
    high: Many
    alpha: float
    energy: Many

    def outside(self, alpha: float | None = None) -> Bool[np.ndarray, " m"]:
        """Return which coordinates of B lie outside the edges times `alpha`, by default the pair's own."""
        part = self.alpha if alpha is None else alpha
        return (self.move < part * self.low) | (self.move > part * self.high)

    @property
    def sensitivity(self) -> Many:
        """S_m, the distance from B to the nearer of the scaled edges (definition V.3): private data."""
        ends = self.alpha * np.stack([self.low, self.high])
        return np.asarray(np.abs(self.move - ends).min(axis=0))

    def scales(self, allocation: str, utility: float) -> Many:
        """Return b_m of an allocation, 0 without noise, with Σ 2·W_m·b_m² = `utility` (eq. 25).

        "standard" gives every coordinate the same share of the budget, "partial" every one outside the edges,
        "optimal" these by theorem VII.1. The paper does not write down the first two.
        """
        shape = self.sensitivity if allocation != OPTIMAL else np.cbrt(self.sensitivity / self.energy)
        if allocation != STANDARD:
            shape = np.where(self.outside(), shape, 0)
        spent = 2 * float(self.energy @ shape**2)
        return np.asarray(shape * (utility / spent) ** 0.5 if spent else shape)

    def budget(self, scales: Many) -> float:
        """Return ε′ = Σ S_m/b_m over the noisy coordinates of B outside the scaled edges (eq. 43).

        Noise inside changes nothing, but at equal utility it leaves less for the coordinates outside: so
        "standard" is never below "partial", whose shape it has; and "optimal" is the least by its theorem.
        """
        noisy = (scales > 0) & self.outside()
        return float(np.sum(self.sensitivity[noisy] / scales[noisy]))

    def excess(self, scales: Many) -> float:
        """Return δ of theorem VI.1: its ε minus ε′. It grows with the noise (erratum E18).

        P_A⁺ is that of eq. 34; eq. 40 prints the distances of B in its place.
        """
        noisy = scales > 0
        b, low, high, move = (part[noisy] for part in (scales, self.low, self.high, self.move))
        stays = np.min(1 - (np.exp(-high / b) + np.exp(low / b)) / 2, initial=1.0)
        near = np.abs(move - self.alpha * np.stack([low, high]))
        out = self.outside()[noisy]
        width = self.alpha * (high - low)
        inside = np.log1p(-np.exp(-near[:, ~out] / b[~out]).sum(axis=0) / 2)
        beyond = np.log(-np.expm1(-width[out] / b[out])) - log(2)
        return float(np.log(stays) - inside.sum() - beyond.sum())


def release(
    face: UInt8[np.ndarray, "s s 3"],
    atoms: Float64[np.ndarray, "m pixels"],
    scales: Many,
    draws: int,
    bits: BitSource,
) -> UInt8[np.ndarray, "n s s 3"]:
    """Return `draws` pictures P + D·n (eq. 13): the face itself, with noise in the span of the dictionary.

    What the dictionary does not span is released unchanged (erratum E19).
    """
    noise = laplace((draws, len(scales)), bits) * scales
    return moved(face, atoms, noise)


def moved(
    face: UInt8[np.ndarray, "s s 3"], atoms: Float64[np.ndarray, "m pixels"], moves: Moves
) -> UInt8[np.ndarray, "n s s 3"]:
    """Return the face with its code moved, rounded and clamped to 0..255."""
    rows: Float64[np.ndarray, "n pixels"] = face.reshape(-1) + moves @ atoms
    shown: UInt8[np.ndarray, "n s s 3"] = np.clip(np.rint(rows), 0, 255).astype(np.uint8)
    return shown.reshape(-1, *face.shape)


def edges(distance: Distance, side: Many, cut: float) -> tuple[Many, Many]:
    """Return s_m⁻ and s_m⁺: where A with one coordinate moved is at distance `cut` from A (definition V.1).

    Each is found in two steps: from half a side of the box, and then by proportion. Edges beyond `FARTHEST`
    sides count as that far.
    """
    found = []
    for sign in (-1, 1):
        at = side / 2
        for _ in range(2):
            seen = distance(np.diag(sign * at))
            at = np.clip(at * cut / np.maximum(seen, 1e-9), NEAREST * side, FARTHEST * side)
        found.append(sign * at)
    return found[0], found[1]


def alpha_of(distance: Distance, low: Many, high: Many, cut: float, bits: BitSource) -> float:
    """Return α, the fraction of the box of edges that is all accepted as A (definition V.2).

    Only `CORNERS` random corners of the box are tested, so the true α may be smaller.
    """
    ends = np.where(bits.words(CORNERS * len(low)).reshape(CORNERS, -1) >> np.uint64(63), low, high)
    part = np.full(CORNERS, NEAREST)
    for _ in range(3):
        part = np.clip(part * cut / np.maximum(distance(part[:, None] * ends), 1e-9), 1e-3, 1.0)
    return float(part.min())
