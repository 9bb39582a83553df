"""Intensities of pixels, and the few of them that stand for a picture (DP-Samp, steps 1 and 2)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64, UInt8

LEVELS: Final = 256
BAND: Final = 1 << 20


def intensities(image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w"]:
    """Return the level of every grey pixel, or the luma of every RGB pixel (BT.601, rounded).

    >>> intensities(np.array([[[255, 0, 0], [9, 9, 9]]], np.uint8)).tolist()
    [[77, 9]]
    """
    if image.shape[2] == 1:
        return image[:, :, 0]
    luma = np.full(image.shape[:2], 128, np.uint16)
    for channel, weight in enumerate((77, 150, 29)):  # of 256, so that 16 bits hold the sum
        luma += image[:, :, channel] * np.uint16(weight)
    luma >>= 8
    return luma.astype(np.uint8)


def histogram(levels: UInt8[np.ndarray, "h w"]) -> Int64[np.ndarray, " 256"]:
    """Return how many pixels have each intensity."""
    flat, counts = levels.reshape(-1), np.zeros(LEVELS, np.int64)
    for start in range(0, len(flat), BAND):  # NumPy counts 64-bit copies
        counts += np.bincount(flat[start : start + BAND], minlength=LEVELS)
    return counts


def frequent_levels(counts: Int64[np.ndarray, " levels"], clusters: int) -> list[int]:
    """Return the most frequent intensity of each cluster, the lower one of two that are equally frequent.

    The clusters are those of k-means on the intensities, of which `counts` says how many there are. There
    are fewer where there are fewer different intensities.

    >>> frequent_levels(np.array([5, 3, 0, 0, 0, 2, 9]), 2)
    [0, 6]
    """
    return [int(cluster[counts[cluster].argmax()]) for cluster in k_means(counts, clusters)]


def k_means(counts: Int64[np.ndarray, " levels"], clusters: int) -> list[Int64[np.ndarray, " _"]]:
    """Return the intensities of each cluster: the best k-means of all, and always the same.

    On a line clusters are intervals, so a dynamic programme over at most 256 intensities finds the least
    sum of squares (Wang & Song 2011), in milliseconds and without the start at random that Lloyd's
    algorithm needs, which may end anywhere.
    """
    levels = np.flatnonzero(counts > 0)
    if clusters >= len(levels):
        return list(levels[:, None])
    cost = _costs(levels.astype(np.float64), counts[levels].astype(np.float64))
    best, starts = cost[0], []
    for _ in range(1, clusters):
        before = np.concatenate([[np.inf], best[:-1]])[:, None] + cost  # [i, j]: a last cluster from i to j
        starts.append(before.argmin(axis=0))
        best = before.min(axis=0)
    found: list[Int64[np.ndarray, " _"]] = []
    end = len(levels)
    for start in reversed(starts):
        first = int(start[end - 1])
        found.append(levels[first:end])
        end = first
    return [levels[:end], *reversed(found)]


def _costs(
    levels: Float64[np.ndarray, " n"], weights: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, "n n"]:
    """Return at [i, j] the sum of squares around the mean of intensities i to j, infinite for j < i."""
    sums = [np.concatenate([[0.0], np.cumsum(weights * levels**power)]) for power in range(3)]
    total, first, second = (part[None, 1:] - part[:-1, None] for part in sums)
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.maximum(second - first**2 / total, 0.0)
    return np.where(np.tri(len(levels), k=-1, dtype=bool), np.inf, cost)


def most_shown(count: int, neighbourhood: int, epsilon: float) -> int:
    """Return the largest x with C(c, x) / C(c - m, x) ≤ e^ε for c pixels (Reilly & Fan 2021 eq. 4).

    The ratio grows with x and is infinite beyond c - m. Logarithms of factorials are 64-bit floats.

    >>> most_shown(100, 1, math.log(2)), most_shown(5, 5, 10.0)
    (50, 0)
    """
    rest = count - neighbourhood

    def allowed(x: int) -> bool:
        ratio = math.lgamma(count + 1) - math.lgamma(count - x + 1)
        return ratio - math.lgamma(rest + 1) + math.lgamma(rest - x + 1) <= epsilon * (1 + 1e-12) + 1e-9

    low, high = 0, max(0, rest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low
