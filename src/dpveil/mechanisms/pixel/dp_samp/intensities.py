"""Histograms of intensities, and the few that represent a picture (DP-Samp, steps 1 and 2)."""

from __future__ import annotations

import math
from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64, Int64, UInt8

LEVELS: Final = 256
BAND: Final = 1 << 22
"""Pixels counted at once: OpenCV's counts are single precision, which is exact up to 2^24."""
ENDS: Final = 32
"""Cluster ends processed at once, which bounds the memory of k-means."""


def intensities(image: UInt8[np.ndarray, "h w c"]) -> UInt8[np.ndarray, "h w"]:
    """Return the level of every grey pixel, or the rounded luma (BT.601) of every RGB pixel.

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
    """Return the number of pixels of each intensity."""
    flat, counts = levels.reshape(-1), np.zeros(LEVELS, np.int64)
    for start in range(0, len(flat), BAND):  # np.bincount would copy to 64 bits
        counted = cv2.calcHist([flat[start : start + BAND]], [0], None, [LEVELS], [0, LEVELS])
        counts += counted.ravel().astype(np.int64)
    return counts


def frequent_levels(counts: Int64[np.ndarray, " levels"], clusters: int) -> list[int]:
    """Return the most frequent intensity of each cluster; of two equally frequent ones, the lower.

    `counts` is the histogram of intensities, which k-means divides into `clusters` clusters, or fewer if
    there are fewer different intensities.

    >>> frequent_levels(np.array([5, 3, 0, 0, 0, 2, 9]), 2)
    [0, 6]
    """
    return [int(cluster[counts[cluster].argmax()]) for cluster in k_means(counts, clusters)]


def k_means(counts: Int64[np.ndarray, " levels"], clusters: int) -> list[Int64[np.ndarray, " _"]]:
    """Return the intensities of each cluster of the optimal k-means, which is deterministic.

    On a line clusters are intervals, so dynamic programming over at most 256 intensities finds the least sum
    of squares (Wang & Song 2011) within milliseconds, without the random start and local optima of Lloyd's
    algorithm.
    """
    levels = np.flatnonzero(counts > 0)
    if clusters >= len(levels):
        return list(levels[:, None])
    sums = _running(levels.astype(np.float64), counts[levels].astype(np.float64))
    best = np.full((clusters, len(levels) + 1), np.inf)  # [k, j]: k + 1 clusters of the first j levels
    starts = np.zeros((clusters, len(levels)), np.int64)
    for end in range(0, len(levels), ENDS):
        ends = slice(end, end + ENDS)
        cost = _costs(sums, end, min(end + ENDS, len(levels)))
        best[0, 1:][ends] = cost[0]
        for k in range(1, clusters):
            before = best[k - 1, : len(cost), None] + cost  # [i, j]: last cluster from i to j
            starts[k, ends] = first = before.argmin(axis=0)
            best[k, 1:][ends] = before[first, np.arange(len(first))]
    found: list[Int64[np.ndarray, " _"]] = []
    end = len(levels)
    for k in range(clusters - 1, 0, -1):
        first = int(starts[k, end - 1])
        found.append(levels[first:end])
        end = first
    return [levels[:end], *reversed(found)]


def _running(
    levels: Float64[np.ndarray, " n"], weights: Float64[np.ndarray, " n"]
) -> Float64[np.ndarray, "3 m"]:
    """Return the sums of weight, weight·level and weight·level² over the first 0, 1, ..., n levels."""
    return np.stack([np.concatenate([[0.0], np.cumsum(weights * levels**power)]) for power in range(3)])


def _costs(sums: Float64[np.ndarray, "3 m"], first: int, stop: int) -> Float64[np.ndarray, "i j"]:
    """Return at [i, j] the sum of squares around the mean of intensities i to first + j, infinite if there
    are none.

    j is below stop - first.
    """
    total, moment, square = sums[:, None, first + 1 : stop + 1] - sums[:, :stop, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        cost = np.maximum(square - moment**2 / total, 0.0)
    return np.where(np.tri(stop, stop - first, -first - 1, dtype=bool), np.inf, cost)


def most_shown(count: int, neighbourhood: int, epsilon: float) -> int:
    """Return the largest x with C(c, x) / C(c - m, x) ≤ e^ε, for c = `count` and m = `neighbourhood` pixels.

    The ratio grows with x and is infinite beyond c - m. Logarithms of factorials are 64-bit floats. Source:
    Reilly & Fan 2021 eq. 4.

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
