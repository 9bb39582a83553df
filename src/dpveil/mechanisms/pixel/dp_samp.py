"""DP-Samp: true pixels of a few intensities, interpolated (Reilly & Fan 2021 §3.2; errata E5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, Final

import numpy as np

from dpveil.accounting.compose import any_of
from dpveil.core.array_types import Bool, Float64, Int64, UInt8, UInt64
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import Count, Flag, Neighbourhood, OptionalProbability, Positive
from dpveil.core.rationals import Json, show
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.pixel.interpolation import interpolate
from dpveil.noise.bits import BitSource
from dpveil.noise.laplace import digit_tables, discrete_laplace
from dpveil.opencv import cv2

LEVELS: Final = 256
BAND: Final = 1 << 22
"""Pixels counted at once: OpenCV's counts are single precision, which is exact up to 2^24."""
ENDS: Final = 32  # cluster ends processed at once, which bounds the memory of k-means


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
    # of weight, weight·level and weight·level² over the first 0, 1, ..., n levels
    weighted = (counts[levels] * levels.astype(np.float64) ** power for power in range(3))
    sums = np.stack([np.concatenate([[0.0], np.cumsum(each)]) for each in weighted])
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


def _costs(sums: Float64[np.ndarray, "3 m"], first: int, stop: int) -> Float64[np.ndarray, "i j"]:
    """Return at [i, j] the sum of squares around the mean of intensities i to first + j, ∞ if there are none.

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

    def is_allowed(x: int) -> bool:
        ratio = math.lgamma(count + 1) - math.lgamma(count - x + 1)
        return ratio - math.lgamma(rest + 1) + math.lgamma(rest - x + 1) <= epsilon * (1 + 1e-12) + 1e-9

    low, high = 0, max(0, rest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_allowed(middle) else (low, middle)
    return low


CHUNK: Final = 1 << 14  # pixels processed at once
SURE: Final = 7.0
"""Standard deviations around the expected threshold, within which words are kept and compared."""
LARGEST: Final = 2**64 - 1


def choose_pixels(
    levels: UInt8[np.ndarray, "h w"], numbers: dict[int, tuple[int, int]], bits: BitSource
) -> Bool[np.ndarray, "h w"]:
    """Return a uniformly random set of x pixels of every intensity: those with the smallest random words.

    `numbers` are x and the number of pixels, by intensity. The x-th smallest word is known in advance up to a
    few standard deviations: pixels with smaller words are shown at once, and only words near it are kept and
    compared. If it turns out to lie elsewhere, all words are drawn again; that depends on the sorted words
    only, not on which pixel has which, so all sets stay equally likely.
    """
    flat, done = levels.reshape(-1), False
    while not done:
        shown = np.zeros(len(flat), bool)
        taken, places, words = _first_pass(flat, shown, numbers, bits)
        done = True
        for level, (x, _) in numbers.items():
            near, missing = np.flatnonzero(flat[places] == level), x - int(taken[level])
            done &= 0 <= missing <= len(near)
            if done and missing:
                shown[places[near[words[near].argpartition(missing - 1)[:missing]]]] = True
    return shown.reshape(levels.shape)


def _first_pass(
    flat: UInt8[np.ndarray, " pixels"],
    shown: Bool[np.ndarray, " pixels"],
    numbers: dict[int, tuple[int, int]],
    bits: BitSource,
) -> tuple[Int64[np.ndarray, " levels"], Int64[np.ndarray, " n"], UInt64[np.ndarray, " n"]]:
    """Mark pixels that are shown at once; return counts by intensity, and indices and words to compare."""
    low, width, wanted = np.zeros(256, np.uint64), np.zeros(256, np.uint64), np.zeros(256, np.uint8)
    for level, (x, count) in numbers.items():
        if x:
            share = x / count
            away = SURE * (sqrt(share * (1 - share) / count) + 1 / count)
            low[level] = bottom = int(max(0.0, share - away) * LARGEST)
            width[level], wanted[level] = min(LARGEST, int((share + away) * LARGEST)) - bottom, 1
    taken, places, words = np.zeros(256, np.int64), [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    for start in range(0, len(flat), CHUNK):
        part = flat[start : start + CHUNK]
        here = np.flatnonzero(np.asarray(cv2.LUT(part, wanted)).view(bool))  # three times as fast as NumPy
        kind, word = part[here], bits.words(len(here))
        least = low[kind]
        first, near = word < least, (word - least) <= width[kind]  # smaller words wrap around
        near &= ~first
        shown[start + here[first]] = True
        taken += np.bincount(kind[first], minlength=256)
        places.append(start + here[near])
        words.append(word[near])
    return taken, np.concatenate(places), np.concatenate(words)


def draw_pixels(
    levels: UInt8[np.ndarray, "h w"], thresholds: UInt64[np.ndarray, " levels"], bits: BitSource
) -> Bool[np.ndarray, "h w"]:
    """Return pixels chosen independently, each with the probability of its intensity, in units of 2^-64."""
    flat = levels.reshape(-1)
    shown, buffer = np.empty(len(flat), bool), np.empty(min(len(flat), CHUNK), np.uint64)
    for start in range(0, len(flat), CHUNK):
        part = flat[start : start + CHUNK]
        words = buffer[: len(part)]
        bits.fill(words)
        shown[start : start + len(part)] = words < thresholds[part]
    return shown.reshape(levels.shape)


SHOWN: Final = "true levels and places of the pixels that are shown"
TIME: Final = "how long counting took, which depends a little on the pixels"
BROKEN_BY: Final = (
    "looking: a shown pixel is the true one, so a neighbour that differs there never gives the same release",
    "counting: how many pixels are shown follows from private counts, which neighbours can tell apart with"
    " certainty (erratum E5)",
)


@dataclass(frozen=True, kw_only=True)
class DPSamp(PixelMethod):
    """Shows some true pixels of the most frequent intensity in each cluster, and interpolates the rest.

    k-means on the intensities (the luma, for RGB) makes `clusters` groups. Of the most frequent intensity i
    in each, which c_i pixels have, the largest x_i with C(c_i, x_i)/C(c_i - m, x_i) ≤ e^ε_i are shown with
    all their channels, where ε_i is the share of ε that c_i has of all c. `neighbourhood` is m, in pixels of
    the region's raster (default: all of them, any-image). As published this promises nothing (errata E5).
    With `private_clusters` the counts of all 256 intensities get discrete Laplace noise that costs `epsilon`;
    intensities, clusters, c_i and x_i follow from the noisy counts, and each pixel of intensity i is shown
    independently with probability min(x_i/c_i, `rate`). That is (ε, 1 - (1 - rate)^m)-DP: a large δ. `rate`
    is then required, and otherwise refused. Raises `InvalidParameter`. Source: Reilly & Fan 2021 §3.2,
    algorithm 2, equations 3 and 4; errata E5.

    >>> str(DPSamp(epsilon=3, clusters=8, neighbourhood=1).guarantee(height=480, width=640, channels=1))
    'no formal guarantee'
    >>> sound = DPSamp(epsilon=3, clusters=8, neighbourhood=2, private_clusters=True, rate="0.01")
    >>> str(sound.guarantee(height=480, width=640, channels=1))
    '(3, 0.0199)-DP, m-pixels (m = 2)'
    """

    name: ClassVar[str] = "dp-samp"
    kinds: ClassVar[tuple[str, ...]] = ("heuristic", "approximate")
    summary: ClassVar[str] = "some true pixels, interpolated; with private clusters (ε, δ) and a large δ"
    source: ClassVar[str] = "Reilly & Fan 2021, errata E5"
    help: ClassVar[Mapping[str, str]] = {
        "clusters": "How many clusters of intensities.",
        "private_clusters": "Pay for clusters and counts with epsilon.",
        "rate": "The most a pixel may be shown, as probability; with private clusters.",
    }
    typical: ClassVar[dict[str, Json]] = {"clusters": 8}

    epsilon: Positive = Positive()
    clusters: Count = Count()
    neighbourhood: Neighbourhood = Neighbourhood(optional=True)
    private_clusters: Flag = Flag(default=False)
    rate: OptionalProbability = OptionalProbability(optional=True)

    def __post_init__(self) -> None:
        if self.private_clusters and self.rate is None:
            raise InvalidParameter(
                "rate",
                None,
                "is missing",
                hint="there is no default: a pixel is shown with at most this probability, and delta is the"
                " chance that one of m pixels is; such as 0.001",
            )
        if self.rate is not None and not self.private_clusters:
            raise InvalidParameter(
                "rate", self.rate, "means nothing without private_clusters", hint="choose both, or none"
            )

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return (ε, δ) with private clusters, else a heuristic guarantee.

        *Proof.* Let H be the noisy counts and S the shown pixels of a photo x; the release is a function of
        both. Each of m changed pixels moves from one count to another, so the counts change by at most 2m in
        L1, and Laplace noise of scale 2m/ε makes H ε-DP. Given H = h, each pixel is shown or hidden
        independently, with probabilities p and p' at most `rate` in x and x'. A pixel that is the same in
        both has the same law; one that differs has at least 1 - max(p, p') ≥ 1 - rate in common, which is
        "hidden". Pixels are independent, so a coupling of both S differs with probability at most δ = 1 - (1
        - rate)^m, and P[S ∈ A_h | x] ≤ P[S' ∈ A_h | x'] + δ for every set A. Then P[(H, S) ∈ A] = Σ_h P[H =
        h]·P[S ∈ A_h] is at most Σ_h P[H = h]·P[S' ∈ A_h] + δ ≤ e^ε·P[(H', S') ∈ A] + δ. ∎ If all m pixels are
        shown at the full rate and x' has other levels there, no ε allows a smaller δ.
        """
        height, width, channels = check_size(height, width, channels)
        relation = Relation("any-image" if self.neighbourhood is None else "m-pixels", self.neighbourhood)
        covers = f"{width}×{height} pixels, {channels} channels"
        if self.rate is None:
            scope = Scope(covers, (SHOWN, "which intensities are shown, and how many pixels of each"))
            return Guarantee(kind="heuristic", relation=relation, scope=scope, broken_by=BROKEN_BY)
        counted = f"{SHOWN}: at most {show(self.rate)} of all on average, which is what delta is about"
        return Guarantee(
            kind="approximate",
            epsilon=self.epsilon,
            delta=any_of(self.rate, self._changed_pixels(height * width)),
            relation=relation,
            scope=Scope(covers, (counted, TIME)),
        )

    def count_scale(self, pixels: int) -> Fraction:
        """Return the noise scale on the counts of a region of so many pixels: 2m/ε."""
        return 2 * self._changed_pixels(pixels) / self.epsilon

    def _changed_pixels(self, pixels: int) -> int:
        return pixels if self.neighbourhood is None else min(self.neighbourhood, pixels)

    def prepare(self, *, height: int, width: int, channels: int) -> None:
        if self.rate is not None:
            digit_tables(self.count_scale(height * width))

    def _draw(self, image: UInt8[np.ndarray, "h w c"], bits: BitSource) -> UInt8[np.ndarray, "h w c"]:
        levels = intensities(image)
        counts = histogram(levels)
        if self.rate is None:
            return interpolate(image, choose_pixels(levels, self.numbers_shown(counts, levels.size), bits))
        noisy = counts + discrete_laplace(self.count_scale(levels.size), len(counts), bits)
        return interpolate(image, draw_pixels(levels, self.thresholds(noisy, levels.size), bits))

    def numbers_shown(self, counts: Int64[np.ndarray, " levels"], pixels: int) -> dict[int, tuple[int, int]]:
        """Return x_i and c_i for every selected intensity i: algorithm 2, lines 1 to 9.

        Counts, which may be noisy, are clipped to the possible range.
        """
        counts = np.clip(counts, 0, pixels)
        chosen = frequent_levels(counts, self.clusters)
        total = sum(int(counts[level]) for level in chosen)
        changed, numbers = self._changed_pixels(pixels), {}
        for level in chosen:
            count = int(counts[level])
            epsilon = self.epsilon * count / total  # eq. 3
            numbers[level] = (most_shown(count, changed, float(epsilon)), count)
        return numbers

    def thresholds(self, noisy: Int64[np.ndarray, " levels"], pixels: int) -> UInt64[np.ndarray, " levels"]:
        """Return for each intensity the probability that a pixel of it is shown, in units of 2^-64.

        It follows from noisy counts and public numbers, and is at most `rate`.
        """
        found, most = np.zeros(len(noisy), np.uint64), self.rate or Fraction(0)
        for level, (x, count) in self.numbers_shown(noisy, pixels).items():
            found[level] = int(min(Fraction(x, count), most) * 2**64)
        return found
