"""Sampling of the pixels that DP-Samp shows: a fixed number per intensity, or independently.

Pixels are processed in parts, so that only few random words are in memory at a time.
"""

from __future__ import annotations

from math import sqrt
from typing import Final

import cv2
import numpy as np
from jaxtyping import Bool, Int64, UInt8, UInt64

from dpveil.noise.bits import BitSource

CHUNK: Final = 1 << 14
"""Pixels processed at once."""
SURE: Final = 7.0
"""Standard deviations around the expected threshold, within which words are kept and compared."""
LARGEST: Final = 2**64 - 1


def chosen(
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
    """Mark the pixels that are shown at once; return their numbers by intensity, and the indices and words to
    compare.
    """
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


def drawn(
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
